//! How much a session has under way at a time, in both directions.
//!
//! All participants share one connection, on which answers come in the order of the requests: a
//! reply of a hundred megabytes holds up everybody's heartbeats for as long as the link takes for
//! it, and the server keeps every reply whole until it is sent. So what a request and its reply
//! will take is estimated before it is sent, from what was read of the same znode before, and only
//! so much is sent at a time: of one participant, a window of its pipeline; of all, the session's
//! share.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::bounds::{CHILD_LISTS, IN_FLIGHT, encoded_size};
use super::core::parent;
use super::failure::Failure;
use super::request::{CreateMode, Reply, Request, Stat, Write, Written};

/// Bytes that one participant has under way, and then one more request: no more is sent once they
/// are reached. At ten megabytes a second a tenth of a second goes by with them.
const WINDOW_BYTES: usize = 1 << 20;

/// Bytes that a session has under way at most: four windows, which leave room for a heartbeat in the
/// shortest of timeouts.
const SESSION_BYTES: usize = 4 << 20;

/// Child lists in a window: half of the session's.
const WINDOW_LISTS: usize = CHILD_LISTS / 2;

/// What a znode's data is taken for that nothing is known of: four in a window, so that the
/// largest there may be are not much more than the session's share.
const UNKNOWN_DATA: usize = WINDOW_BYTES / 4;

/// What a child list is taken for that nothing is known of: a whole window, for lists have no bound
/// of their own, and a few long ones at once outlast a short session on a slow link.
const UNKNOWN_LIST: usize = WINDOW_BYTES;

/// What a reply takes besides data and names: its header and a znode's metadata.
const REPLY: usize = 100;

/// How many znodes' sizes are remembered, twice. A forgotten znode's size counts as unknown.
const REMEMBERED: usize = 4096;

/// What is under way, and what is known of the sizes of replies.
#[derive(Debug)]
pub(super) struct Traffic {
    in_flight: Semaphore,
    child_lists: Semaphore,
    bytes: Semaphore,
    hasher: RandomState,
    sizes: Mutex<Sizes>,
}

/// Room for the first of some requests, until it is dropped.
#[derive(Debug)]
pub(super) struct Room<'a> {
    traffic: &'a Traffic,
    /// Of which requests, in their order, something can be learned.
    subjects: Vec<Option<Subject>>,
    /// How often a write was to grow a size before these were estimated.
    grown: u64,
    _permits: (SemaphorePermit<'a>, SemaphorePermit<'a>, Option<SemaphorePermit<'a>>),
}

/// What the size of a reply depends on: a path, as data or as a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Subject(u64);

/// The sizes seen latest. Two generations: the older one is forgotten as a whole.
#[derive(Debug, Default)]
struct Sizes {
    young: HashMap<Subject, Size>,
    old: HashMap<Subject, Size>,
    /// How often a write was to grow one of them.
    grown: u64,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    bytes: usize,
    /// When a write was to grow it last, by the count of that.
    grown: u64,
}

impl Sizes {
    fn of(&mut self, subject: Subject) -> Option<&mut Size> {
        self.young.get_mut(&subject).or_else(|| self.old.get_mut(&subject))
    }

    fn set(&mut self, subject: Subject, size: Size) {
        if self.young.len() >= REMEMBERED {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(subject, size);
    }

    /// A write is about to make it what `to` says of what it was.
    fn grow(&mut self, subject: Subject, to: impl FnOnce(Option<usize>) -> usize) {
        self.grown += 1;
        let grown = self.grown;
        match self.of(subject) {
            Some(known) => *known = Size { bytes: to(Some(known.bytes)), grown },
            None => {
                let bytes = to(None);
                self.set(subject, Size { bytes, grown });
            }
        }
    }

    /// A reply had that many bytes, to a request that was estimated when so many writes were noted. It may be
    /// older than a write that was noted since, and makes nothing smaller that the write has grown.
    fn learn(&mut self, subject: Subject, bytes: usize, estimated: u64) {
        let known = self.of(subject).copied();
        let bytes = match known {
            Some(known) if known.grown > estimated => bytes.max(known.bytes),
            _ => bytes,
        };
        self.set(subject, Size { bytes, grown: known.map_or(0, |known| known.grown) });
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic {
            in_flight: Semaphore::new(IN_FLIGHT as usize),
            child_lists: Semaphore::new(CHILD_LISTS),
            bytes: Semaphore::new(SESSION_BYTES),
            hasher: RandomState::new(),
            sizes: Mutex::default(),
        }
    }
}

impl Traffic {
    /// Waits for room for the first of these requests, as many as one participant may have under way.
    ///
    /// # Errors
    /// `SessionLost`.
    pub(super) async fn enter(&self, requests: &[Request]) -> Result<Room<'_>, Failure> {
        let grown = self.sizes().grown;
        let (subjects, bytes, lists) = self.window(requests);
        let lists = match lists {
            0 => None,
            lists => Some(permits(&self.child_lists, lists).await?),
        };
        // One that takes more than all is alone.
        let bytes = permits(&self.bytes, bytes.min(SESSION_BYTES)).await?;
        let requests = permits(&self.in_flight, subjects.len()).await?;
        Ok(Room { traffic: self, subjects, grown, _permits: (requests, bytes, lists) })
    }

