//! The lines of the streams that tell of participants.

use serde_json::{Map, Value, json};

use super::components::{Components, described, object, refer, text};
use super::errors::{loss_cause, loss_reason};

/// The schema of a line that tells of some participant, of whichever recipe.
pub(super) const EVENT: &str = "event";

/// The names of the events in the order in which they are likely to be met. Those that carry a module's
/// own values are [`ANSWERED`] and [`REFUSED`].
const NAMES: [&str; 14] = [
    "joined",
    "waiting",
    "held",
    ANSWERED,
    REFUSED,
    "timed-out",
    "suspended",
    "resumed",
    "released",
    "idle",
    "leaving",
    "lost",
    "recipe-event",
    "alive",
];
const ANSWERED: &str = "answered";
const REFUSED: &str = "refused";
const ENDED: &str = "ended";

/// Adds the schemas of all events, and of a line that is any of them.
pub(super) fn add(components: &mut Components) {
    components.keep(&["fence"], fence());
    components.keep(&["claim"], claim());
    for name in NAMES.into_iter().chain([ENDED]) {
        let event = match name {
            ANSWERED => answered(json!({ "description": "The answer." })),
            REFUSED => refused(json!({ "description": "The operation's own error." })),
            name => plain(name),
        };
        components.keep(&[&schema_name(name)], event);
    }
    components.keep(&[EVENT], any_event(|name| Some(schema_name(name))));
}

/// A fencing token.
fn fence() -> Value {
    let words = "A fencing token: a number up to 2^53, a decimal string beyond. Of two claims one after \
                 the other, the later has the higher one.";
    described(number(), words)
}

/// A number of 64 bits.
fn number() -> Value {
    json!({
        "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 1_u64 << 53 },
            { "type": "string", "pattern": "^[0-9]{16,20}$" },
        ],
    })
}

/// An event that may say until when what is held may be relied on.
fn dated(event: Value) -> Value {
    let words = format!("{UNTIL} Only while something is held.");
    with(event, "deadline-boottime-ms", described(number(), &words))
}

/// What a deadline says.
const UNTIL: &str = "Until when what is held may be relied on without hearing more, unless somebody ends the \
    participant by its id, or its module gives the claim up by itself: milliseconds of the machine's clock \
    `CLOCK_BOOTTIME`.";

/// An event that a stream of all participants tells of none of them.
fn of_no_participant(mut event: Value) -> Value {
    if let Some(Value::Array(required)) = event.get_mut("required") {
        required.retain(|key| key != "recipe" && key != "participant");
    }
    event
}

/// An event that may have one more key.
fn with(mut event: Value, key: &str, schema: Value) -> Value {
    if let Some(Value::Object(properties)) = event.get_mut("properties") {
        properties.insert(key.to_owned(), schema);
    }
    event
}

fn claim() -> Value {
    let path = text("The claim's znode.");
    let deadline = described(number(), UNTIL);
    let claim =
        object([("path", path), ("fence", refer("fence")), ("deadline-boottime-ms", deadline)]);
    described(claim, "Something that is held.")
}

/// What the schema of an event is called.
fn schema_name(event: &str) -> String {
    match event {
        // Not to say it twice.
        "recipe-event" => event.to_owned(),
        event => format!("{event}-event"),
    }
}

/// A line that is any event. `schema_of` says under which name the schema of an event is kept; none if
/// there is no such event.
pub(super) fn any_event(schema_of: impl Fn(&str) -> Option<String>) -> Value {
    let mut schemas = Vec::new();
    let mut mapping = Map::new();
    for name in NAMES.into_iter().chain([ENDED]) {
        if let Some(schema) = schema_of(name) {
            let schema = refer(&schema);
            mapping.insert(name.to_owned(), schema.get("$ref").cloned().unwrap_or_default());
            schemas.push(schema);
        }
    }
    json!({
        "oneOf": schemas,
        "discriminator": { "propertyName": "event", "mapping": mapping },
        "description": "What happens to a participant. `event` says what.",
    })
}

/// A line of a module's own. Its answers and refusals are of the schemas of these names; the module has
/// no refusals where there is none.
pub(super) fn own_event(answered: &str, refused: Option<&str>) -> Value {
    any_event(|name| match name {
        ANSWERED => Some(answered.to_owned()),
        REFUSED => refused.map(str::to_owned),
        name => Some(schema_name(name)),
    })
}

/// The call of the join has answered that.
pub(super) fn answered(value: Value) -> Value {
    let words = "The call of the join has answered. Of an operation that claims, it comes before or \
                 after `held`, and `held` is what counts.";
    let goes_on = json!({
        "type": "boolean",
        "description": "Whether the module goes on by itself, so that a claim may still come of it.",
    });
    event(ANSWERED, words, [("operation", operation()), ("value", value), ("goes-on", goes_on)])
}

