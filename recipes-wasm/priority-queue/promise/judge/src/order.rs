//! The most urgent comes first.

use wok_judge::history::{CallId, ParticipantId, What};
use wok_judge::people::Call;
use wok_judge::queue::log::{How, Log};
use wok_judge::queue::takes::takes;
use wok_judge::truth::split;
use wok_judge::{Case, Moment, Violation};

/// P1: nothing is taken while something that comes before it, by its priority or else by its age, is there
/// for anybody to take, and was when its consumer listed the queue last, in that call.
///
/// A list is up to date because a `sync` is before it, which says nothing where the leader is cut off: so
/// only takings that no fault was near are judged.
pub(super) fn check(case: &Case<'_>, log: &Log<'_>, found: &mut Vec<Violation>) {
    for (place, item) in log.items.iter().enumerate() {
        let claimed = item.claims.iter().map(|claim| (claim.since, claim.by));
        let removed = item.gone.filter(|gone| gone.how == How::Alone);
        for (taken, by) in claimed.chain(removed.map(|gone| (gone.when, gone.by))) {
            let Some(call) = taking(case, by) else { continue };
            let Some(person) = case.people.person(call.who) else { continue };
            let from = listed(case, call, taken, person.mount);
            let timeout = case.truth.longest_timeout_us();
            if !case.faults.spared(person.host, from.us, taken.us, timeout) {
                continue;
            }
            let mut all = log.items.iter().enumerate();
            let passed_over = all.find(|(other, it)| {
                let comes_before = log.comes_before(*other, place);
                comes_before && it.queue == item.queue && it.is_free(from.at, taken.at)
            });
            let Some((_, other)) = passed_over else { continue };
            let sentence = format!(
                "{} of priority {} was taken while {} of priority {} was there",
                item.path, item.priority, other.path, other.priority
            );
            let violation = Violation::new("P1", taken.at, sentence).by([call.who]);
            found.push(violation.involving([other.put.at, from.at]));
        }
    }
}

/// The call that took something.
fn taking<'c, 'a>(case: &'c Case<'a>, by: Option<CallId>) -> Option<&'c Call<'a>> {
    case.people.calls().iter().find(|call| Some(call.id) == by && takes(call))
}

/// When the call listed the queue last, before something was taken; or when it was made, if it did not.
fn listed(case: &Case<'_>, call: &Call<'_>, taken: Moment, mount: &str) -> Moment {
    let before = case.history.iter().enumerate().take(taken.at).skip(call.invoked.at);
    let mut lists = before.filter(|(_, entry)| match &entry.what {
        // To make the directory where it is missing is no look at it.
        What::HostCall { name, .. } if name == "ensure" => false,
        What::HostCall { participant, paths, .. } => is_list(*participant, paths, call, mount),
        _ => false,
    });
    lists.next_back().map_or(call.invoked, |(at, entry)| Moment::of(at, entry))
}

fn is_list(participant: ParticipantId, paths: &[String], call: &Call<'_>, mount: &str) -> bool {
    participant == call.who && paths.iter().any(|path| split(path) == Some((mount, "items")))
}
