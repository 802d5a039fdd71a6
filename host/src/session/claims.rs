//! Claims: what a participant holds. `claims/loss.rs` has how it learns that it holds it no more,
//! `claims/release.rs` how it gives it up, and `claims/question.rs` how it learns whether it has.

mod loss;
mod question;
mod release;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::budget::Charge;
use super::contact::Claimed;
use super::core::parent;
use super::deletions::Trust;
use super::failure::{Failure, Refusal};
use super::ledger::{Naming, Znode};
use super::multi::Confirmed;
use super::omission::Omission;
use super::request::{Reply, Request, WatchKind, Watching};
use super::seat::{Seat, paid};
use super::tickets::GivingUp;
use super::watch::{Event, Watch};
use crate::clock::Boottime;

use self::question::Question;
pub use self::release::Released;

/// A fencing token: the `czxid` of a claim's znode.
pub type Fence = u64;

/// A claim as its holder is told of it. Where it has several znodes, the first of those that were
/// claimed last stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The znode.
    pub path: String,
    /// The fencing token.
    pub fence: Fence,
}

/// How long a claim is held before its znode is watched, where a list has just shown the znode. A holder that
/// begins to give its claim back sooner, as after a single write elsewhere, sends no read to arm the watch, and
/// the server sends no event: of four requests that is one.
const UNWATCHED: Duration = Duration::from_millis(5);

/// Stands for the `czxid` of a znode that was claimed and not found.
const GONE: i64 = -1;

/// One znode of a claim.
#[derive(Debug)]
struct Part {
    path: String,
    czxid: i64,
    watch: Watch,
    /// Whether the watch has fired before for another reason than its deletion: what the watch then says
    /// first comes from a look that may be under way.
    was_changed: bool,
    /// Those that were claimed as one have the same.
    claim: u64,
    /// Set while it is being deleted by us: its deletion is no loss.
    ending: Option<GivingUp>,
    /// Deletions by us that were sent and not answered. For one that nobody waits for any more, no answer
    /// will be heard. The event may come late, so as long as there is one, a watch that has not fired says
    /// nothing of the znode.
    unanswered_deletions: usize,
    /// A look that tells whether they were carried out, where nobody waits for them.
    question: Option<Question>,
    /// Its release was not waited for: it goes when nothing depends on the claim any more.
    is_left: bool,
    claimed: Claimed,
    /// The room for the server's watch, as long as `watch` only says when to arm that.
    unwatched: Option<Charge>,
}

impl Part {
    fn new(path: String, czxid: i64, watch: Watch, claim: u64, claimed: Claimed) -> Self {
        Part {
            path,
            czxid,
            watch,
            was_changed: false,
            claim,
            ending: None,
            unanswered_deletions: 0,
            question: None,
            is_left: false,
            claimed,
            unwatched: None,
        }
    }

    /// Whether a deletion by us may have been carried out that was not answered.
    fn may_be_gone(&self) -> bool {
        self.unanswered_deletions > 0
    }

    /// Whether a deletion of it was sent that nobody waits for any more.
    fn is_in_question(&self) -> bool {
        self.may_be_gone() && self.ending.is_none()
    }
}

/// A participant's claim: all the znodes that it holds.
#[derive(Debug, Default)]
pub(super) struct Claims {
    parts: Vec<Part>,
    /// The `czxid` of the own znode that a list of children has shown last, and when that was asked
    /// for.
    shown: Option<(i64, Boottime)>,
    /// How many claims were taken.
    taken: u64,
    /// Whether the participant ends: nothing more may depend on what it holds.
    is_closed: bool,
    /// A part was lost of which a deletion by this participant was sent and not answered.
    may_be_own_doing: bool,
    /// A part was lost: what is left of the claim is not held any more.
    is_forfeit: bool,
}

impl Claims {
    /// Ends all of it, and answers what has the session count as one of which something is held.
    pub(super) fn clear(&mut self) -> Vec<Claimed> {
        self.parts.drain(..).map(|part| part.claimed).collect()
    }

    /// A claim begins: what its parts have in common.
    fn begin(&mut self) -> u64 {
        self.taken += 1;
        self.taken
    }

