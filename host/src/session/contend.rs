//! The protected create: an ephemeral sequential znode whose creation survives a lost reply.
//! "Recoverable Errors and the GUID" in ZooKeeper's recipes, with the session rule that the text
//! leaves out.

use uuid::Uuid;

use super::core::{child, parent};
use super::failure::{Failure, Refusal};
use super::janitor::find_contender;
use super::ledger::{COUNTER_BYTES, Entry, EntryId, Naming, Trace, Znode};
use super::omission::Omission;
use super::outcome::{ATTEMPTS, lost_too_often};
use super::request::{CreateMode, Reply, Request, Stat, Watching, Write};
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

/// How often the parent may vanish between being created and being used: the server removes an
/// empty container at any time, but it does not do so again and again.
const PARENT_ATTEMPTS: usize = 10;

/// What is asked for right behind a create, in the same round trip.
enum Behind {
    Nothing,
    /// The names of the directory's children.
    Children,
}

/// A contender, and the reply to what was asked for behind its create; none if that was sent on a
/// connection that is lost.
type Created = (String, Stat, Option<Result<Reply, Failure>>);

impl Seat {
    /// Creates an ephemeral sequential znode below `directory`, and missing parents as containers.
    ///
    /// # Errors
    /// Never `OutcomeUnknown`: a lost reply is settled by looking for the UUID. Refused if the connection is
    /// lost with each of ten attempts, as at a server that takes less data. `OverLimit` before the contender
    /// is created, and where the directory's counter is used up; then the znode is gone again.
    ///
    /// # Cancellation
    /// If the future is dropped, the znode is deleted by the janitor.
    pub async fn contend(
        &self,
        directory: &str,
        name: ContenderName,
        data: Vec<u8>,
    ) -> Result<(String, Stat), Failure> {
        let mut attempt = Attempt::open(self, directory, &name)?;
        let (path, stat, _) = attempt.create(data, Behind::Nothing).await?;
        attempt.succeeded(&path, &stat);
        Ok((path, stat))
    }

    /// As [`contend`](Seat::contend), and reads the names of the directory's children and its
    /// metadata behind the create, in the same round trip.
    ///
    /// # Errors
    /// As `contend`. If the children cannot be read, it is the read's error, and the znode is gone.
    ///
    /// # Ordering
    /// The read is carried out after the create, so the new znode is among the children unless
    /// somebody has deleted it: ZooKeeper's "FIFO client order" holds for all requests of a session
    /// (<https://www.usenix.org/conference/usenix-atc-10/zookeeper-wait-free-coordination-internet-scale-systems>,
    /// section 2.3).
    ///
    /// # Cancellation
    /// If the future is dropped, the znode is deleted by the janitor.
    pub async fn contend_and_list(
        &self,
        directory: &str,
        name: ContenderName,
        data: Vec<u8>,
    ) -> Result<((String, Stat), (Vec<String>, Stat)), Failure> {
        let mut attempt = Attempt::open(self, directory, &name)?;
        let sent = self.core.now();
        let (path, stat, listed) = attempt.create(data, Behind::Children).await?;
        let listed = match listed {
            // Read on the connection on which the znode was found, or on a later one.
            None | Some(Err(Failure::OutcomeUnknown)) => {
                Box::pin(self.core.ask(children_of(directory))).await
            }
            Some(listed) => listed,
        };
        match listed.and_then(Reply::children) {
            Ok((names, parent, _)) => {
                attempt.succeeded(&path, &stat);
                self.note_shown(directory, &names, sent);
                Ok(((path, stat), (names, parent)))
            }
            Err(failure) => {
                // The caller is not told of the znode, so nobody else would delete it.
                Box::pin(attempt.withdraw(&path, &stat)).await;
                Err(failure)
            }
        }
    }
}

fn children_of(directory: &str) -> Request {
    Request::GetChildren(directory.to_owned(), Watching::No)
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
    directory: &'a str,
    stem: String,
    entry: Option<EntryId>,
}

impl<'a> Attempt<'a> {
    fn open(seat: &'a Seat, directory: &'a str, name: &ContenderName) -> Result<Self, Failure> {
        seat.check_room(1)?;
        let stem = stem(name, seat.core.clock().uuid());
        // Of earlier ones that are gone, by whatever way.
        seat.give_back_room();
        seat.account.reserve(child(directory, &stem).len() + COUNTER_BYTES)?;
        let trace = Trace::Contender { parent: directory.to_owned(), stem: stem.clone() };
        let entry = Some(seat.ledger().open(trace, seat.core.standing()));
        Ok(Attempt { seat, directory, stem, entry })
    }

    /// Creates the znode. If its counter tells nothing, deletes the znode again.
    async fn create(&mut self, data: Vec<u8>, behind: Behind) -> Result<Created, Failure> {
        let created = self.create_any(data, behind).await?;
        let (path, stat, _) = &created;
        match self.used_up(path) {
            None => Ok(created),
            Some(used_up) => {
                Box::pin(self.withdraw(path, stat)).await;
                Err(used_up)
            }
        }
    }

