//! What a module is tried by: the judge of its promise, and the workload beside it. `wok test` takes
//! them, and `wok inspect` names them.

use std::path::{Path, PathBuf};

use super::exit::Failure;
use crate::guest::{CompileCache, Judge, JudgeError, carried_judge};
use crate::modules::ModuleSource;
use crate::named_file;

/// The judge that was asked for, or the one that stands beside a module that carries none. None leaves
/// it to the module.
pub(super) fn judge(
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
    let bytes = named_file::read(path, Judge::MAX_BYTES)
        .map_err(|error| Failure::Config(format!("cannot read the judge {name}: {error}")))?;
    Judge::load(&name, &bytes, cache).map_err(|error| of_judge(&error))
}

/// What is wrong with a judge, for the command line.
pub(super) fn of_judge(error: &JudgeError) -> Failure {
    match error {
        JudgeError::Failed { .. } => Failure::Module(error.to_string()),
        error => Failure::Config(error.to_string()),
    }
}

/// The workload in the module's directory, if there is one: a change of it needs no build.
pub(super) fn workload(module: &ModuleSource) -> Option<PathBuf> {
    let ModuleSource::File(module) = module else { return None };
    let beside = module.with_file_name("").join(wok_build::WORKLOAD_FILE);
    beside.is_file().then_some(beside)
}
