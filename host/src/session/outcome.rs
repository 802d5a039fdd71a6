//! What became of a write whose reply was lost, where it changed a znode of the own ledger.
//!
//! The session is still the same, so the znodes of the ledger are there unless somebody deleted
//! them, and what they are like tells whether the write happened. The look is certain: the server has
//! caught up with everything this session sent before, and a request that an earlier connection left
//! behind is refused once the session has moved.
//!
//! A write that certainly did not happen is sent again, so it is answered as if nothing had been.

use super::core::{child, parent};
use super::failure::{Failure, Refusal};
use super::ledger::COUNTER_BYTES;
use super::named::CreationId;
use super::omission::Omission;
use super::request::{CreateMode, Reply, Request, Stat, Write, Written};
use super::seat::Seat;
use super::tickets::{Ticket, writes};

/// How often a write is sent that the connection is lost with. A server that cuts every connection
/// on which it comes would take everybody's requests along, again and again.
pub(super) const ATTEMPTS: usize = 10;

/// How many sequential znodes may have gone between the list and the look, at most.
const MOST_GONE: usize = 64;

/// What one znode says of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Whatever anybody else did meanwhile.
    Surely(Happened),
    /// Unless somebody else has deleted that very znode meanwhile.
    Likely(Happened),
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Happened {
    Yes,
    No,
}

/// Whether a write that did not happen may still be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chance {
    Open,
    /// What was asked for after it has been done on the next connection: sent now, it would come
    /// out of order.
    Passed,
}

/// The znodes that tell, as they are now.
type Seen = Vec<(String, Option<Stat>)>;

/// What all of them say.
fn verdict(signs: &[Sign]) -> Option<Happened> {
    let order = [
        Sign::Surely(Happened::Yes),
        Sign::Surely(Happened::No),
        // Of two that may have been deleted by others, the one that would be there after the write
        // is believed: the write is sent again then, and the ensemble decides.
        Sign::Likely(Happened::No),
        Sign::Likely(Happened::Yes),
    ];
    order.into_iter().find(|sign| signs.contains(sign)).and_then(|sign| match sign {
        Sign::Surely(happened) | Sign::Likely(happened) => Some(happened),
        Sign::Nothing => None,
    })
}

/// Why a write is not sent any more that was lost so often and certainly did not happen.
pub(super) fn lost_too_often() -> Failure {
    let text = format!("the connection was lost with it {ATTEMPTS} times: nothing was changed");
    Refusal::Other(text).into()
}

/// A write was made, and what it has made cannot be read: its outcome is unknown to the caller.
pub(super) fn made_and_not_told(failure: &Failure) -> Failure {
    if *failure == Failure::SessionLost {
        return Failure::SessionLost;
    }
    tracing::warn!(%failure, "what a write has made cannot be read");
    Failure::OutcomeUnknown
}

