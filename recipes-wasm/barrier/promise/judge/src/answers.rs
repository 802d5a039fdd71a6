//! Whether answers agree with what the barrier was.

use serde_json::Value;
use wok_judge::Violation;
use wok_judge::history::Outcome;
use wok_judge::people::{Call, Person};

use crate::Made;
use crate::states::States;

/// B3: what `raise` or `lower` answers was so at some moment of the call.
pub(super) fn check(
    calls: &[Made<'_, '_>],
    states: &States<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for (person, call) in calls {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let is_true = match call.operation {
            "raise" => is_raised(person, call, states, answered.at, value),
            "lower" => states.up_all_the_time(call.invoked.at, answered.at).is_none(),
            _ => true,
        };
        if is_true {
            continue;
        }
        let (who, operation) = (call.who, call.operation);
        let sentence = format!(
            "the `{operation}` of participant {who} was answered {value}, which was not so at any \
             moment of the call"
        );
        let violation = Violation::new(id, answered.at, sentence);
        found.push(violation.involving([call.invoked.at]).by([who]));
    }
}

fn is_raised(
    person: &Person<'_>,
    call: &Call<'_>,
    states: &States<'_>,
    answered: usize,
    value: &Value,
) -> bool {
    let invoked = call.invoked.at;
    if value == "raised" {
        let own = |session: i64| session == person.session;
        return states.ups.iter().filter_map(|up| up.raised).any(|raised| {
            own(raised.session) && invoked < raised.when.at && raised.when.at < answered
        });
    }
    let Some(owner) = value.get("was-up").and_then(Value::as_str) else { return false };
    if states.ups.is_empty() {
        return true;
    }
    // What one that was up before the history held is not known.
    states.ups.iter().filter(|up| up.is_during(invoked, answered)).any(|up| {
        up.data.is_empty()
            || up.raised.is_none()
            || up.data.iter().any(|data| data.starts_with(owner.as_bytes()))
    })
}
