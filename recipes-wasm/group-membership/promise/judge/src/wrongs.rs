//! Who is refused for what it asks.

use wok_judge::history::{Change, What};
use wok_judge::people::Call;
use wok_judge::refusals::{self, Standing, is_invalid, is_shown_name, length_of};
use wok_judge::{Case, Violation, turns};

use crate::group::Group;

/// The most bytes of a name, and of what a member says.
const LONGEST_NAME: usize = 128;
const LARGEST_DATA: usize = 64 * 1024;

/// G6: a call is refused only if a fault was in its way, its arguments are wrong, its participant is no
/// member or is one already, its name is a znode's that is no member's, or the group it is to see changes
/// during each look. One with wrong arguments is refused.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let has_reason = |call: &Call<'_>| match is_invalid(call) {
        true => has_wrong_arguments(case, call) || comes_at_a_wrong_time(case, call),
        false => sees_no_group_at_rest(case, call),
    };
    turns::check_refusals_but(case, id, has_reason, found);
    refusals::check_answered(case, id, |call| has_wrong_arguments(case, call), found);
}

/// Whether the interface says that it is refused, whatever the group is.
fn has_wrong_arguments(case: &Case<'_>, call: &Call<'_>) -> bool {
    let Some(arguments) = case.arguments(call) else { return false };
    let name = arguments.get("name").and_then(|name| name.as_str());
    let length = arguments.get("data").and_then(length_of);
    let is_too_long = length.is_some_and(|length| length > LARGEST_DATA);
    match call.operation {
        "join" => is_too_long || name.is_some_and(|name| !is_shown_name(name, LONGEST_NAME)),
        "update" => is_too_long,
        _ => false,
    }
}

/// Whether its participant may be no member and has to be one, or the other way round.
fn comes_at_a_wrong_time(case: &Case<'_>, call: &Call<'_>) -> bool {
    let standing = || Standing::before(case, call, "join", "leave");
    match call.operation {
        "join" => standing().may_have || is_at_no_members_znode(case, call),
        "update" | "leave" => standing().may_lack,
        _ => false,
    }
}

/// Whether it is refused a view, and the group may have changed during each look.
fn sees_no_group_at_rest(case: &Case<'_>, call: &Call<'_>) -> bool {
    let (Some(person), "members") = (case.people.person(call.who), call.operation) else {
        return false;
    };
    refusals::met_a_change_at_each_look(call, |from, until| {
        Group::of(case.history, person.mount).changes(from, until)
    })
}

/// Whether a znode had the name at some moment of the call that goes with nobody.
fn is_at_no_members_znode(case: &Case<'_>, call: &Call<'_>) -> bool {
    let person = case.people.person(call.who);
    let name = case.arguments(call).and_then(|arguments| arguments.get("name")?.as_str());
    let (Some((answered, _)), Some(person), Some(name)) = (call.answered, person, name) else {
        return false;
    };
    let znode = format!("{}/{name}", person.mount);
    let (mut stands, mut stood) = (false, false);
    for (at, entry) in case.history.iter().enumerate().take(answered.at) {
        stood |= stands && at >= call.invoked.at;
        let What::Txn { changes, .. } = &entry.what else { continue };
        for change in changes {
            match change {
                Change::Created { path, ephemeral_owner, .. } if *path == znode => {
                    stands = *ephemeral_owner == 0;
                }
                Change::Deleted { path } if *path == znode => stands = false,
                _ => {}
            }
        }
    }
    stood || stands
}
