//! `wok inspect`: what a module is and offers.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::exit::Failure;
use super::output::Printer;
use crate::guest::{
    CompileCache, DocState, Engine, EngineOptions, Interface, Limits, Module, Pace, RecordType,
    ValueType,
};
use crate::modules::ModuleSource;

/// Show what a module offers: its operations, its config, their documentation, its digest and
/// size.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok inspect lock\n  \
    wok inspect --output json ./my-lock.wasm")]
pub(super) struct Arguments {
    /// The module: a stock recipe's name, or a path to a component.
    module: String,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let source = ModuleSource::parse(&self.module);
        let bytes = source.read(None).map_err(|error| Failure::Config(error.to_string()))?;
        let limits = Limits::default();
        let engine = Engine::new(&EngineOptions {
            participants: 1,
            memory: limits.memory,
            table_elements: limits.table_elements,
            cache: CompileCache::Off,
            pace: Pace::Clock,
        })
        .map_err(|error| Failure::Config(error.to_string()))?;
        let module = Module::load(&engine, &source.name(), &bytes)
            .map_err(|error| Failure::Config(error.to_string()))?;
        printer.report(&text(&module), &report(&module));
        Ok(ExitCode::SUCCESS)
    }
}

fn text(module: &Module) -> String {
    let interface = module.interface();
    let mut text = String::new();
    // Writing to a string does not fail.
    let mut line = |it: &str| writeln!(text, "{it}").unwrap_or_default();
    line(&format!("{}  {}", module.name(), interface.name));
    line(&format!("  {} bytes, sha256 {}", module.size(), module.digest()));
    if let DocState::Unusable(reason) = &interface.doc_state {
        line(&format!("  no documentation: {reason}"));
    }
    if let Some(docs) = &interface.docs {
        line(&indented(docs, 2));
    }
    for operation in &interface.operations {
        line("");
        line(&format!("{}{}", operation.name, signature(operation)));
        if let Some(docs) = &operation.docs {
            line(&indented(docs, 4));
        }
    }
    if let Some(config) = &interface.configure {
        line("");
        line("config:");
        line(&fields(config));
    }
    text
}

fn fields(record: &RecordType) -> String {
    let field = |field: &crate::guest::Field| {
        let docs = field.docs.as_deref().map(|docs| format!("\n{}", indented(docs, 6)));
        format!("    {}: {}{}", field.name, in_words(&field.ty), docs.unwrap_or_default())
    };
    record.fields.iter().map(field).collect::<Vec<_>>().join("\n")
}

fn signature(operation: &crate::guest::Operation) -> String {
    let parameters: Vec<String> = operation
        .parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, in_words(&parameter.ty)))
        .collect();
    let result = operation.result.as_ref().map(|it| format!(" -> {}", in_words(it)));
    format!("({}){}", parameters.join(", "), result.unwrap_or_default())
}

fn indented(text: &str, spaces: usize) -> String {
    let indent = " ".repeat(spaces);
    text.lines().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n")
}

/// A type as WIT writes it, with names where the module has them.
fn in_words(ty: &ValueType) -> String {
    let optional = |ty: &Option<Box<ValueType>>| ty.as_deref().map_or("_".to_owned(), in_words);
    match ty {
        ValueType::Bool => "bool".to_owned(),
        ValueType::S8 => "s8".to_owned(),
        ValueType::U8 => "u8".to_owned(),
        ValueType::S16 => "s16".to_owned(),
        ValueType::U16 => "u16".to_owned(),
        ValueType::S32 => "s32".to_owned(),
        ValueType::U32 => "u32".to_owned(),
        ValueType::S64 => "s64".to_owned(),
        ValueType::U64 => "u64".to_owned(),
        ValueType::F32 => "f32".to_owned(),
        ValueType::F64 => "f64".to_owned(),
        ValueType::Char => "char".to_owned(),
        ValueType::String => "string".to_owned(),
        ValueType::Bytes => "list<u8>".to_owned(),
        ValueType::List(item) => format!("list<{}>", in_words(item)),
        ValueType::Option(some) => format!("option<{}>", in_words(some)),
        ValueType::Tuple(items) => {
            format!("tuple<{}>", items.iter().map(in_words).collect::<Vec<_>>().join(", "))
        }
        ValueType::Result { ok, err } => format!("result<{}, {}>", optional(ok), optional(err)),
        ValueType::Record(record) => {
            let field =
                |field: &crate::guest::Field| format!("{}: {}", field.name, in_words(&field.ty));
            let fields: Vec<String> = record.fields.iter().map(field).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        ValueType::Variant(variant) => match &variant.name {
            Some(name) => name.clone(),
            None => labels("variant", variant.cases.iter().map(|case| case.name.as_str())),
        },
        ValueType::Enum(names) => {
            labels("enum", names.labels.iter().map(|label| label.name.as_str()))
        }
        ValueType::Flags(names) => {
            labels("flags", names.labels.iter().map(|label| label.name.as_str()))
        }
    }
}

fn labels<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> String {
    format!("{kind} {{ {} }}", names.collect::<Vec<_>>().join(", "))
}

fn report(module: &Module) -> Value {
    let interface: &Interface = module.interface();
    let operations: Vec<Value> = interface
        .operations
        .iter()
        .map(|operation| {
            json!({
                "name": operation.name,
                "docs": operation.docs,
                "parameters": operation.parameters.iter()
                    .map(|parameter| json!({
                        "name": parameter.name,
                        "type": in_words(&parameter.ty),
                    }))
                    .collect::<Vec<_>>(),
                "result": operation.result.as_ref().map(in_words),
            })
        })
        .collect();
    let config = interface.configure.as_ref().map(|record| {
        let field = |field: &crate::guest::Field| {
            json!({ "name": field.name, "type": in_words(&field.ty), "docs": field.docs })
        };
        record.fields.iter().map(field).collect::<Vec<_>>()
    });
    json!({
        "module": module.name(),
        "interface": interface.name,
        "docs": interface.docs,
        "size": module.size(),
        "sha256": module.digest(),
        "wake": interface.has_wake,
        "operations": operations,
        "config": config,
    })
}
