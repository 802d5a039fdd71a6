//! What to type next: how a command ends its report.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};

/// Commands that make sense after this one, the likeliest first.
#[derive(Debug)]
pub(super) struct Next(Vec<String>);

impl Next {
    pub(super) fn new(commands: impl IntoIterator<Item = String>) -> Self {
        Next(commands.into_iter().collect())
    }

    /// For people: the last lines of a report.
    pub(super) fn text(&self) -> String {
        format!("next: {}", self.0.join("\n      "))
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        json!(self.0)
    }
}

/// A path as a shell takes it, and as a command that also takes a stock recipe's name does.
pub(super) fn module_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_path = text.contains('/') || text.ends_with(".wasm");
    word(&if is_path { text } else { Cow::Owned(format!("./{text}")) }).into_owned()
}

/// A path as a shell takes it.
pub(super) fn path_word(path: &Path) -> String {
    word(&path.to_string_lossy()).into_owned()
}

/// A word as a shell takes it.
pub(super) fn word(text: &str) -> Cow<'_, str> {
    let is_plain =
        |character: char| character.is_alphanumeric() || "-_./:,@%+=".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_can_be_typed() {
        assert_eq!(module_word(Path::new("a/b.wasm")), "a/b.wasm");
        assert_eq!(module_word(Path::new("b.wasm")), "b.wasm");
        assert_eq!(module_word(Path::new("lock")), "./lock");
        assert_eq!(module_word(Path::new("my lock.wasm")), "'my lock.wasm'");
        assert_eq!(path_word(Path::new("it's")), r"'it'\''s'");
        let next = Next::new(["one".to_owned(), "two".to_owned()]);
        assert_eq!(next.text(), "next: one\n      two");
        assert_eq!(next.json(), json!(["one", "two"]));
    }
}
