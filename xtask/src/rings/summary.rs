//! What the runs of cargo's tests add up to.

use anyhow::{Result, ensure};

/// The figures of cargo's own summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Figures {
    /// Adds the figures of one line, if it is a summary.
    pub(super) fn read(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else {
            return;
        };
        let Some((_verdict, counts)) = rest.split_once(". ") else {
            return;
        };
        for count in counts.split("; ") {
            let Some((number, name)) = count.split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match name {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Fails unless tests ran and none of them was skipped.
    pub(super) fn judge(self) -> Result<()> {
        ensure!(self.passed + self.failed > 0, "not one test ran");
        ensure!(
            self.ignored == 0,
            "{} tests are marked as ignored, which skips them",
            self.ignored
        );
        Ok(())
    }

    /// The figures of a part that as a whole went well or not: what failed without a test's name
    /// (it did not compile, it was killed) counts as one failure.
    pub(super) fn with_outcome(self, is_good: bool) -> Self {
        let failed = if is_good { self.failed } else { self.failed.max(1) };
        Self { failed, ..self }
    }

    /// Adds the figures of another part.
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    /// Whether nothing failed.
    pub(super) fn is_green(self) -> bool {
        self.failed == 0
    }

    /// For the table of parts; empty for a part without tests.
    pub(super) fn spell(self) -> String {
        match self {
            Self { passed: 0, failed: 0, .. } => String::new(),
            Self { passed, failed, .. } => format!("{passed} passed, {failed} failed"),
        }
    }

    /// The line that a run is judged by.
    pub(super) fn closing_line(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered \
                        out; finished in 0.21s";
    const BAD: &str = "test result: FAILED. 5 passed; 2 failed; 1 ignored; 0 measured; 0 filtered \
                       out; finished in 12.00s";

    fn read(lines: &[&str]) -> Figures {
        let mut figures = Figures::default();
        lines.iter().for_each(|line| figures.read(line));
        figures
    }

    #[test]
    fn the_summaries_of_all_runs_are_added() {
        let figures = read(&["running 12 tests", GOOD, "", BAD]);
        assert_eq!(figures, Figures { passed: 17, failed: 2, ignored: 1 });
        assert_eq!(figures.closing_line(), "17 passed, 2 failed");
        assert!(!figures.is_green());
    }

    #[test]
    fn lines_that_only_resemble_a_summary_are_left_alone() {
        let lines = ["  test result: ok. 1 passed; 0 failed", "test result: nonsense", "5 passed"];
        assert_eq!(read(&lines), Figures::default());
    }

    #[test]
    fn a_run_without_tests_or_with_ignored_ones_is_not_good() {
        assert!(read(&[]).judge().is_err());
        assert!(read(&[BAD]).judge().is_err());
        assert!(read(&[GOOD]).judge().is_ok());
    }

    #[test]
    fn a_part_that_failed_without_a_failed_test_counts_as_one() {
        assert_eq!(read(&[]).with_outcome(false).failed, 1);
        assert_eq!(read(&[BAD]).with_outcome(false).failed, 2);
        assert_eq!(read(&[GOOD]).with_outcome(true), read(&[GOOD]));
    }
}
