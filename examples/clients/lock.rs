//! Holds a lock and works under it: `lock RECIPE [STEPS]`
//!
//! Ends with 0 after that many steps, or goes on without STEPS. Ends with 76 as soon as the lock is lost.

#![allow(clippy::indexing_slicing, reason = "JSON answers null for a key that is not there")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, process, thread};

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// The lock is held until this, on `CLOCK_BOOTTIME`, in milliseconds.
static DEADLINE: AtomicU64 = AtomicU64::new(u64::MAX);

fn main() -> Result<()> {
    let mut words = env::args().skip(1);
    let recipe = words.next().context("usage: lock RECIPE [STEPS]")?;
    let steps = words.next().map(|steps| steps.parse()).transpose()?.unwrap_or(u64::MAX);
    let mut lines = join(&recipe)?;
    let mut fence = None;
    while fence.is_none() {
        fence = read_line(&mut lines);
    }
    let fence = fence.unwrap_or_default();
    thread::spawn(move || {
        loop {
            // It wakes at the deadline where wok says nothing more.
            lines.get_ref().set_read_timeout(Some(time_left())).ok();
            read_line(&mut lines);
        }
    });
    for step in 1..=steps {
        // This process may have been stopped for long, and wok as well.
        time_left();
        // Whatever is written to should refuse a fence that is lower than the highest it has seen.
        say(&format!("step {step} with fence {fence}"));
        #[allow(clippy::disallowed_methods, reason = "it stands for the work of a step")]
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn socket() -> PathBuf {
    // A variable that is empty counts as one that is not set.
    let set = |name| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(socket) = set("WOK_SOCKET") {
        return socket;
    }
    let uid = rustix::process::geteuid();
    let runtime = match set("XDG_RUNTIME_DIR") {
        _ if uid.is_root() => "/run/wok".into(),
        Some(runtime) => runtime,
        None => env::temp_dir().join(format!("wok-{}", uid.as_raw())),
    };
    runtime.join("wok.sock")
}

/// Joins. The answer to HTTP/1.0 is not cut into chunks: behind its head there are only lines.
fn join(recipe: &str) -> Result<BufReader<UnixStream>> {
    let mut stream = UnixStream::connect(socket())?;
    let body = r#"{"call": "acquire"}"#;
    let path = format!("/v1/recipes/{recipe}/join?alive=500ms");
    let head = format!("POST {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes())?;
    let mut lines = BufReader::new(stream);
    let (mut status, mut line) = (String::new(), String::new());
    lines.read_line(&mut status)?;
    while line != "\r\n" {
        line.clear();
        ensure!(lines.read_line(&mut line)? > 0, "the answer broke off");
    }
    if !status.contains(" 200 ") {
        line.clear();
        lines.read_line(&mut line)?;
    }
    ensure!(status.contains(" 200 "), "{line}");
    Ok(lines)
}

/// Reads a line, and answers the fence if the line says that the lock is held.
fn read_line(lines: &mut BufReader<UnixStream>) -> Option<String> {
    let mut text = String::new();
    if lines.read_line(&mut text).is_err() {
        give_up("nothing was heard until the deadline");
    }
    let line: Value =
        serde_json::from_str(&text).unwrap_or_else(|_| give_up("the stream broke off"));
    if let Some(deadline) = line["deadline-boottime-ms"].as_u64() {
        DEADLINE.store(deadline, Ordering::Relaxed);
    }
    match line["event"].as_str().unwrap_or_default() {
        "waiting" => say("waiting"),
        "held" => {
            let fence = line["fence"].to_string().replace('"', "");
            say(&format!("held with fence {fence}"));
            return Some(fence);
        }
        "lost" | "leaving" | "released" | "refused" | "ended" => {
            give_up(line["message"].as_str().unwrap_or(&line["error"].to_string()));
        }
        _ => {}
    }
    None
}

/// How long the lock is held for sure. Ends the process if it is not.
fn time_left() -> Duration {
    let now = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or(Duration::MAX);
    let deadline = Duration::from_millis(DEADLINE.load(Ordering::Relaxed));
    match deadline.checked_sub(now) {
        Some(left) if !left.is_zero() => left,
        _ => give_up("the deadline has passed"),
    }
}

fn give_up(why: &str) -> ! {
    say(&format!("lost: {why}"));
    process::exit(76)
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").ok();
}
