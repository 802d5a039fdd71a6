//! The benchmarks of wok, each interleaved with its baseline in the same run.
//!
//! `cargo xtask bench [--check] [names]` runs this program. It prints one table: medians, the
//! spread of the rounds, and the bound where there is one. With `--check` a broken bound is a
//! failure.
//!
//! - [`waiters`]: memory of participants that wait.
//! - [`crowd`]: ten thousand of them, with the default config.
//! - [`sandbox`]: what a call into a component, out of it, a new one, and a look at a long line cost.
//! - [`cycle`]: an acquire and its release with nobody else about.
//! - [`limits`]: the same with the limits that users get, and without a limit of its rate.
//! - [`contention`]: many participants of one lock, on one session.
//! - [`failover`]: from the end of a holder to the next of a hundred who wait.
//! - [`recipes`]: double barrier, semaphore and read-write lock, beside Curator and kazoo as well.
//! - `queues`, in [`recipes`]: items one by one and in batches, beside them as well.
//! - `observers`, in [`recipes`]: a thousand of one configuration, while it changes.
//! - [`api`]: what the local API adds to an operation, and what an app takes.
//! - [`heartbeats`]: what a session costs the ensemble.
//! - [`kill`]: the hand-over after a crash.
//! - [`embedded`]: wok's own server beside Apache ZooKeeper.
//! - [`simulation`]: runs of the lock in simulation.
//!
//! [`native`] is the baseline: the same recipes, written against the client crate by hand, on a
//! runtime of its own. [`ground`] is what all share: the server, the runtimes, the host.

mod api;
mod contention;
mod crowd;
mod cycle;
mod embedded;
mod failover;
mod ground;
mod heartbeats;
mod kill;
mod limits;
mod lock;
mod measure;
mod native;
mod recipes;
mod report;
mod sandbox;
mod simulation;
mod stock;
mod waiters;

use std::process::ExitCode;

use anyhow::{Result, bail};

use ground::Ground;
use report::Report;

/// A benchmark: what it is called, and what fills its rows.
type Bench = (&'static str, fn(&Ground) -> Result<Vec<report::Row>>);

/// In the order in which they run.
const BENCHES: &[Bench] = &[
    ("waiters", waiters::bench),
    ("crowd", crowd::bench),
    ("sandbox", sandbox::bench),
    ("cycle", cycle::bench),
    ("limits", limits::bench),
    ("contention", contention::bench),
    ("failover", failover::bench),
    ("recipes", recipes::bench),
    ("queues", recipes::queues),
    ("observers", recipes::observers),
    ("api", api::bench),
    ("heartbeats", heartbeats::bench),
    ("kill", kill::bench),
    ("embedded", embedded::bench),
    ("simulation", simulation::bench),
];

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, cache] = arguments.as_slice()
        && flag == waiters::IN_CHILD
    {
        waiters::measure(cache.as_ref())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let [flag, who, address] = arguments.as_slice()
        && flag == crowd::IN_CHILD
    {
        crowd::measure(who, address)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (options, names): (Vec<_>, Vec<_>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.starts_with("--"));
    let checks = match options.as_slice() {
        [] => false,
        ["--check"] => true,
        unknown => bail!("unknown options {unknown:?}; there is --check"),
    };
    let known: Vec<_> = BENCHES.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("no benchmark {unknown:?}; there are {}", known.join(", "));
    }
    let chosen = |name: &str| names.is_empty() || names.contains(&name);

    let ground = Ground::new()?;
    let mut report = Report::start();
    for (name, bench) in BENCHES.iter().filter(|(name, _)| chosen(name)) {
        report.section(name, || bench(&ground))?;
    }
    let is_within = report.finish();
    Ok(if checks && !is_within { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
