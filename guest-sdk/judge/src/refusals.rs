//! Those who are refused for what they ask: wrong arguments, or what they have or lack already.
//!
//! A recipe documents what it refuses with `invalid`. So a judge asks of a call whether the call is to be
//! refused, by its arguments and by what its participant was answered before. Where it is, no fault need be
//! the reason.

use serde_json::Value;

use crate::history::Outcome;
use crate::people::Call;
use crate::{Case, Violation};

/// Whether a name has 1 to that many bytes, and neither a slash nor a control character.
pub fn is_name(name: &str, most: usize) -> bool {
    (1..=most).contains(&name.len())
        && !name.contains(|character: char| character == '/' || character.is_control())
}

/// The same of a name that does not begin with a dot either.
pub fn is_shown_name(name: &str, most: usize) -> bool {
    is_name(name, most) && !name.starts_with('.')
}

/// How many bytes an argument has that is a list of bytes: spelled as text, or in base64.
pub fn length_of(data: &Value) -> Option<usize> {
    if let Some(text) = data.as_str() {
        return Some(text.len());
    }
    let encoded = data.get("base64")?.as_str()?;
    // Four characters spell three bytes, and those that only fill up the last four spell none.
    Some(encoded.trim_end_matches('=').len() * 3 / 4)
}

/// Whether the call was answered `invalid`.
pub fn is_invalid(call: &Call<'_>) -> bool {
    matches!(call.answered, Some((_, Outcome::Err { value, .. })) if value.get("invalid").is_some())
}

/// How often `snapshot` of the SDK looks at a directory that changes meanwhile, before it is refused.
const LOOKS: usize = 16;

/// Whether the call was answered `other`, and what it was to read may have changed during each look of the
/// SDK's `snapshot`. `changes` counts the changes between two entries of the history, and is asked only of a
/// call that was so answered.
pub fn met_a_change_at_each_look(
    call: &Call<'_>,
    changes: impl FnOnce(usize, usize) -> usize,
) -> bool {
    match call.answered {
        Some((answered, Outcome::Err { value, .. })) if value.get("other").is_some() => {
            changes(call.invoked.at, answered.at) >= LOOKS
        }
        _ => false,
    }
}

/// A call that is to be refused whatever happens is answered no value.
pub fn check_answered(
    case: &Case<'_>,
    id: &'static str,
    is_wrong: impl Fn(&Call<'_>) -> bool,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls() {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        if !is_wrong(call) {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "the `{operation}` of participant {who} asks for what is to be refused, and was answered \
             {value}"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

/// What a participant may have when it calls: one thing at most, which one operation gives and another
/// takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// It may have it.
    pub may_have: bool,
    /// It may have nothing.
    pub may_lack: bool,
}

impl Standing {
    /// What the answers to the participant's earlier calls say. After one that the participant withdrew, it
    /// may have the thing and may lack it.
    pub fn before(case: &Case<'_>, call: &Call<'_>, gives: &str, takes: &str) -> Standing {
        let mut standing = Standing { may_have: false, may_lack: true };
        let own = case.people.calls().iter().filter(|it| it.who == call.who);
        for earlier in own.take_while(|it| it.invoked.at < call.invoked.at) {
            let outcome = earlier.answered.map(|(_, outcome)| outcome);
            standing = match (earlier.operation, outcome) {
                // It was not begun.
                (_, Some(Outcome::Busy)) => standing,
                (of, Some(Outcome::Ok { .. })) if of == gives => {
                    Standing { may_have: true, may_lack: false }
                }
                (of, Some(Outcome::Err { .. })) if of == gives => standing,
                (of, _) if of == gives => Standing { may_have: true, ..standing },
                (of, Some(Outcome::Ok { .. })) if of == takes => {
                    Standing { may_have: false, may_lack: true }
                }
                (of, _) if of == takes => Standing { may_lack: true, ..standing },
                _ => standing,
            };
        }
        standing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Promise;
    use crate::stories::Story;
    use crate::truth::Truth;
    use serde_json::json;

    #[test]
    fn a_name_has_a_length_and_no_slash() {
        for name in ["a", "a.b", " ", ".a", ".."] {
            assert!(is_name(name, 3), "{name:?}");
        }
        for wrong in ["", "abcd", "a/b", "/", "a\n"] {
            assert!(!is_name(wrong, 3) && !is_shown_name(wrong, 3), "{wrong:?}");
        }
        assert!(is_shown_name("a.b", 3) && !is_shown_name(".a", 3));
    }

    #[test]
    fn bytes_are_counted_however_they_are_spelled() {
        for (data, length) in [
            (json!(""), Some(0)),
            (json!("abc"), Some(3)),
            (json!({ "base64": "/wA=" }), Some(2)),
            (json!({ "base64": "/w==" }), Some(1)),
            (json!({ "base64": "/wAA" }), Some(3)),
            (Value::Null, None),
        ] {
            assert_eq!(length_of(&data), length, "{data}");
        }
    }

    /// What participant 1 may have, and may lack, after these calls of it.
    #[track_caller]
    fn check(calls: &[(&str, Option<Outcome>)], may_have: bool, may_lack: bool) {
        let mut story = Story::new();
        for (operation, outcome) in calls {
            story.invoke(1, operation);
            if let Some(outcome) = outcome {
                story.answer(1, outcome.clone());
            }
        }
        // What another one has is its own.
        story.invoke(2, "give").answer_value(2, Value::Null).invoke(1, "ask");
        let truth = Truth::of(&story.entries);
        let case = Case::of(&story.entries, &truth, &Promise::NONE);
        let asks = case.people.calls().last().expect("it asks");
        let standing = Standing::before(&case, asks, "give", "take");
        assert_eq!(standing, Standing { may_have, may_lack });
    }

    #[test]
    fn what_somebody_has_follows_from_what_it_was_answered() {
        let ok = || Some(Outcome::Ok { value: Value::Null, holds: false });
        let failed = || Some(Outcome::Err { value: json!("no-node"), holds: false });
        check(&[], false, true);
        check(&[("give", ok())], true, false);
        check(&[("give", failed())], false, true);
        check(&[("give", Some(Outcome::Cancelled))], true, true);
        check(&[("give", None)], true, true);
        check(&[("give", ok()), ("take", ok())], false, true);
        check(&[("give", ok()), ("take", failed())], true, true);
        check(&[("give", ok()), ("take", Some(Outcome::Busy))], true, false);
        check(&[("give", ok()), ("look", Some(Outcome::Cancelled))], true, false);
    }
}
