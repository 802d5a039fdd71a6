//! JSON to component values, guided by their types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use wasmtime::component::Val;

use super::EXACT;
use super::error::{Segment, ValueError, ValueErrors};
use crate::guest::value_type::{Case, Label, RecordType, ValueType, VariantType};
use crate::near::near;

/// Memory that the values of one body may take. A byte of a `list<u8>` takes a whole value, and
/// data near the server's limit of 1 MiB must still fit.
const MAX_MEMORY: usize = 40 << 20;

/// What one value is reckoned to take.
const VALUE: usize = 40;

/// The value of a record.
pub(in crate::guest) fn read_record(record: &RecordType, json: &Value) -> Result<Val, ValueErrors> {
    let mut reader = Reader::new();
    let value = reader.record(record, json);
    reader.finish(value)
}

/// The values of several fields that are no record, in their order.
pub(in crate::guest) fn read_fields<'a>(
    fields: impl Iterator<Item = (&'a str, &'a ValueType)> + Clone,
    json: &Value,
) -> Result<Vec<Val>, ValueErrors> {
    let mut reader = Reader::new();
    let values = reader.fields(fields, json);
    reader.finish(values.map(|values| values.into_iter().map(|(_, value)| value).collect()))
}

/// Reads on after an error, so that all are told.
struct Reader {
    path: Vec<Segment>,
    errors: Vec<ValueError>,
    memory_left: usize,
}

impl Reader {
    fn new() -> Self {
        Reader { path: Vec::new(), errors: Vec::new(), memory_left: MAX_MEMORY }
    }

