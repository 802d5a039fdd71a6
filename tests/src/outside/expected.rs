//! What the tests of another client are expected to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

use super::On;

/// What the checked-in list of a client says of its tests on one server.
#[derive(Debug, Default)]
pub struct Expected {
    /// Tests that fail.
    failures: BTreeSet<String>,
    /// Tests that fail now and then, whatever the server does.
    races: BTreeSet<String>,
    /// Tests that are not played.
    left_out: BTreeSet<String>,
}

impl Expected {
    /// Reads `tests/<client>/expected.toml`.
    ///
    /// # Errors
    /// If an entry is not of a known kind, or lacks its test, its reason or its servers.
    pub fn read(client: &str, on: On) -> Result<Self> {
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join(client).join("expected.toml");
        let text = fs::read_to_string(&list).with_context(|| format!("{}", list.display()))?;
        Self::parse(&text, on).with_context(|| format!("{}", list.display()))
    }

    fn parse(text: &str, on: On) -> Result<Self> {
        let mut expected = Self::default();
        for (kind, entries) in text.parse::<Table>()? {
            let tests = match kind.as_str() {
                "failure" => &mut expected.failures,
                "race" => &mut expected.races,
                "left_out" => &mut expected.left_out,
                _ => bail!("an entry can be no `{kind}`"),
            };
            for entry in entries.as_array().with_context(|| format!("`{kind}` is no list"))? {
                let get = |key: &str| {
                    entry.get(key).with_context(|| format!("an entry without `{key}`: {entry}"))
                };
                let text = |key: &str| {
                    get(key)?.as_str().with_context(|| format!("`{key}` is no text: {entry}"))
                };
                ensure!(!text("reason")?.is_empty(), "an empty reason: {entry}");
                let servers = get("on")?.as_array().into_iter().flatten().filter_map(Value::as_str);
                let servers = servers.map(On::named).collect::<Result<Vec<_>>>()?;
                if servers.contains(&on) {
                    tests.insert(text("test")?.to_owned());
                }
            }
        }
        Ok(expected)
    }

    /// The tests that are not played, in the client's own words.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.left_out.iter().map(String::as_str)
    }

    /// Whether that test is expected to fail.
    pub fn is_failure(&self, test: &str) -> bool {
        self.failures.contains(test)
    }

    /// Whether a failure of that test means nothing as long as it passes when it is played again.
    pub fn is_race(&self, test: &str) -> bool {
        self.races.contains(test)
    }

    /// Compares the list with which tests passed, and gives the figures.
    ///
    /// # Errors
    /// If a test fails that is not on the list, or passes that is, or if fewer than `least` passed.
    pub fn judge(&self, passed: &BTreeMap<String, bool>, least: usize) -> Result<String, Surprise> {
        let failed = passed.iter().filter(|(_, passed)| !**passed).map(|(test, _)| test.clone());
        let failed: BTreeSet<_> = failed.collect();
        let count = passed.len() - failed.len();
        let unexpected: Vec<_> = failed.difference(&self.failures).collect();
        let unfulfilled: Vec<_> = self.failures.difference(&failed).collect();
        let surprise = |what: String, tests: Vec<&String>| {
            Err(Surprise { what, tests: tests.into_iter().cloned().collect() })
        };
        if !unexpected.is_empty() {
            return surprise(format!("these fail: {unexpected:#?}"), unexpected);
        }
        if count < least {
            return surprise(format!("only {count} tests passed"), Vec::new());
        }
        if !unfulfilled.is_empty() {
            return surprise(format!("these no longer fail: {unfulfilled:#?}"), unfulfilled);
        }
        Ok(format!("{count} passed, {} failed as expected", failed.len()))
    }
}

/// Tests that did not do what is expected of them.
#[derive(Debug)]
pub struct Surprise {
    what: String,
    tests: Vec<String>,
}

/// Lines of the log that are shown of one test: its end tells most.
const MOST_LINES: usize = 60;

