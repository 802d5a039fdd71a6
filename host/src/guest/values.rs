//! JSON and component values.
//!
//! | WIT | JSON |
//! |---|---|
//! | 64-bit integers | a number up to 2^53, a decimal string beyond; both are read |
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
pub use schema::{arguments_schema, config_schema};
pub(super) use writer::write_optional;

/// The largest integer up to which a double, and so every reader of JSON, knows all integers.
const EXACT: u64 = 1 << 53;

/// A 64-bit number as JSON: beyond what every reader of JSON knows exactly, as a decimal string.
pub fn unsigned(value: u64) -> serde_json::Value {
    if value <= EXACT { value.into() } else { value.to_string().into() }
}

#[cfg(test)]
mod tests;
