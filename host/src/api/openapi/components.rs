//! The schemas that have names.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The schemas of a document by their names.
#[derive(Debug, Default)]
pub(super) struct Components {
    schemas: BTreeMap<String, Value>,
}

impl Components {
    /// Keeps a schema under the first of these names that is free or has this very schema, and refers
    /// to it. Where all names are taken, a number is added to the last one.
    pub(super) fn keep(&mut self, names: &[&str], schema: Value) -> Value {
        if is_reference(&schema) {
            return schema;
        }
        let last = names.last().copied().unwrap_or("schema");
        let given = names.iter().map(|name| (*name).to_owned());
        for name in given.chain((2_u64..).map(|number| format!("{last}-{number}"))) {
            let schema = titled(&name, schema.clone());
            let known = self.schemas.entry(name.clone()).or_insert_with(|| schema.clone());
            if *known == schema {
                return refer(&name);
            }
        }
        schema
    }

    pub(super) fn into_json(self) -> Value {
        self.schemas.into_iter().collect()
    }
}

/// A schema whose alternatives have titles that tell of which schema they are. Clients take a title for
/// the name of a class, and two variants may have cases of one name.
fn titled(name: &str, mut schema: Value) -> Value {
    let alternatives = schema.get_mut("anyOf").and_then(Value::as_array_mut);
    for alternative in alternatives.into_iter().flatten() {
        if let Some(Value::String(title)) = alternative.get_mut("title") {
            *title = format!("{name}-{title}");
        }
    }
    schema
}

/// The place of all schemas in a document.
const PLACE: &str = "#/components/schemas/";

/// A reference to the schema of that name.
pub(super) fn refer(name: &str) -> Value {
    json!({ "$ref": format!("{PLACE}{name}") })
}

/// The name that a schema refers to and adds nothing to.
pub(super) fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(PLACE).filter(|_| is_reference(schema))
}

fn is_reference(schema: &Value) -> bool {
    schema.as_object().is_some_and(|it| it.len() == 1 && it.contains_key("$ref"))
}

/// A schema that takes what one of these takes, each of which is told once.
pub(super) fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    let mut told = Vec::new();
    for schema in schemas.into_iter().flat_map(alternatives) {
        if !told.contains(&schema) {
            told.push(schema);
        }
    }
    match told.len() {
        1 => told.remove(0),
        _ => json!({ "anyOf": told }),
    }
}

/// The schemas of which one that says nothing else takes any.
fn alternatives(schema: Value) -> Vec<Value> {
    match schema {
        Value::Object(mut object) if object.len() == 1 => match object.remove("anyOf") {
            Some(Value::Array(schemas)) => schemas,
            Some(other) => vec![json!({ "anyOf": other })],
            None => vec![Value::Object(object)],
        },
        schema => vec![schema],
    }
}

/// A schema that takes null as well.
pub(super) fn or_null(schema: Value) -> Value {
    any_of([schema, json!({ "type": "null" })])
}

/// The schema of an object with these keys, all of which are there. Keys may be added one day.
pub(super) fn object<const N: usize>(properties: [(&str, Value); N]) -> Value {
    let required = properties.each_ref().map(|(key, _)| *key).to_vec();
    let properties = properties.into_iter().map(|(key, schema)| (key.to_owned(), schema));
    json!({
        "type": "object",
        "properties": properties.collect::<serde_json::Map<_, _>>(),
        "required": required,
    })
}

/// A schema with words.
pub(super) fn described(mut schema: Value, words: &str) -> Value {
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), json!(words));
    }
    schema
}

/// A text.
pub(super) fn text(words: &str) -> Value {
    json!({ "type": "string", "description": words })
}

/// A number that is not negative.
pub(super) fn count(words: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": words })
}

/// A duration as text.
pub(super) fn duration(words: &str) -> Value {
    json!({
        "type": "string",
        "pattern": "^[0-9]+(ms|s|m|h)$",
        "description": words,
        "examples": ["500ms", "30s"],
    })
}
