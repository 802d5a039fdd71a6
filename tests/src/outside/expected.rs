//! What the tests of another client are expected to do.

use std::collections::{BTreeMap, BTreeSet};
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
    pub fn judge(&self, passed: &BTreeMap<String, bool>, least: usize) -> Result<String> {
        let failed = passed.iter().filter(|(_, passed)| !**passed).map(|(test, _)| test.clone());
        let failed: BTreeSet<_> = failed.collect();
        let count = passed.len() - failed.len();
        let unexpected: Vec<_> = failed.difference(&self.failures).collect();
        let unfulfilled: Vec<_> = self.failures.difference(&failed).collect();
        ensure!(unexpected.is_empty(), "these fail: {unexpected:#?}");
        ensure!(count >= least, "only {count} tests passed");
        ensure!(unfulfilled.is_empty(), "these no longer fail: {unfulfilled:#?}");
        Ok(format!("{count} passed, {} failed as expected", failed.len()))
    }
}

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
