//! Whether a site that wants to know of transactions is told.

use wok_judge::history::{Outcome, Told, What};
use wok_judge::people::{Call, End};
use wok_judge::{Case, Moment, Violation};

use crate::log::{Log, Tx};

/// How long it may take, if no fault is in its way and no operation runs.
const UNDISTURBED_US: u64 = 2_000_000;

/// C3: after `transactions` a site is told of each other one that asks it. Where a fault was in the way
/// nothing is asked here.
pub(super) fn check(case: &Case<'_>, log: &Log<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let calls = case.people.calls();
    for call in calls.iter().filter(|call| call.operation == "transactions") {
        let Some((answered, Outcome::Ok { .. })) = call.answered else { continue };
        let site = case.arguments(call).and_then(|it| it.get("site")?.as_str());
        let (Some(site), Some(person)) = (site, case.people.person(call.who)) else { continue };
        let again = |other: &&Call<'_>| {
            other.who == call.who
                && other.operation == "transactions"
                && other.invoked.at > answered.at
        };
        let until = calls.iter().find(again).map(|other| other.invoked);
        let until =
            until.into_iter().chain(person.end.map(End::when)).chain(leaving(case, call.who));
        let until = until.map(|end| end.at).min().unwrap_or(usize::MAX);
        for tx in log.all() {
            let (from, due) = (tx.created, tx.created.us.saturating_add(UNDISTURBED_US));
            let Some(at) = case.first_after(due) else { continue };
            let asks = tx.path.strip_prefix(person.mount).is_some() && tx.sites.contains(&site);
            let timeout = case.truth.longest_timeout_us();
            if !asks
                || !(answered.at..until).contains(&from.at)
                || until <= at
                || !stays_open(tx, site, at)
                || is_busy(calls, call.who, from.at..at)
                || !case.faults.spared(person.host, from.us, due, timeout)
                || is_told(case, call.who, tx, person.mount, from.at..at)
            {
                continue;
            }
            let sentence = format!("participant {} was not told of {}", call.who, tx.path);
            let violation = Violation::new(id, at, sentence);
            found.push(violation.involving([call.invoked.at, from.at]).by([call.who]));
        }
    }
}

/// When the participant's application asked it to leave, if it did.
pub(super) fn leaving(case: &Case<'_>, who: u32) -> Option<Moment> {
    let leaves = |what: &What| matches!(what, What::Leaving { participant } if *participant == who);
    let at = case.history.iter().position(|entry| leaves(&entry.what))?;
    case.history.get(at).map(|entry| Moment::of(at, entry))
}

fn stays_open(tx: &Tx<'_>, site: &str, until: usize) -> bool {
    let voted = tx.vote(site).map(|vote| vote.when);
    let ends = voted.into_iter().chain(tx.decision().map(|(decided, _)| decided)).chain(tx.deleted);
    ends.map(|end| end.at).min().is_none_or(|end| end > until)
}

/// Whether an operation ran in that time: while it does, a component is not woken.
fn is_busy(calls: &[Call<'_>], who: u32, within: std::ops::Range<usize>) -> bool {
    calls.iter().filter(|call| call.who == who).any(|call| {
        let answered = call.answered.map_or(usize::MAX, |(answered, _)| answered.at);
        call.invoked.at < within.end && answered > within.start
    })
}

fn is_told(
    case: &Case<'_>,
    who: u32,
    tx: &Tx<'_>,
    mount: &str,
    within: std::ops::Range<usize>,
) -> bool {
    let path = tx.path.strip_prefix(mount);
    let tells = |what: &What| match what {
        What::Told { participant, notice: Told::Emitted { event, detail } } => {
            *participant == who
                && event == "asked"
                && detail.get("transaction").map(String::as_str) == path
        }
        _ => false,
    };
    case.history.get(within).unwrap_or_default().iter().any(|entry| tells(&entry.what))
}
