//! Rounds of a recipe without a workload: any of its operations, with arguments of their types.

use serde_json::{Map, Value, json};

use super::GIVES_UP_MS;
use crate::guest::{Field, Interface, Operation, ValueType};
use crate::simulation::chance::Chance;
use crate::simulation::plan::Step;

/// Numbers stay small, so that several applications name the same things.
const LARGEST: u64 = 5;

/// Items of a list, letters of a text, and how deep types within types go on.
const ITEMS: u64 = 3;
const LETTERS: (u64, u64) = (1, 6);
const DEEPEST: u32 = 8;

/// A round: a few operations. Those that may block by design are given up.
pub(super) fn round(
    interface: &Interface,
    may_block: impl Fn(&str) -> bool,
    chance: &mut Chance,
    steps: &mut Vec<Step>,
) {
    for _ in 0..chance.within(1, 3) {
        let Some(operation) = chance.pick(&interface.operations) else { return };
        let deadline = |chance: &mut Chance| chance.within(GIVES_UP_MS.0, GIVES_UP_MS.1);
        let deadline_ms = match chance.happens(50) {
            true => Some(deadline(chance)),
            false => may_block(&operation.name).then(|| deadline(chance)),
        };
        let arguments = arguments(operation, chance);
        let operation = operation.name.clone();
        steps.push(Step::Call { operation, arguments, deadline_ms, bind: None });
        steps.push(Step::Work { ms: chance.within(0, 250) });
    }
    if chance.happens(50) {
        steps.push(Step::Leave);
    }
}

/// Arguments that fit.
fn arguments(operation: &Operation, chance: &mut Chance) -> Value {
    match operation.body() {
        Some(record) => object(record.fields.iter().map(named), chance, 0),
        None => object(operation.parameters.iter().map(|it| (it.name.as_str(), &it.ty)), chance, 0),
    }
}

/// A value of that type, as JSON.
pub(in crate::simulation) fn value(ty: &ValueType, chance: &mut Chance) -> Value {
    value_at(ty, chance, 0)
}

fn value_at(ty: &ValueType, chance: &mut Chance, depth: u32) -> Value {
    let inner = |ty: &ValueType, chance: &mut Chance| value_at(ty, chance, depth + 1);
    match ty {
        ValueType::Bool => json!(chance.happens(50)),
        ValueType::S8
        | ValueType::U8
        | ValueType::S16
        | ValueType::U16
        | ValueType::S32
        | ValueType::U32
        | ValueType::S64
        | ValueType::U64 => json!(chance.within(0, LARGEST)),
        ValueType::F32 | ValueType::F64 => json!(chance.within(0, LARGEST) as f64 / 2.0),
        ValueType::Char => json!(text(1, chance)),
        ValueType::String | ValueType::Bytes => {
            let letters = chance.within(LETTERS.0, LETTERS.1);
            json!(text(letters, chance))
        }
        // What is too deep ends with what needs nothing.
        ValueType::List(_) | ValueType::Option(_) if depth > DEEPEST => match ty {
            ValueType::List(_) => json!([]),
            _ => Value::Null,
        },
        ValueType::List(item) => {
            (0..chance.within(0, ITEMS)).map(|_| inner(item, chance)).collect()
        }
        // An option in an option is written otherwise, and none is as good.
        ValueType::Option(some) if matches!(**some, ValueType::Option(_)) => Value::Null,
        ValueType::Option(some) => inner(some, chance),
        ValueType::Tuple(types) => types.iter().map(|ty| inner(ty, chance)).collect(),
        ValueType::Result { ok, err } => {
            let (name, ty) = if chance.happens(50) { ("ok", ok) } else { ("err", err) };
            case(name, ty.as_deref().map(|ty| inner(ty, chance)))
        }
        ValueType::Record(record) => object(record.fields.iter().map(named), chance, depth + 1),
        ValueType::Variant(variant) => match chance.pick(&variant.cases) {
            Some(picked) => case(&picked.name, picked.ty.as_ref().map(|ty| inner(ty, chance))),
            None => Value::Null,
        },
        ValueType::Enum(labels) => {
            chance.pick(&labels.labels).map_or(Value::Null, |label| json!(label.name))
        }
        ValueType::Flags(labels) => {
            let chosen = labels.labels.iter().filter(|_| chance.happens(50));
            chosen.map(|label| json!(label.name)).collect()
        }
    }
}

/// So many lower case letters.
pub(super) fn text(letters: u64, chance: &mut Chance) -> String {
    let letter = |_| u8::try_from(chance.within(0, 25)).map_or('a', |nth| char::from(b'a' + nth));
    (0..letters).map(letter).collect()
}

fn named(field: &Field) -> (&str, &ValueType) {
    (&field.name, &field.ty)
}

/// Of what may be absent, half is: a plan is written as TOML, which has no null.
fn object<'a>(
    fields: impl Iterator<Item = (&'a str, &'a ValueType)>,
    chance: &mut Chance,
    depth: u32,
) -> Value {
    let mut object = Map::new();
    for (name, ty) in fields {
        let is_absent = matches!(ty, ValueType::Option(_)) && chance.happens(50);
        let value = if is_absent { Value::Null } else { value_at(ty, chance, depth) };
        if !value.is_null() {
            object.insert(name.to_owned(), value);
        }
    }
    Value::Object(object)
}

fn case(name: &str, payload: Option<Value>) -> Value {
    match payload {
        Some(payload) => Value::Object(Map::from_iter([(name.to_owned(), payload)])),
        None => json!(name),
    }
}
