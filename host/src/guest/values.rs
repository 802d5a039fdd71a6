//! JSON and component values.
//!
//! | WIT | JSON |
//! |---|---|
//! | 64-bit integers | a number up to 2^53, a decimal string beyond; both are read |
//! | integers | a number; `1.0` and `1e3` are read, too, as JSON Schema has them for integers |
//! | other numbers | a number; floats also `"nan"`, `"inf"`, `"-inf"` |
//! | `list<u8>` | a string where it is text, else `{"base64": "…"}`; both are read |
//! | option | absent or null; some option in an option is `{"some": …}` |
//! | variant, result | `"case"` or `{"case": payload}` |
//! | enum, char | a string |
//! | list, tuple, flags | an array |
//! | record | an object; its fields come in any order |

mod error;
mod reader;
mod schema;
mod writer;

pub use error::{Segment, ValueError, ValueErrors};
pub(super) use reader::{read_fields, read_record};
pub use schema::{Schemas, answer_schema, arguments_schema, config_schema, error_schema};
pub(super) use writer::write_optional;

use std::borrow::Cow;

use serde_json::Value;

/// The largest integer up to which a double, and so every reader of JSON, knows all integers.
const EXACT: u64 = 1 << 53;

/// A 64-bit number as JSON: beyond what every reader of JSON knows exactly, as a decimal string.
pub fn unsigned(value: u64) -> Value {
    if value <= EXACT { value.into() } else { value.to_string().into() }
}

/// An operation's error for people: the name of its case, and the text if the case has one, or what
/// ZooKeeper means by that name. Anything else stays JSON.
pub fn error_in_words(error: &Value) -> Cow<'_, str> {
    if let Value::String(case) = error {
        return match meaning(case) {
            Some(meaning) => Cow::Owned(format!("{case}: {meaning}")),
            None => Cow::Borrowed(case),
        };
    }
    let mut cases = error.as_object().into_iter().flatten();
    match (cases.next(), cases.next()) {
        (Some((case, Value::String(text))), None) => Cow::Owned(format!("{case}: {text}")),
        _ => Cow::Owned(error.to_string()),
    }
}

/// What ZooKeeper means by an error that the contract hands on from the server without a text, and what to
/// look at.
fn meaning(case: &str) -> Option<&'static str> {
    Some(match case {
        "no-node" => "a znode that it needs is not there, or no longer",
        "node-exists" => "a znode of that name is there already",
        "not-empty" => {
            "the znode there has children, which another client has created: delete them first"
        }
        "bad-version" => "somebody has changed it meanwhile",
        "no-auth" => {
            "the ACL of a znode does not allow it; the log names the znode: compare its ACL (`getAcl`) with \
             the credentials"
        }
        "no-children-for-ephemerals" => {
            "the znode above is ephemeral and can have no children: choose another mount"
        }
        "quota-exceeded" => {
            "the server enforces a quota there, and it is spent (`listquota` tells it)"
        }
        "outcome-unknown" => {
            "the connection was lost before the reply, so it may or may not have happened"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
