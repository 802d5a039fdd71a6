//! Did a component keep within its bounds?

use wok_judge::{Case, Violation};

use crate::guest::KILLED;
use crate::simulation::history::{ParticipantId, Told, What};

/// How long a component has to return in when it is cancelled.
const GRACE_US: u64 = 1_000_000;

/// L1: a component does not trap, does not use up what it may, and returns when it is cancelled. Only
/// the simulation ends one for nothing. Of a host that was stopped it is not asked in how much time;
/// one that is cut off from its servers cancels and ends as ever.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let What::Told { participant, notice: Told::Ended { how, fault: Some(fault) } } =
            &entry.what
        else {
            continue;
        };
        // One that never joined was refused by its host.
        if how == "refused" || fault.contains(KILLED) {
            continue;
        }
        let person = case.people.person(*participant);
        let was_stopped = person.is_some_and(|person| {
            let since = last_host_call(case, at, *participant).saturating_sub(GRACE_US);
            case.faults.was_stopped(person.host, since, entry.at_us)
        });
        if was_stopped && fault.contains("of being cancelled") {
            continue;
        }
        let sentence = format!("the component of participant {participant} failed: {fault}");
        found.push(Violation::new(id, at, sentence).by([*participant]));
    }
}

/// When a participant that ended with the entry at `end` last called its host, which it did before its
/// grace was over. The end itself is told only when nothing of it is left, which a cut may put off.
fn last_host_call(case: &Case<'_>, end: usize, who: ParticipantId) -> u64 {
    let by_it =
        |what: &What| matches!(what, What::HostCall { participant, .. } if *participant == who);
    let (before, told) = case.history.split_at(end);
    let last = before.iter().rev().find(|entry| by_it(&entry.what)).or(told.first());
    last.map_or(0, |entry| entry.at_us)
}
