//! Writes of one participant. Each ephemeral znode is in the ledger before its create is sent.

use std::sync::PoisonError;

use super::core::unexpected;
use super::deletions::Deleting;
use super::failure::Failure;
use super::janitor::find_named;
use super::ledger::{EntryId, Naming, Trace, Znode};
use super::persistent::persistent_room;
use super::request::{CreateMode, Reply, Request, Stat, Watching, Write, Written};
use super::seat::Seat;

/// The `czxid` of a znode whose metadata the server has not told.
const UNTOLD: i64 = 0;

/// What the ledger must be told when a write is answered.
#[derive(Debug)]
pub(super) enum Ticket {
    /// An ephemeral znode is created under a given name.
    Creates { path: String, entry: EntryId },
    /// A znode is deleted; perhaps it is in the ledger.
    Deletes { path: String, deleting: Deleting },
    /// A persistent znode is created by that part of the request.
    Persists { part: usize },
}

impl Seat {
    pub(super) async fn write(&self, write: Write) -> Result<Written, Failure> {
        let request = Request::Write(write);
        self.before_sending(std::slice::from_ref(&request)).await?;
        let tickets = self.open_ticket(&request)?;
        let answer = self.core.send(request).await;
        match self.settle(answer, tickets)? {
            Reply::Written(written) => Ok(written),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) async fn multi(&self, writes: Vec<Write>) -> Result<Reply, Failure> {
        if writes.is_empty() {
            return Ok(Reply::Multi(Vec::new()));
        }
        let request = Request::Multi(writes);
        self.before_sending(std::slice::from_ref(&request)).await?;
        let tickets = self.open_ticket(&request)?;
        let answer = self.core.send(request).await;
        match self.settle(answer, tickets)? {
            // Boxed, as it is rare: a future has room for every branch.
            Reply::Multi(written) => Ok(Reply::Multi(Box::pin(self.identify(written)).await?)),
            other => Err(unexpected(&other)),
        }
    }

    /// Waits until nothing depends on the znodes that the requests delete, and finds out what
    /// became of earlier creates of the names that they create.
    pub(super) async fn before_sending(&self, requests: &[Request]) -> Result<(), Failure> {
        let persistent = requests.iter().flat_map(writes).map(persistent_room).sum();
        self.check_persistent(persistent).await?;
        for write in requests.iter().flat_map(writes) {
            match write {
                Write::Delete { path, .. } => self.before_deletion(path).await,
                Write::Create { path, mode: CreateMode::Ephemeral, .. } => {
                    self.settle_named(path).await?;
                }
                Write::Create { .. } | Write::SetData { .. } | Write::Check { .. } => {}
            }
        }
        Ok(())
    }

    /// Looks what became of this participant's create of that name, if its reply was lost.
    pub(super) async fn settle_named(&self, path: &str) -> Result<(), Failure> {
        if self.ledger().pending(path).is_none() {
            return Ok(());
        }
        // Boxed, as all that is rare: a future has room for every branch.
        let found = Box::pin(find_named(&self.core, path, self.id)).await?;
        self.note_finding(path, found);
        Ok(())
    }

    /// Enters what was found where a create was not answered, or not in full.
    fn note_finding(&self, path: &str, found: Option<Stat>) {
        let Some(entry) = self.ledger().pending(path) else { return };
        let mut named = self.core.named.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Some(Stat { czxid, .. }) => {
                named.settle(path, self.id, czxid);
                let znode = Znode { path: path.to_owned(), czxid, naming: Naming::Given };
                self.ledger().known(entry, znode);
            }
            None => {
                named.forget(path, self.id, None);
                self.ledger().take(entry);
            }
        }
    }

    /// Writes down what the requests may create or delete. If one of them is refused here, none is
    /// sent, and nothing is left in the ledger.
    pub(super) fn open_tickets(&self, requests: &[Request]) -> Result<Vec<Vec<Ticket>>, Failure> {
        let mut all: Vec<Vec<Ticket>> = Vec::with_capacity(requests.len());
        for request in requests {
            match self.open_ticket(request) {
                Ok(tickets) => all.push(tickets),
                Err(refused) => {
                    all.into_iter().for_each(|tickets| self.void(tickets));
                    return Err(refused);
                }
            }
        }
        Ok(all)
    }

    fn open_ticket(&self, request: &Request) -> Result<Vec<Ticket>, Failure> {
        let mut tickets = Vec::new();
        for (part, write) in writes(request).iter().enumerate() {
            let opened = match write {
                Write::Create { path, mode: CreateMode::Ephemeral, .. } => self.begin_named(path),
                Write::Create { mode: CreateMode::EphemeralSequential, .. } => {
                    Err(Failure::Invalid(
                        "an ephemeral sequential znode is created by `contend` only: without a \
                         UUID in its name a lost reply would orphan it"
                            .to_owned(),
                    ))
                }
                Write::Delete { path, .. } => {
                    self.expect_deletion(path);
                    let deleting = Deleting::begin(&self.core, path);
                    Ok(Ticket::Deletes { path: path.clone(), deleting })
                }
                write if persistent_room(write) > 0 => Ok(Ticket::Persists { part }),
                Write::Create { .. } | Write::SetData { .. } | Write::Check { .. } => continue,
            };
            match opened {
                Ok(ticket) => tickets.push(ticket),
                Err(refused) => {
                    self.void(tickets);
                    return Err(refused);
                }
            }
        }
        Ok(tickets)
    }

