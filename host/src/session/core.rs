//! What all parts of one session share: the way to the ensemble, its bounds and its state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::authority::Asked;
use super::bounds;
use super::budget::Budget;
use super::contact::{self, Authority, Claimed, Contact, ContactRule, Standing};
use super::deletions::Deletions;
use super::ensemble::{Connection, Ensemble};
use super::failure::{Failure, Refusal};
use super::janitor::Job;
use super::named::NamedZnodes;
use super::omission::Omission;
use super::request::{Acl, Reply, Request, Stat, Watching};
use super::state::{SessionLoss, SessionState};
use super::timing::Timing;
use super::traffic::{Traffic, reply_size};
use super::turns::Turns;
use super::watched::WatchedZnodes;
use crate::clock::{Boottime, Clock};

/// What all parts of one session share.
#[derive(Debug)]
pub(super) struct Core {
    ensemble: Box<dyn Ensemble>,
    acl: Acl,
    clock: Arc<dyn Clock>,
    contact: Arc<Mutex<Contact>>,
    state: watch::Sender<SessionState>,
    lost: CancellationToken,
    connection: watch::Receiver<Connection>,
    /// The connection as it was when anybody looked last.
    looked_at: Mutex<watch::Receiver<Connection>>,
    traffic: Traffic,
    /// Unbounded, because it must never refuse; bounded all the same by the ledgers it comes from.
    pub(super) janitor: mpsc::UnboundedSender<Job>,
    pub(super) budget: Arc<Budget>,
    pub(super) named: NamedZnodes,
    pub(super) turns: Turns,
    watched: Mutex<WatchedZnodes>,
    deletions: Mutex<Deletions>,
    pub(super) deletion_answered: Notify,
    omission: Option<Omission>,
}

