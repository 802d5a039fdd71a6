//! What the ledger is told of a write: before it is sent, and when its outcome is known.
//!
//! Each ephemeral znode is in the ledger before its create is sent.

use super::deletions::Deleting;
use super::failure::Failure;
use super::janitor::find_named;
use super::ledger::{EntryId, Naming, Trace, Znode};
use super::named::{Creating, Creation, CreationId};
use super::persistent::{Unanswered, persistent_room};
use super::request::{CreateMode, Reply, Request, Stat, Write, Written};
use super::seat::Seat;

/// The `czxid` of a znode whose metadata the server has not told.
pub(super) const UNTOLD: i64 = 0;

/// What the ledger must be told when a write is answered. Dropped undecided, it leaves the write's
/// outcome open.
#[derive(Debug)]
pub(super) enum Ticket<'a> {
    /// An ephemeral znode is created under a given name.
    Creates { path: String, entry: EntryId, creating: Creating },
    /// A znode is deleted; the `czxid` is that of a znode of the ledger.
    Deletes { path: String, own: Option<i64>, deleting: Deleting, expected: Expected<'a> },
    /// A znode of the ledger that has this `czxid` is set at a given version.
    Sets { path: String, czxid: i64, version: i32 },
    /// A persistent znode is created by that part of the request.
    Persists { part: usize, unanswered: Unanswered<'a> },
}

impl Ticket<'_> {
    /// Whether the write is about a znode that tells what became of it, or of a write before it.
    pub(super) fn speaks(&self) -> bool {
        match self {
            Ticket::Creates { .. } | Ticket::Sets { .. } | Ticket::Deletes { .. } => true,
            Ticket::Persists { .. } => false,
        }
    }

    /// The ephemeral znode that the write creates under a given name.
    fn creates(&self) -> Option<&str> {
        match self {
            Ticket::Creates { path, .. } => Some(path),
            Ticket::Deletes { .. } | Ticket::Sets { .. } | Ticket::Persists { .. } => None,
        }
    }

    /// The write is about to be sent.
    pub(super) fn note_sent(&mut self) {
        if let Ticket::Deletes { expected, .. } = self {
            expected.sent();
        }
    }
}

/// The deletion of a claim's znode that is no loss. Dropped undecided, the claim stands as long as
/// its watch says so.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    seat: &'a Seat,
    path: Option<String>,
    is_sent: bool,
}

impl<'a> Expected<'a> {
    /// None, and nothing has happened, if something depends on the claim that it gives up.
    fn begin(seat: &'a Seat, path: &str, giving_up: GivingUp) -> Option<Self> {
        let is_expected = seat.expect_deletion(path, giving_up);
        is_expected.then(|| Expected { seat, path: Some(path.to_owned()), is_sent: false })
    }

    /// It is about to be sent.
    fn sent(&mut self) {
        self.is_sent = true;
        self.path.iter().for_each(|path| self.seat.deletion_sent(path));
    }

    /// It happened.
    fn decided(mut self) {
        self.path = None;
    }

    /// It was not sent, or was refused.
    fn failed(mut self) {
        if std::mem::take(&mut self.is_sent) {
            self.path.iter().for_each(|path| self.seat.deletion_refused(path));
        }
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        let Some(path) = self.path.take() else { return };
        if self.is_sent {
            self.seat.ledger().put_in_question(&path);
        }
        self.seat.deletion_over(&path);
    }
}

/// What becomes of a claim when a write deletes its znodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivingUp {
    /// It ends, and what depends on it has ended before.
    TheClaim,
    /// Other znodes take their place in the same transaction, and what depends on it goes on.
    ItsZnodes,
}

/// Why no ticket was opened.
enum Hindrance {
    /// It is open what became of another participant's create of that name.
    Open(String),
    /// Something depends on the claim that the deletion of this znode gives up.
    Depended(String),
    Refused(Failure),
}

impl Seat {
    /// Waits until nothing depends on the znodes that the requests delete, and finds out what
    /// became of earlier creates of the names that they create.
    pub(super) async fn before_sending(
        &self,
        requests: &[Request],
        giving_up: GivingUp,
    ) -> Result<(), Failure> {
        let persistent = requests.iter().flat_map(writes).map(persistent_room).sum();
        self.check_persistent(persistent).await?;
        for write in requests.iter().flat_map(writes) {
            match write {
                Write::Delete { path, .. } if giving_up == GivingUp::TheClaim => {
                    self.before_deletion(path).await;
                }
                Write::Create { path, mode: CreateMode::Ephemeral, .. } => {
                    self.settle_named(path).await?;
                }
                Write::Delete { .. }
                | Write::Create { .. }
                | Write::SetData { .. }
                | Write::Check { .. } => {}
            }
        }
        Ok(())
    }

