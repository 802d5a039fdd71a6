//! How the host says no.

use serde_json::{Map, Value, json};

use super::components::{Components, any_of, described, object, refer, text};

/// Why the host does not do what is asked. An operation's own error is not the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    NoOperation,
    MethodNotAllowed,
    TooSlow,
    Ended,
    TooLarge,
    Busy,
    HeadTooLarge,
    ModuleFailed,
    Unavailable,
    TimedOut,
}

impl Kind {
    const ALL: [Kind; 14] = [
        Kind::BadRequest,
        Kind::Unauthorized,
        Kind::Forbidden,
        Kind::NotFound,
        Kind::NoOperation,
        Kind::MethodNotAllowed,
        Kind::TooSlow,
        Kind::Ended,
        Kind::TooLarge,
        Kind::Busy,
        Kind::HeadTooLarge,
        Kind::ModuleFailed,
        Kind::Unavailable,
        Kind::TimedOut,
    ];

    /// What may be said to anybody, whatever is asked.
    pub(super) const GENERAL: [Kind; 5] = [
        Kind::BadRequest,
        Kind::Unauthorized,
        Kind::Forbidden,
        Kind::HeadTooLarge,
        Kind::Unavailable,
    ];

    /// What may be said to who sends a body, also where none is asked for.
    pub(super) const OF_BODIES: [Kind; 2] = [Kind::TooSlow, Kind::TooLarge];

    /// What may be said to who calls an operation.
    pub(super) const OF_CALLS: [Kind; 4] =
        [Kind::NoOperation, Kind::Ended, Kind::ModuleFailed, Kind::TimedOut];

    pub(super) fn status(self) -> u16 {
        match self {
            Kind::BadRequest => 400,
            Kind::Unauthorized => 401,
            Kind::Forbidden => 403,
            Kind::NotFound | Kind::NoOperation => 404,
            Kind::MethodNotAllowed => 405,
            Kind::TooSlow => 408,
            Kind::Ended => 410,
            Kind::TooLarge => 413,
            Kind::Busy => 423,
            Kind::HeadTooLarge => 431,
            Kind::ModuleFailed => 500,
            Kind::Unavailable => 503,
            Kind::TimedOut => 504,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::BadRequest => "bad-request",
            Kind::Unauthorized => "unauthorized",
            Kind::Forbidden => "forbidden",
            Kind::NotFound => "not-found",
            Kind::NoOperation => "no-operation",
            Kind::MethodNotAllowed => "method-not-allowed",
            Kind::TooSlow => "too-slow",
            Kind::Ended => "ended",
            Kind::TooLarge => "too-large",
            Kind::Busy => "busy",
            Kind::HeadTooLarge => "head-too-large",
            Kind::ModuleFailed => "module-failed",
            Kind::Unavailable => "unavailable",
            Kind::TimedOut => "timed-out",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Kind::BadRequest => {
                "The request is wrong, and the message says where. What is no HTTP is answered without \
                 a body."
            }
            Kind::Unauthorized => "Over TCP: the token is missing or wrong.",
            Kind::Forbidden => {
                "The host does not serve this user, this `Host`, or any web page, which is a request with \
                 `Origin`."
            }
            Kind::NotFound => "There is no such recipe, participant or path.",
            Kind::NoOperation => {
                "The recipe has no such operation, and the message names those that it has: to join again \
                 is of no use."
            }
            Kind::MethodNotAllowed => "The path has other methods.",
            Kind::TooSlow => "The body was not sent in time.",
            Kind::Ended => {
                "The participant has ended, or ends, and the message says why; after a loss `reason` and \
                 `cause` say which loss. What an operation that was under way was to write for good may \
                 have been written, so look before you call again."
            }
            Kind::TooLarge => "The body is too large.",
            Kind::Busy => {
                "Another operation of this participant is under way: join a second participant to \
                 do two things at a time."
            }
            Kind::HeadTooLarge => {
                "The head of the request has more than 16 KiB or 100 headers. There is no body."
            }
            Kind::ModuleFailed => "The module failed, and its participant has ended.",
            Kind::Unavailable => {
                "There is no session, each session has been in doubt for 2 s or for all of the call's \
                 timeout, all sessions are full, the host is stopping, or it has too many connections. \
                 Nothing was done: try again."
            }
            Kind::TimedOut => {
                "The caller's timeout passed, or the call was cancelled. Nothing of the operation \
                 is held or stands in line. What the operation was to write for good may have been \
                 written, so look before you call again; what it was to give back may still be \
                 given back afterwards."
            }
        }
    }

    /// The schema of the body. None where HTTP itself refuses, before the host sees a request.
    fn schema(self) -> Option<Value> {
        if self == Kind::HeadTooLarge {
            return None;
        }
        let error = json!({ "type": "string", "const": self.name() });
        let message = text("What happened and what to do, for people.");
        let mut schema = object([("error", error), ("message", message)]);
        if self == Kind::Ended
            && let Some(Value::Object(properties)) = schema.get_mut("properties")
        {
            properties.insert("reason".to_owned(), loss_reason());
            properties.insert("cause".to_owned(), loss_cause());
        }
        Some(described(schema, self.words()))
    }

    fn schema_name(self) -> String {
        format!("{}-error", self.name())
    }

    /// The answer. A status has one answer, so who calls an operation finds both reasons for 404 in it.
    fn response(self) -> Value {
        let (words, kinds) = match self {
            Kind::NoOperation => (
                "There is no such recipe or participant (`not-found`), or the recipe has no such \
                 operation (`no-operation`).",
                vec![Kind::NotFound, self],
            ),
            _ => (self.words(), vec![self]),
        };
        match self.schema() {
            None => json!({ "description": words }),
            Some(_) => {
                let body = any_of(kinds.into_iter().map(|kind| refer(&kind.schema_name())));
                let content = json!({ "application/json": { "schema": body } });
                json!({ "description": words, "content": content })
            }
        }
    }
}

/// What kind of loss it was.
pub(super) fn loss_reason() -> Value {
    let words = "What was lost: the session, or a znode of the claim; `fault` if the module failed \
                 while it held the claim.";
    json!({ "type": "string", "enum": ["session", "znode-deleted", "fault"], "description": words })
}

/// What was behind a loss.
pub(super) fn loss_cause() -> Value {
    text("What is behind the reason, in one word.")
}

/// Adds a schema for each kind that has a body.
pub(super) fn add(components: &mut Components) {
    for kind in Kind::ALL {
        if let Some(schema) = kind.schema() {
            components.keep(&[&kind.schema_name()], schema);
        }
    }
}

/// An answer for each kind, by its name.
pub(super) fn responses() -> Value {
    let response = |kind: Kind| (kind.name().to_owned(), kind.response());
    Value::Object(Kind::ALL.into_iter().map(response).collect::<Map<_, _>>())
}

/// The answer with an operation's own error.
pub(super) fn refusal(error: Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "error": error },
        "required": ["error"],
        "additionalProperties": false,
    });
    described(schema, "The operation's own error.")
}