    async fn create_any(&mut self, data: Vec<u8>, behind: Behind) -> Result<Created, Failure> {
        let Attempt { seat, directory, .. } = *self;
        let (path, mode) = (child(directory, &self.stem), CreateMode::EphemeralSequential);
        let mut requests = vec![Request::Write(Write::Create { path, data, mode })];
        match behind {
            Behind::Nothing => {}
            Behind::Children => requests.push(children_of(directory)),
        }
        let (mut parents_created, mut lost) = (0, 0);
        loop {
            let mut answers = match seat.core.send_all(requests.clone()).await {
                Ok(answers) => answers.into_iter(),
                Err(unsent) => return Err(self.refused(unsent)),
            };
            match answers.next().unwrap_or(Err(Failure::OutcomeUnknown)) {
                Ok(reply) => {
                    let (path, stat) = reply.created()?;
                    return Ok((path, stat, answers.next()));
                }
                Err(Failure::OutcomeUnknown) => {
                    let finding = Box::pin(find_contender(&seat.core, directory, &self.stem));
                    if let Some((path, stat)) = finding.await? {
                        return Ok((path, stat, None));
                    }
                    // It certainly did not happen, so it may be sent again.
                    lost += 1;
                    if lost == ATTEMPTS {
                        return Err(self.refused(lost_too_often()));
                    }
                }
                Err(Failure::Refused { refusal: Refusal::NoNode, .. })
                    if parents_created < PARENT_ATTEMPTS && parent(directory).is_some() =>
                {
                    parents_created += 1;
                    Box::pin(seat.create_parents(directory)).await?;
                }
                Err(refused) => return Err(self.refused(refused)),
            }
        }
    }

    /// Why nobody can stand in line with the name that was given, if its counter does not tell who came
    /// first.
    ///
    /// A server counts the creations below a directory with a signed number of 32 bits. It computes the
    /// next one with an overflow, and then keeps the greater of the two (Apache ZooKeeper's
    /// `DataTree.createNode`). So it hands out 2147483647 again and again, and negative ones to creates
    /// that are under way together.
    fn used_up(&self, path: &str) -> Option<Failure> {
        let Attempt { seat, directory, stem, .. } = self;
        let counter = path.strip_prefix(child(directory, stem).as_str())?;
        let is_used_up = counter.parse().is_ok_and(|it: i32| it < 0 || it == i32::MAX);
        if !is_used_up || seat.core.omits(Omission::CounterCheck) {
            return None;
        }
        let reason = "the directory's counter is used up: ZooKeeper has counted to 2147483647 below it, and \
                      cannot tell who comes first from now on; when nobody stands in line there any more, \
                      delete the directory, or wait a minute for the server to do so if it is a \
                      container, and try again";
        Some(Failure::OverLimit(reason.to_owned()))
    }

    fn succeeded(mut self, path: &str, stat: &Stat) {
        if let Some(entry) = self.entry.take() {
            self.seat.ledger().known(entry, znode(path, stat));
        }
    }

    /// Deletes what was created. Completes when it is gone for certain, or cannot be deleted, which
    /// the janitor says.
    async fn withdraw(&mut self, path: &str, stat: &Stat) {
        let entry = self.entry.take().and_then(|entry| self.seat.ledger().take(entry));
        let gone = entry.and_then(|_| self.seat.discard(Entry::Known(znode(path, stat))));
        if let Some(gone) = gone {
            // It is not told if the session is lost, and the znode with it.
            gone.await.ok();
        }
    }

    /// Nothing was created: every earlier request of this attempt was settled, too.
    fn refused(&mut self, refused: Failure) -> Failure {
        if !matches!(refused, Failure::SessionLost)
            && let Some(entry) = self.entry.take()
        {
            self.seat.ledger().take(entry);
        }
        refused
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

fn znode(path: &str, stat: &Stat) -> Znode {
    Znode { path: path.to_owned(), czxid: stat.czxid, naming: Naming::Unique }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::seat::SeatLimits;
    use crate::session::stand_in::{MOUNT, StandIn, contend};

    #[tokio::test]
    async fn a_create_with_which_every_connection_is_lost_is_given_up() {
        let stand_in = StandIn::open();
        let one = SeatLimits { znodes: 1, ..SeatLimits::default() };
        let seat = stand_in.seat(one);
        stand_in.lose_before(ATTEMPTS);
        assert_eq!(contend(&seat, MOUNT).await, Err(lost_too_often()));
        assert!(stand_in.tree().is_empty());
        // Nothing of it is left in the ledger.
        stand_in.lose_before(ATTEMPTS - 1);
        let path = contend(&seat, MOUNT).await.unwrap();
        assert_eq!(stand_in.tree(), [path]);
    }
}
