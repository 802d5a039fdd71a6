//! A claim that is lost is told, in time, and once: whatever it is a claim of.

use std::collections::BTreeMap;

use wok_judge::beliefs::acts;
use wok_judge::people::Belief;
use wok_judge::{Case, Moment, Violation};

use crate::simulation::history::{Change, Told, What};

/// Why something is lost whose component has failed.
const FAULT: &str = "fault";

/// M5: when the znode of a claim is gone, its participant has given the claim up before, or is told a
/// session's timeout later at the latest; and nothing is done or answered in the name of a claim that
/// is gone, as soon as its host had to know. When a session runs out, its host has given up before. When
/// somebody else deleted the znode, or the ensemble was made to expire the session, no clock could tell:
/// the news may take a session's timeout. A host that is stopped says nothing. A loss is told once.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let ephemerals = Ephemerals::of(case);
    for belief in case.people.beliefs() {
        let Some(gone) = ephemerals.gone(case, belief) else { continue };
        found.extend(gone.too_long(case, belief, id));
    }
    check_acts(case, &ephemerals, id, found);
    check_once(case, id, found);
}

/// A participant ends with what it loses. Only where its component failed may a loss follow: what depends
/// on the claim goes on for a while, and must hear of the claim's end.
fn check_once(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut told = BTreeMap::new();
    for (at, entry) in case.history.iter().enumerate() {
        let What::Told { participant, notice: Told::Lost { reason } } = &entry.what else {
            continue;
        };
        let before = told.insert(*participant, (at, reason.as_str()));
        if let Some((first, reason)) = before.filter(|(_, reason)| *reason != FAULT) {
            let sentence = format!(
                "participant {participant} is told once more that what it held is lost, and was told \
                 so before, by the reason {reason}"
            );
            found.push(Violation::new(id, at, sentence).involving([first]).by([*participant]));
        }
    }
}

fn check_acts(
    case: &Case<'_>,
    ephemerals: &Ephemerals<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for act in acts(case) {
        found.extend(act.after_the_end(id));
        let gone = ephemerals.gone(case, act.belief).filter(|_| act.is_believed());
        let acted = case.history.get(act.at).map_or(0, |entry| entry.at_us);
        if let Some(gone) = gone.filter(|it| act.at > it.when.at && acted >= it.news) {
            let (noun, path) = (&case.promise.noun, &act.belief.path);
            found.push(act.without_the_znode(id, noun, path, gone.when.at));
        }
    }
}

/// A claim's znode that was deleted.
struct Gone {
    when: Moment,
    timeout: u64,
    /// When the news must have arrived at a host that runs.
    news: u64,
}

impl Gone {
    fn too_long(
        &self,
        case: &Case<'_>,
        belief: &Belief<'_>,
        id: &'static str,
    ) -> Option<Violation> {
        let person = case.people.person(belief.who)?;
        let due = case.faults.awake(person.host, self.news)?.saturating_add(self.timeout);
        let at = case.first_after(due).filter(|_| belief.lasts_after(due))?;
        let (who, noun, path) = (belief.who, case.promise.noun, belief.path);
        let sentence =
            format!("participant {who} goes on believing to have {noun}, and {path} is long gone");
        let violation = Violation::new(id, at, sentence);
        Some(violation.involving([belief.since.at, self.when.at]).by([who]))
    }
}

/// An ephemeral znode of the ensemble's log, whatever its name.
#[derive(Debug)]
struct Ephemeral {
    czxid: i64,
    owner: i64,
    deleted: Option<Deletion>,
}

#[derive(Debug, Clone, Copy)]
struct Deletion {
    when: Moment,
    /// Its session ran out: its host could foresee it.
    was_foreseeable: bool,
}

#[derive(Debug, Default)]
struct Ephemerals<'a> {
    by_path: BTreeMap<&'a str, Vec<Ephemeral>>,
}

impl<'a> Ephemerals<'a> {
    fn of(case: &Case<'a>) -> Self {
        let mut ephemerals = Ephemerals::default();
        for (at, entry) in case.history.iter().enumerate() {
            let What::Txn { zxid, changes, .. } = &entry.what else { continue };
            let when = Moment::of(at, entry);
            let ends = |session: i64| {
                changes.contains(&Change::SessionClosed { session })
                    && !case.truth.session(session).is_some_and(|it| it.was_struck_by(when))
            };
            for change in changes {
                match change {
                    Change::Created { path, ephemeral_owner: owner, .. } if *owner != 0 => {
                        let (czxid, owner, deleted) = (*zxid, *owner, None);
                        let own = ephemerals.by_path.entry(path).or_default();
                        own.push(Ephemeral { czxid, owner, deleted });
                    }
                    Change::Deleted { path } => {
                        let own = ephemerals.by_path.get_mut(path.as_str());
                        if let Some(newest) = own.and_then(|own| own.last_mut()) {
                            let was_foreseeable = ends(newest.owner);
                            newest.deleted.get_or_insert(Deletion { when, was_foreseeable });
                        }
                    }
                    _ => {}
                }
            }
        }
        ephemerals
    }

    /// How a claim's znode went, if it did.
    fn gone(&self, case: &Case<'_>, belief: &Belief<'_>) -> Option<Gone> {
        let own = self.by_path.get(belief.path)?;
        let it = own.iter().find(|it| u64::try_from(it.czxid) == Ok(belief.fence))?;
        let Deletion { when, was_foreseeable } = it.deleted?;
        let timeout = case.truth.timeout_us(it.owner);
        let delay = if was_foreseeable { 0 } else { timeout };
        Some(Gone { when, timeout, news: when.us.saturating_add(delay) })
    }
}
