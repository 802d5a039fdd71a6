//! A file to which several programs append, so that a test can tell what came first.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::patience::eventually;
use crate::scratch;

/// The file. Appends of one short line are atomic, so the order of the lines is the order in which
/// they were written, whatever any clock says.
#[derive(Debug)]
pub struct OrderFile {
    _directory: TempDir,
    path: PathBuf,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was written.
    pub label: String,
    /// When, by the machine's clock since 1970. For figures; the order is that of the lines.
    pub at: Duration,
}

impl OrderFile {
    /// A new, empty file.
    ///
    /// # Errors
    /// If there is nowhere to put it.
    pub fn new() -> Result<OrderFile> {
        let directory = scratch::dir()?;
        let path = directory.path().join("order");
        fs::write(&path, "")?;
        Ok(OrderFile { _directory: directory, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A shell command that appends `label`. The label is expanded by the shell, within double
    /// quotes: `held $WOK_FENCE` writes the value. A signal to the whole group may end `date` in the middle
    /// and not a shell that traps it, so `date` is asked again.
    pub fn append(&self, label: &str) -> String {
        let path = self.path.display();
        format!("{{ until at=$(date +%s%N); do :; done; echo \"$at {label}\" >> '{path}'; }}")
    }

    /// Appends `label` from the test itself.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, label: &str) -> Result<()> {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let mut file = fs::OpenOptions::new().append(true).open(&self.path)?;
        Ok(file.write_all(format!("{nanos} {label}\n").as_bytes())?)
    }

    /// The lines so far.
    ///
    /// # Errors
    /// If a line was not written by [`OrderFile::append`].
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let text = fs::read_to_string(&self.path)?;
        let entry = |line: &str| {
            let (nanos, label) = line.split_once(' ')?;
            Some(Entry { label: label.into(), at: Duration::from_nanos(nanos.parse().ok()?) })
        };
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        whole.map(|line| entry(line).with_context(|| format!("the line {line:?}"))).collect()
    }

    /// The labels so far.
    ///
    /// # Errors
    /// As [`OrderFile::entries`].
    pub fn labels(&self) -> Result<Vec<String>> {
        Ok(self.entries()?.into_iter().map(|entry| entry.label).collect())
    }

    /// Waits until a line with that label was appended, and answers the first such.
    ///
    /// # Errors
    /// If none is; the error has the lines that were.
    pub async fn wait_for(&self, label: &str) -> Result<Entry> {
        let what = format!("the line {label:?}");
        let found = eventually(&what, async || {
            Ok(self.entries()?.into_iter().find(|entry| entry.label == label))
        });
        found.await.with_context(|| format!("the order so far: {:?}", self.labels()))
    }
    /// Waits until so many lines were appended of which each is `label` and a process id, as
    /// `append("begins $$")` makes them; answers the last of these ids.
    ///
    /// # Errors
    /// If they are not; the error has the lines that were.
    pub async fn wait_for_pid(&self, label: &str, times: usize) -> Result<u32> {
        let what = format!("the line \"{label} <pid>\", {times} times");
        let found = eventually(&what, async || {
            let labels = self.labels()?;
            let mut pids =
                labels.iter().filter_map(|it| it.strip_prefix(label)?.trim().parse().ok());
            Ok(pids.nth(times.saturating_sub(1)))
        });
        found.await.with_context(|| format!("the order so far: {:?}", self.labels()))
    }
}
