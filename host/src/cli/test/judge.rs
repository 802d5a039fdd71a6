//! Which judge `wok test` asks, and how it is told.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::super::exit::Failure;
use super::super::next::path_word;
use super::super::output::Printer;
use crate::guest::{CompileCache, Judge, JudgeError, carried_judge};
use crate::modules::ModuleSource;
use crate::simulation::subject::Subject;
use crate::simulation::verdict::VerdictError;

/// The judge that was asked for, or the one that stands beside a module that carries none. None leaves
/// it to the module.
pub(super) fn given(
    asked_for: Option<&Path>,
    module: &ModuleSource,
    bytes: &[u8],
    cache: &CompileCache,
) -> Result<Option<Judge>, Failure> {
    if let Some(path) = asked_for {
        return load(path, cache).map(Some);
    }
    match module {
        ModuleSource::File(module) if carried_judge(bytes).is_none() => {
            let beside = module.with_extension("judge.wasm");
            if beside.is_file() { load(&beside, cache).map(Some) } else { Ok(None) }
        }
        ModuleSource::File(_) | ModuleSource::Stock(_) => Ok(None),
    }
}

fn load(path: &Path, cache: &CompileCache) -> Result<Judge, Failure> {
    let name = path.display().to_string();
    let bytes = fs::read(path)
        .map_err(|error| Failure::Config(format!("cannot read the judge {name}: {error}")))?;
    Judge::load(&name, &bytes, cache).map_err(|error| of_judge(&error))
}

/// What a run without a verdict is for the command line.
pub(super) fn failure(error: &VerdictError) -> Failure {
    match error {
        VerdictError::Judge(error) => of_judge(error),
        VerdictError::Plan(error) => Failure::Config(error.to_string()),
    }
}

fn of_judge(error: &JudgeError) -> Failure {
    match error {
        JudgeError::Failed { .. } => Failure::Module(error.to_string()),
        error => Failure::Config(error.to_string()),
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
