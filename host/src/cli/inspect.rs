//! `wok inspect`: what a module is and offers.

mod report;
mod text;
mod words;

use std::process::ExitCode;

use clap::Args;

use super::exit::Failure;
use super::next::{Next, module_word};
use super::output::Printer;
use crate::guest::{
    CompileCache, Engine, EngineOptions, Interface, Limits, Module, Operation, Pace, ValueType,
};
use crate::modules::ModuleSource;

/// Show what a module is and offers: its imports and the contract it was built for, its operations,
/// their types and its config with their documentation, its digest and size.
///
/// With --output json there are JSON Schemas, too, of its config and of each operation's arguments.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok inspect lock\n  wok inspect ./my-lock.wasm\n  \
    wok inspect --output json ./my-lock.wasm")]
pub(super) struct Arguments {
    /// The module: a stock recipe's name, or a path to a component.
    module: String,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let source = ModuleSource::parse(&self.module);
        let bytes = source.read(None).map_err(|error| Failure::Config(error.to_string()))?;
        let module = load(&source.name(), &bytes)?;
        let next = next(&source, module.interface());
        printer.report(&text::text(&module, &next), &report::report(&module, &next));
        Ok(ExitCode::SUCCESS)
    }
}

/// Compiles and checks a module that is not to run.
pub(super) fn load(name: &str, bytes: &[u8]) -> Result<Module, Failure> {
    let limits = Limits::default();
    let engine = Engine::new(&EngineOptions {
        participants: 1,
        memory: limits.memory,
        table_elements: limits.table_elements,
        cache: CompileCache::Off,
        pace: Pace::Clock,
    })
    .map_err(|error| Failure::Config(error.to_string()))?;
    Module::load(&engine, name, bytes).map_err(|error| Failure::Config(error.to_string()))
}

fn next(source: &ModuleSource, interface: &Interface) -> Next {
    let (module, before) = match source {
        ModuleSource::Stock(name) => (name.clone(), None),
        ModuleSource::File(path) => {
            let word = module_word(path);
            (word.clone(), Some(format!("wok test {word}")))
        }
    };
    let needs_nothing = |operation: &&Operation| {
        let mut parameters = operation.parameters.iter();
        parameters.all(|parameter| matches!(parameter.ty, ValueType::Option(_)))
    };
    let operation = interface.operations.iter().find(needs_nothing).map(|it| it.name.as_str());
    let hold = format!(
        "wok hold {module} --mount /try --connect 127.0.0.1:2181 {} -- printenv WOK_FENCE",
        operation.unwrap_or("OPERATION NAME=VALUE")
    );
    let fork = match source {
        ModuleSource::Stock(name) => Some(format!("wok new my-{name} --from {name}")),
        ModuleSource::File(_) => None,
    };
    Next::new(before.into_iter().chain([hold]).chain(fork))
}