/// The call of the join has answered that error of its own.
pub(super) fn refused(error: Value) -> Value {
    let words = "The call of the join has answered an error of its own; `ended` follows.";
    event(REFUSED, words, [("operation", operation()), ("error", error)])
}

fn operation() -> Value {
    text("The operation.")
}

/// The first line.
fn joined() -> Value {
    let session = text("The session that the participant belongs to.");
    let app = text("The app that the participant is of, to the app itself.");
    let dependent = json!({
        "type": "boolean",
        "description": "Whether the claim is kept for what depends on it, as was asked.",
    });
    let words = "The first line: the participant has joined.";
    let timeout = text("Negotiated, as \"10s\"; to the app itself.");
    let joined = with(event("joined", words, [("session", session)]), "session-timeout", timeout);
    let joined = with(joined, "app", app);
    with(joined, "dependent", dependent)
}

/// What a module says of itself.
fn said() -> Value {
    let name = text("The event, as the docs of the recipe name it.");
    let detail = json!({
        "type": "object",
        "additionalProperties": { "anyOf": [{ "type": "string" }, number()] },
        "description": "Its details: texts, and numbers for `fence` and `revision`.",
    });
    event("recipe-event", "The module speaks.", [("name", name), ("detail", detail)])
}

/// An event that is the same of every module.
fn plain(name: &str) -> Value {
    let message = || text("What happened, for people.");
    match name {
        "joined" => joined(),
        "waiting" => {
            let words = "The participant stands in line.";
            event(name, words, [("path", text("Its contender znode."))])
        }
        "held" => {
            let path = text("The claim's znode.");
            let words = "The participant holds a claim.";
            dated(event(name, words, [("path", path), ("fence", refer("fence"))]))
        }
        "timed-out" => {
            let words = "The timeout of the join's call has passed; `ended` follows. Nothing of the \
                         call is held or stands in line. What the call was to write for good may \
                         have been written.";
            event(name, words, [("operation", operation())])
        }
        "suspended" => {
            let words = "Contact with ZooKeeper is in doubt; what is held is still held.";
            dated(event(name, words, []))
        }
        "resumed" => dated(event(name, "The doubt is over; what is held is still held.", [])),
        "released" => {
            let words = "The participant gives a claim up of its own will: nobody may act under it any more. \
                         Its znode may still stand. That it is gone is said by the answer to the \
                         operation that gave the claim up, and by `ended`. If it is not deleted after \
                         all, `held` follows.";
            event(name, words, [("path", text("The claim's znode."))])
        }
        "idle" => {
            let words = "The participant holds nothing, and its module waits for nothing any more: nothing \
                         comes of it unless an operation is called. A call that stood in line is over, or \
                         what went on by itself.";
            event(name, words, [])
        }
        "leaving" => {
            let words = "The participant is to end. What it holds may be relied on until \
                         `deadline-boottime-ms`, and no later time is told any more. Its app stops before \
                         that, and closes its stream or gives back what it holds; where the join asked for \
                         `dependent`, the app says that nothing depends on the claim. Told where the \
                         daemon stops, and with `dependent` whenever the participant is to end, to all \
                         that follow the participant.";
            dated(event(name, words, [("message", text("Why, for people."))]))
        }
        "lost" => event(
            name,
            "What was held is gone: stop now. `ended` follows.",
            [("reason", loss_reason()), ("cause", loss_cause()), ("message", message())],
        ),
        "recipe-event" => said(),
        "alive" => {
            let alive = event(
                name,
                "The stream is alive; every 5 seconds, unless the join asks for another time.",
                [],
            );
            let words = "How many lines this stream has missed, if any.";
            of_no_participant(dated(with(alive, "dropped", described(number(), words))))
        }
        _ => {
            let words = "How the participant ended: it left, it lost what it held or its session, or \
                         its module failed.";
            let how = json!({ "type": "string", "enum": ["left", "lost", "failed"], "description": words });
            let words = "The last line: nothing of the participant is left in ZooKeeper.";
            event(ENDED, words, [("how", how), ("message", message())])
        }
    }
}

fn event<const N: usize>(name: &str, words: &str, more: [(&str, Value); N]) -> Value {
    let at = "When it happened.";
    let mut event = object([
        ("event", json!({ "type": "string", "const": name })),
        ("recipe", text("The recipe.")),
        ("participant", text("The participant's id.")),
        ("at", json!({ "type": "string", "format": "date-time", "description": at })),
    ]);
    for (key, schema) in more {
        if let Some(Value::Object(properties)) = event.get_mut("properties") {
            properties.insert(key.to_owned(), schema);
        }
        if let Some(Value::Array(required)) = event.get_mut("required") {
            required.push(json!(key));
        }
    }
    described(event, words)
}