    /// What is held and not being given up.
    fn kept(&self) -> impl Iterator<Item = &Part> + Clone {
        let is_kept = |part: &&Part| part.ending != Some(GivingUp::TheClaim);
        self.parts.iter().filter(is_kept).filter(|_| !self.is_forfeit)
    }

    fn part(&mut self, path: &str) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.path == path)
    }
}

impl Seat {
    /// Claims a znode of this participant's ledger, once it is confirmed that it is there.
    ///
    /// # Errors
    /// `Invalid` for a znode that is not in the ledger; `NoNode` for one that is gone.
    ///
    /// # Ordering
    /// If the last request was a recent list that shows the znode, it is not read first. It is read and
    /// watched if it is still held 5 ms later; if it is gone by then, the claim is lost.
    pub async fn claim(&self, path: &str) -> Result<Fence, Failure> {
        let found = self.find_to_claim(path).await?;
        let mut claimed = [found];
        self.take_found(&mut claimed).await?;
        Ok(claimed[0].0.czxid.unsigned_abs())
    }

    /// Claims several, as one. Answers their fences in the order of `paths`.
    ///
    /// # Errors
    /// As [`claim`](Seat::claim), and `Invalid` for none, or for one that is named twice; then none
    /// is claimed.
    ///
    /// # Ordering
    /// As `claim`.
    pub async fn claim_all(&self, paths: &[String]) -> Result<Vec<Fence>, Failure> {
        if paths.is_empty() {
            return Err(Failure::Invalid("a claim of no znode: name one at least".to_owned()));
        }
        let mut distinct = BTreeSet::new();
        if let Some(twice) = paths.iter().find(|path| !distinct.insert(*path)) {
            return Err(Failure::Invalid(format!("{twice} is claimed twice")));
        }
        let finding = paths.iter().map(|path| self.find_to_claim(path));
        let mut found = futures_util::future::try_join_all(finding).await?;
        self.take_found(&mut found).await?;
        Ok(found.iter().map(|(znode, _)| znode.czxid.unsigned_abs()).collect())
    }

    /// An own znode and the watch that its claim has; no watch yet if a list has just shown it.
    async fn find_to_claim(&self, path: &str) -> Result<(Znode, Option<Watch>), Failure> {
        let znode = self.own(path).await?;
        // Where the session may just be ending, what was told of its znodes is not enough. Nor is it where a
        // deletion of this very znode was sent and not answered; a read is answered behind that.
        let may_be_gone = || {
            self.claims().part(path).is_some_and(|part| part.may_be_gone())
                || self.ledger().may_be_gone(path)
        };
        let trusts = self.trust().await == Trust::Sure && !may_be_gone();
        let share = || self.core.watched().share_with_claim(path, znode.czxid, self.kin);
        let watch = match trusts.then(share).flatten() {
            None if trusts && self.was_just_shown(&znode) => None,
            None => Some(self.found_and_watched(&znode).await?),
            shared => shared,
        };
        Ok((znode, watch))
    }

    /// Claims as one what was found.
    async fn take_found(&self, found: &mut [(Znode, Option<Watch>)]) -> Result<(), Failure> {
        self.assure_unchanged(found).await?;
        // From here nothing is waited for.
        let mut charges = Vec::new();
        for (znode, watch) in found.iter() {
            let charge = match watch {
                Some(_) => None,
                None => Some(self.account.charge(WatchKind::Data, &znode.path)?),
            };
            charges.push(charge);
        }
        let mut claims = self.claims();
        claims.parts.retain(|part| found.iter().all(|(znode, _)| part.path != znode.path));
        let claim = claims.begin();
        for ((Znode { path, czxid, .. }, watch), unwatched) in found.iter_mut().zip(charges) {
            let watch = watch.take().unwrap_or_else(|| Watch::after(UNWATCHED));
            let (path, claimed) = (path.clone(), self.core.claimed());
            let part = Part::new(path, *czxid, watch, claim, claimed);
            claims.parts.push(Part { unwatched, ..part });
        }
        drop(claims);
        self.claims_changed.notify_one();
        // After the claim is taken: from then on a no is for good.
        if !self.is_live() {
            return Err(Failure::SessionLost);
        }
        Ok(())
    }

