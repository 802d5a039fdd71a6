//! A module for programs.

use serde_json::{Value, json};

use super::promised::Promised;
use super::words::{NamedTypes, docs, kind};
use crate::cli::next::Next;
use crate::guest::values::{arguments_schema, config_schema};
use crate::guest::{DocState, Module, Operation, RecordType};

pub(super) fn report(module: &Module, promised: &Promised, next: &Next) -> Value {
    let interface = module.interface();
    let named = NamedTypes::of(interface);
    let operations: Vec<Value> =
        interface.operations.iter().map(|it| operation(it, &named)).collect();
    let types: Vec<Value> = named
        .iter()
        .map(|(name, ty)| {
            json!({
                "name": name,
                "kind": kind(ty),
                "docs": docs(ty),
                "parts": named.documented_parts(ty).into_iter()
                    .map(|(part, docs)| json!({ "part": part, "docs": docs }))
                    .collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "module": module.name(),
        "interface": interface.name,
        "docs": interface.docs,
        "documentation": documentation(&interface.doc_state),
        "size": module.size(),
        "sha256": module.digest(),
        "contract": module.contract_version(),
        "imports": module.imports(),
        "wake": interface.has_wake,
        "operations": operations,
        "types": types,
        "config": interface.configure.as_ref().map(|config| fields(config, &named)),
        "config-schema": config_schema(interface),
        "judge": promised.judge_json(),
        "workload": promised.workload_json(),
        "next": next.json(),
    })
}

fn operation(operation: &Operation, named: &NamedTypes<'_>) -> Value {
    let parameters: Vec<Value> = operation
        .parameters
        .iter()
        .map(|it| json!({ "name": it.name, "type": named.in_words(&it.ty) }))
        .collect();
    json!({
        "name": operation.name,
        "docs": operation.docs,
        "parameters": parameters,
        "result": operation.result.as_ref().map(|it| named.in_words(it)),
        "arguments-schema": arguments_schema(operation),
    })
}

fn fields(config: &RecordType, named: &NamedTypes<'_>) -> Vec<Value> {
    let field = |it: &crate::guest::Field| json!({ "name": it.name, "type": named.in_words(&it.ty), "docs": it.docs });
    config.fields.iter().map(field).collect()
}

fn documentation(state: &DocState) -> Value {
    match state {
        DocState::Documented => json!({ "state": "matches" }),
        DocState::Absent => json!({ "state": "absent" }),
        DocState::Unusable(reason) => json!({ "state": "unusable", "reason": reason }),
    }
}