    /// Looks what became of this participant's create of that name, if its reply was lost.
    pub(super) async fn settle_named(&self, path: &str) -> Result<(), Failure> {
        let Some((_, creation)) = self.ledger().pending(path) else { return Ok(()) };
        // Boxed, as all that is rare: a future has room for every branch.
        let found = Box::pin(find_named(&self.core, path, creation)).await?;
        self.note_finding(path, found);
        Ok(())
    }

    /// Enters what was found where a create was not answered, or not in full.
    pub(super) fn note_finding(&self, path: &str, found: Option<Stat>) {
        let Some((entry, creation)) = self.ledger().pending(path) else { return };
        match found {
            Some(Stat { czxid, .. }) => {
                self.note_created((entry, creation), path.to_owned(), czxid);
            }
            None => {
                self.core.named.strike(path, creation);
                self.ledger().take(entry);
            }
        }
    }

    fn note_created(&self, (entry, creation): (EntryId, CreationId), path: String, czxid: i64) {
        self.core.named.settle(&path, creation, czxid);
        let znode = Znode { path: path.clone(), czxid, naming: Naming::Given };
        let earlier = self.ledger().known(entry, znode).filter(|earlier| *earlier != czxid);
        if let Some(earlier) = earlier {
            self.core.named.forget(&path, earlier);
        }
    }