impl Seat {
    /// The outcome of a write that was sent among `batch` and whose reply was lost. `OutcomeUnknown`
    /// if none of its tickets tells.
    pub(super) async fn find_out(
        &self,
        request: &Request,
        tickets: &[Ticket<'_>],
        batch: &[Request],
        chance: Chance,
    ) -> Result<Reply, Failure> {
        let mut sent = 0;
        loop {
            let (signs, seen) = match self.signs(tickets, batch).await {
                Ok(signs) => signs,
                Err(Failure::SessionLost) => return Err(Failure::SessionLost),
                Err(failure) => {
                    tracing::warn!(%failure, "what became of a write cannot be looked up");
                    return Err(Failure::OutcomeUnknown);
                }
            };
            match verdict(&signs) {
                None => return Err(Failure::OutcomeUnknown),
                Some(Happened::Yes) => {
                    // What a read is refused for says nothing of the write, which was made.
                    let read = self.reconstruct(request, tickets, &seen).await;
                    return read.map_err(|failure| made_and_not_told(&failure));
                }
                Some(Happened::No) if chance == Chance::Passed => {
                    let text = "the connection was lost with it, and what was asked for behind it was \
                                done on the next one: nothing was changed";
                    return Err(Refusal::Other(text.to_owned()).into());
                }
                Some(Happened::No) if sent == ATTEMPTS => return Err(lost_too_often()),
                Some(Happened::No) => {}
            }
            sent += 1;
            match self.core.send(request.clone()).await {
                Err(Failure::OutcomeUnknown) => {}
                answer => return answer,
            }
        }
    }

    async fn signs(
        &self,
        tickets: &[Ticket<'_>],
        batch: &[Request],
    ) -> Result<(Vec<Sign>, Seen), Failure> {
        let (mut signs, mut seen) = (Vec::new(), Vec::new());
        for ticket in tickets {
            let (sign, path, stat) = match ticket {
                Ticket::Creates { path, creating, .. } => {
                    let stat = self.look_for(path, signs.is_empty()).await?;
                    let sign = self.sign_of_create(path, creating.id(), stat.as_ref(), batch);
                    (sign, path, stat)
                }
                Ticket::Deletes { path, own: Some(czxid), .. } => {
                    let stat = self.look_for(path, signs.is_empty()).await?;
                    let is_there = stat.is_some_and(|stat| stat.czxid == *czxid);
                    let sign = match is_there {
                        true => Sign::Surely(Happened::No),
                        false => Sign::Likely(Happened::Yes),
                    };
                    (sign, path, stat)
                }
                Ticket::Sets { path, czxid, version } => {
                    self.catch_up(signs.is_empty()).await?;
                    let found = self.core.data(path).await?;
                    let found = found.filter(|(_, stat)| stat.czxid == *czxid);
                    let sign = found.as_ref().map_or(Sign::Nothing, |(data, stat)| {
                        sign_of_set(path, *version, (data, stat.version), batch)
                    });
                    (sign, path, found.map(|(_, stat)| stat))
                }
                Ticket::Deletes { own: None, .. } | Ticket::Persists { .. } => continue,
            };
            signs.push(sign);
            seen.push((path.clone(), stat));
        }
        Ok((signs, seen))
    }

    /// Once for all the looks: they are on one connection, or on later ones.
    async fn catch_up(&self, is_first: bool) -> Result<(), Failure> {
        match is_first {
            true => self.core.catch_up().await,
            false => Ok(()),
        }
    }

    async fn look_for(&self, path: &str, is_first: bool) -> Result<Option<Stat>, Failure> {
        self.catch_up(is_first).await?;
        self.core.stat(path).await
    }

    fn sign_of_create(
        &self,
        path: &str,
        creation: CreationId,
        stat: Option<&Stat>,
        batch: &[Request],
    ) -> Sign {
        // One that was there before is not what was to be created.
        let earlier = self.ledger().find(path).map(|znode| znode.czxid);
        let is_it = |stat: &&Stat| {
            let is_ours =
                stat.ephemeral_owner == self.core.id() || self.core.omits(Omission::SessionCheck);
            is_ours
                && earlier != Some(stat.czxid)
                && !self.core.named.is_anothers(path, creation, stat.czxid)
        };
        match stat.filter(is_it) {
            Some(_) => Sign::Surely(Happened::Yes),
            // It may have been created, and be gone by what was asked for behind that.
            None if is_deleted_behind(path, batch) => Sign::Nothing,
            None => Sign::Likely(Happened::No),
        }
    }

    /// The reply that was lost.
    async fn reconstruct(
        &self,
        request: &Request,
        tickets: &[Ticket<'_>],
        seen: &Seen,
    ) -> Result<Reply, Failure> {
        let mut written = Vec::new();
        let mut sequential = None;
        for write in writes(request) {
            written.push(match write {
                Write::Delete { .. } => Written::Deleted,
                Write::Check { .. } => Written::Checked,
                Write::SetData { path, .. } => Written::DataSet(match stat_of(seen, path) {
                    Some(stat) => stat,
                    None => self.core.stat(path).await?.unwrap_or_default(),
                }),
                Write::Create { path, mode: CreateMode::PersistentSequential, .. } => {
                    let found = match &mut sequential {
                        Some(found) => found,
                        none => {
                            none.insert(Box::pin(self.sequential(request, tickets, seen)).await?)
                        }
                    };
                    let at = found.iter().position(|(it, _)| it == path);
                    // Mostly somebody has deleted it by now, and its counter went with it.
                    let lost = || (path.clone(), Stat::default());
                    let (path, stat) = at.map_or_else(lost, |at| {
                        let (_, found) = found.remove(at);
                        found
                    });
                    Written::Created(path, stat)
                }
                Write::Create { path, .. } => {
                    Written::Created(path.clone(), stat_of(seen, path).unwrap_or_default())
                }
            });
        }
        Ok(match (request, written.pop()) {
            (Request::Write(_), Some(written)) => Reply::Written(written),
            (_, last) => {
                written.extend(last);
                Reply::Multi(written)
            }
        })
    }

    /// The sequential znodes that the request has created and that are still there, by the paths
    /// that were asked for, in the order of their counters: those of the same transaction as what
    /// was seen.
    async fn sequential(
        &self,
        request: &Request,
        tickets: &[Ticket<'_>],
        seen: &Seen,
    ) -> Result<Vec<(String, (String, Stat))>, Failure> {
        let mut found: Vec<(String, (String, Stat))> = Vec::new();
        let Some(zxid) = transaction(tickets, seen) else { return Ok(found) };
        let mut asked: Vec<&String> = Vec::new();
        for write in writes(request) {
            let Write::Create { path, mode: CreateMode::PersistentSequential, .. } = write else {
                continue;
            };
            if asked.contains(&path) {
                continue;
            }
            asked.push(path);
            let made = self.made_by(zxid, path).await?;
            found.extend(made.into_iter().map(|made| (path.clone(), made)));
        }
        Ok(found)
    }

    /// Those of the children that the server has named after `path` which this transaction has created.
    async fn made_by(&self, zxid: i64, path: &str) -> Result<Vec<(String, Stat)>, Failure> {
        let mut children = self.numbered(path).await?;
        // As long as they do not wrap, counters grow with the transactions: few looks find the place,
        // whatever came behind it.
        let (mut low, mut high, mut gone) = (0, children.len(), 0);
        while low < high {
            let middle = low.midpoint(high);
            let Some(child) = children.get(middle) else { break };
            match self.core.stat(child).await? {
                Some(stat) if stat.czxid < zxid => low = middle + 1,
                Some(_) => high = middle,
                // Where many go while this looks, it is not worth while.
                None if gone == MOST_GONE => return Ok(Vec::new()),
                None => {
                    gone += 1;
                    children.remove(middle);
                    high -= 1;
                }
            }
        }
        let mut made = Vec::new();
        for child in children.drain(low..) {
            match self.core.stat(&child).await? {
                Some(stat) if stat.czxid == zxid => made.push((child, stat)),
                None if gone < MOST_GONE => gone += 1,
                _ => break,
            }
        }
        Ok(made)
    }

    /// The children that the server may have named after `path`, in the order of their counters.
    pub(super) async fn numbered(&self, path: &str) -> Result<Vec<String>, Failure> {
        let Some((above, name)) = parent(path).zip(path.rsplit('/').next()) else {
            return Ok(Vec::new());
        };
        let names = self.core.children(above).await?.unwrap_or_default();
        let counter = |child: &String| {
            let counter = child.strip_prefix(name)?;
            let is_counter = (COUNTER_BYTES - 1..=COUNTER_BYTES).contains(&counter.len());
            counter.parse::<i32>().ok().filter(|_| is_counter)
        };
        let mut numbered: Vec<(i32, String)> =
            names.into_iter().filter_map(|it| counter(&it).map(|counter| (counter, it))).collect();
        numbered.sort_unstable();
        Ok(numbered.into_iter().map(|(_, it)| child(above, &it)).collect())
    }
}

/// Whether the batch deletes the znode behind its create.
fn is_deleted_behind(path: &str, batch: &[Request]) -> bool {
    let mut writes = batch.iter().flat_map(writes);
    writes.by_ref().find(|write| write.creates(path));
    writes.any(|write| write.deletes(path))
}

fn stat_of(seen: &Seen, path: &str) -> Option<Stat> {
    seen.iter().find(|(it, _)| it == path).and_then(|(_, stat)| *stat)
}

/// The transaction of a write that has happened, if one of its znodes tells.
fn transaction(tickets: &[Ticket<'_>], seen: &Seen) -> Option<i64> {
    tickets.iter().find_map(|ticket| match ticket {
        Ticket::Creates { path, .. } => stat_of(seen, path).map(|stat| stat.czxid),
        Ticket::Sets { path, version, .. } => {
            let is_last = |stat: &Stat| stat.version == version.wrapping_add(1);
            stat_of(seen, path).filter(is_last).map(|stat| stat.mzxid)
        }
        Ticket::Deletes { .. } | Ticket::Persists { .. } => None,
    })
}

/// What a znode that has this data and this version now says of a write that was to set it at
/// `version`. Others may have set it: then its data is not what the batch would have made of it.
fn sign_of_set(path: &str, version: i32, now: (&[u8], i32), batch: &[Request]) -> Sign {
    let (data, now) = now;
    if now <= version {
        return Sign::Surely(Happened::No);
    }
    let made_it = |write: &Write| match write {
        Write::SetData { path: it, data: new, version: Some(at) } => {
            it == path && at.wrapping_add(1) == now && new == data
        }
        _ => false,
    };
    if batch.iter().flat_map(writes).any(made_it) {
        return Sign::Surely(Happened::Yes);
    }
    match now == version.wrapping_add(1) {
        // Somebody else's, so this one was refused.
        true => Sign::Surely(Happened::No),
        false => Sign::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(data: &[u8], version: i32) -> Request {
        let (path, version) = ("/m".to_owned(), Some(version));
        Request::Write(Write::SetData { path, data: data.to_vec(), version })
    }

    #[test]
    fn a_version_and_the_data_tell_whose_write_it_was() {
        let one = [set(b"new", 4)];
        assert_eq!(sign_of_set("/m", 4, (b"old", 4), &one), Sign::Surely(Happened::No));
        assert_eq!(sign_of_set("/m", 4, (b"new", 5), &one), Sign::Surely(Happened::Yes));
        assert_eq!(sign_of_set("/m", 4, (b"another's", 5), &one), Sign::Surely(Happened::No));
        assert_eq!(sign_of_set("/m", 4, (b"another's", 6), &one), Sign::Nothing);
        // It would have been refused.
        assert_eq!(sign_of_set("/m", 4, (b"older", 3), &one), Sign::Surely(Happened::No));
    }

    #[test]
    fn the_last_of_several_tells_of_those_before_it() {
        let batch = [set(b"a", 0), set(b"b", 1), set(b"c", 2)];
        for (version, happened) in [(0, Happened::Yes), (1, Happened::Yes), (2, Happened::No)] {
            let sign = sign_of_set("/m", version, (b"b", 2), &batch);
            assert_eq!(sign, Sign::Surely(happened), "at version {version}");
        }
    }

    #[test]
    fn a_sure_sign_goes_before_one_that_somebody_may_have_deleted() {
        use Happened::{No, Yes};
        use Sign::{Likely, Nothing, Surely};
        assert_eq!(verdict(&[]), None);
        assert_eq!(verdict(&[Nothing]), None);
        assert_eq!(verdict(&[Likely(Yes), Nothing]), Some(Yes));
        assert_eq!(verdict(&[Likely(Yes), Surely(No)]), Some(No));
        assert_eq!(verdict(&[Likely(No), Surely(Yes)]), Some(Yes));
        assert_eq!(verdict(&[Likely(Yes), Likely(No)]), Some(No));
    }
}