    /// Makes sure that the session counts, and looks at what fired while contact was asked for. That may
    /// take long, so what a list had just shown before may have gone long ago: it is looked at as well.
    async fn assure_unchanged(&self, found: &mut [(Znode, Option<Watch>)]) -> Result<(), Failure> {
        loop {
            self.core.assure_contact().await?;
            let is_in_question = |(znode, watch): &&mut (Znode, Option<Watch>)| match watch {
                Some(watch) => watch.fired().is_some(),
                None => !self.was_just_shown(znode),
            };
            let Some((znode, watch)) = found.iter_mut().find(is_in_question) else { return Ok(()) };
            if watch.as_ref().and_then(Watch::fired) == Some(Event::Deleted) {
                return Err(self.gone_by_now(&znode.path));
            }
            *watch = Some(self.found_and_watched(znode).await?);
        }
    }

    /// A watch of the own znode, by a read that has found it.
    async fn found_and_watched(&self, znode: &Znode) -> Result<Watch, Failure> {
        let doubts = self.core.deletions().doubts();
        match self.read_and_watch(&znode.path).await {
            Ok((stat, watch)) if stat.czxid == znode.czxid => {
                watch.note_claim(self.kin);
                self.core.deletions().settle(doubts);
                Ok(watch)
            }
            Ok(_) | Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => {
                Err(self.gone_by_now(&znode.path))
            }
            Err(other) => Err(other),
        }
    }

    /// Strikes out a znode that was found to be gone.
    fn gone_by_now(&self, path: &str) -> Failure {
        self.gone(path);
        Refusal::NoNode.into()
    }

    /// Notes which of the own contenders a list shows that was asked for at `sent`.
    pub(super) fn note_shown(&self, directory: &str, names: &[String], sent: Boottime) {
        let ledger = self.ledger();
        let own: HashMap<&str, i64> = ledger
            .contenders()
            .filter(|znode| parent(&znode.path) == Some(directory))
            .filter_map(|znode| Some((znode.path.rsplit('/').next()?, znode.czxid)))
            .collect();
        // One look for each name: a list may be long, and so may be what a participant has.
        let is_own = |name: &String| own.get(name.as_str()).copied();
        let shown = if own.is_empty() { None } else { names.iter().find_map(is_own) };
        drop(own);
        drop(ledger);
        self.claims().shown = shown.map(|czxid| (czxid, sent));
    }

    /// Forgets what a list has shown, as the component asks for something else or hears of an event: by
    /// that it may learn that another contender has gone, and its own may have gone before that one.
    pub(crate) fn forget_shown(&self) {
        self.claims().shown = None;
    }

    /// Whether a list has shown the znode after the last heartbeat was due: nothing is known that
    /// speaks against it, so to read it again would only tell of what happens meanwhile.
    fn was_just_shown(&self, znode: &Znode) -> bool {
        let is_fresh =
            |sent| self.core.now().saturating_duration_since(sent) < self.core.timing().heartbeat();
        self.claims().shown.is_some_and(|(czxid, sent)| czxid == znode.czxid && is_fresh(sent))
    }

    /// A watch that is armed by a read which nobody waits for. If the znode is gone by then, it fires
    /// as one that saw it go.
    fn armed_behind(&self, charge: Charge, path: &str, czxid: i64) -> Watch {
        let (core, kin, path) = (Arc::clone(&self.core), self.kin, path.to_owned());
        let doubts = core.deletions().doubts();
        let fired = async move {
            let read = Request::GetData(path.clone(), Watching::Yes);
            match core.ask(read).await.map(|reply| paid(&core, &path, charge, reply, None)) {
                Ok(Reply::Data(_, stat, Some(mut watch))) if stat.czxid == czxid => {
                    watch.note_claim(kin);
                    core.deletions().settle(doubts);
                    std::future::poll_fn(|cx| watch.poll_fired(cx)).await
                }
                Ok(_) | Err(Failure::Refused { refusal: Refusal::NoNode, .. }) => Event::Deleted,
                Err(Failure::SessionLost) => std::future::pending().await,
                // Nothing can be said of the claim, so it is not held.
                Err(failure) => {
                    tracing::warn!(path, %failure, "the claim's znode cannot be read");
                    Event::Deleted
                }
            }
        };
        let watch = Watch::new(fired.boxed());
        // The first look sends the read; the answer is waited for where the claim is followed.
        watch.fired();
        watch
    }

