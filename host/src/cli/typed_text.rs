//! Arguments as they were typed: whether `id=7` is a number or a text is for the operation to say.

use serde_json::Value;

/// Arguments of an operation.
#[derive(Debug)]
pub(super) struct TypedText {
    /// All of them, each read as JSON where it is JSON: an object.
    read: Value,
    /// What they were read from, but for the one that is read from standard input.
    texts: Vec<String>,
}

impl TypedText {
    pub(super) fn new(read: Value, texts: Vec<String>) -> Self {
        TypedText { read, texts }
    }

    /// The arguments, where it does not matter what the operation takes.
    pub(super) fn as_read(&self) -> &Value {
        &self.read
    }

    /// Whether an argument was read as JSON of a type other than text, and would stay as it was
    /// typed where the operation takes a text.
    pub(super) fn needs_types(&self) -> bool {
        self.typed().any(|(name, _)| self.read.get(name).is_some_and(|it| !it.is_string()))
    }

    /// The arguments for an operation whose arguments have this JSON Schema. Where the operation
    /// takes a text, and what was typed reads as JSON of another type, the argument is what was typed.
    pub(super) fn fitted(&self, schema: &Value) -> Value {
        let mut arguments = self.read.clone();
        for (name, text) in self.typed() {
            let parameter = schema.get("properties").and_then(|it| it.get(name));
            if let (Some(parameter), Some(value)) = (parameter, arguments.get_mut(name))
                && !fits(parameter, value)
            {
                *value = Value::String(text.to_owned());
            }
        }
        arguments
    }

    /// The names and values of `name=value`.
    fn typed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().filter_map(|text| text.split_once('='))
    }
}

/// Whether a parameter with this schema takes the value, or takes no text. Of other types the
/// module says what fits.
fn fits(schema: &Value, value: &Value) -> bool {
    let mut taken = Vec::new();
    add_alternatives(schema, &mut taken);
    if !taken.iter().any(|it| is_text(it)) {
        return true;
    }
    match value {
        Value::String(_) => true,
        Value::Null => taken.iter().any(|it| has_type(it, "null")),
        // Bytes that are no text, as `{"base64": …}`.
        Value::Object(object) => taken.iter().any(|it| {
            let keys = it.get("required").and_then(Value::as_array);
            keys.is_some_and(|keys| {
                keys.iter().all(|key| key.as_str().is_some_and(|key| object.contains_key(key)))
            })
        }),
        _ => false,
    }
}

/// The schemas of which a value has to fit one.
fn add_alternatives<'a>(schema: &'a Value, taken: &mut Vec<&'a Value>) {
    match schema.get("anyOf").and_then(Value::as_array) {
        Some(schemas) => schemas.iter().for_each(|it| add_alternatives(it, taken)),
        None => taken.push(schema),
    }
}

/// Whether it takes texts. One with a pattern is of a number that may stand in quotes.
fn is_text(schema: &Value) -> bool {
    has_type(schema, "string") && schema.get("pattern").is_none()
}

fn has_type(schema: &Value, name: &str) -> bool {
    schema.get("type").and_then(Value::as_str) == Some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::joining::object;
    use super::*;
    use crate::guest::values::arguments_schema;
    use crate::guest::{Operation, Parameter, ValueType};

    fn typed(texts: &[&str]) -> TypedText {
        let texts: Vec<String> = texts.iter().map(|it| (*it).to_owned()).collect();
        TypedText::new(object("argument", &texts).unwrap(), texts)
    }

    fn schema(parameters: &[(&str, ValueType)]) -> Value {
        let parameter =
            |(name, ty): &(&str, ValueType)| Parameter { name: (*name).to_owned(), ty: ty.clone() };
        arguments_schema(&Operation {
            name: "set".to_owned(),
            docs: None,
            parameters: parameters.iter().map(parameter).collect(),
            result: None,
        })
    }

    #[track_caller]
    fn check(ty: ValueType, text: &str, expected: Value) {
        let fitted = typed(&[&format!("it={text}")]).fitted(&schema(&[("it", ty)]));
        assert_eq!(fitted, json!({ "it": expected }), "{text}");
    }

    #[test]
    fn where_a_text_is_taken_it_is_the_text_that_was_typed() {
        let optional = |ty| ValueType::Option(Box::new(ty));
        for text in ["7", "007", "1e3", "1.0", "99999999999999999999999", "true", "[1, 2]", "null"]
        {
            check(ValueType::String, text, json!(text));
            check(ValueType::Bytes, text, json!(text));
        }
        check(optional(ValueType::String), "1e3", json!("1e3"));
        check(optional(ValueType::String), "null", Value::Null);
        check(optional(ValueType::Bytes), r#"{"a":1}"#, json!(r#"{"a":1}"#));
        check(ValueType::Bytes, r#"{"base64":"AA=="}"#, json!({ "base64": "AA==" }));
        check(ValueType::Char, "7", json!("7"));
        // A text that stands in quotes is what is between them.
        check(ValueType::String, r#""7""#, json!("7"));
    }

    #[test]
    fn where_no_text_is_taken_it_is_what_was_read() {
        let list = ValueType::List(Box::new(ValueType::String));
        for ty in [ValueType::U32, ValueType::U64, ValueType::S64, ValueType::F64, list] {
            check(ty.clone(), "7", json!(7));
            check(ValueType::Option(Box::new(ty)), "7", json!(7));
        }
        let nothing = typed(&["it=7"]);
        assert_eq!(nothing.fitted(&schema(&[])), json!({ "it": 7 }));
        assert_eq!(nothing.fitted(&Value::Null), json!({ "it": 7 }));
    }

    #[test]
    fn each_argument_is_fitted_by_itself_and_those_of_an_object_are_as_they_stand() {
        let schema = schema(&[("id", ValueType::String), ("count", ValueType::U32)]);
        let fitted = typed(&["count=3", "id=3"]).fitted(&schema);
        assert_eq!(fitted, json!({ "count": 3, "id": "3" }));
        let object = typed(&[r#"{"id":7}"#]);
        assert_eq!(object.fitted(&schema), json!({ "id": 7 }));
    }

    #[test]
    fn types_are_needed_for_what_reads_as_json_of_another_type() {
        for (texts, expected) in [
            (&[][..], false),
            (&["id=web-3"][..], false),
            (&["id=007"][..], false),
            (&["id=\"7\""][..], false),
            (&["id=web-3", "count=7"][..], true),
            (&["id=null"][..], true),
            (&[r#"{"id":7}"#][..], false),
        ] {
            assert_eq!(typed(texts).needs_types(), expected, "{texts:?}");
        }
    }
}
