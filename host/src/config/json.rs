//! Tables that a module will judge, as JSON: the form in which a call over the API has them too.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::DeValue;

use super::document::{Place, Show};
use super::report::Report;
use super::section::Field;

/// Component types are not nested deeper, and the conversion recurses.
const MAX_DEPTH: usize = 32;

/// Takes a table as a JSON object. What JSON cannot say is reported, each with its place.
pub(super) fn object(field: &Field<'_>, report: &mut Report<'_>) -> Option<Value> {
    field.section(report)?;
    convert(field.value(), 0, report)
}

/// An integer, as JSON has it: one of more than 64 bits as a double. A module's types then tell the key
/// and which numbers it takes, which nothing here knows.
fn number(digits: &str, radix: u32) -> Option<Number> {
    let signed = i64::from_str_radix(digits, radix).map(Number::from);
    let integer = signed.or_else(|_| u64::from_str_radix(digits, radix).map(Number::from));
    let double = || digits.parse().ok().filter(|_| radix == 10).and_then(Number::from_f64);
    integer.ok().or_else(double)
}

fn convert(value: &Spanned<DeValue<'_>>, depth: usize, report: &mut Report<'_>) -> Option<Value> {
    let mut refuse = |what: String, remedy: &str| {
        report.error(Place { span: value.span(), show: Show::Line }, what, remedy);
        None
    };
    if depth > MAX_DEPTH {
        return refuse(format!("values are nested deeper than {MAX_DEPTH}"), "flatten them");
    }
    match value.get_ref() {
        DeValue::String(text) => Some(Value::String(text.to_string())),
        DeValue::Boolean(truth) => Some(Value::Bool(*truth)),
        DeValue::Integer(integer) => match number(integer.as_str(), integer.radix()) {
            Some(number) => Some(Value::Number(number)),
            None => refuse(
                format!("{integer} is larger than any number that a recipe can take"),
                "write a smaller one",
            ),
        },
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(Number::from_f64);
            match number {
                Some(number) => Some(Value::Number(number)),
                None => refuse(format!("{float} is not a finite number"), "write a finite number"),
            }
        }
        DeValue::Datetime(_) => refuse(
            "recipes know no dates and times".to_owned(),
            "write it as a string or as a number",
        ),
        // Every item is looked at before the first bad one ends it, so that all are reported.
        DeValue::Array(items) => {
            let items: Vec<Option<Value>> =
                items.iter().map(|item| convert(item, depth + 1, report)).collect();
            items.into_iter().collect::<Option<Vec<Value>>>().map(Value::Array)
        }
        DeValue::Table(table) => {
            let entries: Vec<Option<(String, Value)>> = table
                .iter()
                .map(|(key, item)| {
                    Some((key.get_ref().to_string(), convert(item, depth + 1, report)?))
                })
                .collect();
            entries.into_iter().collect::<Option<Map<String, Value>>>().map(Value::Object)
        }
    }
}