    /// Waits until it is known whose work the deletions were that were seen.
    async fn trust(&self) -> Trust {
        loop {
            let answered = self.core.deletion_answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            let trust = self.core.deletions().trust();
            if trust != Trust::NotYet || self.core.lost().is_cancelled() {
                return trust;
            }
            self.core.lost().run_until_cancelled(answered).await;
        }
    }

    async fn own(&self, path: &str) -> Result<Znode, Failure> {
        self.settle_named(path).await?;
        if self.core.omits(Omission::Ledger) && self.ledger().find(path).is_none() {
            let (stat, _) = self.read_and_watch(path).await?;
            let naming = Naming::Given;
            return Ok(Znode { path: path.to_owned(), czxid: stat.czxid, naming });
        }
        self.ledger().find(path).cloned().ok_or_else(|| {
            Failure::Invalid(format!(
                "{path} is not an ephemeral znode that this participant created"
            ))
        })
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this participant has a claim that it is not giving up. It may be lost already:
    /// only [`is_live`](Seat::is_live) and [`until_claim_lost`](Seat::until_claim_lost) tell.
    pub fn has_claim(&self) -> bool {
        self.claims().kept().next().is_some()
    }

    /// Whether the znode at `path` is held at this very moment, as far as anyone can know: a watch that
    /// has seen it go speaks against it before the loss is told, and so does a deletion by this participant
    /// that was sent, as long as its outcome is open.
    pub fn still_holds(&self, path: &str) -> bool {
        let is_there = |part: &Part| {
            part.path == path && !part.may_be_gone() && part.watch.fired() != Some(Event::Deleted)
        };
        self.is_live() && self.claims().kept().any(is_there)
    }

    /// What this participant holds and is not giving up, with the caution of
    /// [`has_claim`](Seat::has_claim).
    pub fn held(&self) -> Option<Held> {
        let claims = self.claims();
        let mut kept = claims.kept();
        let newest = kept.clone().map(|part| part.claim).max()?;
        let part = kept.find(|part| part.claim == newest)?;
        Some(Held { path: part.path.clone(), fence: part.czxid.unsigned_abs() })
    }

    /// Something that runs only while `held` is held. As long as the token lives, and the session,
    /// the claim's znodes are not deleted: the next holder must find it gone. None if the claim is
    /// lost, given up, or about to be, or if nobody knows whether it is.
    pub fn depend(&self, held: &Held) -> Option<TaskTrackerToken> {
        // Under this lock a deletion is expected, too: one of the two is seen by the other.
        let claims = self.claims();
        let is_it = |part: &&Part| {
            part.path == held.path
                && part.czxid.unsigned_abs() == held.fence
                && part.ending != Some(GivingUp::TheClaim)
                && !part.is_left
                && !part.is_in_question()
        };
        let is_over = claims.is_closed || claims.is_forfeit;
        let part = claims.parts.iter().find(is_it).filter(|_| !is_over);
        part.map(|_| self.dependents.token())
    }

    /// Nothing may depend on the claim any more. Completes when nothing does, or the session is lost and
    /// nothing can be left of what did.
    pub async fn until_independent(&self) {
        self.claims().is_closed = true;
        // Both are cancel-safe: they are states.
        tokio::select! {
            biased;
            () = self.dependents.until_none() => {}
            () = self.core.until_spent() => {}
        }
    }

    /// Strikes a znode out of the claim; whatever its `czxid`, if none is known.
    pub(super) fn end_claim(&self, path: &str, czxid: Option<i64>) {
        let is_it = |part: &Part| part.path == path && czxid.is_none_or(|it| it == part.czxid);
        self.claims().parts.retain(|part| !is_it(part));
    }

    /// Takes a claim of several znodes as one. Answers its fence, or which of them is not there: then
    /// the claim is taken all the same, and lost.
    pub(super) fn take(
        &self,
        paths: &[String],
        confirmed: &[Confirmed],
    ) -> Result<Option<Fence>, (usize, Failure)> {
        let mut outcome = Ok(None);
        let mut claims = self.claims();
        let claim = claims.begin();
        for (place, (path, confirmed)) in paths.iter().zip(confirmed).enumerate() {
            let (czxid, watch) = match confirmed {
                Ok((stat, watch)) => {
                    watch.note_claim(self.kin);
                    if let Ok(fence) = &mut outcome {
                        fence.get_or_insert(stat.czxid.unsigned_abs());
                    }
                    (stat.czxid, watch.clone())
                }
                Err(failure) => {
                    tracing::warn!(path, %failure, "the claim's znode is not there any more");
                    outcome = Err((place, failure.clone()));
                    (GONE, Watch::new(std::future::ready(Event::Deleted).boxed()))
                }
            };
            let (path, claimed) = (path.clone(), self.core.claimed());
            claims.parts.push(Part::new(path, czxid, watch, claim, claimed));
        }
        drop(claims);
        self.claims_changed.notify_one();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::session::seat::SeatLimits;
    use crate::session::stand_in::{MOUNT, StandIn, contend, contend_and_list};
    use crate::session::watch::Kin;

    #[tokio::test]
    async fn what_was_gone_before_the_event_is_not_held_though_the_next_server_still_shows_it() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = contend(&seat, MOUNT).await.unwrap();
        let before = stand_in.snapshot();
        // Somebody forces it out of the line, and the one ahead goes after that, which an event tells.
        stand_in.delete(&path);
        stand_in.fall_behind(before);
        stand_in.make_connection_again();
        assert_eq!(seat.claim(&path).await, Err(Refusal::NoNode.into()));
        assert!(!seat.has_claim());
    }

    #[tokio::test]
    async fn what_still_stands_is_held_at_the_next_server() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = contend(&seat, MOUNT).await.unwrap();
        stand_in.fall_behind(stand_in.snapshot());
        stand_in.make_connection_again();
        let fence = seat.claim(&path).await.unwrap();
        assert_eq!(seat.held(), Some(Held { path, fence }));
    }

