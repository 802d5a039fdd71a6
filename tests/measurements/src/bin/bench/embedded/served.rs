//! `wok zookeeper` as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use wok_tests::launch;
use wok_tests::process::wok_binary;

use crate::measure::resident_bytes_of;

/// A server that keeps its log in a directory.
pub(super) struct Served {
    child: Child,
    address: String,
    started_in: Duration,
}

impl Served {
    pub(super) fn start(data_dir: &Path) -> Result<Self> {
        let mut command = launch::command(wok_binary()?);
        command.args(["--output", "json", "zookeeper", "--listen", "127.0.0.1:0", "--data-dir"]);
        command.arg(data_dir).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = launch::start(command)?;
        let mut lines = BufReader::new(child.stderr.take().context("piped")?).lines();
        let listening = lines
            .by_ref()
            .find(|line| line.as_ref().map_or(true, |line| line.contains("\"listening\"")));
        let started_in = began.elapsed();
        let line = listening.context("the server ended")??;
        let told: serde_json::Value = serde_json::from_str(&line)?;
        let address = told.get("address").and_then(|it| it.as_str()).context("no address")?;
        let address = address.to_owned();
        // Whatever else it says is read, so that it never waits for a reader.
        std::thread::Builder::new().spawn(move || lines.for_each(drop))?;
        Ok(Served { child, address, started_in })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// From the start of the process to the word that it listens.
    pub(super) fn started_in(&self) -> Duration {
        self.started_in
    }

    pub(super) fn resident_bytes(&self) -> Result<f64> {
        resident_bytes_of(&self.child.id().to_string())
    }

    pub(super) fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a pid")?;
        kill_process(pid, Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}
