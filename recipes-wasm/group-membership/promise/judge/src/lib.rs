//! What a group promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | G1 | `views` | what `members` answers was not the whole group at one moment of the call, or a revision that somebody is told never was one, or is older than one told before |
//! | G2 | `departures` | the znode of a member that has ended, or whose host was killed, outlives its session's timeout, rounded up to a tick. So by G1 it is in no view after that, and by G3 those who follow are told |
//! | G3 | `following` | who follows the group is not told of its newest change, or who waits for one waits on |
//! | G4 | `places` | who joined has no znode of its own by that name, created for it; who left has one, or who gave up |
//! | G5 | `places` | an update that is acknowledged is not what the member says at the revision it was told |
//! | G6 | `following`, `wrongs` | a name is free and who waits for it goes on waiting, or a call is refused and neither a fault, nor the caller, nor a group that changes during each look is the reason, or one with wrong arguments is not refused |
//! | H1 | `polling` | a participant asks the ensemble again and again |
//!
//! The ensemble's own log says who is a member: who has an ephemeral znode in the directory.

mod following;
mod group;
mod places;
mod views;
mod wrongs;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;
use wok_judge::history::{Entry, Outcome};
use wok_judge::people::{Call, Person};
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, departures, first_of_each, polling};

use group::Group;

/// A place in the group is held, but nobody stands in line for it.
const GROUP: Promise = Promise {
    noun: "a place in the group",
    asks: &[],
    waits: &["join", "update", "leave", "members", "observe", "wait"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// The judge of groups.
#[derive(Debug)]
pub struct MembershipJudge;

impl Judge for MembershipJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("G1", "a view is the group at one revision of the call, and revisions only grow"),
        ("G2", "a member that is dead is gone within its session's timeout, rounded up to a tick"),
        ("G3", "who follows the group is told of its newest change"),
        ("G4", "a member has a znode that was created for it, and nobody else has one"),
        ("G5", "what a member was told to have said, it says at that revision"),
        (
            "G6",
            "a name that is free goes to who waits for it, and a call is refused where it is wrong, \
             by a fault, or where the group changes during each look",
        ),
        ("H1", "nobody asks again and again"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(MembershipJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &GROUP);
        let mut found = Vec::new();
        for (mount, calls) in by_mount(&case) {
            let group = Group::of(history, mount);
            views::check_answers(&calls, &group, "G1", &mut found);
            views::check_order(&case, &calls, &group, "G1", &mut found);
            departures::check(&case, places::told(&calls), "G2", &mut found);
            following::check_observers(&case, &calls, &group, "G3", &mut found);
            following::check_waits(&case, &calls, &group, "G3", &mut found);
            places::check_joins(&case, &calls, &group, "G4", &mut found);
            places::check_leaves(&case, &calls, &group, "G4", &mut found);
            places::check_updates(&calls, &group, "G5", &mut found);
            following::check_names(&case, &calls, &group, "G6", &mut found);
            let made: Vec<_> = calls.iter().map(|made| (made.person, made.call)).collect();
            let changes = |from, until| group.changes(from, until);
            polling::check_calls(&case, &made, "the group", changes, "H1", &mut found);
        }
        wrongs::check(&case, "G6", &mut found);
        first_of_each(found)
    }
}

/// A call, whose it is, and its arguments.
struct Made<'c, 'a> {
    person: &'c Person<'a>,
    call: &'c Call<'a>,
    arguments: &'a Value,
}

impl<'a> Made<'_, 'a> {
    /// An argument that is a text.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.arguments.get(name)?.as_str()
    }

    /// What it was answered, if that was no error, and at which entry.
    fn value(&self) -> Option<(usize, &'a Value)> {
        match self.call.answered {
            Some((when, Outcome::Ok { value, .. })) => Some((when.at, value)),
            _ => None,
        }
    }
}

/// The calls at each group, in their order.
fn by_mount<'c, 'a>(case: &'c Case<'a>) -> BTreeMap<&'a str, Vec<Made<'c, 'a>>> {
    let mut mounts: BTreeMap<_, Vec<_>> =
        case.people.persons().map(|person| (person.mount, Vec::new())).collect();
    for call in case.people.calls() {
        let person = case.people.person(call.who);
        let Some((person, arguments)) = person.zip(case.arguments(call)) else { continue };
        mounts.entry(person.mount).or_default().push(Made { person, call, arguments });
    }
    mounts
}

wok_judge::export!(MembershipJudge);
