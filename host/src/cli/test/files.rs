//! The files that `wok test` reads and writes.

use std::fs;
use std::path::Path;

use super::super::exit::Failure;
use crate::simulation::plan::Plan;

/// A scenario.
pub(super) fn read_plan(path: &Path) -> Result<Plan, Failure> {
    toml::from_str(&read("scenario", path)?)
        .map_err(|error| Failure::Config(format!("the scenario {}: {error}", path.display())))
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
