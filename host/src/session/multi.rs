//! Several writes in one transaction, and the claim that they take.

use std::future::poll_fn;
use std::task::{Context, Poll};

use super::budget::Charge;
use super::claims::Fence;
use super::failure::{Failure, Refusal};
use super::outcome::made_and_not_told;
use super::request::{CreateMode, Reply, Request, Stat, WatchKind, Watching, Write, Written};
use super::seat::{Owner, Seat};
use super::tickets::{GivingUp, UNTOLD, writes};
use super::watch::{Event, Watch};

/// A znode of a claim as it was read with a watch, or why it was not.
pub(super) type Confirmed = Result<(Stat, Watch), Failure>;

/// What ephemeral znodes turned out to be, by path. One that is not there has no metadata.
type Looked = Vec<(String, Option<Stat>)>;

/// A watch that has fired before its claim was taken.
struct Fired {
    place: usize,
    czxid: i64,
    event: Event,
}

fn poll_confirmed(confirmed: &mut [Confirmed], cx: &mut Context<'_>) -> Poll<Fired> {
    for (place, confirmed) in confirmed.iter_mut().enumerate() {
        if let Ok((stat, watch)) = confirmed
            && let Poll::Ready(event) = watch.poll_fired(cx)
        {
            return Poll::Ready(Fired { place, czxid: stat.czxid, event });
        }
    }
    Poll::Pending
}

impl Seat {
    /// Makes all the writes or none, and claims znodes that they create: all of them, as one, with
    /// one fence. What confirms them, and watches them, is read right behind the writes, as is the
    /// metadata of other ephemeral znodes: servers do not tell it (ZOOKEEPER-4026, ZOOKEEPER-4667).
    ///
    /// All that one transaction creates has the same `czxid`, which is the fence.
    ///
    /// Znodes of an earlier claim that the writes delete are replaced where there is a new claim:
    /// what depends on the earlier one goes on under it.
    ///
    /// # Errors
    /// As [`submit`](Seat::submit), and `Invalid` for a claim that the writes do not create. If a
    /// znode of the claim is gone when it is read, the writes were made and the claim is lost:
    /// `NoNode` of the part that created it, and [`until_claim_lost`](Seat::until_claim_lost) tells. If it
    /// cannot be read, the claim is lost as well, and the outcome is unknown.
    ///
    /// # Cancellation
    /// The writes may have been made. Nothing is claimed, and an earlier claim stands as long as
    /// its znodes do.
    pub async fn multi(
        &self,
        writes: Vec<Write>,
        claim: &[String],
    ) -> Result<(Vec<Written>, Option<Fence>), Failure> {
        let parts = parts_of_claim(&writes, claim)?;
        if writes.is_empty() {
            return Ok((Vec::new(), None));
        }
        // Paid before anything is created: a watch that nobody paid for could break the session.
        let charge = |path: &String| self.account.charge(WatchKind::Data, path);
        let charges = claim.iter().map(charge).collect::<Result<Vec<_>, _>>()?;
        let requests = vec![Request::Multi(writes)];
        let others = ephemerals(&requests, claim);
        let behind =
            claim.iter().map(|path| watching(path)).chain(others.iter().map(|path| look(path)));
        let behind = behind.collect();
        let giving_up = if claim.is_empty() { GivingUp::TheClaim } else { GivingUp::ItsZnodes };
        let mut exchanged = self.exchange(requests, behind, giving_up).await?;
        if !matches!(exchanged.answers.first(), Some(Ok(_))) {
            let answer = self.enter(exchanged).pop();
            return Err(answer.and_then(Result::err).unwrap_or(Failure::OutcomeUnknown));
        }
        let mut answers = std::mem::take(&mut exchanged.behind).into_iter();
        let of_claim = answers.by_ref().take(claim.len()).collect();
        let mut confirmed = self.confirm(claim, charges, of_claim).await?;
        let looked = self.identify(others, answers.collect()).await?;
        if !claim.is_empty() {
            self.assure_confirmed(claim, &mut confirmed).await?;
        }

        // From here nothing is waited for: a claim that is replaced is held all the time.
        let taken = self.take(claim, &confirmed);
        let answer = self.enter(exchanged).pop().unwrap_or(Err(Failure::OutcomeUnknown));
        let mut written = answer?.multi()?;
        let seen = claim.iter().zip(&confirmed).filter_map(|(path, confirmed)| match confirmed {
            Ok((stat, _)) => Some((path.clone(), Some(*stat))),
            Err(failure) if is_gone(failure) => Some((path.clone(), None)),
            // It was created, and cannot be looked at: it stays open in the ledger, and goes with the rest.
            Err(_) => None,
        });
        self.note_looked(&mut written, looked.into_iter().chain(seen));
        if !claim.is_empty() && !self.is_live() {
            return Err(Failure::SessionLost);
        }
        match taken {
            Ok(fence) => Ok((written, fence)),
            Err((place, failure)) if is_gone(&failure) => {
                Err(at_part(parts.get(place).copied(), failure))
            }
            Err((_, failure)) => Err(made_and_not_told(&failure)),
        }
    }