    /// Has time pass until a claim that was just taken is watched.
    async fn pass_unwatched(seat: &Seat) {
        let mut lost = pin!(seat.until_claim_lost());
        assert_eq!(lost.as_mut().now_or_never(), None);
        tokio::time::advance(UNWATCHED).await;
        assert_eq!(lost.now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_list_has_shown_is_watched_only_if_it_is_held_for_some_time() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = contend_and_list(&seat, MOUNT).await.unwrap();
        seat.claim(&path).await.unwrap();
        assert_eq!(stand_in.watches(&path), 0);
        pass_unwatched(&seat).await;
        assert_eq!(stand_in.watches(&path), 1);
        stand_in.delete(&path);
        assert_eq!(seat.until_claim_lost().await, path);
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_before_its_claim_is_watched_is_lost_all_the_same() {
        let stand_in = StandIn::open();
        let seat = stand_in.seat(SeatLimits::default());
        let path = contend_and_list(&seat, MOUNT).await.unwrap();
        seat.claim(&path).await.unwrap();
        stand_in.delete(&path);
        assert_eq!(seat.until_claim_lost().await, path);
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_to_wait_behind_a_claim_watches_it_for_its_holder_as_well() {
        let stand_in = StandIn::open();
        let kin = Kin::of(&[1; 32]);
        let join = || stand_in.seat(SeatLimits::default()).of_kin(kin);
        let (holder, waiter) = (join(), join());
        let path = contend_and_list(&holder, MOUNT).await.unwrap();
        holder.claim(&path).await.unwrap();
        let (_, watch) = waiter.read_and_watch(&path).await.unwrap();
        assert!(!watch.is_claimed_by(kin));
        pass_unwatched(&holder).await;
        assert_eq!(stand_in.watches(&path), 1);
        assert!(watch.is_claimed_by(kin));
        stand_in.delete(&path);
        assert_eq!(holder.until_claim_lost().await, path);
    }
}
