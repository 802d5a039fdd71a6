//! A program and whatever it started, found by a mark in their environment. Process groups and
//! parents would miss those who left them, which is exactly what some tests provoke.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::patience::eventually;

pub(super) const VARIABLE: &str = "WOK_TESTS_MARK";

/// A value for [`VARIABLE`] that nobody else has.
pub(super) fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}.{}.", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Who has the mark. Zombies have no environment and are not counted.
pub(super) fn marked(mark: &str) -> BTreeSet<u32> {
    let wanted = format!("{VARIABLE}={mark}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| has_variable(*id, &wanted)).collect()
}

/// Whether there is a process with that id, a zombie included.
pub fn is_there(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// Signals a process that is known to live, so that its id is not another's.
///
/// # Errors
/// If it has ended.
pub fn signal(process: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).context("a process id")?;
    kill_process(pid, signal).with_context(|| format!("signal process {process}"))
}

/// Stops a process that is known to live where it stands, and waits until all its threads do.
///
/// One thread hears of the signal and stops the others. As long as that thread gets no processor,
/// the others go on.
///
/// # Errors
/// If it has ended.
pub async fn pause(process: u32) -> Result<()> {
    signal(process, Signal::STOP)?;
    let stands_still = async || Ok(stands_still(process)?.then_some(()));
    eventually(&format!("process {process} to stand still"), stands_still).await
}

/// Whether all threads of a process are stopped.
fn stands_still(process: u32) -> Result<bool> {
    let has_ended = || format!("process {process} has ended");
    let threads = fs::read_dir(format!("/proc/{process}/task")).with_context(has_ended)?;
    let mut stopped = 0;
    for thread in threads {
        // A thread that ends meanwhile has no state any more.
        let Ok(stat) = fs::read_to_string(thread?.path().join("stat")) else { continue };
        // The state is behind the name, which is in parentheses and can contain any.
        match stat.rsplit_once(") ").and_then(|(_, state)| state.chars().next()) {
            Some('T') => stopped += 1,
            Some('Z' | 'X') => {}
            _ => return Ok(false),
        }
    }
    ensure!(stopped > 0, has_ended());
    Ok(true)
}

fn has_variable(process: u32, wanted: &str) -> bool {
    // It fails for other users' processes and for those that have just ended.
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// Kills the processes that have the mark, and those that get it meanwhile.
pub(super) fn kill(mark: &str) {
    let wanted = format!("{VARIABLE}={mark}");
    // A process can start others only while it lives, so this ends; the bound is for a fork bomb.
    for _ in 0..1_000 {
        let ids = marked(mark);
        if ids.is_empty() {
            return;
        }
        for id in ids {
            let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
            let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            // Looked at again: between the list and the handle the id may have become another's.
            if let Some(handle) = handle.filter(|_| has_variable(id, &wanted)) {
                pidfd_send_signal(handle, Signal::KILL).ok();
            }
        }
        std::thread::yield_now();
    }
}
