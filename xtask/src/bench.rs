//! `cargo xtask bench`: the benchmarks, each interleaved with its baseline.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::setup::{self, Purpose};
use crate::{process, progress, workspace};

/// All benchmarks.
const LIMIT: Duration = Duration::from_secs(60 * 60);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Fail where a figure misses its target
    #[arg(long)]
    check: bool,
    /// The benchmarks to run; all of them if none is named
    names: Vec<String>,
}

/// `cargo xtask bench`.
pub(crate) fn bench(arguments: &Arguments) -> Result<()> {
    setup::make_ready(Purpose::Test)?;
    progress::heading("benchmarks");
    let mut bench = workspace::released("bench")?;
    bench.args(arguments.check.then_some("--check")).args(&arguments.names);
    let status = process::run("bench", &mut bench, LIMIT, |_| {})?;
    ensure!(status.success(), "the benchmarks: {}", process::describe(status));
    Ok(())
}
