//! Two transcripts side by side.

use std::fmt::Write;

/// Lines before the difference, which say how it came about.
const BEFORE: usize = 12;
/// Lines from the difference on.
const AFTER: usize = 12;

/// Nothing if they are equal, or both from shortly before the first line that differs.
pub(super) fn difference(left: (&str, &[String]), right: (&str, &[String])) -> Option<String> {
    let ((left_name, left), (right_name, right)) = (left, right);
    let longer = left.len().max(right.len());
    let first = (0..longer).find(|index| left.get(*index) != right.get(*index))?;
    let mut text =
        format!("line {} differs; `|` is both, `<` {left_name}, `>` {right_name}\n", first + 1);
    for index in first.saturating_sub(BEFORE)..(first + AFTER).min(longer) {
        let (one, other) = (left.get(index), right.get(index));
        let mut line = |mark, line: Option<&String>| {
            let line = line.map_or("(nothing more)", String::as_str);
            // A string takes everything.
            writeln!(text, "{mark} {:>5} {line}", index + 1).ok();
        };
        if one == other {
            line('|', one);
        } else {
            line('<', one);
            line('>', other);
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_first_line_that_differs_is_shown_with_what_led_to_it() {
        let (one, other) = (lines("a b c"), lines("a b d"));
        assert_eq!(difference(("x", &one), ("y", &one)), None);
        let shown = difference(("x", &one), ("y", &other)).unwrap();
        assert!(shown.contains("line 3 differs"), "{shown}");
        assert!(shown.contains("|     2 b\n<     3 c\n>     3 d\n"), "{shown}");
    }

    #[test]
    fn a_transcript_that_ends_early_differs() {
        let shown = difference(("x", &lines("a")), ("y", &lines("a b"))).unwrap();
        assert!(shown.contains("<     2 (nothing more)\n>     2 b\n"), "{shown}");
    }
}
