//! The wok side of the guardian's tests, as a process of its own that a test can stop and kill.
//!
//! `wok-guarded <deadline-ms> <stop-timeout-ms> once|extend|withdrawn <log> <command>...` prints
//! `deadline <nanos>`, `guardian <pid>` and at the end `outcome <...>`, and appends `gone` to the log
//! when the guardian says that nothing is left. TERM asks for a stop, USR2 for a kill, USR1 is
//! forwarded. Exits with the outcome's code, or 76 if the claim was over.
//!
//! A `withdrawn` command runs under a claim, and TERM drops the future that runs it. `gone` is then
//! appended when nothing depends on the claim any more.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::stream;
use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::interval;
use wok::clock::Boottime;
use wok::guardian::{Attendance, GuardedCommand, Guardian};
use wok::holding::{EndsBy, Terms, run_guarded};
use wok::session::Held;
use wok::tasks::Tasks;

fn main() -> ExitCode {
    if let Some(code) = wok::guardian::main_if_asked() {
        return code;
    }
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("wok-guarded: {error:#}");
            ExitCode::from(64)
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<u8> {
    wok::guardian::adopt_orphans()?;
    let mut arguments = std::env::args_os().skip(1);
    let mut word = || arguments.next().context("an argument is missing");
    let deadline = millis(&word()?)?;
    let stop_timeout = millis(&word()?)?;
    let mode = word()?;
    let log = word()?;
    let (mut term, mut usr1, mut usr2) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::user_defined1())?,
        signal(SignalKind::user_defined2())?,
    );
    let until = Boottime::now() + deadline;
    let command = GuardedCommand {
        words: arguments.collect(),
        env: vec![("WOK_FENCE".into(), "42".into())],
        stop_signal: Signal::TERM,
        stop_timeout,
        attendance: Attendance::Attended,
    };
    if mode == "withdrawn" {
        withdraw(command, until, &mut term).await?;
        tell_gone(&log, "Withdrawn")?;
        return Ok(0);
    }
    let guardian = Guardian::spawn(command, until)?;
    say(&format!("deadline {}", until.as_nanos()))?;
    let mut heartbeat = interval(Duration::from_millis(20));
    let mut id = None;
    let outcome = loop {
        if id.is_none() {
            id = guardian.id();
            id.map_or(Ok(()), |id| say(&format!("guardian {id}")))?;
        }
        tokio::select! {
            outcome = guardian.wait() => break outcome,
            _ = term.recv() => guardian.stop(),
            _ = usr1.recv() => guardian.signal(Signal::USR1),
            _ = usr2.recv() => guardian.kill_now(),
            _ = heartbeat.tick() => if mode == "extend" {
                guardian.extend(Boottime::now() + deadline);
            },
        }
    };
    tell_gone(&log, &format!("{outcome:?}"))?;
    Ok(outcome.exit_code().unwrap_or(76))
}

/// Runs the command under a claim until TERM comes, and waits until nothing depends on the claim.
async fn withdraw(command: GuardedCommand, until: Boottime, term: &mut Signals) -> Result<()> {
    let tasks = Tasks::on(Handle::current());
    let held = Held { path: "/claim".to_owned(), fence: 42 };
    let terms = Terms { deadline: until, tenure: move || Some(until) };
    let (dependent, independent) = oneshot::channel::<()>();
    let (_instruct, instructions) = mpsc::channel(1);
    {
        let ends = stream::pending::<(EndsBy, ())>();
        let running = run_guarded(&tasks, command, &held, terms, instructions, ends, dependent);
        tokio::select! {
            ended = running => bail!("the command has ended: {:?}", ended?.1),
            _ = term.recv() => {}
        }
    }
    // It is dropped, and says nothing.
    ensure!(independent.await.is_err(), "somebody has said something");
    Ok(())
}

fn tell_gone(log: &OsString, outcome: &str) -> Result<()> {
    let log = Path::new(log);
    writeln!(
        File::options().append(true).open(log).with_context(|| log.display().to_string())?,
        "gone"
    )?;
    say(&format!("outcome {outcome}"))
}

fn millis(word: &OsString) -> Result<Duration> {
    let number = word.to_str().context("not a number")?.parse()?;
    Ok(Duration::from_millis(number))
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
