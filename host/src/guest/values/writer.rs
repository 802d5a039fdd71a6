//! Component values to JSON, guided by their types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value, json};
use wasmtime::component::Val;

use super::{EXACT, unsigned};
use crate::guest::value_type::{Case, Field, ValueType};

/// The JSON of a value. A value that is not of the type, which wasmtime rules out, is null.
pub(in crate::guest) fn write(ty: &ValueType, value: &Val) -> Value {
    match (ty, value) {
        (_, Val::Bool(value)) => Value::Bool(*value),
        (_, Val::S8(value)) => Value::from(*value),
        (_, Val::U8(value)) => Value::from(*value),
        (_, Val::S16(value)) => Value::from(*value),
        (_, Val::U16(value)) => Value::from(*value),
        (_, Val::S32(value)) => Value::from(*value),
        (_, Val::U32(value)) => Value::from(*value),
        (_, Val::S64(value)) if value.unsigned_abs() <= EXACT => Value::from(*value),
        (_, Val::S64(value)) => Value::String(value.to_string()),
        (_, Val::U64(value)) => unsigned(*value),
        (_, Val::Float32(value)) => write_float(f64::from(*value)),
        (_, Val::Float64(value)) => write_float(*value),
        (_, Val::Char(value)) => Value::String(value.to_string()),
        (_, Val::String(value) | Val::Enum(value)) => Value::String(value.clone()),
        (ValueType::Bytes, Val::List(items)) => write_bytes(items),
        (ValueType::List(element), Val::List(items)) => {
            items.iter().map(|item| write(element, item)).collect()
        }
        (ValueType::Tuple(types), Val::Tuple(items)) => {
            types.iter().zip(items).map(|(ty, item)| write(ty, item)).collect()
        }
        (ValueType::Option(inner), Val::Option(Some(value))) => match **inner {
            ValueType::Option(_) => json!({ "some": write(inner, value) }),
            _ => write(inner, value),
        },
        (ValueType::Result { ok, .. }, Val::Result(Ok(payload))) => {
            write_case("ok", ok.as_deref(), payload.as_deref())
        }
        (ValueType::Result { err, .. }, Val::Result(Err(payload))) => {
            write_case("err", err.as_deref(), payload.as_deref())
        }
        (ValueType::Record(record), Val::Record(fields)) => write_record(&record.fields, fields),
        (ValueType::Variant(variant), Val::Variant(name, payload)) => {
            let case = variant.cases.iter().find(|case: &&Case| case.name == *name);
            write_case(name, case.and_then(|case| case.ty.as_ref()), payload.as_deref())
        }
        (ValueType::Flags(_), Val::Flags(names)) => json!(names),
        _ => Value::Null,
    }
}

/// As [`write`]; null where there is nothing.
pub(in crate::guest) fn write_optional(ty: Option<&ValueType>, value: Option<&Val>) -> Value {
    match (ty, value) {
        (Some(ty), Some(value)) => write(ty, value),
        _ => Value::Null,
    }
}

/// Fields that are none are left out.
fn write_record(types: &[Field], fields: &[(String, Val)]) -> Value {
    let mut object = Map::new();
    for (field, (name, value)) in types.iter().zip(fields) {
        if !matches!(value, Val::Option(None)) {
            object.insert(name.clone(), write(&field.ty, value));
        }
    }
    Value::Object(object)
}

fn write_case(name: &str, ty: Option<&ValueType>, payload: Option<&Val>) -> Value {
    match (ty, payload) {
        (Some(ty), Some(payload)) => {
            Value::Object(Map::from_iter([(name.to_owned(), write(ty, payload))]))
        }
        _ => Value::String(name.to_owned()),
    }
}

fn write_float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::from("nan"),
        None if value > 0.0 => Value::from("inf"),
        None => Value::from("-inf"),
    }
}

fn write_bytes(items: &[Val]) -> Value {
    let bytes: Vec<u8> =
        items.iter().map(|item| if let Val::U8(byte) = item { *byte } else { 0 }).collect();
    match String::from_utf8(bytes) {
        Ok(text) if is_text(&text) => Value::String(text),
        Ok(text) => json!({ "base64": STANDARD.encode(text) }),
        Err(error) => json!({ "base64": STANDARD.encode(error.as_bytes()) }),
    }
}

fn is_text(text: &str) -> bool {
    !text
        .chars()
        .any(|character| character.is_control() && !matches!(character, '\t' | '\n' | '\r'))
}
