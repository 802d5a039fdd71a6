//! A participant's door to the session: its ledger, its claim, its share of the bounds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio_util::task::TaskTracker;

use super::ahead::{Ahead, AheadSlot, Noted};
use super::bounds::PIPELINE;
use super::budget::{Account, Charge};
use super::claims::Claims;
use super::core::Core;
use super::dependents::Dependents;
use super::failure::{Failure, Refusal};
use super::janitor::Job;
use super::ledger::{Entry, Ledger};
use super::multi::{ephemerals, look};
use super::persistent::LeftBehind;
use super::request::{Reply, Request, Stat, WatchKind, Watching};
use super::state::{SessionLoss, SessionState};
use super::tickets::GivingUp;
use super::watch::{Event, Kin, Watch};
use crate::clock::Boottime;

/// Whose ephemeral znode a znode is, as one participant sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It is not ephemeral.
    None,
    /// This participant's.
    Me,
    /// Another participant's, of this host or of another client.
    Other,
}

/// What one participant may have at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatLimits {
    /// Ephemeral znodes.
    pub znodes: usize,
    /// Persistent znodes that it created, or those whose place it takes, and nobody has deleted, and
    /// containers, also those that were made for its contenders; one with a long path counts more.
    pub persistent_znodes: usize,
    /// Bytes of path that it can watch whatever others do, reserved when it joins. Never less than
    /// one znode below its mount takes.
    pub watched_paths: usize,
}

impl Default for SeatLimits {
    /// Far more than a stock recipe needs, far less than would trouble an ensemble.
    fn default() -> Self {
        SeatLimits { znodes: 1_000, persistent_znodes: 10_000, watched_paths: 0 }
    }
}

/// A participant's door to the session. All paths are absolute.
///
/// # Cancellation
/// Any of its futures may be dropped at any await: what was sent may still take effect, and what
/// ephemeral znode comes of it is in the ledger and goes when the seat does.
#[derive(Debug)]
pub struct Seat {
    pub(super) core: Arc<Core>,
    pub(super) limits: SeatLimits,
    pub(super) kin: Kin,
    pub(super) account: Arc<Account>,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) left_behind: LeftBehind,
    pub(super) claims: Mutex<Claims>,
    pub(super) claims_changed: Notify,
    /// What runs only while the claim is held.
    pub(super) dependents: Dependents,
    /// The janitor's work for this participant.
    clean_up: TaskTracker,
    /// Whose the last znode is that was read with a watch and is not this participant's own.
    ahead: AheadSlot,
}

impl Seat {
    pub(super) fn new(core: Arc<Core>, mount: &str, limits: SeatLimits) -> Result<Self, Failure> {
        Ok(Seat {
            account: core.budget.open(mount, limits.watched_paths)?,
            core,
            limits,
            kin: Kin::NONE,
            ledger: Mutex::default(),
            left_behind: LeftBehind::default(),
            claims: Mutex::default(),
            claims_changed: Notify::new(),
            dependents: Dependents::default(),
            clean_up: TaskTracker::new(),
            ahead: AheadSlot::default(),
        })
    }

    /// The same seat, for a participant that relies on the claims of its kin.
    #[must_use]
    pub fn of_kin(mut self, kin: Kin) -> Self {
        self.kin = kin;
        self
    }

    /// Whether the watch has fired for a znode that a participant of its kin had claimed.
    pub fn trusts_claim(&self, watch: &Watch) -> bool {
        watch.is_claimed_by(self.kin)
    }

    /// Sends one request. Reads are sent again after a lost connection; writes are sent once.
    ///
    /// # Errors
    /// `OutcomeUnknown` for writes only; `SessionLost` when the session ends first.
    ///
    /// # Ordering
    /// After everything that this participant asked before.
    pub async fn submit(&self, request: Request) -> Result<Reply, Failure> {
        match request {
            Request::Write(write) => Ok(Reply::Written(self.write(write).await?)),
            Request::Multi(writes) => Ok(Reply::Multi(self.multi(writes, &[]).await?.0)),
            read => {
                self.forget_shown();
                self.read(read).await
            }
        }
    }

    async fn read(&self, request: Request) -> Result<Reply, Failure> {
        // Paid before it is asked for: a watch that nobody paid for could break the session.
        let watched = watched(&request).map(|(kind, path)| (kind, path.to_owned()));
        let charge = watched.as_ref().map(|(kind, path)| self.account.charge(*kind, path));
        let charge = charge.transpose()?;
        let directory = listed(&request).map(str::to_owned);
        let sent = self.core.now();
        let reply = self.core.ask(request).await?;
        if let (Some(directory), Reply::Children(names, ..)) = (directory, &reply) {
            self.note_shown(&directory, names, sent);
        }
        Ok(match watched.zip(charge) {
            Some(((_, path), charge)) => self.paid(&path, charge, reply),
            None => reply,
        })
    }

