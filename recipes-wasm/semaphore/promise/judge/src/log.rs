//! Semaphores by the ensemble's own log: how many permits there were, and who took which.

use std::collections::BTreeMap;

use wok_judge::history::{Change, ParticipantId, What};
use wok_judge::truth::{Contender, split};
use wok_judge::{Case, Moment};

/// What the directory of leases is called.
const LEASES: &str = "leases";

/// What the queue is called.
const QUEUE: &str = "locks";

/// All semaphores of a history, by the path of their directory.
#[derive(Debug, Default)]
pub(super) struct Semaphores<'a> {
    all: BTreeMap<&'a str, Semaphore<'a>>,
}

/// A semaphore.
#[derive(Debug, Default)]
pub(super) struct Semaphore<'a> {
    /// Its leases, in the order of their creation.
    pub(super) leases: Vec<Lease<'a>>,
    /// The txns that created leases.
    pub(super) takings: Vec<Taking<'a>>,
    /// The writes of the number of permits.
    pub(super) writes: Vec<NumberWrite<'a>>,
    /// What was the case from each change on, in their order.
    pub(super) states: Vec<State>,
}

/// A child of the directory of leases.
#[derive(Debug)]
pub(super) struct Lease<'a> {
    /// Its path.
    pub(super) path: &'a str,
    /// The zxid that created it.
    pub(super) czxid: i64,
    /// The session that it belongs to.
    pub(super) session: i64,
    /// When it was created.
    pub(super) created: Moment,
    /// When it went.
    pub(super) deleted: Option<Moment>,
    /// Whose it is, if that can be known.
    pub(super) asker: Option<ParticipantId>,
}

/// A txn that created leases.
#[derive(Debug)]
pub(super) struct Taking<'a> {
    /// The directory of the semaphore.
    pub(super) directory: &'a str,
    /// Its zxid.
    pub(super) czxid: i64,
    /// When.
    pub(super) when: Moment,
    /// How many leases it created.
    pub(super) count: u64,
    /// The place in the queue that it deleted, if it did.
    pub(super) place: Option<&'a str>,
    /// Who asked for it, if that can be known.
    pub(super) asker: Option<ParticipantId>,
}

/// A write of the number of permits.
#[derive(Debug)]
pub(super) struct NumberWrite<'a> {
    /// The directory of the semaphore.
    pub(super) directory: &'a str,
    /// When.
    pub(super) when: Moment,
    /// Whose txn it was.
    pub(super) session: i64,
    /// Whether it created the directory of leases.
    pub(super) is_first: bool,
    /// The number that was stored before, if the log says so.
    pub(super) before: Option<u64>,
    /// The number that it stored, if it was one.
    pub(super) permits: Option<u64>,
}

/// What was the case after a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    /// From when on.
    pub(super) since: Moment,
    /// How many leases there were.
    pub(super) taken: u64,
    /// How many permits the directory's data said that there were; none if they said nothing.
    pub(super) permits: Option<u64>,
}

impl State {
    /// How many leases may still be created.
    pub(super) fn free(&self) -> u64 {
        self.permits.unwrap_or(0).saturating_sub(self.taken)
    }
}

impl Semaphore<'_> {
    /// Whether the log says what was the case at an entry: something had changed by then.
    pub(super) fn is_known_at(&self, at: usize) -> bool {
        self.states.first().is_some_and(|first| first.since.at <= at)
    }

    /// What was the case between two entries, both included.
    pub(super) fn between(&self, from: usize, until: usize) -> impl Iterator<Item = &State> {
        let first = self.states.partition_point(|state| state.since.at <= from).saturating_sub(1);
        let states = self.states.get(first..).unwrap_or_default().iter();
        states.take_while(move |state| state.since.at <= until)
    }

    /// The number of permits just before the txn of an entry, if the log has it, and just after.
    pub(super) fn permits_around(&self, at: usize) -> Option<(u64, Option<u64>)> {
        let last = |states: &[State]| states.last().map(|state| state.permits);
        let count = self.states.partition_point(|state| state.since.at < at);
        let before = last(self.states.get(..count)?)??;
        let count = self.states.partition_point(|state| state.since.at <= at);
        Some((before, last(self.states.get(..count)?)?))
    }

    /// The leases that a txn created.
    pub(super) fn created_by(&self, czxid: i64) -> impl Iterator<Item = &Lease<'_>> {
        self.leases.iter().filter(move |lease| lease.czxid == czxid)
    }
}

/// A txn that is read.
struct Txn {
    now: Moment,
    czxid: i64,
    session: i64,
}

/// A host call under way that may create leases.
struct Creating<'a> {
    who: ParticipantId,
    number: u64,
    session: i64,
    paths: &'a [String],
}

impl<'a> Semaphores<'a> {
    /// Of a history.
    pub(super) fn of(case: &Case<'a>) -> Self {
        let mut semaphores = Semaphores::default();
        let mut creating: Vec<Creating<'a>> = Vec::new();
        for (at, entry) in case.history.iter().enumerate() {
            match &entry.what {
                What::HostCall { participant, number, paths, .. } => {
                    let Some(person) = case.people.person(*participant) else { continue };
                    let (who, number, session) = (*participant, *number, person.session);
                    creating.push(Creating { who, number, session, paths });
                }
                What::HostCallAnswered { number, .. } => {
                    creating.retain(|it| it.number != *number);
                }
                What::Txn { zxid, session, changes } => {
                    let txn = Txn { now: Moment::of(at, entry), czxid: *zxid, session: *session };
                    semaphores.commit(&txn, changes, &creating);
                }
                _ => {}
            }
        }
        semaphores
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Semaphore<'a>> {
        self.all.values()
    }

