//! The files that `wok test` reads and writes, and what is wrong with those.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::exit::Failure;
use crate::simulation::scenario::Scenario;
use crate::simulation::subject::SubjectError;
use crate::simulation::world::PlanError;

/// A scenario.
pub(super) fn read_scenario(path: &Path) -> Result<Scenario, Failure> {
    Scenario::read(&path.display().to_string(), &read("scenario", path)?)
        .map_err(|error| Failure::Config(error.to_string()))
}

/// Why a module cannot be tested, or not as a scenario says.
pub(super) fn of_subject(error: &SubjectError, scenario: Option<&Scenario>) -> Failure {
    match error {
        SubjectError::Scenario { error, .. } => of_plan(error, scenario),
        error => Failure::Config(error.to_string()),
    }
}

/// What is wrong with a plan, with the place of it in its scenario.
pub(super) fn of_plan(error: &PlanError, scenario: Option<&Scenario>) -> Failure {
    Failure::Config(match scenario {
        Some(scenario) => scenario.wrong(error).to_string(),
        None => error.to_string(),
    })
}

/// A file, and what it is called if it cannot be read.
pub(super) fn read(what: &str, path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path)
        .map_err(|error| Failure::Config(format!("the {what} {}: {error}", path.display())))
}

/// Writes a scenario into a file of that name, and answers which. Somebody may have gone on from the file that
/// an earlier run has left, so no other scenario is written over: the file gets a number then.
pub(super) fn write_scenario(stem: &str, text: &str) -> Result<PathBuf, Failure> {
    let numbered = (2_u32..).map(|number| format!("{stem}-{number}.toml"));
    let mut names = std::iter::once(format!("{stem}.toml")).chain(numbered).map(PathBuf::from);
    // What cannot be read cannot be written either, which is said then.
    let is_free = |path: &PathBuf| fs::read(path).map_or(true, |there| there == text.as_bytes());
    let path = names.find(is_free).unwrap_or_else(|| PathBuf::from(format!("{stem}.toml")));
    write(&path, text).map(|()| path)
}

/// Writes a file over what is there.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::File { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_that_somebody_has_changed_is_not_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let stem = directory.path().join("lock-seed-17").display().to_string();
        let first = write_scenario(&stem, "as it was found").unwrap();
        assert_eq!(write_scenario(&stem, "as it was found").unwrap(), first);
        fs::write(&first, "as somebody has changed it").unwrap();
        let second = write_scenario(&stem, "as it was found").unwrap();
        assert_ne!(second, first);
        assert_eq!(fs::read_to_string(&first).unwrap(), "as somebody has changed it");
        assert_eq!(fs::read_to_string(&second).unwrap(), "as it was found");
        assert!(write_scenario("/nowhere/at-all", "").is_err());
    }
}
