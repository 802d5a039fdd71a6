//! What the system knows of this process, and what a set of samples comes to.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// Processor time that this process has used, in all its threads.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Resident bytes of a process: its id, or `self`.
pub(crate) fn resident_bytes_of(process: &str) -> Result<f64> {
    rolled_up(process, "Rss:")
}

/// The same, with a page that several mappings share counted once, for what many participants of one
/// process take: a page of a component's data that no instance has written to is the same for all of them.
pub(crate) fn proportional_bytes_of(process: &str) -> Result<f64> {
    rolled_up(process, "Pss:")
}

/// A sum over all mappings, counted exactly: `statm` lags by a batch of pages per processor.
fn rolled_up(process: &str, sum: &str) -> Result<f64> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix(sum));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: f64 = kib.with_context(|| format!("smaps_rollup has no {sum}"))?.trim().parse()?;
    Ok(kib * 1024.0)
}

/// Processor time in seconds since boot: of all processes, and of this one with its children.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    all: f64,
    ours: f64,
}

/// Of `/proc/<pid>/stat` and `/proc/stat`, which count in `USER_HZ`: a constant of Linux's ABI.
const TICKS_PER_SECOND: f64 = 100.0;

impl Machine {
    pub(crate) fn now() -> Self {
        let all = fs::read_to_string("/proc/stat").unwrap_or_default();
        let busy = all.lines().next().map(|line| {
            let columns: Vec<f64> =
                line.split_whitespace().skip(1).filter_map(|it| it.parse().ok()).collect();
            // user, nice, system, idle, iowait, irq, softirq; steal is nobody's here.
            [0, 1, 2, 5, 6].iter().filter_map(|column| columns.get(*column)).sum::<f64>()
        });
        Machine {
            all: busy.unwrap_or_default() / TICKS_PER_SECOND,
            ours: cpu_time().as_secs_f64() + children_seconds(),
        }
    }

    /// Processors that other processes used since then, on average.
    pub(crate) fn foreign_since(self, elapsed: Duration) -> f64 {
        let now = Machine::now();
        let foreign = (now.all - self.all) - (now.ours - self.ours);
        (foreign / elapsed.as_secs_f64()).max(0.0)
    }
}

/// What this process's living children have used: the server.
fn children_seconds() -> f64 {
    let own = std::process::id().to_string();
    let mut seconds = 0.0;
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
        // The name, in parentheses, may contain anything; what follows starts with the state.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let columns: Vec<&str> = rest.split(' ').collect();
        if columns.get(1) != Some(&own.as_str()) {
            continue;
        }
        let ticks = columns.iter().skip(11).take(2).filter_map(|it| it.parse::<f64>().ok());
        seconds += ticks.sum::<f64>() / TICKS_PER_SECOND;
    }
    seconds
}

/// The sample that 99 of 100 are below; none of none.
pub(crate) fn p99(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * 99 / 100).copied().unwrap_or(f64::NAN)
}

/// The middle of the samples; none of none.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or(f64::NAN);
    match sorted.len() % 2 {
        1 => upper,
        _ => middle
            .checked_sub(1)
            .and_then(|it| sorted.get(it))
            .map_or(upper, |it| (it + upper) / 2.0),
    }
}
