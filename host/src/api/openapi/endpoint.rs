//! One thing that can be asked: a method on a path.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::errors::Kind;

/// The media type of bodies and answers.
const JSON: &str = "application/json";

/// The media type of streams.
const LINES: &str = "application/x-ndjson";

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Get => "get",
            Method::Post => "post",
            Method::Put => "put",
            Method::Delete => "delete",
        }
    }
}

/// What a method on a path does.
#[derive(Debug)]
pub(super) struct Endpoint {
    id: String,
    tag: String,
    summary: String,
    description: Option<String>,
    parameters: Vec<Value>,
    body: Option<Value>,
    responses: Map<String, Value>,
}

impl Endpoint {
    /// Something that may be refused to anybody, for every reason of [`Kind::GENERAL`].
    pub(super) fn new(id: impl Into<String>, tag: &str, summary: impl Into<String>) -> Self {
        let endpoint = Endpoint {
            id: id.into(),
            tag: tag.to_owned(),
            summary: summary.into(),
            description: None,
            parameters: Vec::new(),
            body: None,
            responses: Map::new(),
        };
        endpoint.fails(&Kind::GENERAL)
    }

    pub(super) fn about(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Takes a part of its path.
    pub(super) fn at(mut self, name: &str, words: &str) -> Self {
        self.parameters.push(json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": words,
            "schema": { "type": "string" },
        }));
        self
    }

    /// Takes something behind its path that may be left out.
    pub(super) fn asks(mut self, name: &str, words: &str, schema: &Value) -> Self {
        self.parameters.push(json!({
            "name": name,
            "in": "query",
            "required": false,
            "description": words,
            "schema": schema,
        }));
        self
    }

    /// Takes a body.
    pub(super) fn takes(mut self, need: Need, schema: &Value) -> Self {
        self.body = Some(json!({
            "required": need == Need::Needed,
            "content": content(JSON, schema),
        }));
        self.fails(&Kind::OF_BODIES)
    }

    /// Answers a value.
    pub(super) fn answers(self, status: u16, words: &str, schema: &Value) -> Self {
        let answer = json!({ "description": words, "content": content(JSON, schema) });
        self.response(status, answer)
    }

    /// Answers lines of that schema.
    pub(super) fn streams(self, words: &str, schema: &Value) -> Self {
        let answer = json!({ "description": words, "content": content(LINES, schema) });
        self.response(200, answer)
    }

    /// Answers that it is done.
    pub(super) fn acknowledges(self, words: &str) -> Self {
        self.response(204, json!({ "description": words }))
    }

    /// May be refused for these reasons.
    pub(super) fn fails(self, kinds: &[Kind]) -> Self {
        kinds.iter().fold(self, |it, kind| {
            let response = json!({ "$ref": format!("#/components/responses/{}", kind.name()) });
            it.response(kind.status(), response)
        })
    }

    fn response(mut self, status: u16, response: Value) -> Self {
        self.responses.insert(status.to_string(), response);
        self
    }

    fn into_json(self, id: String) -> Value {
        let mut json = Map::new();
        json.insert("operationId".to_owned(), json!(id));
        json.insert("tags".to_owned(), json!([self.tag]));
        json.insert("summary".to_owned(), json!(self.summary));
        if let Some(description) = self.description {
            json.insert("description".to_owned(), json!(description));
        }
        if !self.parameters.is_empty() {
            json.insert("parameters".to_owned(), json!(self.parameters));
        }
        if let Some(body) = self.body {
            json.insert("requestBody".to_owned(), body);
        }
        json.insert("responses".to_owned(), Value::Object(self.responses));
        Value::Object(json)
    }
}

/// Whether a body may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Needed,
    Optional,
}

fn content(media_type: &str, schema: &Value) -> Value {
    json!({ media_type: { "schema": schema } })
}

/// All paths of a document.
#[derive(Debug, Default)]
pub(super) struct Paths {
    paths: Map<String, Value>,
    ids: BTreeSet<String>,
}

impl Paths {
    /// Adds what a method on a path does. Where its id is taken, a number is added to the id: what is
    /// added first keeps its own.
    pub(super) fn add(&mut self, method: Method, path: impl Into<String>, endpoint: Endpoint) {
        let mut ids = std::iter::once(endpoint.id.clone())
            .chain((2_u64..).map(|number| format!("{}-{number}", endpoint.id)));
        // Clients spell an id in their own language's way, and most of them without its case.
        let is_free = |id: &String| !self.ids.contains(&id.to_lowercase());
        let id = ids.find(is_free).unwrap_or_default();
        self.ids.insert(id.to_lowercase());
        let item = self.paths.entry(path).or_insert_with(|| json!({}));
        if let Value::Object(item) = item {
            item.insert(method.name().to_owned(), endpoint.into_json(id));
        }
    }

    pub(super) fn into_json(self) -> Value {
        Value::Object(self.paths)
    }
}

/// Markdown of several paragraphs, those that are there.
pub(super) fn paragraphs<'a>(parts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}