    /// What the reads behind a multi say of the znodes that are claimed.
    async fn confirm(
        &self,
        claim: &[String],
        charges: Vec<Charge>,
        answers: Vec<Result<Reply, Failure>>,
    ) -> Result<Vec<Confirmed>, Failure> {
        let mut confirmed = Vec::with_capacity(claim.len());
        for ((path, charge), answer) in claim.iter().zip(charges).zip(answers) {
            let answer = match answer {
                // Its connection was lost, and the multi's with it.
                Err(Failure::OutcomeUnknown) => Box::pin(self.core.ask(watching(path))).await,
                answer => answer,
            };
            let found = answer.and_then(|reply| self.paid(path, charge, reply).data());
            confirmed.push(match found {
                Ok((_, stat, Some(watch))) if self.owner(path, &stat) == Owner::Me => {
                    Ok((stat, watch))
                }
                Ok(_) => Err(Refusal::NoNode.into()),
                Err(Failure::SessionLost) => return Err(Failure::SessionLost),
                Err(failure) => Err(failure),
            });
        }
        Ok(confirmed)
    }

    /// Makes sure that the session counts, which may take long. If a znode of the claim is gone, or found
    /// to be gone meanwhile, this ends at once: the caller still believes in the claim that the new one
    /// replaces, and must be told that it has neither. If another watch fires, its znode is read again.
    async fn assure_confirmed(
        &self,
        claim: &[String],
        confirmed: &mut [Confirmed],
    ) -> Result<(), Failure> {
        while confirmed.iter().all(Result::is_ok) {
            // Both are cancel-safe: a fired watch stays fired, and contact can be asked for again.
            let fired = tokio::select! {
                biased;
                fired = poll_fn(|cx| poll_confirmed(confirmed, cx)) => fired,
                assured = self.core.assure_contact() => return assured,
            };
            let Some((path, confirmed)) =
                claim.get(fired.place).zip(confirmed.get_mut(fired.place))
            else {
                continue;
            };
            if fired.event == Event::Deleted {
                *confirmed = Err(Refusal::NoNode.into());
                continue;
            }
            // Boxed, as it is rare: a future has room for every branch.
            *confirmed = match Box::pin(self.read_and_watch(path)).await {
                Ok((stat, watch)) if stat.czxid == fired.czxid => Ok((stat, watch)),
                Ok(_) => Err(Refusal::NoNode.into()),
                Err(Failure::SessionLost) => return Err(Failure::SessionLost),
                Err(failure) => Err(failure),
            };
        }
        Ok(())
    }

    /// The metadata of the ephemeral znodes that a multi created, from the reads behind it.
    pub(super) async fn identify(
        &self,
        paths: Vec<String>,
        answers: Vec<Result<Reply, Failure>>,
    ) -> Result<Looked, Failure> {
        let mut looked = Vec::with_capacity(paths.len());
        for (path, answer) in paths.into_iter().zip(answers) {
            let found = match answer {
                Ok(Reply::Exists(found, _)) => found,
                // The server that answered the multi has the znode, so there is nothing to catch
                // up with.
                _ => {
                    let found = Box::pin(self.core.stat(&path)).await;
                    found.map_err(|failure| made_and_not_told(&failure))?
                }
            };
            let found = found.filter(|found| self.owner(&path, found) == Owner::Me);
            looked.push((path, found));
        }
        Ok(looked)
    }

    /// Enters the metadata of ephemeral znodes into the ledger and into what is answered.
    pub(super) fn note_looked(
        &self,
        written: &mut [Written],
        looked: impl IntoIterator<Item = (String, Option<Stat>)>,
    ) {
        for (path, found) in looked {
            self.note_finding(&path, found);
            for it in &mut *written {
                if let Written::Created(created, stat) = it
                    && *created == path
                    && stat.czxid == UNTOLD
                {
                    // Another client has deleted the znode meanwhile: there is no metadata to tell.
                    *stat = found.unwrap_or_default();
                }
            }
        }
    }
}

