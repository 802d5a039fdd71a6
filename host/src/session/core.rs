//! What all parts of one session share: the way to the ensemble, its bounds and its state.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::bounds;
use super::budget::Budget;
use super::deletions::Deletions;
use super::ensemble::{Connection, Ensemble};
use super::failure::{Failure, Refusal};
use super::janitor::Job;
use super::ledger::NamedZnodes;
use super::omission::Omission;
use super::request::{Acl, CreateMode, Reply, Request, Stat, Watching, Write, Written};
use super::state::{SessionLoss, SessionState};
use super::timing::Timing;
use super::traffic::{Traffic, reply_size};
use super::watched::WatchedZnodes;
use crate::clock::{Boottime, Clock};

/// What all parts of one session share.
#[derive(Debug)]
pub(super) struct Core {
    ensemble: Box<dyn Ensemble>,
    acl: Acl,
    clock: Arc<dyn Clock>,
    timing: Timing,
    /// When the newest answered request was sent, in nanoseconds since boot.
    contact: AtomicU64,
    state: watch::Sender<SessionState>,
    lost: CancellationToken,
    connection: watch::Receiver<Connection>,
    traffic: Traffic,
    /// Unbounded, because it must never refuse; bounded all the same by the ledgers it comes from.
    pub(super) janitor: mpsc::UnboundedSender<Job>,
    pub(super) budget: Arc<Budget>,
    pub(super) named: Mutex<NamedZnodes>,
    pub(super) watched: Mutex<WatchedZnodes>,
    deletions: Mutex<Deletions>,
    pub(super) deletion_answered: Notify,
    omission: Option<Omission>,
}

impl Core {
    /// A session that was just opened, with a request sent at `contact` answered.
    pub(super) fn new(
        ensemble: Box<dyn Ensemble>,
        acl: Acl,
        clock: Arc<dyn Clock>,
        contact: Boottime,
        janitor: mpsc::UnboundedSender<Job>,
    ) -> Self {
        Core {
            connection: ensemble.connection(),
            timing: Timing::new(ensemble.timeout()),
            ensemble,
            acl,
            clock,
            contact: AtomicU64::new(contact.as_nanos()),
            state: watch::channel(SessionState::Connected).0,
            lost: CancellationToken::new(),
            traffic: Traffic::default(),
            janitor,
            budget: Arc::default(),
            named: Mutex::default(),
            watched: Mutex::default(),
            deletions: Mutex::default(),
            deletion_answered: Notify::new(),
            omission: None,
        }
    }

    /// Leaves a rule out.
    pub(super) fn omitting(self, omission: Option<Omission>) -> Self {
        Core { omission, ..self }
    }

    /// Whether a rule is left out: never in what users run, which has no debug assertions.
    pub(super) fn omits(&self, rule: Omission) -> bool {
        cfg!(debug_assertions) && self.omission == Some(rule)
    }

    pub(super) fn id(&self) -> i64 {
        self.ensemble.id()
    }

    pub(super) fn timing(&self) -> Timing {
        self.timing
    }

    pub(super) fn ensemble(&self) -> &dyn Ensemble {
        &*self.ensemble
    }