    /// Ties a watch to what it costs.
    pub(super) fn paid(&self, path: &str, charge: Charge, reply: Reply) -> Reply {
        let ahead = match &reply {
            Reply::Data(data, stat, Some(_)) if !self.owns(path) => {
                Some(self.ahead.note(Ahead::of(path, data, stat)))
            }
            _ => None,
        };
        paid(&self.core, path, charge, reply, ahead)
    }

    /// Whether the znode at `path` is an ephemeral one of this participant's, as far as the host knows.
    pub fn owns(&self, path: &str) -> bool {
        self.ledger().find(path).is_some()
    }

    /// The last of another's znodes that this participant read with a watch: while it stands in line,
    /// whom it waits behind. None once that watch has fired or is dropped, or once it has read a znode
    /// that way which is nobody's.
    pub fn ahead(&self) -> Option<Ahead> {
        self.ahead.get()
    }

    /// Reads a znode's data and watches it.
    pub(super) async fn read_and_watch(&self, path: &str) -> Result<(Stat, Watch), Failure> {
        let reply = self.read(Request::GetData(path.to_owned(), Watching::Yes)).await?;
        let (_, stat, watch) = reply.data()?;
        let unwatched = || Refusal::Other(format!("{path} was read without the watch asked for"));
        Ok((stat, watch.ok_or_else(unwatched)?))
    }

    /// Sends requests back to back and answers in their order. Not atomic, and nothing is sent
    /// again: where the connection is lost, reads, too, answer `OutcomeUnknown`, and requests behind
    /// those may still be done and answered. Where the replies may be large, only so many requests
    /// are under way at a time; once they were too large together, the rest answers `OverLimit` and
    /// was not sent.
    ///
    /// # Errors
    /// `OverLimit` or `Invalid` for all of them, before anything is sent.
    pub async fn pipeline(
        &self,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        if requests.len() > PIPELINE {
            return Err(Failure::OverLimit(format!(
                "a pipeline of {} requests; the limit is {PIPELINE}: send them in parts",
                requests.len()
            )));
        }
        let mut charges = self.charge_watches(&requests)?;
        let watched = requests.iter().map(|it| watched(it).map(|(_, path)| path.to_owned()));
        let watched: Vec<_> = watched.collect();
        let lists: Vec<_> = requests.iter().map(|it| listed(it).map(str::to_owned)).collect();
        let others = ephemerals(&requests, &[]);
        let sent = self.core.now();
        let looks = others.iter().map(|path| look(path)).collect();
        let mut exchanged = self.exchange(requests, looks, GivingUp::TheClaim).await?;
        let behind = std::mem::take(&mut exchanged.behind);
        let looked = self.identify(others, behind).await?;
        let mut answers = self.enter(exchanged);
        for (answer, directory) in answers.iter_mut().zip(lists) {
            match (answer, directory) {
                (Ok(Reply::Multi(written)), _) => self.note_looked(written, looked.iter().cloned()),
                (Ok(Reply::Children(names, ..)), Some(directory)) => {
                    self.note_shown(&directory, names, sent);
                    continue;
                }
                _ => {}
            }
            // What was done behind a list speaks against it.
            self.forget_shown();
        }
        let paid = answers.into_iter().zip(watched).map(|(answer, path)| match path {
            Some(path) => {
                let charge = charges.next();
                answer.map(|reply| match charge {
                    Some(charge) => self.paid(&path, charge, reply),
                    None => reply,
                })
            }
            None => answer,
        });
        Ok(paid.collect())
    }

    /// Pays for the watches that the requests leave behind, in their order.
    fn charge_watches(&self, requests: &[Request]) -> Result<std::vec::IntoIter<Charge>, Failure> {
        let watched = requests.iter().filter_map(watched);
        let charges = watched.map(|(kind, path)| self.account.charge(kind, path));
        charges.collect::<Result<Vec<_>, _>>().map(Vec::into_iter)
    }