/// The parts that create the znodes of a claim.
fn parts_of_claim(writes: &[Write], claim: &[String]) -> Result<Vec<usize>, Failure> {
    let mut parts = Vec::with_capacity(claim.len());
    for path in claim {
        let creates = |write: &Write| matches!(write, Write::Create { path: it, mode: CreateMode::Ephemeral, .. } if it == path);
        match writes.iter().position(creates) {
            Some(part) if !parts.contains(&part) => parts.push(part),
            Some(_) => return Err(Failure::Invalid(format!("{path} is claimed twice"))),
            None => {
                return Err(Failure::Invalid(format!(
                    "{path} is claimed, and no part of the multi creates an ephemeral znode there"
                )));
            }
        }
    }
    Ok(parts)
}

/// The ephemeral znodes that multis among the requests create, but for those of a claim.
pub(super) fn ephemerals(requests: &[Request], claim: &[String]) -> Vec<String> {
    let multis = requests.iter().filter(|request| matches!(request, Request::Multi(_)));
    let created = multis.flat_map(writes).filter_map(|write| match write {
        Write::Create { path, mode: CreateMode::Ephemeral, .. } => Some(path),
        _ => None,
    });
    created.filter(|path| !claim.contains(*path)).cloned().collect()
}

pub(super) fn look(path: &str) -> Request {
    Request::Exists(path.to_owned(), Watching::No)
}

fn watching(path: &str) -> Request {
    Request::GetData(path.to_owned(), Watching::Yes)
}

/// Whether a look says that a znode is gone. Any other failure says nothing of the znode.
fn is_gone(failure: &Failure) -> bool {
    matches!(failure, Failure::Refused { refusal: Refusal::NoNode, .. })
}

fn at_part(part: Option<usize>, failure: Failure) -> Failure {
    match failure {
        Failure::Refused { refusal, .. } => Failure::Refused { refusal, index: part },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::claims::Held;
    use crate::session::seat::SeatLimits;
    use crate::session::stand_in::{MOUNT, StandIn};

    #[tokio::test]
    async fn a_claim_that_takes_the_place_of_somebody_elses_znode_is_held_and_can_be_lost() {
        let stand_in = StandIn::open();
        let join = || stand_in.seat(SeatLimits::default());
        let (other, seat, path) = (join(), join(), format!("{MOUNT}/a"));
        let there = Request::Write(create(&path, CreateMode::Ephemeral));
        other.submit(there).await.unwrap();
        let delete = Write::Delete { path: path.clone(), version: None };
        let writes = vec![delete, create(&path, CreateMode::Ephemeral)];
        let (_, fence) = seat.multi(writes, std::slice::from_ref(&path)).await.unwrap();
        let held = Held { path: path.clone(), fence: fence.unwrap() };
        assert_eq!(seat.held(), Some(held));
        stand_in.delete(&path);
        assert_eq!(seat.until_claim_lost().await, path);
    }

    #[tokio::test]
    async fn a_neighbours_znode_is_not_what_a_multi_has_created() {
        let stand_in = StandIn::open();
        let join = || stand_in.seat(SeatLimits::default());
        let (neighbour, seat, path) = (join(), join(), format!("{MOUNT}/a"));
        let there = Request::Write(create(&path, CreateMode::Ephemeral));
        neighbour.submit(there).await.unwrap();
        // Somebody has deleted what it had created, and the neighbour has come before the look.
        let unanswered = vec![Err(Failure::OutcomeUnknown)];
        let looked = seat.identify(vec![path.clone()], unanswered).await.unwrap();
        assert_eq!(looked, [(path, None)]);
    }

    fn create(path: &str, mode: CreateMode) -> Write {
        Write::Create { path: path.to_owned(), data: Vec::new(), mode }
    }

    #[test]
    fn a_claim_names_each_ephemeral_znode_that_it_is_made_of_once() {
        let writes = [
            create("/item", CreateMode::Persistent),
            create("/a", CreateMode::Ephemeral),
            create("/b", CreateMode::Ephemeral),
        ];
        let parts = |claim: &[&str]| {
            let claim: Vec<String> = claim.iter().map(|path| (*path).to_owned()).collect();
            parts_of_claim(&writes, &claim)
        };
        assert_eq!(parts(&[]), Ok(Vec::new()));
        assert_eq!(parts(&["/b", "/a"]), Ok(vec![2, 1]));
        for claim in [&["/item"][..], &["/c"], &["/a", "/a"]] {
            assert!(matches!(parts(claim), Err(Failure::Invalid(_))), "{claim:?}");
        }
    }
}
