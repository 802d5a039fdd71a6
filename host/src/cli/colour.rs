//! Colours, where somebody looks at them.

use std::ffi::OsString;
use std::io::IsTerminal;

/// What a line stands out by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Red,
    Green,
    Yellow,
    Faint,
}

/// Puts colours into text for one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Coloured,
    Plain,
}

impl Paint {
    /// Colours only for a terminal, and not where `NO_COLOR` forbids them.
    pub(super) fn of(stream: &impl IsTerminal) -> Self {
        match stream.is_terminal() && !forbids_colour(std::env::var_os("NO_COLOR")) {
            true => Paint::Coloured,
            false => Paint::Plain,
        }
    }

    /// A text in a colour. Nothing in the text may be obeyed by a terminal.
    pub(super) fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            _ if self == Paint::Plain || text.is_empty() => return text.to_owned(),
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Faint => 2,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Whether `NO_COLOR` forbids colours: by the convention (no-color.org) if it is there and not empty.
fn forbids_colour(no_color: Option<OsString>) -> bool {
    no_color.is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_forbids_colours_unless_it_is_empty() {
        assert!(forbids_colour(Some("1".into())));
        assert!(!forbids_colour(Some("".into())));
        assert!(!forbids_colour(None));
    }

    #[test]
    fn what_is_no_terminal_gets_none() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(Paint::of(&file), Paint::Plain);
        assert_eq!(Paint::Plain.paint(Colour::Red, "a"), "a");
        assert_eq!(Paint::Coloured.paint(Colour::Red, "a"), "\x1b[31ma\x1b[0m");
    }
}
