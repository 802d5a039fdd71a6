//! The table.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::measure::{Machine, median};

/// What a figure must not be beyond.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// Printed for comparison.
    None,
}

/// A line of the table.
pub(crate) struct Row {
    what: String,
    unit: &'static str,
    /// The figure; the samples show how far it can be trusted.
    value: f64,
    samples: Vec<f64>,
    bound: Bound,
}

impl Row {
    /// The median of the samples.
    pub(crate) fn new(what: impl Into<String>, unit: &'static str, samples: Vec<f64>) -> Self {
        Row { what: what.into(), unit, value: median(&samples), samples, bound: Bound::None }
    }

    /// How one set of samples stands to another taken in the same rounds: the ratio of the
    /// medians, and the spread of the ratios of each round.
    pub(crate) fn ratio(what: impl Into<String>, of: &[f64], to: &[f64]) -> Self {
        let samples = of.iter().zip(to).map(|(of, to)| of / to).collect();
        Row { value: median(of) / median(to), ..Row::new(what, "x", samples) }
    }

    /// The largest of the samples instead: for what is promised each time.
    pub(crate) fn slowest(mut self) -> Self {
        self.value = self.samples.iter().copied().fold(f64::MIN, f64::max);
        self
    }

    pub(crate) fn bound(mut self, bound: Bound) -> Self {
        self.bound = bound;
        self
    }

    fn is_within(&self) -> bool {
        // As printed: a bound of 4.00 is not broken by 4.001.
        let rounded = (self.value * 100.0).round() / 100.0;
        match self.bound {
            Bound::AtMost(most) => rounded <= most,
            Bound::AtLeast(least) => rounded >= least,
            Bound::None => true,
        }
    }
}

/// What was measured so far. Each benchmark's rows are printed as soon as they are there.
pub(crate) struct Report {
    missed: usize,
}

/// Wide enough for the longest.
const WHAT: usize = 52;

impl Report {
    pub(crate) fn start() -> Self {
        say(&format!(
            "{}\n{:WHAT$} {:>10} {:4} {:>22}   bound\n",
            header(),
            "",
            "median",
            "",
            "min..max"
        ));
        Report { missed: 0 }
    }

    pub(crate) fn section(
        &mut self,
        name: &'static str,
        bench: impl FnOnce() -> Result<Vec<Row>>,
    ) -> Result<()> {
        let (machine, start) = (Machine::now(), Instant::now());
        let rows = bench()?;
        let elapsed = start.elapsed();
        say(&format!(
            "{name}, {:.0} s; other processes used {:.2} processors meanwhile\n",
            elapsed.as_secs_f64(),
            machine.foreign_since(elapsed)
        ));
        for row in rows {
            say(&line(&row));
            self.missed += usize::from(!row.is_within());
        }
        Ok(())
    }

    /// Answers whether every bound holds.
    pub(crate) fn finish(self) -> bool {
        say(&match self.missed {
            0 => "all bounds hold\n".to_owned(),
            missed => format!("{missed} missed\n"),
        });
        self.missed == 0
    }
}

fn line(row: &Row) -> String {
    let least = row.samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = row.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bound = match row.bound {
        Bound::AtMost(most) => format!("<= {most} {}", verdict(row)),
        Bound::AtLeast(least) => format!(">= {least} {}", verdict(row)),
        Bound::None => String::new(),
    };
    let spread = format!("{least:.2}..{most:.2}");
    let line =
        format!("  {:WHAT$} {:>8.2} {:4} {spread:>22}   {bound}", row.what, row.value, row.unit);
    format!("{}\n", line.trim_end())
}

fn verdict(row: &Row) -> &'static str {
    if row.is_within() { "ok" } else { "MISSED" }
}

/// When, what and where: without these a figure says nothing.
fn header() -> String {
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let git = |arguments: &[&str]| output("git", arguments).unwrap_or_default();
    let dirty = if git(&["status", "--porcelain"]).is_empty() { "" } else { " with changes" };
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = file("/proc/cpuinfo");
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    format!(
        "{}, commit {}{dirty}, {} x {}, Linux {}, load {}",
        output("date", &["--iso-8601=seconds"]).unwrap_or_default(),
        git(&["rev-parse", "--short", "HEAD"]),
        std::thread::available_parallelism().map_or(0, usize::from),
        model.unwrap_or("unknown processor"),
        file("/proc/sys/kernel/osrelease").trim(),
        file("/proc/loadavg").trim(),
    )
}

fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // Nobody reads any more: there is nobody to tell, either.
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}