    /// Whose znode the one with this metadata is.
    pub fn owner(&self, path: &str, stat: &Stat) -> Owner {
        if stat.ephemeral_owner == 0 {
            return Owner::None;
        }
        let ledger = self.ledger();
        let known = ledger.find(path).is_some_and(|znode| znode.czxid == stat.czxid);
        let pending = ledger.pending(path);
        drop(ledger);
        let settled_by_reading = || {
            let is_anothers = |(_, id)| self.core.named.is_anothers(path, id, stat.czxid);
            pending.is_some_and(|pending| !is_anothers(pending))
        };
        if stat.ephemeral_owner == self.core.id() && (known || settled_by_reading()) {
            Owner::Me
        } else {
            Owner::Other
        }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn check_room(&self, more: usize) -> Result<(), Failure> {
        if self.ledger().len() + more > self.limits.znodes {
            return Err(Failure::OverLimit(format!(
                "this participant may have {} ephemeral znodes at a time: see `limits.znodes`",
                self.limits.znodes
            )));
        }
        Ok(())
    }

    /// Whether the session may be believed in at this very moment. Asked before every answer that
    /// says "held".
    pub fn is_live(&self) -> bool {
        self.core.is_live()
    }

    /// Until when the session may be believed in without hearing more.
    pub fn deadline(&self) -> Boottime {
        self.core.deadline()
    }

    /// Completes when a write that gives the claim up waits until nothing depends on it.
    pub async fn until_waited_for(&self) {
        self.dependents.until_waited_for().await;
    }

    /// Whether something depends on the claim.
    pub fn is_depended_on(&self) -> bool {
        self.dependents.are_there()
    }

    /// Completes when the session is lost.
    pub async fn until_session_lost(&self) {
        self.core.lost().cancelled().await;
    }

    /// Hands every znode of the ledger to the janitor. Completes when they are gone for certain, and those
    /// that the janitor was given before, or the session is lost: then it answers why. Dropping the future
    /// does not stop the clean-up.
    ///
    /// Until then the session counts as one of which something is held. An app that was told that it holds
    /// relies on the local deadline, also where the server does not answer the deletion.
    pub fn retire(&self) -> impl Future<Output = Option<SessionLoss>> + Send + 'static {
        let claimed = self.claims.lock().unwrap_or_else(PoisonError::into_inner).clear();
        // Before the ledger's own are over: the deadline rests on a majority's word all the time.
        let standing = self.core.standing();
        let entries = self.ledger().drain();
        for entry in entries {
            self.discard(entry);
        }
        let (lost, state) = (self.core.lost().clone(), self.core.state());
        let clean_up = self.clean_up.clone();
        async move {
            let _counting = (claimed, standing);
            clean_up.close();
            lost.run_until_cancelled(clean_up.wait()).await;
            // A job ends also where the session does.
            if !lost.is_cancelled() {
                return None;
            }
            match *state.borrow() {
                SessionState::Lost(loss) => Some(loss),
                SessionState::Connected | SessionState::Suspended => None,
            }
        }
    }

    /// Hands one znode to the janitor.
    pub(super) fn discard(&self, entry: Entry) -> Option<oneshot::Receiver<()>> {
        let (done, gone) = oneshot::channel();
        // A closed channel means that the session is over, and the znode with it.
        let job = Job { entry, done, _under_way: self.clean_up.token() };
        self.core.janitor.send(job).ok().map(|()| gone)
    }
}

/// Ties a watch to what it costs and to what is noted of it, and notes those that a claim could share.
pub(super) fn paid(
    core: &Arc<Core>,
    path: &str,
    charge: Charge,
    reply: Reply,
    ahead: Option<Noted>,
) -> Reply {
    let tied = move |watch: Watch, charge: Charge, stat: Option<&Stat>| {
        let is_ours = stat.is_some_and(|stat| stat.ephemeral_owner == core.id());
        let tell = is_ours.then(|| tell_deletions(core, path));
        let watch = watch.paid(charge, move |event| {
            drop(ahead);
            if let Some(tell) = tell {
                tell(event);
            }
        });
        if let Some(stat) = stat {
            core.watched().note(path, stat.czxid, &watch);
        }
        watch
    };
    match reply {
        Reply::Exists(stat, Some(watch)) => {
            let watch = tied(watch, charge, stat.as_ref());
            Reply::Exists(stat, Some(watch))
        }
        Reply::Data(data, stat, Some(watch)) => {
            let watch = tied(watch, charge, Some(&stat));
            Reply::Data(data, stat, Some(watch))
        }
        Reply::Children(names, stat, Some(watch)) => {
            Reply::Children(names, stat, Some(watch.paid(charge, drop)))
        }
        unwatched => unwatched,
    }
}

/// Has the session told when a znode of its own goes.
fn tell_deletions(core: &Arc<Core>, path: &str) -> impl FnOnce(Event) + Send + 'static {
    let (core, path) = (Arc::downgrade(core), path.to_owned());
    move |event| {
        if event == Event::Deleted
            && let Some(core) = core.upgrade()
        {
            core.deletions().see(&path);
        }
    }
}

/// Of which znode the request lists the children.
fn listed(request: &Request) -> Option<&str> {
    match request {
        Request::GetChildren(path, _) => Some(path),
        _ => None,
    }
}

/// Where the request leaves a watch behind, and which.
fn watched(request: &Request) -> Option<(WatchKind, &str)> {
    match request {
        Request::Exists(path, Watching::Yes) => Some((WatchKind::Existence, path)),
        Request::GetData(path, Watching::Yes) => Some((WatchKind::Data, path)),
        Request::GetChildren(path, Watching::Yes) => Some((WatchKind::Children, path)),
        _ => None,
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        drop(self.retire());
    }
}
