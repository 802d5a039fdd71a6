//! What a name service promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | N1 | `views` | what `resolve` answers were not the instances of the name at one moment of the call, or a name is listed that had none during the call, or one is not that had one all the time |
//! | N2 | `views` | a revision that somebody is told never was one, or is older than one that the participant knew when it asked, or news that is told is not newer than the news before |
//! | N3 | `following` | who follows a name is not told of its newest change, or who waits for one waits on |
//! | N4 | `places` | who registered has no instance of its own, made for it and saying what it was given; who deregistered has one, or who gave up |
//! | N5 | `wrongs` | a call is refused and neither a fault, nor the caller, nor a name that changes during each look is the reason, or one with wrong arguments is not refused |
//! | N6 | `departures` | the znode of an instance that has ended, or whose host was killed, outlives its session's timeout, rounded up to a tick. So by N1 it is resolved no more after that, and by N3 those who follow are told |
//! | H1 | `polling` | a participant asks the ensemble again and again |
//!
//! The ensemble's own log says which instances there are: ephemeral children of the name's directory.

mod following;
mod places;
mod service;
mod views;
mod wrongs;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wok_judge::history::{Entry, Outcome};
use wok_judge::people::{Call, Person};
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, departures, first_of_each, polling};

use service::Service;

/// An instance is held, but nobody stands in line for it.
const NAMES: Promise = Promise {
    noun: "an instance",
    asks: &[],
    waits: &["register", "deregister", "resolve", "list", "observe", "wait"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// The judge of name services.
#[derive(Debug)]
pub struct NamesJudge;

impl Judge for NamesJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        (
            "N1",
            "what is resolved was so at one moment of the call, and each instance was live then",
        ),
        ("N2", "the revisions that somebody is told of a name are true, and only grow"),
        ("N3", "who follows a name is told of its newest change"),
        ("N4", "who registers has an instance that was made for it, and nobody else has one"),
        (
            "N5",
            "a call is refused where it is wrong, and otherwise only where a fault was in its way, or \
             where the name changes during each look",
        ),
        (
            "N6",
            "an instance that is dead is gone within its session's timeout, rounded up to a tick",
        ),
        ("H1", "nobody asks again and again"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(NamesJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &NAMES);
        let mut found = Vec::new();
        for (mount, calls) in by_mount(&case) {
            let services: BTreeMap<&str, Service<'_>> = names(&calls)
                .into_iter()
                .map(|name| (name, Service::of(history, &format!("{mount}/{name}"))))
                .collect();
            for (name, service) in &services {
                views::check_answers((*name, &calls), service, "N1", &mut found);
                views::check_order(&case, (*name, &calls), service, "N2", &mut found);
                following::check_observers(&case, (*name, &calls), service, "N3", &mut found);
                following::check_waits(&case, (*name, &calls), service, "N3", &mut found);
            }
            views::check_lists(&calls, &services, "N1", &mut found);
            places::check(&case, &calls, &services, "N4", &mut found);
            departures::check(&case, places::told(&calls), "N6", &mut found);
            let made: Vec<_> = calls.iter().map(|made| (made.person, made.call)).collect();
            let changes = |from, until| services.values().map(|it| it.changes(from, until)).sum();
            polling::check_calls(&case, &made, "the names", changes, "H1", &mut found);
        }
        wrongs::check(&case, "N5", &mut found);
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
    /// The name that it is about.
    fn name(&self) -> Option<&'a str> {
        self.arguments.get("name")?.as_str()
    }

    /// Whether it calls this operation of this name.
    fn is(&self, operation: &str, name: &str) -> bool {
        self.call.operation == operation && self.name() == Some(name)
    }

    /// What it was answered, if that was no error, and at which entry.
    fn value(&self) -> Option<(usize, &'a Value)> {
        match self.call.answered {
            Some((when, Outcome::Ok { value, .. })) => Some((when.at, value)),
            _ => None,
        }
    }
}

/// The names that calls are about.
fn names<'a>(calls: &[Made<'_, 'a>]) -> BTreeSet<&'a str> {
    calls.iter().filter_map(Made::name).collect()
}

/// The calls at each mount, in their order.
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

wok_judge::export!(NamesJudge);
