//! One release wakes one waiter.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{ParticipantId, What};
use crate::people::Call;
use crate::truth::Contender;
use crate::{Case, Violation};

/// H1: of the contenders of a line, the event that one is deleted reaches one that had asked to
/// watch it, beside those that are shared and wait for one that is not, and none that waits is told
/// that the line's children changed. A host's own watch on what it claims is nobody's wait, nor is
/// that of an onlooker: a participant that is no contender when it asks, or has called an operation
/// to look on. Those who share a session, and so an event, count one by one.
pub fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut herd = Herd::of(case);
    for (at, entry) in case.history.iter().enumerate() {
        match &entry.what {
            What::HostCall { participant, name, paths, .. } => match name.as_str() {
                "watch-data" | "watch-exists" => herd.watch_one(at, *participant, paths),
                "watch-children" => herd.watch_all(at, *participant, paths),
                _ => {}
            },
            What::Event { session, event, path, .. } => match event.as_str() {
                "deleted" => found.extend(herd.wake_one(id, at, *session, path)),
                "children-changed" => found.extend(herd.wake_all(id, at, *session, path)),
                _ => {}
            },
            _ => {}
        }
    }
}

/// A contender that asked for a watch, and whose it is.
type Waiter<'a> = (ParticipantId, &'a Contender<'a>);

struct Herd<'a> {
    case: &'a Case<'a>,
    /// Each participant's contenders, in the order of their creation.
    own: BTreeMap<ParticipantId, Vec<&'a Contender<'a>>>,
    /// Who watches a contender, by its number.
    watch_one: BTreeMap<usize, Vec<Waiter<'a>>>,
    /// Who watches a line.
    watch_all: BTreeMap<&'a str, Vec<Waiter<'a>>>,
    /// Who was told that a contender is deleted.
    woken: BTreeMap<usize, BTreeSet<ParticipantId>>,
}

impl<'a> Herd<'a> {
    fn of(case: &'a Case<'a>) -> Self {
        let mut own: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for contender in case.truth.contenders() {
            if let Some(asker) = case.people.asker(contender) {
                own.entry(asker.id).or_default().push(contender);
            }
        }
        let looks = |call: &&Call<'_>| case.promise.looks.contains(&call.operation);
        for call in case.people.calls().iter().filter(looks) {
            own.remove(&call.who);
        }
        let (watch_one, watch_all) = (BTreeMap::new(), BTreeMap::new());
        Herd { case, own, watch_one, watch_all, woken: BTreeMap::new() }
    }

    /// The participant's contender in that line, if it has one.
    fn waiter(&self, at: usize, who: ParticipantId, parent: &str) -> Option<Waiter<'a>> {
        let own = self.own.get(&who)?;
        let newest = own.partition_point(|it| it.created.at <= at).checked_sub(1)?;
        let newest = own.get(newest).filter(|it| it.parent == parent && it.lives_at(at))?;
        Some((who, newest))
    }

    fn watch_one(&mut self, at: usize, who: ParticipantId, paths: &[String]) {
        for target in paths.iter().filter_map(|path| self.case.truth.find(path, at)) {
            let waiter = self.waiter(at, who, target.parent);
            self.watch_one.entry(target.id).or_default().extend(waiter);
        }
    }

    fn watch_all(&mut self, at: usize, who: ParticipantId, paths: &'a [String]) {
        for path in paths {
            let waiter = self.waiter(at, who, path);
            self.watch_all.entry(path).or_default().extend(waiter);
        }
    }

    fn is_on(&self, who: ParticipantId, session: i64) -> bool {
        self.case.people.person(who).is_some_and(|person| person.session == session)
    }

    fn wake_one(
        &mut self,
        id: &'static str,
        at: usize,
        session: i64,
        path: &str,
    ) -> Option<Violation> {
        let gone = self.case.truth.find(path, at)?;
        let deleted = gone.deleted_at()?;
        let waiters = self.watch_one.get(&gone.id)?.iter();
        let woken: Vec<_> = waiters
            .filter(|(who, own)| self.is_on(*who, session) && own.lives_at(deleted.at))
            // Those who own beside each other all wait for the one that they cannot own beside.
            .filter(|(_, own)| gone.is_shared || !own.is_shared)
            .map(|(who, _)| *who)
            .collect();
        let all = self.woken.entry(gone.id).or_default();
        let before = all.len();
        all.extend(woken);
        if all.len() == before || all.len() < 2 {
            return None;
        }
        let sentence = format!("the deletion of {path} woke {} contenders", all.len());
        let violation = Violation::new(id, at, sentence).involving([deleted.at]);
        Some(violation.by(all.iter().copied()))
    }

    fn wake_all(
        &mut self,
        id: &'static str,
        at: usize,
        session: i64,
        path: &str,
    ) -> Option<Violation> {
        let mut waiters = self.watch_all.remove(path)?;
        // One-shot: a participant that is told has to ask again.
        let woken: Vec<_> = waiters.extract_if(.., |(who, _)| self.is_on(*who, session)).collect();
        let waits =
            |own: &Contender<'_>| own.lives_at(at) && own.first.is_none_or(|first| first.at > at);
        let (who, own) = woken.into_iter().find(|(_, own)| waits(own))?;
        let sentence = format!(
            "participant {who}, which waits with {}, was told of every change of the line",
            own.path
        );
        Some(Violation::new(id, at, sentence).involving([own.created.at]).by([who]))
    }
}
