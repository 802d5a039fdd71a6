//! Did the quorum have its word? A participant holds on the strength of a txn of its session: an
//! answer that no majority of servers took part in says nothing of what they have decided since.

use std::collections::BTreeMap;
use std::time::Duration;

use wok_judge::{Case, Moment, Violation};

use crate::session::Timing;
use crate::simulation::history::{Outcome, ParticipantId, Told, What};
use crate::simulation::servers::MIN_SESSION_TIMEOUT_MS;

/// Q1: a claim is granted on a txn of the session that was committed no earlier than a heartbeat
/// before it was asked for, and nothing is done or answered in its name when the newest one is further
/// back than a host may believe in a session. What a host has heard of was committed when it had been
/// sent, so that no pause and no delay excuses one that is older.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut newest: BTreeMap<i64, Moment> = BTreeMap::new();
    let mut asked: BTreeMap<(ParticipantId, &str), Asked> = BTreeMap::new();
    for (at, entry) in case.history.iter().enumerate() {
        let now = entry.at_us;
        let (who, act, least) = match &entry.what {
            What::Txn { session, .. } => {
                newest.insert(*session, Moment::of(at, entry));
                continue;
            }
            What::HostCall { participant, number, name, paths } => {
                for path in paths {
                    let whose = (*participant, path.as_str());
                    let this = Asked { number: *number, at_us: now };
                    match name.as_str() {
                        "claim" | "claim-all" => drop(asked.insert(whose, this)),
                        // It may do something else to what is claimed already, and is not told yet.
                        "multi" => drop(asked.entry(whose).or_insert(this)),
                        _ => {}
                    }
                }
                continue;
            }
            What::HostCallAnswered { participant, number, answer, .. } if answer != "ok" => {
                asked.retain(|(who, _), it| who != participant || it.number != *number);
                continue;
            }
            What::Told { participant, notice: Told::Held { path, .. } } => {
                let asked = asked.remove(&(*participant, path.as_str()));
                let at_us = asked.map_or(now, |asked| asked.at_us);
                (*participant, "was granted", Least::Heartbeat(at_us))
            }
            What::Wrote { participant, .. } => {
                (*participant, "wrote as if it had", Least::Patience)
            }
            What::Returned {
                participant,
                outcome: Outcome::Ok { holds: true, .. } | Outcome::Err { holds: true, .. },
                ..
            } => (*participant, "was answered that it has", Least::Patience),
            _ => continue,
        };
        let Some(session) = case.people.person(who).map(|person| person.session) else { continue };
        let timing = Timing::new(Duration::from_micros(case.truth.timeout_us(session)));
        // What the host comes to know of the servers' tick is known here.
        let timing = timing.granting(Duration::from_millis(MIN_SESSION_TIMEOUT_MS));
        let least = match least {
            Least::Heartbeat(asked) => asked.saturating_sub(micros(timing.heartbeat())),
            Least::Patience => now.saturating_sub(micros(timing.patience())),
        };
        let txn = newest.get(&session);
        // A history may be cut off at its beginning.
        let Some(txn) = txn.filter(|txn| txn.us.saturating_add(ROUNDING_US) < least) else {
            continue;
        };
        let sentence = format!(
            "participant {who} {act} {}, {} ms after the newest txn of its session, at entry {}",
            case.promise.noun,
            now.saturating_sub(txn.us) / 1_000,
            txn.at
        );
        found.push(Violation::new(id, at, sentence).involving([txn.at]).by([who]));
    }
}

/// Hosts count in nanoseconds.
const ROUNDING_US: u64 = 1;

/// A host call that asks for a claim, or may.
struct Asked {
    number: u64,
    at_us: u64,
}

/// From when on the newest txn must be.
enum Least {
    /// A heartbeat before this, when it was asked for.
    Heartbeat(u64),
    /// As long ago as a host may believe in a session.
    Patience,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
