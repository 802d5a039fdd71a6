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
    /// Colours only for a terminal, and not where `NO_COLOR` or `TERM=dumb` forbid them.
    pub(super) fn of(stream: &impl IsTerminal) -> Self {
        let [no_color, term] = ["NO_COLOR", "TERM"].map(std::env::var_os);
        match stream.is_terminal() && !forbids_colour(no_color, term) {
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

/// Whether colours are forbidden: by `NO_COLOR` if it is there and not empty, as its convention
/// (no-color.org) has it, or by a terminal that says of itself that it obeys nothing.
fn forbids_colour(no_color: Option<OsString>, term: Option<OsString>) -> bool {
    no_color.is_some_and(|value| !value.is_empty()) || term.is_some_and(|value| value == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_forbids_colours_unless_it_is_empty() {
        assert!(forbids_colour(Some("1".into()), None));
        assert!(!forbids_colour(Some("".into()), None));
        assert!(!forbids_colour(None, None));
    }

    #[test]
    fn a_dumb_terminal_gets_none() {
        assert!(forbids_colour(None, Some("dumb".into())));
        assert!(!forbids_colour(None, Some("xterm-256color".into())));
        assert!(!forbids_colour(None, Some("".into())));
    }

    #[test]
    fn what_is_no_terminal_gets_none() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(Paint::of(&file), Paint::Plain);
        assert_eq!(Paint::Plain.paint(Colour::Red, "a"), "a");
        assert_eq!(Paint::Coloured.paint(Colour::Red, "a"), "\x1b[31ma\x1b[0m");
    }
}
