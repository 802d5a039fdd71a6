//! What the reader takes and what the writer writes, as JSON Schema: for editors, for programs that
//! make forms, and for programs that make clients.

use serde_json::{Map, Value, json};

use super::EXACT;
use crate::guest::interface::{Interface, Operation};
use crate::guest::value_type::{Case, Field, Labels, RecordType, TypeName, ValueType};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of a recipe's config; none if it takes none.
pub fn config_schema(interface: &Interface) -> Option<Value> {
    let config = interface.configure.as_ref()?;
    Some(with_dialect(Spelling { side: Side::Read, keep: &mut inline }.record(config)))
}

/// The schema of the body of a call.
pub fn arguments_schema(operation: &Operation) -> Value {
    with_dialect(Schemas::new(&mut inline).arguments(operation))
}

/// The schema of what an operation answers, which is null if it answers nothing. Of a result it is the
/// answer, and [`error_schema`] is the error.
pub fn answer_schema(operation: &Operation) -> Value {
    with_dialect(Schemas::new(&mut inline).answer(operation))
}

/// The schema of an operation's own error, which is null if the error carries nothing. None if the
/// operation has no error.
pub fn error_schema(operation: &Operation) -> Option<Value> {
    Schemas::new(&mut inline).error(operation).map(with_dialect)
}

/// Who keeps the schemas of types that have names: given the name and the schema of a type, it answers
/// what to write where the type is used, such as a reference.
type Keep<'a> = dyn FnMut(&TypeName, Value) -> Value + 'a;

/// The same schemas without a dialect, where the types that have names are kept elsewhere.
pub struct Schemas<'a> {
    keep: &'a mut Keep<'a>,
}

impl<'a> Schemas<'a> {
    /// Schemas for whose types that have names `keep` answers what to write in their places.
    pub fn new(keep: &'a mut Keep<'a>) -> Self {
        Schemas { keep }
    }

    /// As [`arguments_schema`].
    pub fn arguments(&mut self, operation: &Operation) -> Value {
        let mut spelling = self.spelling(Side::Read);
        match (operation.body(), operation.parameters.as_slice()) {
            (Some(body), _) => spelling.record(body),
            (None, []) => json!({ "type": ["object", "null"], "additionalProperties": false }),
            (None, parameters) => {
                spelling.object(parameters.iter().map(|it| (it.name.as_str(), &it.ty, None)))
            }
        }
    }

    /// As [`answer_schema`].
    pub fn answer(&mut self, operation: &Operation) -> Value {
        let answered = match &operation.result {
            Some(ValueType::Result { ok, .. }) => ok.as_deref(),
            other => other.as_ref(),
        };
        self.written(answered)
    }

    /// As [`error_schema`].
    pub fn error(&mut self, operation: &Operation) -> Option<Value> {
        match &operation.result {
            Some(ValueType::Result { err, .. }) => Some(self.written(err.as_deref())),
            _ => None,
        }
    }

    fn written(&mut self, ty: Option<&ValueType>) -> Value {
        match ty {
            Some(ty) => self.spelling(Side::Written).schema(ty),
            None => null(),
        }
    }

    fn spelling(&mut self, side: Side) -> Spelling<'_, 'a> {
        Spelling { side, keep: self.keep }
    }
}

/// Keeps nothing: a schema stands where its type is used.
fn inline(_: &TypeName, schema: Value) -> Value {
    schema
}

fn with_dialect(mut schema: Value) -> Value {
    if let Value::Object(object) = &mut schema {
        object.insert("$schema".to_owned(), json!(DIALECT));
    }
    schema
}

/// Whose values a schema describes. The writer has one spelling for each value, and the reader takes
/// others as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// What the reader takes.
    Read,
    /// What the writer writes.
    Written,
}

/// The schema of a type, with the schemas of all types inside where they are used.
#[cfg(test)]
pub(super) fn schema(side: Side, ty: &ValueType) -> Value {
    Spelling { side, keep: &mut inline }.schema(ty)
}

struct Spelling<'a, 'b> {
    side: Side,
    keep: &'a mut Keep<'b>,
}

