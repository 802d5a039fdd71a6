//! What an election promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | E1 | `grants`, `exclusion` | two lead, a grant is not the leader's own, or terms do not grow |
//! | E2 | `beliefs` | a leader is not told that it leads no more before another does |
//! | E3 | `turns`, `beliefs` | nobody takes the lead that is free, or one whose znode is gone keeps it |
//! | E4 | `observers`, `answers` | an observer is told of a leader that never was, by another path or owner than its own, or goes back to an earlier one; or is not told who leads, or that nobody does, though it lasts; or `leader` and `observe` answer one that led at no moment of the call, or none though somebody led all the time |
//! | E5 | `announcements`, `answers` | an announcement is written by one that does not lead, `announce` is answered and it does not stand, it outlives its leader's candidate or `resign`, or `leader` answers one that the leader had not made at any moment of the call |
//! | W2 | `grants`, `answers` | somebody leads though it was never first in line, is told a fence that is not its own, or leads and `volunteer` answers no fence |
//! | H1 | `herd`, `polling` | one deletion wakes more than one candidate, or one that waits asks the ensemble again and again |

mod announcements;
mod answers;
mod observers;

#[cfg(test)]
mod tests;

use wok_judge::history::Entry;
use wok_judge::people::Person;
use wok_judge::truth::{Contender, Truth};
use wok_judge::{
    Case, Judge, Moment, Promise, Stay, Violation, beliefs, exclusion, first_of_each, grants, herd,
    polling, turns,
};

use announcements::Announcements;

/// One leader at a time.
const ELECTION: Promise = Promise {
    noun: "the lead",
    asks: &["volunteer"],
    waits: &["volunteer"],
    stay: Stay::BeyondCall,
    events: &["elected"],
    looks: &["observe"],
};

/// How long what is due may take where nothing disturbs it.
const UNDISTURBED_US: u64 = 1_000_000;

/// The same where the participant stands in line: it looks at the line and claims the lead before that.
const IN_LINE_US: u64 = 3_000_000;

/// How long it may take beyond a session's timeout where something disturbs it.
const BEYOND_US: u64 = 2_000_000;

/// When something that can begin at `from` must be done on the person's host; none if a fault goes on.
fn due(case: &Case<'_>, person: &Person<'_>, from: Moment) -> Option<u64> {
    let soon = from.us.saturating_add(IN_LINE_US);
    let stands = |it: &Contender<'_>| {
        let is_its_own = case.people.asker(it).is_none_or(|asker| asker.id == person.id);
        let is_there = it.deleted_at().is_none_or(|deleted| deleted.at >= from.at);
        is_its_own && is_there && it.created.us <= soon
    };
    let patience = match case.truth.contenders().iter().any(stands) {
        true => IN_LINE_US,
        false => UNDISTURBED_US,
    };
    let timeout = case.truth.longest_timeout_us();
    let soon = from.us.saturating_add(patience);
    match case.faults.spared(person.host, from.us, soon, timeout) {
        true => Some(soon),
        false => case.faults.due(person.host, from.us, timeout.saturating_add(BEYOND_US)),
    }
}

/// The judge of elections.
#[derive(Debug)]
pub struct ElectionJudge;

impl Judge for ElectionJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("E1", "at most one leads at a time, by its own candidate, and terms strictly grow"),
        ("E2", "a leader is told that it leads no more before another does"),
        ("E3", "the first in line leads, and a leader whose candidate is gone steps down"),
        ("E4", "what observers are told is a part of the true sequence of leaders, and its end"),
        (
            "E5",
            "what a leader announces is written in its term, goes with it, and is told of it alone",
        ),
        ("W2", "nobody leads before it was first in line, or is told a fence that is not its own"),
        ("H1", "one resignation wakes one candidate, and a candidate that waits does not poll"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(ElectionJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &ELECTION);
        let mut found = Vec::new();
        grants::check_validity(&case, "E1", &mut found);
        exclusion::check_log(&case, "E1", &mut found);
        exclusion::check_resource(&case, "E1", &mut found);
        grants::check_growth(&case, "E1", &mut found);
        grants::check_condition(&case, "W2", &mut found);
        answers::check_volunteers(&case, "W2", &mut found);
        beliefs::check(&case, "E2", "E3", &mut found);
        turns::check_turns(&case, "E3", &mut found);
        turns::check_refusals(&case, "E3", &mut found);
        observers::check(&case, "E4", &mut found);
        observers::check_silence(&case, "E4", &mut found);
        let announcements = Announcements::of(history);
        answers::check(&case, &announcements, "E4", "E5", &mut found);
        announcements.check_writes(&case, "E5", &mut found);
        announcements.check_ends(&case, "E5", &mut found);
        announcements.check_calls(&case, "E5", &mut found);
        polling::check(&case, "H1", &mut found);
        herd::check(&case, "H1", &mut found);
        first_of_each(found)
    }
}

wok_judge::export!(ElectionJudge);
