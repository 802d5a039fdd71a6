//! References in arguments: `"$item.path"` stands for the field `path` of the answer that an earlier
//! call of the same application bound as `item`. A text that begins with `$$` is one that begins with
//! `$`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::chance::Chance;
use super::workload::fitting;
use crate::guest::{Operation, ValueType};

/// The answers that an application's participant has bound, by their names.
pub(super) type Bound = BTreeMap<String, Value>;

/// A reference to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    pub(super) name: &'a str,
    /// The fields that lead to the part that is meant.
    pub(super) fields: Vec<&'a str>,
}

impl<'a> Reference<'a> {
    /// The one that a text is, if it is one.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let path = text.strip_prefix('$').filter(|path| !path.starts_with('$'))?;
        let mut parts = path.split('.');
        Some(Reference { name: parts.next()?, fields: parts.collect() })
    }

    fn value(&self, bound: &Bound) -> Option<Value> {
        let mut value = bound.get(self.name)?;
        for field in &self.fields {
            value = match value {
                Value::Array(items) => items.get(field.parse::<usize>().ok()?)?,
                value => value.get(field)?,
            };
        }
        Some(value.clone()).filter(|value| !value.is_null())
    }
}

/// All references in some arguments.
pub(super) fn references(arguments: &Value) -> Vec<Reference<'_>> {
    match arguments {
        Value::String(text) => Reference::of(text).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Object(fields) => fields.values().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// The arguments with what was bound in place of the references; none if some of it was not.
pub(super) fn resolved(arguments: &Value, bound: &Bound) -> Option<Value> {
    Some(match arguments {
        Value::String(text) => match Reference::of(text) {
            Some(reference) => reference.value(bound)?,
            None => Value::String(text.strip_prefix('$').unwrap_or(text).to_owned()),
        },
        Value::Array(items) => {
            items.iter().map(|item| resolved(item, bound)).collect::<Option<_>>()?
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, it)| Some((name.clone(), resolved(it, bound)?)))
                .collect::<Option<_>>()?
        }
        plain => plain.clone(),
    })
}

/// The arguments with something of the type that an operation takes there in place of each
/// reference, so that the rest of them can be checked.
pub(super) fn stand_in(operation: &Operation, arguments: &Value) -> Value {
    let Value::Object(fields) = arguments else { return arguments.clone() };
    let ty_of = |name: &str| match operation.body() {
        Some(record) => record.fields.iter().find(|field| field.name == name).map(|it| &it.ty),
        None => operation.parameters.iter().find(|it| it.name == name).map(|it| &it.ty),
    };
    fields.iter().map(|(name, value)| (name.clone(), of_type(ty_of(name), value))).collect()
}

fn of_type(ty: Option<&ValueType>, value: &Value) -> Value {
    match (value, ty) {
        (Value::String(text), _) => match (Reference::of(text), ty) {
            (Some(_), Some(ty)) => fitting(ty, &mut Chance::new(0, "a reference's place")),
            (Some(_), None) => Value::Null,
            (None, _) => Value::String(text.strip_prefix('$').unwrap_or(text).to_owned()),
        },
        (value, Some(ValueType::Option(some))) => of_type(Some(some), value),
        (Value::Array(items), ty) => {
            let ty_at = |index: usize| match ty {
                Some(ValueType::List(item)) => Some(&**item),
                Some(ValueType::Tuple(types)) => types.get(index),
                _ => None,
            };
            items.iter().enumerate().map(|(index, item)| of_type(ty_at(index), item)).collect()
        }
        (Value::Object(fields), ty) => {
            let ty_of = |name: &str| match ty {
                Some(ValueType::Record(record)) => {
                    record.fields.iter().find(|field| field.name == name).map(|it| &it.ty)
                }
                Some(ValueType::Variant(variant)) => {
                    variant.cases.iter().find(|case| case.name == name)?.ty.as_ref()
                }
                Some(ValueType::Result { ok, .. }) if name == "ok" => ok.as_deref(),
                Some(ValueType::Result { err, .. }) if name == "err" => err.as_deref(),
                _ => None,
            };
            fields.iter().map(|(name, it)| (name.clone(), of_type(ty_of(name), it))).collect()
        }
        (plain, _) => plain.clone(),
    }
}

/// Why an operation's answer has no part that these fields lead to; nothing if it has one.
pub(super) fn missing_part(operation: &Operation, fields: &[&str]) -> Option<String> {
    let mut ty = match &operation.result {
        Some(ValueType::Result { ok: Some(ok), .. }) => present(ok),
        Some(ValueType::Result { ok: None, .. }) | None => {
            return Some(format!("{} answers nothing", operation.name));
        }
        Some(ty) => present(ty),
    };
    for field in fields {
        let inner = match ty {
            ValueType::Record(record) => {
                record.fields.iter().find(|it| it.name == *field).map(|it| &it.ty)
            }
            ValueType::Tuple(types) => field.parse::<usize>().ok().and_then(|it| types.get(it)),
            // How long it is is not known before it is there.
            ValueType::List(item) => field.parse::<usize>().ok().map(|_| &**item),
            _ => None,
        };
        match inner {
            Some(inner) => ty = present(inner),
            None => return Some(format!("what {} answers has no {field}", operation.name)),
        }
    }
    None
}

fn present(ty: &ValueType) -> &ValueType {
    match ty {
        ValueType::Option(some) => present(some),
        ty => ty,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(arguments: Value, expected: Option<Value>) {
        let bound = Bound::from([
            (
                "item".to_owned(),
                json!({ "path": "/a", "parts": [1, { "name": "b" }], "none": null }),
            ),
            ("id".to_owned(), json!(7)),
        ]);
        assert_eq!(resolved(&arguments, &bound), expected);
    }

    #[test]
    fn a_reference_is_what_was_bound() {
        check(json!({ "path": "$item.path" }), Some(json!({ "path": "/a" })));
        check(json!(["$id", "$item.parts.1.name"]), Some(json!([7, "b"])));
        check(json!({ "text": "a $id", "n": 1 }), Some(json!({ "text": "a $id", "n": 1 })));
    }

    #[test]
    fn two_dollars_are_one() {
        check(json!("$$id"), Some(json!("$id")));
        check(json!("a$$b"), Some(json!("a$$b")));
    }

    #[test]
    fn what_was_not_bound_leaves_nothing_to_call() {
        check(json!({ "path": "$thing" }), None);
        check(json!({ "path": ["$item.size"] }), None);
        check(json!("$item.none"), None);
        check(json!("$item.parts.2"), None);
    }
}