impl Spelling<'_, '_> {
    fn schema(&mut self, ty: &ValueType) -> Value {
        match ty {
            ValueType::Bool => json!({ "type": "boolean" }),
            ValueType::S8 => integer(i8::MIN, i8::MAX),
            ValueType::U8 => integer(u8::MIN, u8::MAX),
            ValueType::S16 => integer(i16::MIN, i16::MAX),
            ValueType::U16 => integer(u16::MIN, u16::MAX),
            ValueType::S32 => integer(i32::MIN, i32::MAX),
            ValueType::U32 => integer(u32::MIN, u32::MAX),
            ValueType::S64 => match self.side {
                Side::Read => any_of([integer(i64::MIN, i64::MAX), text("^-?[0-9]{1,20}$")]),
                Side::Written => {
                    any_of([integer(-i128::from(EXACT), EXACT.into()), text("^-?[0-9]{16,19}$")])
                }
            },
            ValueType::U64 => match self.side {
                Side::Read => any_of([integer(u64::MIN, u64::MAX), text("^[0-9]{1,20}$")]),
                Side::Written => any_of([integer(0, EXACT), text("^[0-9]{16,20}$")]),
            },
            ValueType::F32 | ValueType::F64 => {
                any_of([json!({ "type": "number" }), json!({ "enum": ["nan", "inf", "-inf"] })])
            }
            ValueType::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            ValueType::String => json!({ "type": "string" }),
            ValueType::Bytes => any_of([
                json!({ "type": "string" }),
                one_field("base64", json!({ "type": "string", "contentEncoding": "base64" })),
            ]),
            ValueType::List(element) => json!({ "type": "array", "items": self.schema(element) }),
            ValueType::Option(inner) => any_of([null(), self.some(inner)]),
            ValueType::Tuple(types) => json!({
                "type": "array",
                "prefixItems": types.iter().map(|ty| self.schema(ty)).collect::<Vec<_>>(),
                "minItems": types.len(),
                "maxItems": types.len(),
            }),
            ValueType::Result { ok, err } => any_of(
                [("ok", ok), ("err", err)].map(|(name, ty)| self.case(name, ty.as_deref(), None)),
            ),
            ValueType::Record(it) => self.record(it),
            ValueType::Variant(variant) => {
                let cases = variant.cases.iter();
                let cases: Vec<Value> = cases
                    .map(|it: &Case| self.case(&it.name, it.ty.as_ref(), it.docs.as_deref()))
                    .collect();
                self.named(variant.name.as_ref(), described(any_of(cases), variant.docs.as_deref()))
            }
            ValueType::Enum(names) => {
                self.named(names.name.as_ref(), described(labels(names), names.docs.as_deref()))
            }
            ValueType::Flags(names) => {
                let flags = json!({ "type": "array", "items": labels(names) });
                self.named(names.name.as_ref(), described(flags, names.docs.as_deref()))
            }
        }
    }

    fn named(&mut self, name: Option<&TypeName>, schema: Value) -> Value {
        match name {
            Some(name) => (self.keep)(name, schema),
            None => schema,
        }
    }

    /// An option in an option says `some`, where null could be either.
    fn some(&mut self, inner: &ValueType) -> Value {
        match inner {
            ValueType::Option(_) => one_field("some", self.schema(inner)),
            _ => self.schema(inner),
        }
    }

    fn record(&mut self, record: &RecordType) -> Value {
        let fields = record.fields.iter();
        let object =
            self.object(fields.map(|it: &Field| (it.name.as_str(), &it.ty, it.docs.as_deref())));
        self.named(record.name.as_ref(), described(object, record.docs.as_deref()))
    }

    fn object<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a str, &'a ValueType, Option<&'a str>)>,
    ) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, ty, docs) in fields {
            let schema = match (self.side, ty) {
                // The writer leaves out what is none.
                (Side::Written, ValueType::Option(inner)) => self.some(inner),
                _ => self.schema(ty),
            };
            properties.insert(name.to_owned(), described(schema, docs));
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

    fn case(&mut self, name: &str, ty: Option<&ValueType>, docs: Option<&str>) -> Value {
        let mut schema = match ty {
            None => json!({ "const": name }),
            Some(ty) => one_field(name, self.schema(ty)),
        };
        // Programs that make forms or clients have no other name for an alternative that is an object.
        if let (Value::Object(object), Some(_)) = (&mut schema, ty) {
            object.insert("title".to_owned(), json!(name));
        }
        described(schema, docs)
    }
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

fn labels(names: &Labels) -> Value {
    any_of(names.labels.iter().map(|it| described(json!({ "const": it.name }), it.docs.as_deref())))
}

fn null() -> Value {
    json!({ "type": "null" })
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
