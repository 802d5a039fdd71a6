//! What a configuration promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | K1 | `effects`, `answers` | a change was not as expected, was made twice, or not at all though it was acknowledged; or one was refused that was as expected; or a snapshot is not the tree at one zxid |
//! | K2 | `observers` | an observer, or who waits, is not told of the last change, is told of a revision that never was, or of one change without its key, or goes back |
//! | K3 | `answers` | a reader is shown what was not so during the call |
//! | K4 | `answers` | a call with right arguments is refused for another reason without a fault, or one with wrong arguments is not refused as `invalid` |
//! | H1 | `polling` | who observes or waits asks the ensemble more often than the configuration changes |
//!
//! The ensemble's own log has every state that the configuration ever had. A change that was
//! acknowledged names its transaction, so nothing has to be guessed about the order.

mod answers;
mod calls;
mod effects;
mod observers;
mod polling;
mod states;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use wok_judge::faults::Faults;
use wok_judge::history::{Entry, HostId, ParticipantId};
use wok_judge::people::People;
use wok_judge::truth::Truth;
use wok_judge::{Judge, Promise, Violation, first_of_each};

use calls::Call;
use states::States;

/// The judge of configurations.
#[derive(Debug)]
pub struct ConfigurationJudge;

/// What the passes look at, of one configuration.
struct Case<'c, 'a> {
    history: &'a [Entry],
    calls: Vec<&'c Call<'a>>,
    states: States<'a>,
    people: &'c People<'a>,
    faults: &'c Faults,
    longest_timeout_us: u64,
}

impl<'a> Case<'_, 'a> {
    /// The calls of a participant, in order.
    fn calls_of(&self, who: ParticipantId) -> impl Iterator<Item = &Call<'a>> {
        self.calls.iter().copied().filter(move |call| call.who == who)
    }

    /// Whether no fault could be noticed on that host in that time.
    fn is_spared(&self, host: HostId, from_us: u64, until_us: u64) -> bool {
        self.faults.spared(host, from_us, until_us, self.longest_timeout_us)
    }
}

impl Judge for ConfigurationJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        (
            "K1",
            "a change is made, once, if and only if the key was as expected, and a snapshot is the \
             configuration at one revision",
        ),
        (
            "K2",
            "every observer is told of the last change, only of revisions that were, and of one \
             change by its key",
        ),
        ("K3", "what a reader is shown was so at some moment of the call"),
        (
            "K4",
            "a call is refused where its arguments are wrong, and otherwise only where the key is \
             not as expected, or a fault was in its way",
        ),
        ("H1", "who observes or waits asks the ensemble when something changed, and otherwise not"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(ConfigurationJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let all = calls::of(history);
        let faults = Faults::of(history);
        let truth = Truth::of(history);
        let people = People::of(history, &truth, &Promise::NONE);
        let longest_timeout_us = truth.longest_timeout_us();
        let mounts: BTreeSet<_> = all.iter().map(|call| call.mount).collect();
        let mut found = Vec::new();
        for mount in mounts {
            let case = Case {
                history,
                calls: all.iter().filter(|call| call.mount == mount).collect(),
                states: States::of(history, mount),
                people: &people,
                faults: &faults,
                longest_timeout_us,
            };
            effects::check(&case, "K1", &mut found);
            answers::check_refusals(&case, "K1", "K4", &mut found);
            answers::check_reads(&case, "K1", "K3", &mut found);
            observers::check(&case, "K2", &mut found);
            observers::check_waits(&case, "K2", &mut found);
            polling::check(&case, "H1", &mut found);
            polling::check_waits(&case, "H1", &mut found);
        }
        first_of_each(found)
    }
}

wok_judge::export!(ConfigurationJudge);