    /// Writes down what the requests may create or delete. If one of them is refused here, none is
    /// sent, and nothing is left in the ledger. Where another participant of this session is just
    /// creating one of the names, waits for the outcome of that.
    pub(super) async fn open_tickets(
        &self,
        requests: &[Request],
        giving_up: GivingUp,
    ) -> Result<Vec<Vec<Ticket<'_>>>, Failure> {
        loop {
            match self.try_open_tickets(requests, giving_up) {
                Ok(tickets) => return Ok(tickets),
                Err(Hindrance::Refused(failure)) => return Err(failure),
                // Boxed, as it is rare: a future has room for every branch.
                Err(Hindrance::Open(path)) => Box::pin(self.await_creation(&path)).await?,
                Err(Hindrance::Depended(path)) => Box::pin(self.before_deletion(&path)).await,
            }
        }
    }

    /// Waits for the outcome of another participant's create. Where that has stopped waiting for the
    /// reply, looks in its place: nobody knows when it will.
    ///
    /// Nothing is in the ledger meanwhile, so two that wait for each other do not wait for ever.
    async fn await_creation(&self, path: &str) -> Result<(), Failure> {
        match self.core.named.open(path) {
            None => Ok(()),
            Some((_, Creation::Unanswered)) => self.look_in_its_place(path).await,
            Some(_) => {
                let outcome = self.core.named.until_not_under_way(path);
                let outcome = self.core.lost().run_until_cancelled(outcome).await;
                outcome.ok_or(Failure::SessionLost)
            }
        }
    }

    async fn look_in_its_place(&self, path: &str) -> Result<(), Failure> {
        let Some((id, Creation::Unanswered)) = self.core.named.open(path) else { return Ok(()) };
        let found = find_named(&self.core, path, id).await?;
        self.core.named.found(path, id, found.map(|stat| stat.czxid));
        Ok(())
    }

    fn try_open_tickets(
        &self,
        requests: &[Request],
        giving_up: GivingUp,
    ) -> Result<Vec<Vec<Ticket<'_>>>, Hindrance> {
        let mut all: Vec<Vec<Ticket<'_>>> = Vec::with_capacity(requests.len());
        for request in requests {
            let mut tickets = Vec::new();
            for (part, write) in writes(request).iter().enumerate() {
                match self.open_ticket(part, write, giving_up) {
                    Ok(ticket) => tickets.extend(ticket),
                    Err(hindrance) => {
                        all.push(tickets);
                        all.into_iter().for_each(|tickets| self.void(tickets));
                        return Err(hindrance);
                    }
                }
            }
            all.push(tickets);
        }
        Ok(all)
    }

    fn open_ticket(
        &self,
        part: usize,
        write: &Write,
        giving_up: GivingUp,
    ) -> Result<Option<Ticket<'_>>, Hindrance> {
        Ok(Some(match write {
            Write::Create { path, mode: CreateMode::Ephemeral, .. } => self.begin_named(path)?,
            Write::Create { mode: CreateMode::EphemeralSequential, .. } => {
                return Err(Hindrance::Refused(Failure::Invalid(
                    "an ephemeral sequential znode is created by `contend` only: without a UUID \
                     in its name a lost reply would orphan it"
                        .to_owned(),
                )));
            }
            Write::Delete { path, .. } => {
                let expected = Expected::begin(self, path, giving_up);
                Ticket::Deletes {
                    expected: expected.ok_or_else(|| Hindrance::Depended(path.clone()))?,
                    path: path.clone(),
                    own: self.ledger().find(path).map(|znode| znode.czxid),
                    deleting: Deleting::begin(&self.core, path),
                }
            }
            Write::SetData { path, version: Some(version @ 0..), .. } => {
                let own = self.ledger().find(path).map(|znode| znode.czxid);
                let sets = |czxid| Ticket::Sets { path: path.clone(), czxid, version: *version };
                return Ok(own.map(sets));
            }
            Write::Create { .. } | Write::SetData { .. } | Write::Check { .. } => {
                let unanswered = self.unanswered(write);
                return Ok(unanswered.map(|unanswered| Ticket::Persists { part, unanswered }));
            }
        }))
    }

    fn begin_named(&self, path: &str) -> Result<Ticket<'_>, Hindrance> {
        self.check_room(1).map_err(Hindrance::Refused)?;
        let Some(creating) = Creating::begin(&self.core, path) else {
            let is_own = self.ledger().pending(path).is_some();
            return Err(match is_own {
                true => Hindrance::Refused(Failure::Invalid(format!(
                    "{path} is created twice in one request: nobody could tell the two apart"
                ))),
                false => Hindrance::Open(path.to_owned()),
            });
        };
        let trace = Trace::Named { path: path.to_owned(), creation: creating.id() };
        let entry = self.ledger().open(trace, self.core.standing());
        Ok(Ticket::Creates { path: path.to_owned(), entry, creating })
    }

    /// Takes back what was written down for requests that were not sent, or were refused.
    pub(super) fn void(&self, tickets: Vec<Ticket<'_>>) {
        for ticket in tickets {
            match ticket {
                Ticket::Creates { path, entry, creating } => {
                    self.ledger().take(entry);
                    self.core.named.strike(&path, creating.id());
                    drop(creating);
                }
                Ticket::Persists { unanswered, .. } => unanswered.decided(),
                Ticket::Deletes { expected, .. } => expected.failed(),
                Ticket::Sets { .. } => {}
            }
        }
    }

    /// Enters the answer to a write into the ledger.
    pub(super) fn settle(&self, answer: &Result<Reply, Failure>, tickets: Vec<Ticket<'_>>) {
        match answer {
            Ok(reply) => {
                let created = tickets.iter().filter_map(Ticket::creates).map(str::to_owned);
                let created: Vec<_> = created.collect();
                for ticket in tickets {
                    self.settle_done(ticket, reply, &created);
                }
            }
            // The znode may be there: its entry stays pending, and is settled by looking.
            Err(Failure::OutcomeUnknown | Failure::SessionLost) => drop(tickets),
            Err(_) => self.void(tickets),
        }
    }

    /// A request of this ticket was carried out, and created these ephemeral znodes.
    fn settle_done(&self, ticket: Ticket<'_>, reply: &Reply, created: &[String]) {
        match ticket {
            Ticket::Deletes { path, own, deleting, expected } => {
                deleting.done();
                expected.decided();
                self.persistent().forget(&path);
                // Where the deleted znode was somebody else's, the request may have put an own one in its
                // place, and that one stands.
                if own.is_some() || !created.contains(&path) {
                    self.gone(&path);
                }
            }
            Ticket::Persists { part, unanswered } => {
                unanswered.decided();
                written(reply).get(part).into_iter().for_each(|it| self.persists(it));
            }
            Ticket::Sets { .. } => {}
            Ticket::Creates { path, entry, creating } => {
                let created = written(reply).iter().find_map(|it| match it {
                    Written::Created(created, stat) if *created == path => Some(stat.czxid),
                    _ => None,
                });
                // Of a part of a multi it is not told, and has to be looked for.
                if let Some(czxid) = created.filter(|czxid| *czxid != UNTOLD) {
                    self.note_created((entry, creating.id()), path, czxid);
                }
                drop(creating);
            }
        }
    }

    /// Strikes a znode out of the ledger and the claim, because it is gone.
    pub(super) fn gone(&self, path: &str) {
        let znode = self.ledger().find(path).cloned();
        if let Some(znode) = znode.as_ref().filter(|znode| znode.naming == Naming::Given) {
            self.core.named.forget(path, znode.czxid);
        }
        self.ledger().forget(path);
        self.end_claim(path, znode.map(|znode| znode.czxid));
        self.give_back_room();
    }

    /// Watching the contenders that are left takes no more room than they need.
    pub(super) fn give_back_room(&self) {
        self.account.release(|| self.ledger().longest_contender());
    }
}

fn written(reply: &Reply) -> &[Written] {
    match reply {
        Reply::Written(written) => std::slice::from_ref(written),
        Reply::Multi(written) => written,
        _ => &[],
    }
}

/// The writes that a request is made of.
pub(super) fn writes(request: &Request) -> &[Write] {
    match request {
        Request::Write(write) => std::slice::from_ref(write),
        Request::Multi(writes) => writes,
        _ => &[],
    }
}
