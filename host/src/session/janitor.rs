//! Guaranteed delete: whatever ended a participant, its ephemeral znodes go while the session
//! lasts. After that the server deletes them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::core::{Core, child};
use super::deletions::Deleting;
use super::failure::{Failure, Refusal};
use super::ledger::{Entry, Naming, Trace, Znode};
use super::named::CreationId;
use super::omission::Omission;
use super::request::{Request, Stat, Write};

/// Znodes that are being deleted at a time: a fifth of what a session may have in flight, so that
/// a thousand participants that end together do not hold up those that go on.
const AT_A_TIME: usize = 100;

/// The pauses between attempts that the server refuses: short at first, for others wait for what is
/// deleted, and then longer, for a server that has too much to do is not helped by being asked.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A znode to delete.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) entry: Entry,
    /// Told when the znode is gone for certain, or cannot be deleted.
    pub(super) done: oneshot::Sender<()>,
    /// Until it is dropped the participant has something to clean up.
    pub(super) _under_way: TaskTrackerToken,
}

/// Works until the session is lost or nobody can send jobs any more.
pub(super) async fn run(core: Arc<Core>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let mut under_way = Vec::new();
    loop {
        tokio::select! {
            biased;
            // Cancel-safe: a job that is received is pushed in the same step.
            Some(job) = jobs.recv(), if under_way.len() < AT_A_TIME => {
                under_way.push(Box::pin(clean_up(&core, job)));
            }
            () = poll_fn(|context| poll_some(&mut under_way, context)),
                if !under_way.is_empty() => {}
            else => return,
        }
    }
}

/// Polls them in the order in which they came, so that what they send does not depend on who was
/// woken first. Ready when some of them are done.
fn poll_some(
    under_way: &mut Vec<Pin<Box<impl Future<Output = ()>>>>,
    context: &mut Context<'_>,
) -> Poll<()> {
    let before = under_way.len();
    under_way.retain_mut(|job| job.as_mut().poll(context).is_pending());
    if under_way.len() < before { Poll::Ready(()) } else { Poll::Pending }
}

async fn clean_up(core: &Arc<Core>, job: Job) {
    // A participant may leave two jobs for one name: what it has created, and what it was creating.
    let _turn = match given_name(&job.entry) {
        Some(path) => Some(core.turns.take(path).await),
        None => None,
    };
    let mut pauses = Pauses::new();
    let found = loop {
        let found = find(core, &job).await;
        if let Some(found) = pauses.decided(core, found).await {
            break found;
        }
    };
    let outcome = match found {
        Ok(Some(znode)) => delete(core, &znode, Sight::None).await,
        Ok(None) => Ok(()),
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(()) => forget_named(core, &job),
        // A lost session takes its ephemeral znodes with it, sooner or later: nobody is told that this
        // one is gone. The clean-up is not over before the loss is known to all.
        Err(Failure::SessionLost) => return core.lost().cancelled().await,
        Err(failure) => tracing::error!(
            znode = %job.entry, %failure,
            "an ephemeral znode could not be deleted: it stays until this session ends"
        ),
    }
    job.done.send(()).ok();
}

/// The path, if its last name was given and another client may use it, too.
fn given_name(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Known(znode) if znode.naming == Naming::Given => Some(&znode.path),
        Entry::Pending(Trace::Named { path, .. }) => Some(path),
        Entry::Known(_) | Entry::Pending(Trace::Contender { .. }) => None,
    }
}

/// The znode that is to be deleted; none if its create did not happen.
async fn find(core: &Core, job: &Job) -> Result<Option<Znode>, Failure> {
    match &job.entry {
        Entry::Known(znode) => Ok(Some(znode.clone())),
        Entry::Pending(Trace::Contender { parent, stem }) => {
            let found = find_contender(core, parent, stem).await?;
            let naming = Naming::Unique;
            Ok(found.map(|(path, stat)| Znode { path, czxid: stat.czxid, naming }))
        }
        Entry::Pending(Trace::Named { path, creation }) => {
            let found = find_named(core, path, *creation).await?;
            let (path, naming) = (path.clone(), Naming::Given);
            Ok(found.map(|stat| Znode { path, czxid: stat.czxid, naming }))
        }
    }
}

/// How long to wait before the server is asked again, where it refuses for a reason that may pass.
struct Pauses {
    next: Duration,
}

impl Pauses {
    fn new() -> Self {
        Pauses { next: FIRST_PAUSE }
    }

