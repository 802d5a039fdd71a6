//! `wok inspect`: what a module is and offers.

mod promised;
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
use promised::Promised;

/// Show what a module is and offers: its imports and the contract it was built for, its operations,
/// their types and its config with their documentation, its digest and size; and what `wok test` tries
/// it by: the judge of what it promises, with its digest and its invariants, and the workload.
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
        let promised = Promised::of(&source, &bytes, &module)?;
        let next = next(&source, module.interface());
        printer.report(
            &text::text(&module, &promised, &next),
            &report::report(&module, &promised, &next),
        );
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

/// Commands that work as they stand here, on an empty tree.
fn next(source: &ModuleSource, interface: &Interface) -> Next {
    let (module, before) = match source {
        ModuleSource::Stock(name) => (name.clone(), None),
        ModuleSource::File(path) => {
            let word = module_word(path);
            (word.clone(), Some(format!("wok test {word}")))
        }
    };
    let on = "--mount /try --connect 127.0.0.1:2181";
    let (holding, answering) = proposed(interface);
    let hold = holding.map(|name| format!("wok hold {module} {on} {name} -- printenv WOK_FENCE"));
    let call = answering.map(|name| format!("wok call {module} {on} {name}"));
    let fork = match source {
        ModuleSource::Stock(name) => Some(format!("wok new my-{name} --from {name}")),
        ModuleSource::File(_) => None,
    };
    Next::new([before, hold, call, fork].into_iter().flatten())
}

/// The operation to hold with and the one to ask with, if there are any that need no arguments. What
/// an operation is for is told by its answer: a claim's holder is told its fence, and what answers
/// nothing, as a release, makes no sense by itself.
fn proposed(interface: &Interface) -> (Option<&str>, Option<&str>) {
    let needs_nothing = |operation: &&Operation| {
        let mut parameters = operation.parameters.iter();
        parameters.all(|parameter| matches!(parameter.ty, ValueType::Option(_)))
    };
    let operations: Vec<(&str, Answers)> = interface
        .operations
        .iter()
        .filter(needs_nothing)
        .map(|it| (it.name.as_str(), it.result.as_ref().map_or(Answers::Nothing, answers)))
        .collect();
    let first = |wanted: Answers| operations.iter().find(|(_, it)| *it == wanted);
    let [holding, answering] = [
        [Answers::Fence, Answers::FenceOrNone, Answers::Number],
        [Answers::Something, Answers::FenceOrNone, Answers::Number],
    ]
    .map(|kinds| kinds.into_iter().find_map(first).map(|(name, _)| *name));
    (holding, answering.filter(|name| holding != Some(name)))
}

/// What an operation answers, as far as it tells what the operation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// A fence.
    Fence,
    /// A fence, or none.
    FenceOrNone,
    /// A number that may be a fence: that it is one its type does not say.
    Number,
    /// Something else.
    Something,
    /// Nothing but that it is done.
    Nothing,
}

fn answers(ty: &ValueType) -> Answers {
    match ty {
        ValueType::Result { ok: Some(ok), .. } => answers(ok),
        ValueType::Result { ok: None, .. } => Answers::Nothing,
        ValueType::Option(inner) => match answers(inner) {
            Answers::Fence => Answers::FenceOrNone,
            other => other,
        },
        ValueType::Record(record) if record.fields.iter().any(|field| field.name == "fence") => {
            Answers::Fence
        }
        ValueType::U64 => Answers::Number,
        _ => Answers::Something,
    }
}