    /// The requests of a window, what they take, and how many lists are among them.
    fn window(&self, requests: &[Request]) -> (Vec<Option<Subject>>, usize, usize) {
        let (mut subjects, mut bytes, mut lists) = (Vec::new(), 0, 0);
        for request in requests {
            if bytes >= WINDOW_BYTES
                || lists == WINDOW_LISTS
                || subjects.len() == IN_FLIGHT as usize
            {
                break;
            }
            let subject = self.subject(request);
            bytes += self.estimate(request, subject);
            lists += usize::from(matches!(request, Request::GetChildren(..)));
            subjects.push(subject);
        }
        (subjects, bytes, lists)
    }

    fn estimate(&self, request: &Request, subject: Option<Subject>) -> usize {
        let known = subject.and_then(|subject| self.sizes().of(subject).map(|known| known.bytes));
        let reply = match request {
            Request::GetData(..) => known.unwrap_or(UNKNOWN_DATA),
            Request::GetChildren(..) => known.unwrap_or(UNKNOWN_LIST),
            Request::Exists(..) | Request::Sync(_) | Request::Write(_) | Request::Multi(_) => 0,
        };
        match request {
            Request::Write(write) => self.note(std::slice::from_ref(write)),
            Request::Multi(writes) => self.note(writes),
            _ => {}
        }
        encoded_size(request) + reply + REPLY
    }

    /// Notes what writes will make of sizes that are known, before anybody reads them again.
    fn note(&self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::SetData { path, data, .. } => self.grow_to(path, data.len()),
                Write::Create { path, data, mode } => {
                    if let Some((above, name)) = parent(path).zip(path.rsplit('/').next()) {
                        self.grow_list(above, name.len());
                    }
                    let is_named = !matches!(
                        mode,
                        CreateMode::PersistentSequential | CreateMode::EphemeralSequential
                    );
                    if *mode == CreateMode::Ephemeral {
                        // Read right behind its create where it is claimed.
                        self.know(path, data.len());
                    } else if is_named {
                        self.grow_to(path, data.len());
                    }
                }
                Write::Delete { .. } | Write::Check { .. } => {}
            }
        }
    }

    fn know(&self, path: &str, size: usize) {
        self.sizes().grow(self.data(path), |known| known.unwrap_or(0).max(size));
    }

    /// Learns the size of an own znode from the answer to its create, which alone tells the path of a
    /// sequential one. The read that confirms a claim follows as soon as the line allows, and one
    /// that looks at all that a `multi` has created does at once. Others may write to it first, as
    /// they may between two reads.
    fn learn_created(&self, written: &Written) {
        let Written::Created(path, stat) = written else { return };
        self.know(path, data_length(stat));
        if stat.ephemeral_owner == 0 {
            let list = self.list(path);
            let mut sizes = self.sizes();
            if sizes.of(list).is_none() {
                sizes.set(list, Size { bytes: 0, grown: 0 });
            }
        }
    }

    fn grow_to(&self, path: &str, size: usize) {
        self.sizes().grow(self.data(path), |known| known.unwrap_or(UNKNOWN_DATA).max(size));
    }

    fn grow_list(&self, path: &str, name: usize) {
        let (list, mut sizes) = (self.list(path), self.sizes());
        if let Some(known) = sizes.of(list).map(|known| known.bytes) {
            sizes.grow(list, |_| known.saturating_add(name + NAME));
        }
    }

    fn subject(&self, request: &Request) -> Option<Subject> {
        match request {
            Request::Exists(path, _) | Request::GetData(path, _) => Some(self.data(path)),
            Request::GetChildren(path, _) => Some(self.list(path)),
            Request::Write(_) | Request::Multi(_) | Request::Sync(_) => None,
        }
    }

    fn data(&self, path: &str) -> Subject {
        Subject(self.hasher.hash_one(("data", path)))
    }

    fn list(&self, path: &str) -> Subject {
        Subject(self.hasher.hash_one(("list", path)))
    }

    fn sizes(&self) -> MutexGuard<'_, Sizes> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a name takes in a list besides its own length: that as a number, and for one that is just
