//! Who is refused for what it asks.

use std::collections::BTreeSet;

use serde_json::Value;
use wok_judge::history::Outcome;
use wok_judge::people::Call;
use wok_judge::refusals::{self, Standing, is_invalid, is_shown_name};
use wok_judge::{Case, Violation, turns};

use crate::service::Service;
use crate::views::spelled;

/// The most bytes of a name, of a key, and of all that an instance says.
const LONGEST: usize = 128;
const LARGEST: usize = 16 * 1024;

/// The most names that one participant follows.
const MOST_FOLLOWED: usize = 16;

/// N5: a call is refused only if a fault was in its way, its arguments are wrong, its participant has no
/// instance or has one already, it follows as many names as it may, or the instances it is to see change
/// during each look. One with wrong arguments is refused.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let has_reason = |call: &Call<'_>| match is_invalid(call) {
        true => has_wrong_arguments(case, call) || comes_at_a_wrong_time(case, call),
        false => {
            is_over_limit(call) && may_follow_the_most(case, call)
                || sees_no_name_at_rest(case, call)
        }
    };
    turns::check_refusals_but(case, id, has_reason, found);
    refusals::check_answered(case, id, |call| has_wrong_arguments(case, call), found);
}

/// Whether the interface says that it is refused, whatever instances there are.
fn has_wrong_arguments(case: &Case<'_>, call: &Call<'_>) -> bool {
    let is_wrong = |name: &str| !is_shown_name(name, LONGEST);
    let asks_for_a_wrong_name = name(case, call).is_some_and(is_wrong);
    match call.operation {
        "register" => asks_for_a_wrong_name || case.arguments(call).is_some_and(says_what_is_wrong),
        "resolve" | "observe" | "wait" => asks_for_a_wrong_name,
        _ => false,
    }
}

fn name<'a>(case: &Case<'a>, call: &Call<'_>) -> Option<&'a str> {
    case.arguments(call)?.get("name")?.as_str()
}

/// Whether an instance may not say that of itself.
fn says_what_is_wrong(arguments: &Value) -> bool {
    let has_control = |text: &str| text.contains(char::is_control);
    let address = arguments.get("address").and_then(Value::as_str);
    let pairs = arguments.get("metadata").and_then(Value::as_array);
    let is_wrong_pair = |pair: &Value| {
        let part = |at: usize| pair.get(at).and_then(Value::as_str);
        let is_wrong_key = |key: &str| {
            !(1..=LONGEST).contains(&key.len()) || key.contains('=') || has_control(key)
        };
        part(0).is_some_and(is_wrong_key) || part(1).is_some_and(has_control)
    };
    address.is_some_and(|address| address.is_empty() || has_control(address))
        || pairs.is_some_and(|pairs| pairs.iter().any(is_wrong_pair))
        || spelled(arguments).is_some_and(|data| data.len() > LARGEST)
}

/// Whether its participant may have no instance and has to have one, or the other way round.
fn comes_at_a_wrong_time(case: &Case<'_>, call: &Call<'_>) -> bool {
    let standing = || Standing::before(case, call, "register", "deregister");
    match call.operation {
        "register" => standing().may_have,
        "deregister" => standing().may_lack,
        _ => false,
    }
}

/// Whether it is refused the instances of a name, and they may have changed during each look.
fn sees_no_name_at_rest(case: &Case<'_>, call: &Call<'_>) -> bool {
    let (Some(person), Some(name), "resolve") =
        (case.people.person(call.who), name(case, call), call.operation)
    else {
        return false;
    };
    let directory = format!("{}/{name}", person.mount);
    refusals::met_a_change_at_each_look(call, |from, until| {
        Service::of(case.history, &directory).changes(from, until)
    })
}

fn is_over_limit(call: &Call<'_>) -> bool {
    matches!(
        call.answered,
        Some((_, Outcome::Err { value, .. })) if value.get("over-limit").is_some()
    )
}

/// Whether it asks to follow one name more than a participant may, as far as its caller knows.
fn may_follow_the_most(case: &Case<'_>, call: &Call<'_>) -> bool {
    let observes = |it: &&Call<'_>| it.who == call.who && it.operation == "observe";
    let before = case.people.calls().iter().filter(observes);
    let before = before.take_while(|it| it.invoked.at < call.invoked.at);
    let followed: BTreeSet<_> = before.filter_map(|it| name(case, it)).collect();
    call.operation == "observe" && followed.len() >= MOST_FOLLOWED
}