    /// The outcome, unless it is to be tried again. The session's end is an outcome, too.
    async fn decided<T>(
        &mut self,
        core: &Core,
        outcome: Result<T, Failure>,
    ) -> Option<Result<T, Failure>> {
        let refusal = match outcome {
            Err(Failure::Refused { refusal, .. }) if refusal.may_pass() => refusal,
            decided => return Some(decided),
        };
        tracing::debug!(%refusal, pause = ?self.next, "clean-up refused; trying again");
        let paused = core.lost().run_until_cancelled(tokio::time::sleep(self.next)).await;
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        match paused {
            Some(()) => None,
            None => Some(Err(Failure::SessionLost)),
        }
    }
}

fn forget_named(core: &Core, job: &Job) {
    match &job.entry {
        Entry::Known(znode) => core.named.forget(&znode.path, znode.czxid),
        Entry::Pending(Trace::Named { path, creation }) => core.named.strike(path, *creation),
        Entry::Pending(Trace::Contender { .. }) => {}
    }
}

/// What is known of a znode that is to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Another client's znode may have its name by now.
    None,
    /// A watch stands, and has not told that it is gone.
    Watched,
}

/// Deletes a znode of ours until it is gone. A znode that has another `czxid` is not ours, whatever
/// its name. Of a znode whose name was given the caller has the [`Turn`](super::turns::Turn).
///
/// # Cancellation
/// The znode may or may not be gone.
pub(super) async fn delete(core: &Arc<Core>, znode: &Znode, sight: Sight) -> Result<(), Failure> {
    // What was seen before the connection was lost says nothing of when there is one again.
    let is_unseen = sight == Sight::None || !core.is_connected();
    let may_be_anothers = znode.naming == Naming::Given && is_unseen;
    let mut is_looked_at = may_be_anothers && !core.omits(Omission::CzxidCheck);
    let mut pauses = Pauses::new();
    loop {
        match try_delete(core, znode, is_looked_at).await {
            Err(Failure::OutcomeUnknown) => is_looked_at = true,
            outcome => {
                // Boxed, as it is rare: a future has room for every branch.
                if let Some(decided) = Box::pin(pauses.decided(core, outcome)).await {
                    return decided;
                }
            }
        }
    }
}

async fn try_delete(core: &Arc<Core>, znode: &Znode, is_looked_at: bool) -> Result<(), Failure> {
    if is_looked_at && !Box::pin(is_still_there(core, znode)).await? {
        return Ok(());
    }
    let deleting = Deleting::begin(core, &znode.path);
    let write = Write::Delete { path: znode.path.clone(), version: None };
    match core.send(Request::Write(write)).await {
        Ok(_) => {
            deleting.done();
            Ok(())
        }
        Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => Ok(()),
        Err(other) => Err(other),
    }
}

async fn is_still_there(core: &Core, znode: &Znode) -> Result<bool, Failure> {
    let found = core.look_at_known(&znode.path).await?;
    let is_ours = |stat: &Stat| stat.czxid == znode.czxid || core.omits(Omission::CzxidCheck);
    Ok(found.as_ref().is_some_and(is_ours))
}

/// Looks for a contender whose create was not answered. The answer is certain: the server has caught up
/// with everything this session sent before, and a request that an earlier connection left behind is
/// refused once the session has moved.
pub(super) async fn find_contender(
    core: &Core,
    parent: &str,
    stem: &str,
) -> Result<Option<(String, Stat)>, Failure> {
    if core.omits(Omission::UuidLookUp) {
        return Ok(None);
    }
    core.catch_up().await?;
    let names = core.children(parent).await?.unwrap_or_default();
    let Some(name) = names.into_iter().find(|name| name.starts_with(stem)) else {
        return Ok(None);
    };
    let path = child(parent, &name);
    // A look-up may find the znode of a session that is just dying: only our own counts.
    let found = core.stat(&path).await?.filter(|stat| stat.ephemeral_owner == core.id());
    Ok(found.map(|stat| (path, stat)))
}

/// Looks for a named znode whose create was not answered.
pub(super) async fn find_named(
    core: &Core,
    path: &str,
    creation: CreationId,
) -> Result<Option<Stat>, Failure> {
    if core.named.is_void(path, creation) {
        return Ok(None);
    }
    let found = core.look(path).await?;
    Ok(found.filter(|stat| {
        let is_ours = stat.ephemeral_owner == core.id() || core.omits(Omission::SessionCheck);
        // Another participant may have looked meanwhile, and have created its own.
        is_ours && !core.named.is_anothers(path, creation, stat.czxid)
    }))
}
