//! Text that comes from a module, a file or a server, as it may be shown on a terminal.

#[cfg(any(feature = "command-line", test))]
use std::borrow::Cow;

/// Whether a terminal obeys the character, or the character turns the direction of writing.
pub(crate) fn is_obeyed(character: char) -> bool {
    let turns = matches!(
        character,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    turns || character.is_control()
}

/// The most bytes of a name: it stands in znodes and in tables.
#[cfg(feature = "daemon")]
const LONGEST_NAME: usize = 200;

/// Checks that a text can stand as the name of somebody in what others read.
///
/// # Errors
/// What a name is, in words.
#[cfg(feature = "daemon")]
pub(crate) fn check_name(text: &str) -> Result<(), String> {
    match !text.is_empty() && text.len() <= LONGEST_NAME && !text.contains(char::is_control) {
        true => Ok(()),
        false => Err(format!("one line of 1 to {LONGEST_NAME} bytes, without control characters")),
    }
}

/// Appends a character, or an escape for a character that a terminal would obey. A line stays one line.
pub(crate) fn push(line: &mut String, character: char) {
    match is_obeyed(character) {
        true => line.extend(character.escape_default()),
        false => line.push(character),
    }
}

/// Lines with nothing in them that a terminal obeys, but for their breaks and tabs.
#[cfg(any(feature = "command-line", test))]
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    let is_kept = |character| matches!(character, '\n' | '\t') || !is_obeyed(character);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match is_kept(character) {
            true => plain.push(character),
            false => push(&mut plain, character),
        }
    }
    Cow::Owned(plain)
}

/// JSON with nothing in it that a terminal obeys, by JSON's own escapes: it means what it meant.
#[cfg(any(feature = "command-line", test))]
pub(crate) fn json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for character in json.chars() {
        // Only line breaks stand outside of strings, and within strings JSON escapes them.
        if character != '\n' && is_obeyed(character) {
            plain.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_people_is_still_json() {
        let answer = serde_json::json!({
            "owner": "a\x1b[2J\u{9b}\u{202e}\u{2028}\n\u{e9}",
            "fence": 7,
        });
        let text = json(&format!("{answer:#}"));
        assert!(!text.chars().any(|it| it != '\n' && is_obeyed(it)), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), answer);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        assert_eq!(lines("a\x1b[2J\u{9b}\tb\n\u{202e}é\r"), "a\\u{1b}[2J\\u{9b}\tb\n\\u{202e}é\\r");
        assert_eq!(lines("a\tb\né"), "a\tb\né");
        let mut line = String::new();
        "x\ny\t\x1b\u{2069}".chars().for_each(|character| push(&mut line, character));
        assert_eq!(line, "x\\ny\\t\\u{1b}\\u{2069}");
    }
}
