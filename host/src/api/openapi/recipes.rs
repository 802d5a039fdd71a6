//! What can be asked of a recipe: to join it, and to call an operation of it once.

use serde_json::{Value, json};

use super::components::{
    Components, any_of, described, duration, object, or_null, refer, referred, text,
};
use super::endpoint::{Endpoint, Method, Need, Paths, paragraphs};
use super::errors::Kind;
use super::events;
use super::modules::{Arguments, Described, Module, refusal};

/// How a call is bounded.
const TIMEOUT: &str = "How long the call may take. Then the host withdraws it.";

/// How often a stream speaks.
pub(super) const ALIVE: &str =
    "How often the stream says that it is alive, from 100ms to 30s; every 5s if it is left out.";

/// What keeps a claim for a while.
const DEPENDENT: &str = "Whether the app runs something under the claim. Then the claim is given up only \
    when the app says that nothing depends on it, or the deadline that it was told last has passed.";

/// Adds the paths of all recipes, the joins before the calls: an id that two of them claim is the
/// join's.
pub(super) fn add(modules: &[Module<'_>], components: &mut Components, paths: &mut Paths) {
    for module in modules {
        let path = format!("/v1/recipes/{}/join", module.recipe.name);
        paths.add(Method::Post, path, join(module, components));
    }
    for module in modules {
        for operation in &module.operations {
            let recipe = module.recipe.name;
            let path = format!("/v1/recipes/{recipe}/call/{}", operation.operation.name);
            paths.add(Method::Post, path, call(module, operation, components));
        }
    }
}

fn join(module: &Module<'_>, components: &mut Components) -> Endpoint {
    let recipe = module.recipe.name;
    let words = "The answer is a stream of what happens to the participant, and the open stream is \
        its lease: the participant ends when the connection is closed or the process that opened it \
        exits. A participant that is `detached` is answered as soon as its call is, and lives until \
        it is deleted or its lease passes without a renewal.";
    let request = module.keep("join-request", request(module), components);
    let event = own_event(module, components);
    let joined = module.keep("joined", joined(module), components);
    let endpoint = Endpoint::new(format!("join-{recipe}"), recipe, format!("Join {recipe}"))
        .about(paragraphs([Some(words), module.interface().docs.as_deref()]))
        .takes(Need::Optional, &request)
        .asks("alive", ALIVE, &duration(ALIVE))
        .asks("dependent", DEPENDENT, &json!({ "type": "boolean", "default": false }))
        .streams("A stream that ends with the participant.", &event)
        .answers(201, "The detached participant has joined.", &joined)
        .fails(&Kind::OF_CALLS);
    let error = module.any_error();
    refuses(endpoint, &format!("{}-refusal", module.stem), error.as_ref(), components)
}

fn call(module: &Module<'_>, described: &Described<'_>, components: &mut Components) -> Endpoint {
    let (recipe, operation) = (module.recipe.name, described.operation);
    let words = format!("Joins `{recipe}` for this call, and leaves after it.");
    let endpoint = Endpoint::new(
        format!("{recipe}-{}", operation.name),
        recipe,
        summary(operation.docs.as_deref(), &operation.name),
    )
    .about(paragraphs([operation.docs.as_deref(), Some(&words)]));
    let endpoint =
        bounded(endpoint).answers(200, "The answer.", &described.answer).fails(&Kind::OF_CALLS);
    let endpoint = match &described.arguments {
        Some(arguments) => endpoint.takes(arguments.need, &arguments.schema),
        None => endpoint,
    };
    let name = format!("{}-{}-refusal", module.stem, operation.name);
    refuses(endpoint, &name, described.error.as_ref(), components)
}

/// Takes a timeout, and reads a body, also of an operation without arguments.
pub(super) fn bounded(endpoint: Endpoint) -> Endpoint {
    endpoint.asks("timeout", TIMEOUT, &duration(TIMEOUT)).fails(&Kind::OF_BODIES)
}

/// May answer an error of the operation's own.
pub(super) fn refuses(
    endpoint: Endpoint,
    name: &str,
    error: Option<&Value>,
    components: &mut Components,
) -> Endpoint {
    match error {
        Some(error) => {
            let body = refusal(name, error, components);
            endpoint.answers(409, "The operation answered an error of its own.", &body)
        }
        None => endpoint,
    }
}

/// The first sentence of what is said of something, for lists.
pub(super) fn summary(docs: Option<&str>, name: &str) -> String {
    let paragraph = docs.unwrap_or_default().split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split_once(". ").map_or(line.as_str(), |(sentence, _)| sentence);
    match sentence.trim_end_matches('.') {
        "" => name.to_owned(),
        sentence => sentence.to_owned(),
    }
}

/// The body of a join.
fn request(module: &Module<'_>) -> Value {
    let lease = "How long the participant lives without a renewal. A detached one needs it.";
    let app = "The name of the app among those of its user. If it is left out, the process, or the \
        connection where the host cannot see the process.";
    let owner = "What other contenders are told of who this is.";
    json!({
        "type": "object",
        "properties": {
            "call": described(call_of_join(module), "The operation to call at once."),
            "timeout": duration(TIMEOUT),
            "lease": duration(lease),
            "detached": {
                "type": "boolean",
                "default": false,
                "description": "Whether the participant lives on without a stream.",
            },
            "app": text(app),
            "owner": text(owner),
        },
        "additionalProperties": false,
    })
}

/// An operation by its name, or with its arguments. Where all arguments may be left out, so may the
/// object of them, and where there are none that object is empty.
fn call_of_join(module: &Module<'_>) -> Value {
    let mut names = Vec::new();
    let mut calls = Vec::new();
    for Described { operation, arguments, .. } in &module.operations {
        let name = operation.name.as_str();
        let given = match arguments {
            Some(Arguments { schema, need: Need::Needed }) => schema.clone(),
            Some(Arguments { schema, need: Need::Optional }) => or_null(schema.clone()),
            None => or_null(json!({ "type": "object", "additionalProperties": false })),
        };
        let mut call = object([(name, given)]);
        if let Value::Object(call) = &mut call {
            call.insert("title".to_owned(), json!(name));
            // One operation is called.
            call.insert("additionalProperties".to_owned(), json!(false));
        }
        calls.push(described(call, &summary(operation.docs.as_deref(), name)));
        if arguments.as_ref().is_none_or(|it| it.need == Need::Optional) {
            names.push(name);
        }
    }
    let names = (!names.is_empty()).then(|| json!({ "type": "string", "enum": names }));
    any_of(names.into_iter().chain(calls))
}

/// The answer to a join of a detached participant.
fn joined(module: &Module<'_>) -> Value {
    let value = "What the call has answered; null without a call.";
    let held = "What the participant holds.";
    object([
        ("participant", text("The participant's id.")),
        ("recipe", text("The recipe.")),
        ("value", described(or_null(module.any_answer()), value)),
        ("held", described(or_null(refer("claim")), held)),
        ("lease", duration("How long the participant lives without a renewal.")),
    ])
}

/// A line of a stream of this recipe's.
fn own_event(module: &Module<'_>, components: &mut Components) -> Value {
    let answered = events::answered(module.any_answer());
    let answered = module.keep("answered-event", answered, components);
    let refused = module.any_error().map(|error| {
        let refused = events::refused(error);
        module.keep("refused-event", refused, components)
    });
    let answered = referred(&answered).unwrap_or_default();
    let event = events::own_event(answered, refused.as_ref().and_then(referred));
    module.keep("event", event, components)
}