impl Core {
    /// A session that was just opened, by a request sent at `opened`.
    pub(super) fn new(
        ensemble: Box<dyn Ensemble>,
        acl: Acl,
        clock: Arc<dyn Clock>,
        opened: Boottime,
        janitor: mpsc::UnboundedSender<Job>,
    ) -> Self {
        let timing = Timing::new(ensemble.timeout());
        Core {
            connection: ensemble.connection(),
            looked_at: Mutex::new(ensemble.connection()),
            ensemble,
            acl,
            clock,
            contact: Arc::new(Mutex::new(Contact::new(timing, ContactRule::Quorum, opened))),
            state: watch::channel(SessionState::Connected).0,
            lost: CancellationToken::new(),
            traffic: Traffic::default(),
            janitor,
            budget: Arc::default(),
            named: NamedZnodes::default(),
            turns: Turns::default(),
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

    /// The times that the session is judged by, as far as they are known.
    pub(super) fn timing(&self) -> Timing {
        self.contact().timing()
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

    /// What is known of contact with the ensemble.
    pub(super) fn contact(&self) -> MutexGuard<'_, Contact> {
        contact::lock(&self.contact)
    }

    /// How long it is that the newest answered request that counts as contact was sent.
    pub(super) fn silence(&self) -> Duration {
        let newest = self.contact().newest();
        self.now().saturating_duration_since(newest)
    }

    /// Until when this host may believe in the session without hearing more.
    pub(super) fn deadline(&self) -> Boottime {
        self.contact().deadline()
    }

    /// For an ephemeral znode that is about to be created.
    pub(super) fn standing(&self) -> Standing {
        Standing::new(&self.contact)
    }

    /// For a znode that is claimed from now on.
    pub(super) fn claimed(&self) -> Claimed {
        Claimed::new(&self.contact)
    }

    /// Whether the session has to be given up: what is held may not be held any more. A session of
    /// which nothing is held is given up by the ensemble, or by a client that has found no server for much
    /// longer than the timeout, so that those in line keep their places while the ensemble elects a leader.
    pub(super) fn is_overdue(&self) -> bool {
        let contact = self.contact();
        contact.has_claims() && self.now() >= contact.deadline()
    }

    /// To be called before it is said that something is held. Asks for contact if the session counts from
    /// longer ago than a heartbeat: who waited long may be told of its turn by a server that has lost the
    /// others, and what is held right after a long silence would be given up at once.
    ///
    /// Asks as well if the session has come to another server that has answered no write since. The event by
    /// which somebody learned of its turn came from the server before. The new one may not have got that far,
    /// and may still show a znode that was gone by then. When contact was asked for, the watches of what was
    /// gone have fired.
    ///
    /// # Errors
    /// `SessionLost` if there is none.
    pub(super) async fn assure_contact(&self) -> Result<(), Failure> {
        if self.is_fresh() || self.omits(Omission::GrantOnOldContact) {
            return Ok(());
        }
        // Boxed, as it is rare: a future has room for every branch.
        Box::pin(self.ask_for_contact()).await
    }

    /// Whether something may be said to be held without asking for contact first.
    fn is_fresh(&self) -> bool {
        // The monitor may not have been woken yet.
        self.look_at_connection();
        let (since, may_be_behind) = {
            let contact = self.contact();
            (contact.since(), contact.may_be_behind())
        };
        let age = self.now().saturating_duration_since(since);
        age < self.timing().heartbeat() && !may_be_behind && self.is_live()
    }

    /// Asks until there is contact. After a long silence one answer is not enough: the leader may
    /// have been told of nothing yet, and end the session any moment.
    ///
    /// Contact may be older than the question: right before a heartbeat is due, what the leader must know
    /// reaches back to a little before it. Where a round trip takes longer than a heartbeat, no answer is
    /// that fresh, and one that reaches back to the question is the most that can be had.
    async fn ask_for_contact(&self) -> Result<(), Failure> {
        let begun = self.now();
        loop {
            // A `sync` behind it tells what the leader knows.
            for request in [Request::no_change(), Request::Sync("/".to_owned())] {
                match self.ask(request).await {
                    Ok(_) => {}
                    // One that the ensemble agrees on is contact as well; another one may pass.
                    Err(Failure::Refused { refusal, .. }) => {
                        tracing::debug!(%refusal, "contact was asked for and refused");
                    }
                    Err(other) => return Err(other),
                }
                let reaches_back = self.contact().since() >= begun;
                if self.is_fresh() || (reaches_back && self.is_live()) {
                    return Ok(());
                }
            }
            let pause = tokio::time::sleep(self.timing().heartbeat() / 2);
            self.lost.run_until_cancelled(pause).await.ok_or(Failure::SessionLost)?;
        }
    }

    /// Whether the session may be believed in at this very moment. Where something is held, a no is
    /// for good: the caller acts on it, so no later answer may revive the session.
    pub(super) fn is_live(&self) -> bool {
        if self.omits(Omission::LookAfterPause) {
            return !self.lost.is_cancelled();
        }
        if self.is_overdue() {
            self.lose(SessionLoss::Deadline);
        }
        !self.lost.is_cancelled() && self.now() < self.deadline()
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

    /// Completes when the session is lost and nothing can be left of what depended on its claims. This host
    /// tells of a loss at its deadline, and then a command or an app has the margin to end. With any other
    /// loss the ensemble has ended the session already, or nothing is held.
    pub(super) async fn until_spent(&self) {
        self.lost.cancelled().await;
        let loss = *self.state.borrow();
        if loss == SessionState::Lost(SessionLoss::Deadline) {
            let spent = self.deadline() + self.timing().margin();
            tokio::time::sleep(spent.saturating_duration_since(self.now())).await;
        }
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
    /// lost, or too much was answered, no further requests are handed to the crate. Those that the
    /// crate has, but had not written when the connection was lost, go on the next connection: a
    /// request may be done though one before it was not.
    ///
    /// # Errors
    /// None of them was sent.
    pub(super) async fn send_all(
        &self,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        self.send_all_noting(requests, || {}).await
    }

    /// As [`send_all`](Core::send_all). Calls `sending` once, when the first of them are about to be sent.
    ///
    /// # Cancellation
    /// Where `sending` was not called, none was sent.
    pub(super) async fn send_all_noting(
        &self,
        requests: Vec<Request>,
        sending: impl FnOnce(),
    ) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        for request in &requests {
            bounds::check_size(request)?;
        }
        let mut rest = requests;
        let mut answers = self.send_window(&mut rest, sending).await?;
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
                Box::pin(self.send_window(&mut rest, || {})).await
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
        sending: impl FnOnce(),
    ) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        self.until_connected().await?;
        let room = self.traffic.enter(requests).await?;
        sending();
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
        let asked = Asked::of(&request);
        let reply = self.ensemble.submit(request, self.acl);
        let reply = tokio::time::timeout(self.timing().timeout(), reply);
        let answer = match self.lost.run_until_cancelled(reply).await {
            None => return Err(Failure::SessionLost),
            Some(Err(_elapsed)) => return Err(Failure::OutcomeUnknown),
            Some(Ok(answer)) => answer,
        };
        if let Some(authority) = asked.authority(&answer, |rule| self.omits(rule)) {
            self.contact().answered(authority, sent, self.now());
        }
        answer
    }

    pub(super) fn deletions(&self) -> MutexGuard<'_, Deletions> {
        self.deletions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watched(&self) -> MutexGuard<'_, WatchedZnodes> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection for contact: what a session without [`Omission::ContactDeadline`] does.
    pub(super) fn believe(&self) {
        let now = self.now();
        self.contact().answered(Authority::Quorum, now, now);
    }

    /// Takes a server's word that the session is valid for contact: what a session without
    /// [`Omission::AnswerAfterTakeover`] does.
    fn believe_takeover(&self) {
        let now = self.now();
        self.contact().taken_over(Some(now), now);
        self.believe();
    }

    /// The connection as it is now. Notes where a server has taken the session over since anybody looked last:
    /// a connection that was lost and made again meanwhile may look like the one before.
    pub(super) fn look_at_connection(&self) -> Connection {
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let (connection, is_news) = {
            let current = looked_at.borrow_and_update();
            (*current, current.has_changed())
        };
        if let Connection::Up { stood } = connection
            && is_news
        {
            // After the look: what is sent from now on goes to that server, or to a later one.
            match self.omits(Omission::AnswerAfterTakeover) {
                true => self.believe_takeover(),
                false => {
                    let now = self.now();
                    self.contact().taken_over(stood, now);
                }
            }
        }
        connection
    }

    /// Whether there is a connection now.
    pub(super) fn is_connected(&self) -> bool {
        self.connection.borrow().is_up()
    }

    async fn until_connected(&self) -> Result<(), Failure> {
        if self.is_connected() && !self.lost.is_cancelled() {
            return Ok(());
        }
        let mut connection = self.connection.clone();
        // Boxed, as it is rare: a future has room for every branch.
        Box::pin(async move {
            let known = connection.wait_for(|state| *state != Connection::Down);
            match self.lost.run_until_cancelled(known).await {
                Some(Ok(state)) if state.is_up() => Ok(()),
                _ => Err(Failure::SessionLost),
            }
        })
        .await
    }

    /// The crate fails requests a moment before it says that the connection is gone. Gives it that
    /// moment, so that nobody asks again on a connection that is known to be lost.
    pub(super) async fn after_connection_loss(&self) {
        tokio::task::yield_now().await;
    }

    /// Has the server catch up with the ensemble: what is read from it next shows all that became of what
    /// this session has sent before.
    ///
    /// A `sync` would not do. A leader that is cut off and does not know it yet answers one at once
    /// (ZOOKEEPER-1675), from a tree that may lack what the new leader has committed meanwhile. Nobody
    /// answers a transaction but a majority, and a server answers its own client's only once it has
    /// applied it.
    pub(super) async fn catch_up(&self) -> Result<(), Failure> {
        if self.omits(Omission::CatchUpBeforeLookUp) {
            return Ok(());
        }
        match self.ask(Request::no_change()).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused { refusal, .. }) if refusal.is_of_the_tree() => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Catches up and reads a znode's metadata: what a write whose reply was lost has really done.
    pub(super) async fn look(&self, path: &str) -> Result<Option<Stat>, Failure> {
        self.catch_up().await?;
        self.stat(path).await
    }

    /// As [`look`](Core::look), for a znode whose create was answered: no server that lacks it takes this
    /// session, so a `sync` is enough.
    pub(super) async fn look_at_known(&self, path: &str) -> Result<Option<Stat>, Failure> {
        if !self.omits(Omission::CatchUpBeforeLookUp) {
            self.ask(Request::Sync(path.to_owned())).await?;
        }
        self.stat(path).await
    }

    /// A znode's metadata, if it exists, as the server knows it.
    pub(super) async fn stat(&self, path: &str) -> Result<Option<Stat>, Failure> {
        let (stat, _) = self.ask(Request::Exists(path.to_owned(), Watching::No)).await?.exists()?;
        Ok(stat)
    }

    /// A znode's data and metadata, if it exists, as the server knows them.
    pub(super) async fn data(&self, path: &str) -> Result<Option<(Vec<u8>, Stat)>, Failure> {
        let reply = self.ask(Request::GetData(path.to_owned(), Watching::No)).await;
        unless_gone(reply.and_then(Reply::data).map(|(data, stat, _)| (data, stat)))
    }

    /// The names of a znode's children, if it exists, as the server knows them.
    pub(super) async fn children(&self, path: &str) -> Result<Option<Vec<String>>, Failure> {
        let reply = self.ask(Request::GetChildren(path.to_owned(), Watching::No)).await;
        unless_gone(reply.and_then(Reply::children).map(|(names, ..)| names))
    }
}

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

/// Nothing, where there is no such znode.
fn unless_gone<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::stand_in::StandIn;

    #[tokio::test(start_paused = true)]
    async fn contact_that_is_nearly_as_new_as_the_question_is_enough() {
        let timing = StandIn::open().core.timing();
        // What the leader must know of reaches back to before the question, and not by a heartbeat.
        let silent = timing.untold() + timing.heartbeat() * 3 / 2;
        let session = StandIn::open_for(silent);
        // tidy: a test's paused clock, which only a pause between two questions moves
        let begun = tokio::time::Instant::now();
        session.core.assure_contact().await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO, "there was a pause between two questions");
    }

    #[tokio::test(start_paused = true)]
    async fn contact_that_is_older_than_a_heartbeat_is_not_enough() {
        let timing = StandIn::open().core.timing();
        let session = StandIn::open_for(timing.untold() + timing.heartbeat() * 3);
        let assuring = session.core.assure_contact();
        let assuring = tokio::time::timeout(timing.heartbeat() * 2, assuring);
        assert!(assuring.await.is_err(), "no answer tells of anything newer here");
    }

    #[test]
    fn parents_and_children_of_the_root_have_one_slash() {
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/"), None);
        assert_eq!(child("/", "a"), "/a");
        assert_eq!(child("/a", "b"), "/a/b");
    }
}
