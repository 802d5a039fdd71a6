//! A module for people.

use super::promised::Promised;
use super::words::{NamedTypes, docs, kind};
use crate::cli::next::Next;
use crate::guest::{DocState, Module, Operation};

pub(super) fn text(module: &Module, promised: &Promised, next: &Next) -> String {
    let interface = module.interface();
    let named = NamedTypes::of(interface);
    let mut lines = vec![
        format!("{}  {}", module.name(), interface.name),
        format!("  {} bytes, sha256 {}", module.size(), module.digest()),
        format!("  {}", imports(module)),
        format!("  {}", documentation(&interface.doc_state)),
    ];
    lines.extend(indented(interface.docs.as_deref(), 2));
    for operation in &interface.operations {
        lines.push(String::new());
        lines.push(format!("{}{}", operation.name, signature(operation, &named)));
        lines.extend(indented(operation.docs.as_deref(), 4));
    }
    for (name, ty) in named.iter() {
        lines.push(String::new());
        lines.push(format!("{} {name}", kind(ty)));
        lines.extend(indented(docs(ty), 4));
        lines.extend(parts(named.documented_parts(ty)));
    }
    if let Some(config) = &interface.configure {
        lines.push(String::new());
        lines.push("config:".to_owned());
        let fields = config.fields.iter();
        let fields = fields
            .map(|it| (format!("{}: {}", it.name, named.in_words(&it.ty)), it.docs.as_deref()));
        lines.extend(parts(fields.collect()));
    }
    lines.push(String::new());
    lines.extend(promised.text());
    lines.push(String::new());
    lines.push(next.text());
    lines.join("\n")
}

fn imports(module: &Module) -> String {
    let Some(version) = module.contract_version() else {
        return "imports nothing, and so cannot reach ZooKeeper".to_owned();
    };
    let short = |import: &String| {
        let name = import.rsplit('/').next().unwrap_or(import);
        name.split('@').next().unwrap_or(name).to_owned()
    };
    let imports: Vec<String> = module.imports().iter().map(short).collect();
    format!("contract {version}, of which it imports {}", imports.join(", "))
}

fn documentation(state: &DocState) -> String {
    match state {
        DocState::Documented => "documented by its own WIT, which matches its types".to_owned(),
        DocState::Absent => {
            "no documentation: `wok build` would have added it, and did not make this".to_owned()
        }
        DocState::Unusable(reason) => format!("no documentation: {reason}"),
    }
}

fn parts(parts: Vec<(String, Option<&str>)>) -> Vec<String> {
    let lines = |(part, docs): (String, Option<&str>)| {
        let mut lines = vec![format!("    {part}")];
        lines.extend(indented(docs, 8));
        lines
    };
    parts.into_iter().flat_map(lines).collect()
}

fn signature(operation: &Operation, named: &NamedTypes<'_>) -> String {
    let parameters: Vec<String> = operation
        .parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, named.in_words(&parameter.ty)))
        .collect();
    let result = operation.result.as_ref().map(|it| format!(" -> {}", named.in_words(it)));
    format!("({}){}", parameters.join(", "), result.unwrap_or_default())
}

fn indented(text: Option<&str>, spaces: usize) -> Vec<String> {
    let indent = " ".repeat(spaces);
    let indented =
        |line: &str| if line.is_empty() { String::new() } else { format!("{indent}{line}") };
    text.into_iter().flat_map(str::lines).map(indented).collect()
}
