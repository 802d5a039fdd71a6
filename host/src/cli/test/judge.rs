//! How the judge that `wok test` asks is told.

use std::path::Path;

use serde_json::{Value, json};

use super::super::exit::Failure;
use super::super::next::path_word;
use super::super::output::Printer;
use super::super::promise::of_judge;
use super::files::of_plan;
use crate::simulation::scenario::Scenario;
use crate::simulation::subject::Subject;
use crate::simulation::verdict::VerdictError;

/// What a run without a verdict is for the command line.
pub(super) fn failure(error: &VerdictError, scenario: Option<&Scenario>) -> Failure {
    match error {
        VerdictError::Judge(error) => of_judge(error),
        VerdictError::Plan(error) => of_plan(error, scenario),
        VerdictError::Seed { seed, error } => {
            let of_seed =
                |text| format!("{text}; so it was with seed {seed}: `--seed {seed}` runs it alone");
            match failure(error, scenario) {
                Failure::Module(text) => Failure::Module(of_seed(text)),
                Failure::Config(text) => Failure::Config(of_seed(text)),
                other => other,
            }
        }
    }
}

/// As it is typed once more.
pub(super) fn argument(asked_for: Option<&Path>) -> String {
    asked_for.map(|path| format!(" --judge {}", path_word(path))).unwrap_or_default()
}

/// Reports what was found, and who judged it. Where nobody did, the gaps have said so.
pub(super) fn report(printer: &Printer, subject: &Subject, mut text: String, mut json: Value) {
    let judge = subject.judge().map(|judge| {
        let (name, digest) = (judge.name(), judge.digest());
        text = format!("{text}\njudged by {name}, sha256 {digest}");
        json!({ "name": name, "sha256": digest })
    });
    if let Some(json) = json.as_object_mut() {
        json.insert("judge".to_owned(), judge.unwrap_or(Value::Null));
    }
    printer.report(&text, &json);
}
