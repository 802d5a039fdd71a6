//! What the reader takes, as JSON Schema: for editors and for programs that make forms.

use serde_json::{Map, Value, json};

use crate::guest::interface::{Interface, Operation};
use crate::guest::value_type::{Case, Field, Labels, RecordType, ValueType};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Most digits of a 64-bit integer that is written as a string.
const DIGITS: &str = "[0-9]{1,20}$";

/// The schema of a recipe's config; none if it takes none.
pub fn config_schema(interface: &Interface) -> Option<Value> {
    interface.configure.as_ref().map(|config| with_dialect(record(config)))
}

/// The schema of the body of a call.
pub fn arguments_schema(operation: &Operation) -> Value {
    with_dialect(match (operation.body(), operation.parameters.as_slice()) {
        (Some(body), _) => record(body),
        (None, []) => json!({ "type": ["object", "null"], "additionalProperties": false }),
        (None, parameters) => object(parameters.iter().map(|it| (it.name.as_str(), &it.ty, None))),
    })
}

/// The schema of an answer.
pub fn answer_schema(operation: &Operation) -> Value {
    match &operation.result {
        None => json!({ "type": "null" }),
        Some(ValueType::Result { ok, .. }) => {
            ok.as_deref().map_or_else(|| json!({ "type": "null" }), schema)
        }
        Some(ty) => schema(ty),
    }
}

/// The schema of an operation's own error; none if it has none.
pub fn error_schema(operation: &Operation) -> Option<Value> {
    match &operation.result {
        Some(ValueType::Result { err, .. }) => {
            Some(err.as_deref().map_or_else(|| json!({ "type": "null" }), schema))
        }
        _ => None,
    }
}

fn with_dialect(mut schema: Value) -> Value {
    if let Value::Object(object) = &mut schema {
        object.insert("$schema".to_owned(), json!(DIALECT));
    }
    schema
}

pub(super) fn schema(ty: &ValueType) -> Value {
    match ty {
        ValueType::Bool => json!({ "type": "boolean" }),
        ValueType::S8 => integer(i8::MIN, i8::MAX),
        ValueType::U8 => integer(u8::MIN, u8::MAX),
        ValueType::S16 => integer(i16::MIN, i16::MAX),
        ValueType::U16 => integer(u16::MIN, u16::MAX),
        ValueType::S32 => integer(i32::MIN, i32::MAX),
        ValueType::U32 => integer(u32::MIN, u32::MAX),
        ValueType::S64 => any_of([integer(i64::MIN, i64::MAX), text(&format!("^-?{DIGITS}"))]),
        ValueType::U64 => any_of([integer(u64::MIN, u64::MAX), text(&format!("^{DIGITS}"))]),
        ValueType::F32 | ValueType::F64 => {
            any_of([json!({ "type": "number" }), json!({ "enum": ["nan", "inf", "-inf"] })])
        }
        ValueType::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        ValueType::String => json!({ "type": "string" }),
        ValueType::Bytes => any_of([
            json!({ "type": "string" }),
            one_field("base64", json!({ "type": "string", "contentEncoding": "base64" })),
        ]),
        ValueType::List(element) => json!({ "type": "array", "items": schema(element) }),
        ValueType::Option(inner) => any_of([json!({ "type": "null" }), some(inner)]),
        ValueType::Tuple(types) => json!({
            "type": "array",
            "prefixItems": types.iter().map(schema).collect::<Vec<_>>(),
            "minItems": types.len(),
            "maxItems": types.len(),
        }),
        ValueType::Result { ok, err } => {
            any_of([("ok", ok), ("err", err)].map(|(name, ty)| case(name, ty.as_deref(), None)))
        }
        ValueType::Record(it) => record(it),
        ValueType::Variant(variant) => {
            let cases = variant.cases.iter();
            let cases = cases.map(|it: &Case| case(&it.name, it.ty.as_ref(), it.docs.as_deref()));
            described(any_of(cases), variant.docs.as_deref())
        }
        ValueType::Enum(names) => described(labels(names), names.docs.as_deref()),
        ValueType::Flags(names) => {
            described(json!({ "type": "array", "items": labels(names) }), names.docs.as_deref())
        }
    }
}

/// An option in an option says `some`, where null could be either.
fn some(inner: &ValueType) -> Value {
    match inner {
        ValueType::Option(_) => one_field("some", schema(inner)),
        _ => schema(inner),
    }
}

fn record(record: &RecordType) -> Value {
    let fields = record.fields.iter();
    let object = object(fields.map(|it: &Field| (it.name.as_str(), &it.ty, it.docs.as_deref())));
    described(object, record.docs.as_deref())
}

fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a ValueType, Option<&'a str>)>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, ty, docs) in fields {
        properties.insert(name.to_owned(), described(schema(ty), docs));
        if !matches!(ty, ValueType::Option(_)) {
            required.push(name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn one_field(name: &str, schema: Value) -> Value {
    let properties = Map::from_iter([(name.to_owned(), schema)]);
    json!({
        "type": "object",
        "properties": properties,
        "required": [name],
        "additionalProperties": false,
    })
}

fn case(name: &str, ty: Option<&ValueType>, docs: Option<&str>) -> Value {
    let schema = match ty {
        None => json!({ "const": name }),
        Some(ty) => one_field(name, schema(ty)),
    };
    described(schema, docs)
}

fn labels(names: &Labels) -> Value {
    any_of(names.labels.iter().map(|it| case(&it.name, None, it.docs.as_deref())))
}

fn integer<T: Into<i128>>(minimum: T, maximum: T) -> Value {
    // Every bound is of 64 bits at most, and so a number.
    let number = |bound: T| {
        let bound: i128 = bound.into();
        serde_json::from_str::<Value>(&bound.to_string()).ok()
    };
    json!({ "type": "integer", "minimum": number(minimum), "maximum": number(maximum) })
}

fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({ "anyOf": schemas.into_iter().collect::<Vec<_>>() })
}

/// The words of where a type is used come before those of the type.
fn described(mut schema: Value, docs: Option<&str>) -> Value {
    if let (Value::Object(object), Some(docs)) = (&mut schema, docs) {
        object.insert("description".to_owned(), json!(docs));
    }
    schema
}
