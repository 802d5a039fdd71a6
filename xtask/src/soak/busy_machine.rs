//! CI's tests on a machine that has other work: at the lowest priority, beside a busy loop for each
//! processor.
//!
//! Each loop is a session of its own, as if it ran in another terminal. A kernel that schedules by
//! session (`CONFIG_SCHED_AUTOGROUP`, which is usual) gives the tests a share as large as that of a
//! loop. Any other kernel gives them next to nothing, and they do not end in time.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::process::{self, Group};
use crate::progress::spell;
use crate::setup::{self, Purpose};

/// How long the tests of some rings may take, in minutes: about four times as long as by themselves.
const MINUTES: u64 = 150;

/// The tests say first when their own time is up.
const LIMIT: Duration = Duration::from_secs((MINUTES + 10) * 60);

/// Plays these rings and gives their figures.
pub(super) fn play(rings: &[&str]) -> Result<Vec<String>> {
    setup::make_ready(Purpose::Test)?;
    let processors = std::thread::available_parallelism().context("count the processors")?;
    let _loops = (0..processors.get()).map(|_| busy_loop()).collect::<Result<Vec<_>>>()?;

    let xtask = std::env::current_exe().context("find this program")?;
    let mut test = Command::new("nice");
    test.args(["-n", "19"]).arg(xtask).args(["test", "--within", &MINUTES.to_string()]).args(rings);
    let (started, mut last) = (Instant::now(), String::new());
    let status = process::run("cargo xtask test", &mut test, LIMIT, |line| {
        line.clone_into(&mut last);
    })?;
    ensure!(status.success(), "cargo xtask test: {}; {last}", process::describe(status));
    let (took, rings) = (spell(started.elapsed()), rings.join(" and "));
    Ok(vec![format!("ring {rings}: {took} at nice 19 beside {processors} busy loops"), last])
}

/// A process that computes until it is dropped, or this program ends.
fn busy_loop() -> Result<Group> {
    let mut command = Command::new("unshare");
    // A leader of a group cannot begin a session, so `unshare` is the leader and has a child.
    command.args(["--fork", "--kill-child", "setsid", "sh", "-c", "while :; do :; done"]);
    Group::start("a busy loop", &mut command)
}