impl Surprise {
    /// The same with what the log has of each of those tests behind it, and last where the whole log
    /// is: which tests it is about stands first, and is not to be looked for among thousands of lines.
    #[must_use]
    pub fn with_log(mut self, log: &Path, of: impl Fn(&str) -> String) -> Self {
        for test in &self.tests {
            let lines = of(test);
            let lines: Vec<_> = lines.lines().collect();
            let left_out = lines.len().saturating_sub(MOST_LINES);
            let _ = write!(self.what, "\n\n---- {test}");
            if left_out > 0 {
                let _ = write!(self.what, "\n… {left_out} lines before these");
            }
            for line in lines.iter().skip(left_out) {
                let _ = write!(self.what, "\n{line}");
            }
        }
        let _ = write!(self.what, "\n\nthe whole log: {}", log.display());
        self
    }
}

impl fmt::Display for Surprise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Surprise {}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[failure]]
        test = "bad"
        on = ["wok", "apache"]
        reason = "it is bad"

        [[race]]
        test = "fast"
        on = ["wok"]
        reason = "it is fast"

        [[left_out]]
        test = "fast"
        on = ["apache"]
        reason = "it is too fast"
    "#;

    #[test]
    fn an_entry_counts_on_its_own_servers() {
        let wok = Expected::parse(LIST, On::Wok).unwrap();
        let apache = Expected::parse(LIST, On::Apache).unwrap();
        assert!(wok.is_race("fast") && !apache.is_race("fast") && !wok.is_race("bad"));
        assert_eq!(wok.left_out().count(), 0);
        assert_eq!(apache.left_out().collect::<Vec<_>>(), ["fast"]);
    }

    #[test]
    fn an_entry_that_lacks_something_is_an_error() {
        let check = |from: &str, to: &str, text: &str| {
            let error = Expected::parse(&LIST.replace(from, to), On::Wok).unwrap_err();
            assert!(format!("{error:#}").contains(text), "{error:#}");
        };
        check("it is bad", "", "an empty reason");
        check("reason = \"it is bad\"", "", "without `reason`");
        check("\"wok\", ", "\"wko\", ", "no server \"wko\"");
        check("[[race]]", "[[rcae]]", "can be no `rcae`");
    }

    #[test]
    fn the_unexpected_ones_are_named_before_what_the_log_has_of_them() {
        let expected = Expected::parse(LIST, On::Wok).unwrap();
        let passed = [("bad", false), ("a", false), ("b", true)];
        let passed = passed.map(|(test, passed)| (test.to_owned(), passed)).into();
        let surprise = expected.judge(&passed, 1).unwrap_err();
        let long: String = (0..MOST_LINES + 2).map(|line| format!("line {line}\n")).collect();
        let told = surprise.with_log(Path::new("all.log"), |test| format!("{test} says\n{long}"));
        let told = told.to_string();
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(lines[..3], ["these fail: [", "    \"a\",", "]"]);
        assert_eq!(lines[4..7], ["---- a", "… 3 lines before these", "line 2"]);
        assert_eq!(lines.last(), Some(&"the whole log: all.log"));
        assert!(!told.contains("a says") && !told.contains("bad"), "{told}");
    }

    #[test]
    fn a_test_that_fails_or_passes_unexpectedly_is_told() {
        let expected = Expected::parse(LIST, On::Wok).unwrap();
        let judge = |tests: &[(&str, bool)]| {
            let passed = tests.iter().map(|(test, passed)| ((*test).to_owned(), *passed)).collect();
            expected.judge(&passed, 2).map_err(|error| error.to_string())
        };
        let figures = judge(&[("bad", false), ("a", true), ("b", true)]);
        assert_eq!(figures.as_deref(), Ok("2 passed, 1 failed as expected"));
        let error = |tests: &[(&str, bool)]| judge(tests).unwrap_err();
        assert!(error(&[("bad", true), ("a", true)]).starts_with("these no longer fail"));
        assert!(error(&[("bad", false), ("a", false)]).starts_with("these fail"));
        assert_eq!(error(&[("bad", false), ("a", true)]), "only 1 tests passed");
        assert_eq!(error(&[]), "only 0 tests passed");
    }
}
