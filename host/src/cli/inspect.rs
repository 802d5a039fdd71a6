//! `wok inspect`: what a module is and offers.

mod promised;
mod report;
mod text;
mod words;

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::exit::Failure;
use super::next::{Next, module_word, word};
use super::output::Printer;
use crate::base::user_cache;
use crate::guest::{
    Engine, EngineOptions, Field, Interface, Limits, Module, Operation, Pace, ValueType,
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
        cache: user_cache(),
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
    let (hold, call) = match settings(interface) {
        Some(settings) => {
            let (holding, answering) = proposed(interface);
            let hold = holding.map(|name| {
                format!("wok hold {module} {on}{settings} {name} -- printenv WOK_FENCE")
            });
            (hold, answering.map(|name| format!("wok call {module} {on}{settings} {name}")))
        }
        None => (None, None),
    };
    let fork = match source {
        ModuleSource::Stock(name) => Some(format!("wok new my-{name} --from {name}")),
        ModuleSource::File(_) => None,
    };
    Next::new([before, hold, call, fork].into_iter().flatten())
}

/// The settings that a module cannot do without, as options, and a number that is its only setting: it is
/// what the module is about. None if one of them is no number: what a text has to be like its type does
/// not say.
fn settings(interface: &Interface) -> Option<String> {
    let fields: Vec<_> = interface.configure.iter().flat_map(|config| &config.fields).collect();
    let number = |name: &str, ty| is_integer(ty).then(|| format!(" --config {name}=1"));
    if let [Field { name, ty: ValueType::Option(ty), .. }] = fields.as_slice() {
        return Some(number(name, ty).unwrap_or_default());
    }
    let needed = fields.into_iter().filter(|field| is_needed(&field.ty));
    needed.map(|field| number(&field.name, &field.ty)).collect()
}

/// The operation to hold with and the one to ask with, as they are typed: those that need no arguments,
/// and others only where neither would be proposed. What an operation is for is told by its answer: a
/// claim's holder is told its fence, and what answers nothing, as a release, makes no sense by itself.
fn proposed(interface: &Interface) -> (Option<String>, Option<String>) {
    let (plain, others): (Vec<_>, Vec<_>) = interface.operations.iter().partition(|operation| {
        !operation.parameters.iter().any(|parameter| is_needed(&parameter.ty))
    });
    match first_to_hold_and_to_ask(&plain) {
        (None, None) => first_to_hold_and_to_ask(&others),
        found => found,
    }
}

fn first_to_hold_and_to_ask(operations: &[&Operation]) -> (Option<String>, Option<String>) {
    let operations: Vec<(String, Answers)> = operations
        .iter()
        .filter_map(|it| Some((typed(it)?, it.result.as_ref().map_or(Answers::Nothing, answers))))
        .collect();
    let first = |wanted: Answers| {
        let found = operations.iter().find(|(_, it)| *it == wanted);
        found.map(|(typed, _)| typed.clone())
    };
    let something = first(Answers::Something);
    // Where there is something to ask for, a number is more likely to be asked for as well.
    let number = first(Answers::Number).filter(|_| something.is_none());
    let holding = first(Answers::Fence).or_else(|| first(Answers::FenceOrNone)).or(number);
    let answering =
        something.or_else(|| first(Answers::FenceOrNone)).or_else(|| first(Answers::Number));
    let answering = answering.filter(|typed| holding.as_ref() != Some(typed));
    (holding, answering)
}

/// An operation and the arguments that it needs. None if one of them is not easily thought of.
fn typed(operation: &Operation) -> Option<String> {
    let needed = operation.parameters.iter().filter(|parameter| is_needed(&parameter.ty));
    let mut words = vec![operation.name.clone()];
    for parameter in needed {
        words.push(given(&parameter.name, &parameter.ty)?);
    }
    Some(words.join(" "))
}

fn is_needed(ty: &ValueType) -> bool {
    !matches!(ty, ValueType::Option(_))
}

/// An argument with some value of its type. None if one is not easily thought of.
fn given(name: &str, ty: &ValueType) -> Option<String> {
    let value = match some_value(ty)? {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Some(word(&[name, "=", &value].concat()).into_owned())
}

fn some_value(ty: &ValueType) -> Option<Value> {
    match ty {
        ValueType::String => Some("a".into()),
        ValueType::List(item) => Some(vec![some_value(item)?].into()),
        ty => is_integer(ty).then(|| 1.into()),
    }
}

fn is_integer(ty: &ValueType) -> bool {
    matches!(
        ty,
        ValueType::U8
            | ValueType::U16
            | ValueType::U32
            | ValueType::U64
            | ValueType::S8
            | ValueType::S16
            | ValueType::S32
            | ValueType::S64
    )
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
    /// Data with a fence, if there is one: what somebody has put in, and on an empty tree nobody has.
    Taken,
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
        // Several claims at once.
        ValueType::List(item) if matches!(answers(item), Answers::Fence | Answers::Taken) => {
            answers(item)
        }
        ValueType::Record(record) => {
            let is_data = |ty: &ValueType| *ty == ValueType::Bytes;
            let fence = record.fields.iter().find(|field| field.name == "fence");
            match fence.map(|field| &field.ty) {
                Some(ValueType::Option(_)) if record.fields.iter().any(|it| is_data(&it.ty)) => {
                    Answers::Taken
                }
                Some(_) => Answers::Fence,
                None => Answers::Something,
            }
        }
        ValueType::Variant(variant) => {
            let mut carried = variant.cases.iter().filter_map(|case| case.ty.as_ref());
            match carried.any(|ty| answers(ty) == Answers::Fence) {
                true => Answers::FenceOrNone,
                false => Answers::Something,
            }
        }
        ValueType::U64 => Answers::Number,
        _ => Answers::Something,
    }
}