/// being created the counter.
const NAME: usize = 4 + 11;

async fn permits(of: &Semaphore, count: usize) -> Result<SemaphorePermit<'_>, Failure> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    of.acquire_many(count).await.map_err(|_closed| Failure::SessionLost)
}

impl Room<'_> {
    /// For how many requests there is room.
    pub(super) fn count(&self) -> usize {
        self.subjects.len()
    }

    /// Learns from the answers.
    pub(super) fn learn(&self, answers: &[Result<Reply, Failure>]) {
        for (subject, answer) in self.subjects.iter().zip(answers) {
            let Ok(reply) = answer else { continue };
            let size = match reply {
                Reply::Exists(Some(stat), _) => data_length(stat),
                Reply::Data(..) | Reply::Children(..) => reply_size(reply),
                Reply::Written(written) => {
                    self.traffic.learn_created(written);
                    continue;
                }
                Reply::Multi(parts) => {
                    parts.iter().for_each(|written| self.traffic.learn_created(written));
                    continue;
                }
                Reply::Exists(None, _) | Reply::Synced => continue,
            };
            if let Some(subject) = subject {
                let mut sizes = self.traffic.sizes();
                match reply {
                    // It grows by a name at a time, and most lists are asked for behind a create.
                    Reply::Children(..) => sizes.set(*subject, Size { bytes: size, grown: 0 }),
                    _ => sizes.learn(*subject, size, self.grown),
                }
            }
        }
    }
}

fn data_length(stat: &Stat) -> usize {
    usize::try_from(stat.data_length).unwrap_or(0)
}

