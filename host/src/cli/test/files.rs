//! The files that `wok test` reads and writes, and what is wrong with those.

use std::fs;
use std::path::Path;

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

/// Writes a file over what is there.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::File { path: path.to_owned(), error })
}