    fn begin_named(&self, path: &str) -> Result<Ticket, Failure> {
        self.check_room(1)?;
        let mut named = self.core.named.lock().unwrap_or_else(PoisonError::into_inner);
        if !named.begin(path, self.id) {
            return Err(Failure::OverLimit(format!(
                "another participant of this host is just creating {path}: try again"
            )));
        }
        let trace = Trace::Named { path: path.to_owned() };
        let entry = self.ledger().open(trace, self.core.standing());
        Ok(Ticket::Creates { path: path.to_owned(), entry })
    }

    /// Takes back what was written down for requests that were not sent, or were refused.
    pub(super) fn void(&self, tickets: Vec<Ticket>) {
        for ticket in tickets {
            match ticket {
                Ticket::Creates { path, entry } => {
                    self.ledger().take(entry);
                    let mut named = self.core.named.lock().unwrap_or_else(PoisonError::into_inner);
                    named.forget(&path, self.id, None);
                }
                Ticket::Deletes { path, .. } => self.deletion_failed(&path),
                Ticket::Persists { .. } => {}
            }
        }
    }

    /// Enters the answer to a write into the ledger.
    pub(super) fn settle(
        &self,
        answer: Result<Reply, Failure>,
        tickets: Vec<Ticket>,
    ) -> Result<Reply, Failure> {
        match &answer {
            Ok(reply) => {
                for ticket in tickets {
                    self.settle_done(ticket, reply);
                }
            }
            // The znode may be there: its entry stays pending, and is settled by looking.
            Err(Failure::OutcomeUnknown | Failure::SessionLost) => {
                for ticket in tickets {
                    if let Ticket::Deletes { path, .. } = ticket {
                        self.deletion_failed(&path);
                    }
                }
            }
            Err(_) => self.void(tickets),
        }
        answer
    }

    fn settle_done(&self, ticket: Ticket, reply: &Reply) {
        match ticket {
            Ticket::Deletes { path, deleting } => {
                deleting.done();
                self.persistent().forget(&path);
                self.gone(&path);
            }
            Ticket::Persists { part } => {
                written(reply).get(part).into_iter().for_each(|it| self.persists(it));
            }
            Ticket::Creates { path, entry } => {
                let written = written(reply);
                let created = written.iter().find_map(|it| match it {
                    Written::Created(created, stat) if *created == path => Some(stat.czxid),
                    _ => None,
                });
                // Of a part of a multi it is not told, and has to be looked for.
                let created = created.filter(|czxid| *czxid != UNTOLD);
                if let Some(czxid) = created {
                    let mut named = self.core.named.lock().unwrap_or_else(PoisonError::into_inner);
                    named.settle(&path, self.id, czxid);
                    self.ledger().known(entry, Znode { path, czxid, naming: Naming::Given });
                }
            }
        }
    }

    /// Servers do not tell the metadata of what a `multi` creates (ZOOKEEPER-4026, ZOOKEEPER-4667):
    /// reads that of the ephemeral ones, which are in the ledger and must be known again.
    async fn identify(&self, mut written: Vec<Written>) -> Result<Vec<Written>, Failure> {
        for it in &mut written {
            let Written::Created(path, stat) = it else { continue };
            if stat.czxid != UNTOLD || self.ledger().pending(path).is_none() {
                continue;
            }
            // The server that answered has the znode, so there is nothing to catch up with.
            let request = Request::Exists(path.clone(), Watching::No);
            let found = match self.core.ask(request).await? {
                Reply::Exists(found, _) => found,
                other => return Err(unexpected(&other)),
            };
            let found = found.filter(|found| found.ephemeral_owner == self.core.id());
            self.note_finding(path, found);
            // Whoever deleted it meanwhile has left nothing to tell of.
            *stat = found.unwrap_or_default();
        }
        Ok(written)
    }

    /// Strikes a znode out of the ledger and the claim, because it is gone.
    pub(super) fn gone(&self, path: &str) {
        let znode = self.ledger().find(path).cloned();
        if let Some(znode) = znode.filter(|znode| znode.naming == Naming::Given) {
            let mut named = self.core.named.lock().unwrap_or_else(PoisonError::into_inner);
            named.forget(path, self.id, Some(znode.czxid));
        }
        self.ledger().forget(path);
        self.end_claim(path);
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

fn writes(request: &Request) -> &[Write] {
    match request {
        Request::Write(write) => std::slice::from_ref(write),
        Request::Multi(writes) => writes,
        _ => &[],
    }
}