    fn finish<T>(self, value: Option<T>) -> Result<T, ValueErrors> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(ValueErrors { errors: self.errors }),
        }
    }

    fn value(&mut self, ty: &ValueType, json: &Value) -> Option<Val> {
        self.reckon(1, VALUE)?;
        match ty {
            ValueType::Bool => match json {
                Value::Bool(value) => Some(Val::Bool(*value)),
                _ => self.mismatch(ty, json),
            },
            ValueType::S8 => self.integer(ty, json).map(Val::S8),
            ValueType::U8 => self.integer(ty, json).map(Val::U8),
            ValueType::S16 => self.integer(ty, json).map(Val::S16),
            ValueType::U16 => self.integer(ty, json).map(Val::U16),
            ValueType::S32 => self.integer(ty, json).map(Val::S32),
            ValueType::U32 => self.integer(ty, json).map(Val::U32),
            ValueType::S64 => self.long_integer(ty, json).map(Val::S64),
            ValueType::U64 => self.long_integer(ty, json).map(Val::U64),
            ValueType::F32 => self.float(ty, json).and_then(|value| self.narrow(value)),
            ValueType::F64 => self.float(ty, json).map(Val::Float64),
            ValueType::Char => self.character(ty, json),
            ValueType::String => {
                let text = self.text(ty, json)?;
                self.reckon(text.len(), 1)?;
                Some(Val::String(text.to_owned()))
            }
            ValueType::Bytes => self.bytes(ty, json),
            ValueType::List(element) => self.list(ty, element, json),
            ValueType::Option(_) if json.is_null() => Some(Val::Option(None)),
            ValueType::Option(inner) => {
                let value = match **inner {
                    ValueType::Option(_) => self.some(inner, json)?,
                    _ => self.value(inner, json)?,
                };
                Some(Val::Option(Some(Box::new(value))))
            }
            ValueType::Tuple(types) => self.tuple(ty, types, json),
            ValueType::Result { ok, err } => self.result(ty, [ok.as_deref(), err.as_deref()], json),
            ValueType::Record(record) => self.record(record, json),
            ValueType::Variant(variant) => self.variant(ty, variant, json),
            ValueType::Enum(labels) => {
                let label = self.text(ty, json)?;
                self.label(&labels.labels, label).map(Val::Enum)
            }
            ValueType::Flags(labels) => self.flags(ty, &labels.labels, json),
        }
    }

    fn record(&mut self, record: &RecordType, json: &Value) -> Option<Val> {
        let fields = record.fields.iter().map(|field| (field.name.as_str(), &field.ty));
        self.fields(fields, json).map(Val::Record)
    }

    /// All fields in their order. What is absent and optional is none.
    fn fields<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a str, &'a ValueType)> + Clone,
        json: &Value,
    ) -> Option<Vec<(String, Val)>> {
        let Value::Object(object) = json else {
            return self.fail(format!("expected an object, got {}", noun(json)));
        };
        let mut values = Some(Vec::new());
        for (name, ty) in fields.clone() {
            self.path.push(Segment::Key(name.to_owned()));
            let value = match (object.get(name), ty) {
                (Some(json), ty) => self.value(ty, json),
                (None, ValueType::Option(_)) => self.value(ty, &Value::Null),
                (None, ty) => self.fail(format!("missing; expected {}", ty.noun())),
            };
            self.path.pop();
            self.reckon(name.len(), 1)?;
            values = values.zip(value).map(|(mut values, value)| {
                values.push((name.to_owned(), value));
                values
            });
        }
        self.check_unknown(object, fields.map(|(name, _)| name));
        values
    }

    fn check_unknown<'a>(
        &mut self,
        object: &Map<String, Value>,
        known: impl Iterator<Item = &'a str> + Clone,
    ) {
        for key in object.keys().filter(|key| !known.clone().any(|known| known == *key)) {
            let hint = match near(key, known.clone().filter(|known| !object.contains_key(*known))) {
                Some(near) => format!("; did you mean {near}?"),
                None => match known.clone().collect::<Vec<_>>().join(", ") {
                    none if none.is_empty() => "; there are none here".to_owned(),
                    names => format!("; known here: {names}"),
                },
            };
            self.path.push(Segment::Key(key.clone()));
            self.fail::<()>(format!("unknown field{hint}"));
            self.path.pop();
        }
    }

    fn list(&mut self, ty: &ValueType, element: &ValueType, json: &Value) -> Option<Val> {
        let Value::Array(items) = json else {
            return self.mismatch(ty, json);
        };
        self.items(items.iter().map(|item| (element, item))).map(Val::List)
    }

    fn tuple(&mut self, ty: &ValueType, types: &[ValueType], json: &Value) -> Option<Val> {
        let Value::Array(items) = json else {
            return self.mismatch(ty, json);
        };
        if items.len() != types.len() {
            let (expected, got) = (types.len(), items.len());
            return self.fail(format!("expected an array of {expected} items, got {got}"));
        }
        self.items(types.iter().zip(items)).map(Val::Tuple)
    }

    fn items<'a>(
        &mut self,
        items: impl Iterator<Item = (&'a ValueType, &'a Value)>,
    ) -> Option<Vec<Val>> {
        let mut values = Some(Vec::new());
        for (index, (ty, item)) in items.enumerate() {
            self.path.push(Segment::Index(index));
            let value = self.value(ty, item);
            self.path.pop();
            // A long list of mistakes is told once.
            if value.is_none() && self.errors.len() >= 20 {
                return None;
            }
            values = values.zip(value).map(|(mut values, value)| {
                values.push(value);
                values
            });
        }
        values
    }

    fn variant(&mut self, ty: &ValueType, variant: &VariantType, json: &Value) -> Option<Val> {
        let (name, payload) = self.case(ty, json)?;
        let Some(case) = variant.cases.iter().find(|case| case.name == name) else {
            let known = variant.cases.iter().map(|case: &Case| case.name.as_str());
            return self.fail_unknown("case", name, known);
        };
        let payload = self.payload(&case.name, case.ty.as_ref(), payload)?;
        Some(Val::Variant(case.name.clone(), payload))
    }

    fn result(
        &mut self,
        ty: &ValueType,
        [ok, err]: [Option<&ValueType>; 2],
        json: &Value,
    ) -> Option<Val> {
        match self.case(ty, json)? {
            ("ok", payload) => Some(Val::Result(Ok(self.payload("ok", ok, payload)?))),
            ("err", payload) => Some(Val::Result(Err(self.payload("err", err, payload)?))),
            (name, _) => self.fail_unknown("case", name, ["ok", "err"].into_iter()),
        }
    }

    fn case<'a>(
        &mut self,
        ty: &ValueType,
        json: &'a Value,
    ) -> Option<(&'a str, Option<&'a Value>)> {
        match json {
            Value::String(case) => Some((case, None)),
            Value::Object(object) => match (object.iter().next(), object.len()) {
                (Some((case, payload)), 1) => Some((case, Some(payload))),
                _ => self.fail(format!("expected an object of one case, got {}", object.len())),
            },
            _ => self.mismatch(ty, json),
        }
    }

    fn payload(
        &mut self,
        case: &str,
        ty: Option<&ValueType>,
        json: Option<&Value>,
    ) -> Option<Option<Box<Val>>> {
        match (ty, json) {
            (None, None | Some(Value::Null)) => Some(None),
            (None, Some(_)) => self.fail(format!("{case} carries nothing: write \"{case}\"")),
            (Some(ty), None) => {
                self.fail(format!("{case} carries {}: write {{\"{case}\": …}}", ty.noun()))
            }
            (Some(ty), Some(json)) => {
                self.path.push(Segment::Key(case.to_owned()));
                let value = self.value(ty, json);
                self.path.pop();
                Some(Some(Box::new(value?)))
            }
        }
    }

    /// An option in an option, where null could be either.
    fn some(&mut self, inner: &ValueType, json: &Value) -> Option<Val> {
        match json {
            Value::Object(object) if object.len() == 1 && object.contains_key("some") => {
                let json = object.get("some").unwrap_or(&Value::Null);
                self.path.push(Segment::Key("some".to_owned()));
                let value = self.value(inner, json);
                self.path.pop();
                value
            }
            _ => self.fail(format!("expected null or {{\"some\": …}}, got {}", noun(json))),
        }
    }

    fn flags(&mut self, ty: &ValueType, labels: &[Label], json: &Value) -> Option<Val> {
        let Value::Array(items) = json else {
            return self.mismatch(ty, json);
        };
        let mut set = Vec::new();
        for (index, item) in items.iter().enumerate() {
            self.path.push(Segment::Index(index));
            let label = match item {
                Value::String(label) => self.label(labels, label),
                other => self.fail(format!("expected a string, got {}", noun(other))),
            };
            self.path.pop();
            let label = label?;
            if !set.contains(&label) {
                set.push(label);
            }
        }
        Some(Val::Flags(set))
    }

    fn label(&mut self, labels: &[Label], name: &str) -> Option<String> {
        if labels.iter().any(|label| label.name == name) {
            return Some(name.to_owned());
        }
        self.fail_unknown("name", name, labels.iter().map(|label| label.name.as_str()))
    }

    fn bytes(&mut self, ty: &ValueType, json: &Value) -> Option<Val> {
        let bytes = match json {
            Value::String(text) => {
                self.reckon(text.len(), VALUE)?;
                text.as_bytes().to_vec()
            }
            Value::Object(object) if object.len() == 1 => {
                let Some(Value::String(encoded)) = object.get("base64") else {
                    return self.mismatch(ty, json);
                };
                self.reckon(encoded.len() / 4 * 3, VALUE)?;
                match STANDARD.decode(encoded) {
                    Ok(bytes) => bytes,
                    Err(error) => return self.fail(format!("not base64: {error}")),
                }
            }
            _ => return self.mismatch(ty, json),
        };
        Some(Val::List(bytes.into_iter().map(Val::U8).collect()))
    }

    /// 32 bits and less: a number only.
    fn integer<T: TryFrom<i128>>(&mut self, ty: &ValueType, json: &Value) -> Option<T> {
        let Value::Number(number) = json else {
            return self.mismatch(ty, json);
        };
        match whole(number).map(T::try_from) {
            Some(Ok(value)) => Some(value),
            _ => self.out_of_range(&number.to_string(), ty),
        }
    }

    /// 64 bits: a number, or its digits in a string.
    fn long_integer<T: TryFrom<i128>>(&mut self, ty: &ValueType, json: &Value) -> Option<T> {
        let (written, number) = match json {
            Value::Number(number) => (number.to_string(), whole(number)),
            Value::String(digits) if is_decimal(digits) => (digits.clone(), digits.parse().ok()),
            _ => return self.mismatch(ty, json),
        };
        match number.map(T::try_from) {
            Some(Ok(value)) => Some(value),
            _ => self.out_of_range(&written, ty),
        }
    }

    fn float(&mut self, ty: &ValueType, json: &Value) -> Option<f64> {
        match json {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match text.as_str() {
                "nan" => Some(f64::NAN),
                "inf" => Some(f64::INFINITY),
                "-inf" => Some(f64::NEG_INFINITY),
                _ => self.fail(
                    "expected a number, got a string; JSON has no NaN and no infinity, for which \
                     the texts \"nan\", \"inf\" and \"-inf\" stand"
                        .to_owned(),
                ),
            },
            _ => self.mismatch(ty, json),
        }
    }

    fn narrow(&mut self, wide: f64) -> Option<Val> {
        #[allow(clippy::cast_possible_truncation, reason = "rounding is what narrowing means")]
        let narrow = wide as f32;
        if narrow.is_infinite() && wide.is_finite() {
            return self.out_of_range(&wide.to_string(), &ValueType::F32);
        }
        Some(Val::Float32(narrow))
    }

    fn character(&mut self, ty: &ValueType, json: &Value) -> Option<Val> {
        let mut characters = self.text(ty, json)?.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Some(Val::Char(character)),
            _ => self.mismatch(ty, json),
        }
    }

    fn text<'a>(&mut self, ty: &ValueType, json: &'a Value) -> Option<&'a str> {
        match json {
            Value::String(text) => Some(text),
            _ => self.mismatch(ty, json),
        }
    }

    /// Takes from the memory that the values may use, before they are made.
    fn reckon(&mut self, count: usize, each: usize) -> Option<()> {
        match self.memory_left.checked_sub(count.saturating_mul(each)) {
            Some(left) => {
                self.memory_left = left;
                Some(())
            }
            None => {
                let most = MAX_MEMORY / VALUE;
                self.fail(format!(
                    "too large: the values of a call are at most {most}, bytes included"
                ))
            }
        }
    }

    fn mismatch<T>(&mut self, ty: &ValueType, json: &Value) -> Option<T> {
        self.fail(format!("expected {}, got {}", ty.noun(), noun(json)))
    }

    fn out_of_range<T>(&mut self, number: &str, ty: &ValueType) -> Option<T> {
        let range = match ty {
            ValueType::S8 => "a whole number from -128 to 127",
            ValueType::U8 => "a whole number from 0 to 255",
            ValueType::S16 => "a whole number from -32768 to 32767",
            ValueType::U16 => "a whole number from 0 to 65535",
            ValueType::S32 => "a whole number from -2147483648 to 2147483647",
            ValueType::U32 => "a whole number from 0 to 4294967295",
            ValueType::S64 => "a whole number from -9223372036854775808 to 9223372036854775807",
            ValueType::U64 => "a whole number from 0 to 18446744073709551615",
            _ => "a number that fits",
        };
        self.fail(format!("expected {range}, got {number}"))
    }

    fn fail_unknown<'a, T>(
        &mut self,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<T> {
        let names = known.clone().collect::<Vec<_>>().join(", ");
        let hint = near(name, known).map_or(names, |near| format!("did you mean {near}?"));
        self.fail(format!("unknown {what} {name:?}; {hint}"))
    }

    fn fail<T>(&mut self, problem: String) -> Option<T> {
        self.errors.push(ValueError { path: self.path.clone(), problem });
        None
    }
}

/// A number that is whole, as JSON Schema has it: `1.0` and `1e3` are, too. Of a double beyond 2^53 nobody
/// knows which number was written.
fn whole(number: &Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    integer.or_else(|| {
        let double = number.as_f64()?;
        let is_known = double.fract() == 0.0 && double.abs() <= EXACT as f64;
        #[allow(clippy::cast_possible_truncation, reason = "what is known is no larger than 2^53")]
        let integer = double as i128;
        is_known.then_some(integer)
    })
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn noun(json: &Value) -> &'static str {
    match json {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