    pub(super) fn now(&self) -> Boottime {
        self.clock.now()
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(super) fn contact(&self) -> Boottime {
        Boottime::from_nanos(self.contact.load(Ordering::Acquire))
    }

    /// Until when this host may believe in the session without hearing more.
    pub(super) fn deadline(&self) -> Boottime {
        self.contact() + self.timing.patience()
    }

    /// Whether the session may be believed in at this very moment.
    pub(super) fn is_live(&self) -> bool {
        let has_time = self.now() < self.deadline() || self.omits(Omission::LookAfterPause);
        !self.lost.is_cancelled() && has_time
    }

    pub(super) fn state(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    pub(super) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Notes doubt or its end; a lost session stays lost.
    pub(super) fn note(&self, now: SessionState) {
        self.state.send_if_modified(|state| {
            let changes = !matches!(state, SessionState::Lost(_)) && *state != now;
            if changes {
                *state = now;
            }
            changes
        });
    }

    /// Gives the session up, once and for good.
    pub(super) fn lose(&self, loss: SessionLoss) {
        self.note(SessionState::Lost(loss));
        self.lost.cancel();
    }

    /// Sends one request within the session's bounds, when there is a connection to send it on:
    /// the crate would queue it without bound and send it whenever it can.
    ///
    /// # Cancellation
    /// A request that was sent may still take effect.
    pub(super) async fn send(&self, request: Request) -> Result<Reply, Failure> {
        bounds::check_size(&request)?;
        self.until_connected().await?;
        let room = self.traffic.enter(std::slice::from_ref(&request)).await?;
        // Boxed, so that those who wait for their permit have no room set aside for it.
        let answer = Box::pin(self.exchange(request)).await;
        room.learn(std::slice::from_ref(&answer));
        answer
    }

    /// Sends requests back to back, as many at a time as there is room for. Once a connection is
    /// lost, or too much was answered, no more of them is sent.
    ///
    /// # Errors
    /// None of them was sent.
    pub(super) async fn send_all(
        &self,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        for request in &requests {
            bounds::check_size(request)?;
        }
        let mut rest = requests;
        let mut answers = self.send_window(&mut rest).await?;
        while !rest.is_empty() {
            let bytes: usize = answers.iter().flatten().map(reply_size).sum();
            let is_lost = |answer: &Result<_, Failure>| {
                matches!(answer, Err(Failure::OutcomeUnknown | Failure::SessionLost))
            };
            let unsent = if answers.iter().any(is_lost) {
                Err(Failure::OutcomeUnknown)
            } else if bytes >= bounds::PIPELINE_BYTES {
                Err(Failure::OverLimit(format!(
                    "the replies of one pipeline take {} bytes at most: send it in parts",
                    bounds::PIPELINE_BYTES
                )))
            } else {
                // Boxed, as it is rare: a future has room for every branch.
                Box::pin(self.send_window(&mut rest)).await
            };
            match unsent {
                Ok(more) => answers.extend(more),
                Err(failure) => answers.extend(rest.drain(..).map(|_| Err(failure.clone()))),
            }
        }
        Ok(answers)
    }

    /// Sends the first of the requests and takes them out.
    async fn send_window(
        &self,
        requests: &mut Vec<Request>,
    ) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        self.until_connected().await?;
        let room = self.traffic.enter(requests).await?;
        // Each is submitted when it is first polled, and they are polled in order.
        let exchanges = requests.drain(..room.count()).map(|request| self.exchange(request));
        let answers = futures_util::future::join_all(exchanges).await;
        room.learn(&answers);
        Ok(answers)
    }

    /// As [`send`](Core::send), for requests that may be sent again: while the session lasts they
    /// are answered or refused.
    pub(super) async fn ask(&self, request: Request) -> Result<Reply, Failure> {
        loop {
            match self.send(request.clone()).await {
                Err(Failure::OutcomeUnknown) => self.after_connection_loss().await,
                answer => return answer,
            }
        }
    }

    /// One request and its reply, past all bounds: for heartbeats.
    ///
    /// A server answers in order, so a request that is unanswered for as long as the session lives
    /// without contact has lost its reply, though the connection stands: nobody waits for it.
    pub(super) async fn exchange(&self, request: Request) -> Result<Reply, Failure> {
        let sent = self.now();
        let reply = self.ensemble.submit(request, self.acl);
        let reply = tokio::time::timeout(self.timing.timeout(), reply);
        let answer = match self.lost.run_until_cancelled(reply).await {
            None => return Err(Failure::SessionLost),
            Some(Err(_elapsed)) => return Err(Failure::OutcomeUnknown),
            Some(Ok(answer)) => answer,
        };
        match &answer {
            Ok(_) | Err(Failure::Refused { .. }) => {
                self.contact.fetch_max(sent.as_nanos(), Ordering::AcqRel);
            }
            Err(_) => {}
        }
        answer
    }

    pub(super) fn deletions(&self) -> MutexGuard<'_, Deletions> {
        self.deletions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection for contact: what a session without [`Omission::ContactDeadline`] does.
    pub(super) fn believe(&self) {
        self.contact.fetch_max(self.now().as_nanos(), Ordering::AcqRel);
    }

    async fn until_connected(&self) -> Result<(), Failure> {
        if *self.connection.borrow() == Connection::Up && !self.lost.is_cancelled() {
            return Ok(());
        }
        let mut connection = self.connection.clone();
        // Boxed, as it is rare: a future has room for every branch.
        Box::pin(async move {
            let known = connection.wait_for(|state| *state != Connection::Down);
            match self.lost.run_until_cancelled(known).await {
                Some(Ok(state)) if *state == Connection::Up => Ok(()),
                _ => Err(Failure::SessionLost),
            }
        })
        .await
    }

    /// The crate fails requests a moment before it says that the connection is gone. Gives it that
    /// moment, so that nobody asks again on a connection that is known to be lost.
    async fn after_connection_loss(&self) {
        tokio::task::yield_now().await;
    }

    /// Catches up with the leader and reads a znode's metadata: what a write whose reply was lost
    /// has really done.
    pub(super) async fn look(&self, path: &str) -> Result<Option<Stat>, Failure> {
        if !self.omits(Omission::SyncBeforeLookUp) {
            self.ask(Request::Sync(path.to_owned())).await?;
        }
        match self.ask(Request::Exists(path.to_owned(), Watching::No)).await? {
            Reply::Exists(stat, _) => Ok(stat),
            other => Err(unexpected(&other)),
        }
    }

    /// Creates a container, and what is missing above it. Never fails for a container that exists.
    pub(super) async fn create_parents(&self, path: &str) -> Result<(), Failure> {
        let mut missing = vec![path.to_owned()];
        let mut mode = CreateMode::Container;
        while let Some(path) = missing.last() {
            let create = Write::Create { path: path.clone(), data: Vec::new(), mode };
            match self.ask(Request::Write(create)).await {
                Ok(_) | Err(Failure::Refused { refusal: Refusal::NodeExists, .. }) => {
                    missing.pop();
                }
                Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => match parent(path) {
                    Some(above) if missing.len() < MOST_SEGMENTS => missing.push(above.to_owned()),
                    _ => return Err(Refusal::NoNode.into()),
                },
                // A server before 3.5 knows no containers.
                Err(Failure::Refused { refusal: Refusal::Unimplemented, .. })
                    if mode == CreateMode::Container =>
                {
                    mode = CreateMode::Persistent;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }
}

/// A bound on how far up missing parents are looked for; a path cannot have more segments and fit
/// into a request that anyone would send.
const MOST_SEGMENTS: usize = 1_000;

/// The path above this one; none above the root.
pub(super) fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('/') {
        Some(("", "")) | None => None,
        Some(("", _)) => Some("/"),
        Some((above, _)) => Some(above),
    }
}

/// The path of a child.
pub(super) fn child(parent: &str, name: &str) -> String {
    if parent == "/" { format!("/{name}") } else { format!("{parent}/{name}") }
}

/// For a reply that does not answer the request: the fault of an [`Ensemble`].
pub(super) fn unexpected(reply: &Reply) -> Failure {
    Refusal::Other(format!("the ensemble answered another request: {reply:?}")).into()
}

/// The znode that a single create made.
pub(super) fn created(reply: Reply) -> Result<(String, Stat), Failure> {
    match reply {
        Reply::Written(Written::Created(path, stat)) => Ok((path, stat)),
        other => Err(unexpected(&other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_and_children_of_the_root_have_one_slash() {
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/"), None);
        assert_eq!(child("/", "a"), "/a");
        assert_eq!(child("/a", "b"), "/a/b");
    }
}