/// Bytes of data and names.
pub(super) fn reply_size(reply: &Reply) -> usize {
    match reply {
        Reply::Data(data, ..) => data.len(),
        Reply::Children(names, ..) => names.iter().map(|name| name.len() + NAME).sum(),
        Reply::Written(_) | Reply::Multi(_) | Reply::Exists(..) | Reply::Synced => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::request::Watching;

    fn data(path: &str) -> Request {
        Request::GetData(path.to_owned(), Watching::No)
    }

    fn list(path: &str) -> Request {
        Request::GetChildren(path.to_owned(), Watching::No)
    }

    fn counted(traffic: &Traffic, requests: &[Request]) -> usize {
        traffic.window(requests).0.len()
    }

    async fn teach(traffic: &Traffic, request: Request, reply: Reply) {
        let room = traffic.enter(&[request]).await.unwrap();
        room.learn(&[Ok(reply)]);
    }

    fn bytes(length: usize) -> Reply {
        Reply::Data(vec![0; length], Stat::default(), None)
    }

    #[tokio::test]
    async fn what_is_unknown_is_taken_for_large_and_known_when_it_was_read() {
        let traffic = Traffic::default();
        let reads = vec![data("/a"); 128];
        assert_eq!(counted(&traffic, &reads), 4);
        teach(&traffic, data("/a"), bytes(10)).await;
        assert_eq!(counted(&traffic, &reads), 128);
        teach(&traffic, data("/a"), bytes(900 << 10)).await;
        assert_eq!(counted(&traffic, &reads), 2);
        // A look at its metadata tells as much.
        let stat = Stat { data_length: 10, ..Stat::default() };
        let exists = Request::Exists("/a".to_owned(), Watching::No);
        teach(&traffic, exists, Reply::Exists(Some(stat), None)).await;
        assert_eq!(counted(&traffic, &reads), 128);
    }

    #[tokio::test]
    async fn a_write_counts_before_it_is_answered() {
        let traffic = Traffic::default();
        teach(&traffic, data("/a"), bytes(10)).await;
        let write = Write::SetData { path: "/a".into(), data: vec![0; 900 << 10], version: None };
        let mut requests = vec![Request::Write(write)];
        requests.extend(vec![data("/a"); 127]);
        assert_eq!(counted(&traffic, &requests), 2);
        assert_eq!(counted(&traffic, requests.get(1..).unwrap()), 2);
    }

    #[tokio::test]
    async fn an_answer_from_before_a_write_makes_nothing_smaller() {
        let traffic = Traffic::default();
        let set = || {
            let (path, data) = ("/a".to_owned(), vec![0; 900 << 10]);
            Request::Write(Write::SetData { path, data, version: None })
        };
        let written = || Reply::Written(Written::DataSet(Stat::default()));
        // In one pipeline, and of two participants.
        let room = traffic.enter(&[data("/a"), set()]).await.unwrap();
        room.learn(&[Ok(bytes(10)), Ok(written())]);
        drop(room);
        assert_eq!(counted(&traffic, &vec![data("/a"); 128]), 2);
        teach(&traffic, data("/a"), bytes(10)).await;
        let room = traffic.enter(&[data("/a")]).await.unwrap();
        teach(&traffic, set(), written()).await;
        room.learn(&[Ok(bytes(10))]);
        drop(room);
        assert_eq!(counted(&traffic, &vec![data("/a"); 128]), 2);
        // What is read behind the write is so.
        teach(&traffic, data("/a"), bytes(20)).await;
        assert_eq!(counted(&traffic, &vec![data("/a"); 128]), 128);
    }

    #[tokio::test]
    async fn an_own_znode_is_known_from_the_answer_to_its_create() {
        let traffic = Traffic::default();
        let written = |path: &str, ephemeral_owner| {
            let stat = Stat { data_length: 10, ephemeral_owner, ..Stat::default() };
            Written::Created(path.to_owned(), stat)
        };
        let mode = CreateMode::EphemeralSequential;
        let create = |path: &str| {
            let (path, mode) = (path.to_owned(), mode);
            Write::Create { path, data: vec![0; 10], mode }
        };
        let single = Request::Write(create("/line-"));
        teach(&traffic, single, Reply::Written(written("/line-7", 1))).await;
        assert_eq!(counted(&traffic, &vec![data("/line-7"); 128]), 128);
        let multi = Request::Multi(vec![create("/line-"), create("/line-")]);
        let parts = vec![written("/line-8", 1), written("/line-9", 0)];
        teach(&traffic, multi, Reply::Multi(parts)).await;
        assert_eq!(counted(&traffic, &vec![data("/line-8"); 128]), 128);
        assert_eq!(counted(&traffic, &vec![data("/line-9"); 128]), 128);
        // One that may have children has none yet.
        assert_eq!(counted(&traffic, &vec![list("/line-9"); 16]), WINDOW_LISTS);
        assert_eq!(counted(&traffic, &vec![list("/line-8"); 16]), 1);
    }

    #[tokio::test]
    async fn lists_take_a_permit_each_and_grow_with_what_is_created() {
        let traffic = Traffic::default();
        let lists = vec![list("/a"); 16];
        assert_eq!(counted(&traffic, &lists), 1);
        teach(&traffic, list("/a"), Reply::Children(Vec::new(), Stat::default(), None)).await;
        assert_eq!(counted(&traffic, &lists), WINDOW_LISTS);
        for _ in 0..300 {
            let path = format!("/a/{}", "x".repeat(4000));
            let create = Write::Create { path, data: Vec::new(), mode: CreateMode::Ephemeral };
            counted(&traffic, &[Request::Write(create)]);
        }
        assert_eq!(counted(&traffic, &lists), 1);
        // What confirms a claim goes with the create of its znodes.
        let claim = ["/a/c", "/a/d", "/a/e", "/a/f", "/a/g"];
        let creates = claim.map(|path| {
            let (path, mode) = (path.to_owned(), CreateMode::Ephemeral);
            Write::Create { path, data: vec![0; 100], mode }
        });
        let mut requests = vec![Request::Multi(creates.to_vec())];
        requests.extend(claim.map(data));
        assert_eq!(counted(&traffic, &requests), 6);
        // The first two steps of most recipes are one round trip, however long the line is.
        let mode = CreateMode::EphemeralSequential;
        let create = Write::Create { path: "/a/b".into(), data: Vec::new(), mode };
        assert_eq!(counted(&traffic, &[Request::Write(create), list("/a")]), 2);
    }

    #[tokio::test]
    async fn no_more_sizes_are_remembered_than_the_limit() {
        let traffic = Traffic::default();
        for number in 0..3 * REMEMBERED {
            teach(&traffic, data(&format!("/{number}")), bytes(1)).await;
        }
        let sizes = traffic.sizes();
        assert!(sizes.young.len() <= REMEMBERED && sizes.old.len() <= REMEMBERED);
    }
}
