//! Ring 2: the release `.wasm` of recipes in simulation.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code, where a panic is a failed test, and what is printed are the \
              figures of a soak"
)]

mod exhaustive;
mod fingerprints;
mod judging;
mod lagging;
mod mutants;
mod rules;
mod stock;
mod strangers;

use wok::base::user_cache;
use wok::modules::ModuleSource;
use wok::simulation::subject::Subject;

/// A stock recipe, ready to be simulated.
pub(crate) fn stock(name: &str) -> Subject {
    let bytes = ModuleSource::Stock(name.to_owned()).read(None).unwrap();
    Subject::new(name, &bytes, None, user_cache()).unwrap()
}

/// A number from the environment, so that a soak can run more.
pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}
