//! Whether answers agree with what was counted.

use wok_judge::Violation;
use wok_judge::history::Outcome;

use crate::Made;
use crate::counts::Counts;

/// C3: so many as a caller is told to remain did remain at some moment of its call; and the id of a
/// count that is acknowledged was counted by then, or the latch was open.
pub(super) fn check(
    calls: &[Made<'_, '_>],
    counts: &Counts<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for Made { call, id: named, .. } in calls {
        if !["count-down", "remaining"].contains(&call.operation) {
            continue;
        }
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let mut from = counts.before(call.invoked.at);
        let until = counts.before(answered.at);
        if let Some(named) = named {
            // Where its own count is in the call, what remained before that is no answer.
            let own = counts.counted.iter().take(until).position(|counted| counted.id == *named);
            from = from.max(own.map_or(counts.needed, |own| own + 1));
        }
        let was = |counted: usize| value.as_u64() == u64::try_from(counts.remaining(counted)).ok();
        if (from..=until).any(was) {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "the `{operation}` of participant {who} was answered {value}, which did not remain at \
             any moment of the call in which that could be said"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}
