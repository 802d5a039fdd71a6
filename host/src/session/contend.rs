//! The protected create: an ephemeral sequential znode whose creation survives a lost reply.
//! "Recoverable Errors and the GUID" in ZooKeeper's recipes, with the session rule that the text
//! leaves out.

use uuid::Uuid;

use super::core::{created, parent};
use super::failure::{Failure, Refusal};
use super::janitor::find_contender;
use super::ledger::{EntryId, Naming, Trace, Znode};
use super::request::{CreateMode, Request, Stat, Write};
use super::seat::Seat;

/// How a UUID is spelled in a znode's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UuidForm {
    /// With hyphens, as Curator does.
    Hyphenated,
    /// Without, as kazoo does.
    Simple,
}

/// A contender's name: `before`, a fresh UUID, `after`, and then the parent's counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContenderName {
    /// What stands before the UUID.
    pub before: String,
    /// How the UUID is spelled.
    pub uuid: UuidForm,
    /// What stands between the UUID and the counter.
    pub after: String,
}

/// Digits of the counter that the server appends, and the sign it has after 2^31 creates.
const COUNTER_BYTES: usize = 11;

/// How often the parent may vanish between being created and being used: the server removes an
/// empty container at any time, but it does not do so again and again.
const PARENT_ATTEMPTS: usize = 10;

impl Seat {
    /// Creates an ephemeral sequential znode below `directory`, and missing parents as containers.
    ///
    /// # Errors
    /// Never `OutcomeUnknown`: a lost reply is settled by looking for the UUID. `OverLimit` before
    /// anything is created.
    ///
    /// # Cancellation
    /// If the future is dropped, the znode is deleted by the janitor.
    pub async fn contend(
        &self,
        directory: &str,
        name: ContenderName,
        data: Vec<u8>,
    ) -> Result<(String, Stat), Failure> {
        self.check_room(1)?;
        let stem = stem(&name, self.core.clock().uuid());
        let path = super::core::child(directory, &stem);
        self.account.reserve(path.len() + COUNTER_BYTES)?;
        let mut attempt = Attempt::open(self, directory, &stem);
        let (path, stat) =
            self.create_contender(&mut attempt, directory, &stem, path, data).await?;
        attempt.succeeded(Znode { path: path.clone(), czxid: stat.czxid, naming: Naming::Unique });
        Ok((path, stat))
    }

    async fn create_contender(
        &self,
        attempt: &mut Attempt<'_>,
        directory: &str,
        stem: &str,
        path: String,
        data: Vec<u8>,
    ) -> Result<(String, Stat), Failure> {
        let mode = CreateMode::EphemeralSequential;
        let request = Request::Write(Write::Create { path, data, mode });
        let mut parents_created = 0;
        loop {
            match self.core.send(request.clone()).await {
                Ok(reply) => return created(reply),
                Err(Failure::OutcomeUnknown) => {
                    let finding = Box::pin(find_contender(&self.core, directory, stem));
                    if let Some(found) = finding.await? {
                        return Ok(found);
                    }
                    // It certainly did not happen, so it may be sent again.
                }
                Err(Failure::Refused { refusal: Refusal::NoNode, .. })
                    if parents_created < PARENT_ATTEMPTS && parent(directory).is_some() =>
                {
                    parents_created += 1;
                    Box::pin(self.core.create_parents(directory)).await?;
                }
                Err(refused) => {
                    if !matches!(refused, Failure::SessionLost) {
                        attempt.refused();
                    }
                    return Err(refused);
                }
            }
        }
    }
}

fn stem(name: &ContenderName, uuid: Uuid) -> String {
    let ContenderName { before, after, .. } = name;
    match name.uuid {
        UuidForm::Hyphenated => format!("{before}{}{after}", uuid.hyphenated()),
        UuidForm::Simple => format!("{before}{}{after}", uuid.simple()),
    }
}

/// A create that is under way. Dropped before it succeeded, for whatever reason, it has the janitor
/// look for the znode.
struct Attempt<'a> {
    seat: &'a Seat,
    entry: Option<EntryId>,
}

impl<'a> Attempt<'a> {
    fn open(seat: &'a Seat, directory: &str, stem: &str) -> Self {
        let trace = Trace::Contender { parent: directory.to_owned(), stem: stem.to_owned() };
        Attempt { seat, entry: Some(seat.ledger().open(trace)) }
    }

    fn succeeded(mut self, znode: Znode) {
        if let Some(entry) = self.entry.take() {
            self.seat.ledger().known(entry, znode);
        }
    }

    /// Nothing was created: every earlier request of this attempt was settled, too.
    fn refused(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.seat.ledger().take(entry);
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let entry = self.entry.take().and_then(|entry| self.seat.ledger().take(entry));
        if let Some(entry) = entry {
            self.seat.discard(entry);
        }
    }
}
