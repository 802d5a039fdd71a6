//! Those who wait are told, and need not ask; and only the first of them has to do with the leases.

use wok_judge::history::{Change, What};
use wok_judge::polling::{self, Allowance};
use wok_judge::truth::Contender;
use wok_judge::{Case, Violation};

use crate::log::is_queue_of;

/// The host calls of a call: the place, the wait for the next one ahead, two looks at the queue, three at the
/// leases, the number of permits, and taking them. More come for each znode that went or was written
/// meanwhile, and for each lease that came.
const ALLOWED: Allowance = Allowance { once: 10, again: 4 };

/// H1: nobody who is not the first in its queue reads or watches the leases, and one that waits asks as
/// often as something has happened that it could wait for.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    check_looks(case, id, found);
    check_polling(case, id, found);
}

fn check_looks(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let What::HostCall { participant, paths, name, .. } = &entry.what else { continue };
        let Some(person) = case.people.person(*participant) else { continue };
        let looks = |path: &String| path.strip_prefix(person.mount) == Some("/leases");
        // To look on is another operation's business.
        let waits = case.people.call_at(person.id, at).is_some_and(|it| it.operation == "acquire");
        if !waits || !paths.iter().any(looks) {
            continue;
        }
        let is_its_own = |place: &&Contender<'_>| {
            let is_own = case.people.asker(place).is_some_and(|asker| asker.id == *participant);
            is_own && place.lives_at(at) && is_queue_of(place.parent, person.mount)
        };
        // One that it has given up may be there as well, for a while.
        let mut own = case.truth.contenders().iter().filter(is_its_own).peekable();
        let Some(place) = own.peek().copied() else { continue };
        if own.any(|place| place.first.is_some_and(|first| first.at < at)) {
            continue;
        }
        let sentence = format!(
            "participant {participant} looked at the leases with `{name}`, and {} was not the first in \
             the queue",
            place.path
        );
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([place.created.at]).by([*participant]));
    }
}

fn check_polling(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let is_reason = |change: &Change| match change {
        Change::Created { path, .. } => path.contains("/leases"),
        Change::Deleted { .. } | Change::DataSet { .. } => true,
        _ => false,
    };
    for call in case.people.calls() {
        polling::check_call(case, call, ALLOWED, is_reason, id, found);
    }
}