    /// The one whose directory that is.
    pub(super) fn at(&self, directory: &str) -> Option<&Semaphore<'a>> {
        self.all.get(directory)
    }

    /// The one in whose queue somebody stands.
    pub(super) fn of_place(&self, place: &Contender<'_>) -> Option<&Semaphore<'a>> {
        let (directory, name) = split(place.parent)?;
        self.at(directory).filter(|_| name == QUEUE)
    }

    fn commit(&mut self, txn: &Txn, changes: &'a [Change], creating: &[Creating<'_>]) {
        let (now, czxid) = (txn.now, txn.czxid);
        let mut place = None;
        for change in changes {
            match change {
                Change::Created { path, ephemeral_owner, data } => {
                    if let Some(directory) = directory_of(path, LEASES) {
                        let mut asking = creating
                            .iter()
                            .filter(|it| it.session == *ephemeral_owner && it.paths.contains(path));
                        let asker = asking.next().filter(|_| asking.next().is_none());
                        let asker = asker.map(|asker| asker.who);
                        let session = *ephemeral_owner;
                        let semaphore = self.all.entry(directory).or_default();
                        let (created, deleted) = (now, None);
                        semaphore.leases.push(Lease {
                            path,
                            czxid,
                            session,
                            created,
                            deleted,
                            asker,
                        });
                        semaphore.take(directory, now, czxid, place, asker);
                        semaphore.change(now, |state| state.taken = state.taken.saturating_add(1));
                    } else if let Some((directory, LEASES)) = split(path) {
                        let semaphore = self.all.entry(directory).or_default();
                        semaphore.write(directory, txn, true, number(data.bytes()));
                    }
                }
                Change::Deleted { path } => {
                    if directory_of(path, QUEUE).is_some() {
                        place = Some(path.as_str());
                    } else if let Some(directory) = directory_of(path, LEASES) {
                        let semaphore = self.all.entry(directory).or_default();
                        let mut leases = semaphore.leases.iter_mut().rev();
                        if let Some(lease) = leases.find(|lease| lease.path == path) {
                            lease.deleted.get_or_insert(now);
                        }
                        semaphore.change(now, |state| state.taken = state.taken.saturating_sub(1));
                    } else if let Some((directory, LEASES)) = split(path) {
                        let semaphore = self.all.entry(directory).or_default();
                        semaphore.change(now, |state| state.permits = None);
                    }
                }
                Change::DataSet { path, data, .. } => {
                    if let Some((directory, LEASES)) = split(path) {
                        let semaphore = self.all.entry(directory).or_default();
                        semaphore.write(directory, txn, false, number(data.bytes()));
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'a> Semaphore<'a> {
    /// Notes a lease that a txn created.
    fn take(
        &mut self,
        directory: &'a str,
        when: Moment,
        czxid: i64,
        place: Option<&'a str>,
        asker: Option<ParticipantId>,
    ) {
        match self.takings.last_mut().filter(|taking| taking.czxid == czxid) {
            Some(taking) => taking.count = taking.count.saturating_add(1),
            None => {
                self.takings.push(Taking { directory, czxid, when, count: 1, place, asker });
            }
        }
    }

    /// Notes a number that a txn wrote.
    fn write(&mut self, directory: &'a str, txn: &Txn, is_first: bool, permits: Option<u64>) {
        let (when, session) = (txn.now, txn.session);
        let before = self.states.last().and_then(|state| state.permits);
        self.writes.push(NumberWrite { directory, when, session, is_first, before, permits });
        self.change(when, |state| state.permits = permits);
    }

    /// Notes what a txn changed. What stood between its changes was never the case.
    fn change(&mut self, now: Moment, change: impl FnOnce(&mut State)) {
        let last = self.states.last().copied();
        let mut state = last.unwrap_or(State { since: now, taken: 0, permits: None });
        state.since = now;
        change(&mut state);
        if last.is_some_and(|last| last.since == now) {
            self.states.pop();
        }
        self.states.push(state);
    }
}

/// The directory of the semaphore, if a path is that of a child of its part with that name.
fn directory_of<'a>(path: &'a str, part: &str) -> Option<&'a str> {
    let (directory, name) = split(split(path)?.0)?;
    (name == part).then_some(directory)
}

/// Whether a path is that of the queue of a semaphore.
pub(super) fn is_queue_of(path: &str, directory: &str) -> bool {
    split(path) == Some((directory, QUEUE))
}

/// Whether a path is that of the leases of a semaphore.
pub(super) fn is_leases_of(path: &str, directory: &str) -> bool {
    split(path) == Some((directory, LEASES))
}

/// How many permits the data say that there are: four bytes.
pub(super) fn number(data: &[u8]) -> Option<u64> {
    <[u8; 4]>::try_from(data).ok().map(|bytes| u64::from(u32::from_be_bytes(bytes)))
}
