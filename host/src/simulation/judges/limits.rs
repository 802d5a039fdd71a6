//! Did a component keep within its bounds?

use wok_judge::{Case, Violation};

use crate::guest::KILLED;
use crate::simulation::history::{Told, What};

/// How long a host that was disturbed may not have come to serve a component that it has cancelled,
/// beyond a session's timeout, within which it has its connection back.
const RECENT_US: u64 = 5_000_000;

/// L1: a component does not trap, does not use up what it may, and returns when it is cancelled. Only
/// the simulation ends one for nothing. Of a host that was stopped it is not asked in how much time.
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
        let was_disturbed = person.is_some_and(|person| {
            let since = entry.at_us.saturating_sub(RECENT_US);
            let timeout = case.truth.longest_timeout_us();
            !case.faults.spared(person.host, since, entry.at_us, timeout)
        });
        if was_disturbed && fault.contains("of being cancelled") {
            continue;
        }
        let sentence = format!("the component of participant {participant} failed: {fault}");
        found.push(Violation::new(id, at, sentence).by([*participant]));
    }
}
