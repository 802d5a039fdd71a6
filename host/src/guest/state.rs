//! What the host keeps for one component: the data of its store.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::bindings::wok::recipe::zookeeper::Error;
use super::bucket::{Bucket, Taken};
use super::child_list::ChildList;
use super::fault::Traces;
use super::giving_up::Claimed;
use super::limits::{Growth, LimitReached};
use super::scheduler::Turn;
use super::slab::Slab;
use super::surroundings::Surroundings;
use super::voice_box::VoiceBox;
use crate::session::Watch;

/// The data of a store.
#[derive(Debug)]
pub(super) struct State {
    pub(super) surroundings: Surroundings,
    /// Shared with the instance's `Metered` calls.
    pub(super) turn: Arc<Turn>,
    pub(super) growth: Growth,
    pub(super) watches: Slab<OwnedWatch>,
    pub(super) child_lists: Slab<Box<ChildList>>,
    pub(super) phase: Phase,
    /// What was claimed, while it stands.
    pub(super) claimed: Vec<Claimed>,
    pub(super) voice_box: VoiceBox,
    requests: Bucket,
    written: Bucket,
}

/// What the component is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// To be instantiated and configured, or for an operation.
    Operation,
    /// For its `wake`, which may not block on a watch.
    Wake,
}

/// A watch that the component owns.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "the generated bindings are as public as they can be")]
pub struct OwnedWatch {
    pub(super) watch: Watch,
    pub(super) tag: u64,
    /// Whether its firing was told to `wake`.
    pub(super) spent: bool,
}

/// Waits until there is so much in the bucket, and takes it out. The operation's cancellation ends the wait, and
/// then nothing is taken: what was to be sent is not sent any more, and a component that withdraws has little
/// time. A call that begins behind the cancellation waits as before, so a loop of calls that are refused is slow.
async fn take(
    bucket: &mut Bucket,
    amount: usize,
    surroundings: &Surroundings,
    was_cancelled: bool,
) {
    let Surroundings { time, scope, .. } = surroundings;
    while let Taken::NotBefore(wait) = bucket.take(amount as u64, || time.now_ms()) {
        let mut alarm = time.alarm(wait);
        // Boxed, as it is rare: a future has room for every branch.
        let is_over = Box::pin(async move {
            // Both are cancel-safe: a cancelled operation stays cancelled, and an alarm that rang is spent.
            tokio::select! {
                biased;
                () = scope.cancelled(), if !was_cancelled => true,
                _ = std::future::poll_fn(|context| alarm.poll_fired(context)) => false,
            }
        });
        if is_over.await {
            return;
        }
    }
}

impl State {
    pub(super) fn new(surroundings: Surroundings, turn: Arc<Turn>) -> Self {
        let limits = &surroundings.limits;
        let now_ms = surroundings.time.now_ms();
        State {
            growth: Growth::new(limits),
            watches: Slab::new(),
            child_lists: Slab::new(),
            phase: Phase::Operation,
            claimed: Vec::new(),
            voice_box: VoiceBox::new(limits, surroundings.voice.clone(), now_ms),
            requests: Bucket::full(limits.calls_per_second.into(), now_ms),
            written: Bucket::full(limits.written_per_second, now_ms),
            surroundings,
            turn,
        }
    }

    /// What is left to say of a component that has failed.
    pub(super) fn traces(&self) -> Traces<'_> {
        Traces { denied: self.growth.denied, last_error: self.voice_box.last_error() }
    }

    /// Begins a host call. One that asks nothing of the ensemble costs only processor time, which
    /// is metered. An error is the end of a component that a simulation ends.
    #[inline]
    pub(super) fn begin_call(&self) -> wasmtime::Result<()> {
        match self.surroundings.witness.as_ref().and_then(|witness| witness.doom()) {
            Some(why) => Err(wasmtime::Error::msg(why)),
            None => Ok(()),
        }
    }

    /// Begins a host call that sends so many requests to the ensemble, and delays it where they are
    /// over the rate: a loop around a request slows itself. Cancelling the operation ends the delay.
    #[inline]
    pub(super) async fn begin_requests(&mut self, requests: usize) -> wasmtime::Result<()> {
        self.begin_call()?;
        let was_cancelled = self.surroundings.scope.is_cancelled();
        take(&mut self.requests, requests, &self.surroundings, was_cancelled).await;
        Ok(())
    }

    /// As [`Self::begin_requests`], for one that deletes an own znode. In a cancelled operation it does not wait:
    /// that is how a component withdraws, and it has no more znodes than `limits.znodes`.
    pub(super) async fn begin_release(&mut self) -> wasmtime::Result<()> {
        match self.surroundings.scope.is_cancelled() {
            true => self.begin_call(),
            false => self.begin_requests(1).await,
        }
    }

    /// As [`Self::begin_requests`], where so many bytes are written.
    pub(super) async fn begin_writes(
        &mut self,
        requests: usize,
        bytes: usize,
    ) -> wasmtime::Result<()> {
        // A cancellation that ended the first wait ends the second one as well.
        let was_cancelled = self.surroundings.scope.is_cancelled();
        self.begin_requests(requests).await?;
        take(&mut self.written, bytes, &self.surroundings, was_cancelled).await;
        Ok(())
    }

    /// Refuses before anything is sent what would be one watch too many.
    pub(super) fn check_watches(&self) -> Result<(), Error> {
        self.check_more_watches(1)
    }

    /// As [`Self::check_watches`], for so many more.
    pub(super) fn check_more_watches(&self, more: usize) -> Result<(), Error> {
        let maximum = self.surroundings.limits.watches;
        if self.watches.len() + more <= maximum as usize || more == 0 {
            return Ok(());
        }
        Err(Error::OverLimit(format!(
            "{maximum} watches and alarms are owned, which is limits.watches: drop some or raise it"
        )))
    }

    /// As [`Self::check_watches`], where there is no error to answer.
    pub(super) fn check_alarms(&self) -> Result<(), LimitReached> {
        self.check_watches().map_err(|_| LimitReached {
            what: "watches and alarms",
            maximum: self.surroundings.limits.watches.into(),
            key: Some("limits.watches"),
        })
    }

    /// Refuses what would be more child lists than allowed.
    pub(super) fn check_child_lists(&mut self, more: usize) -> Result<(), Error> {
        let maximum = self.surroundings.limits.child_lists;
        if self.child_lists.len() + more > maximum as usize {
            return Err(Error::OverLimit(format!(
                "more than {maximum} child lists: drop some first"
            )));
        }
        let bytes: u64 = self.child_lists.iter_mut().map(|list| list.bytes).sum();
        if more > 0 && bytes >= self.surroundings.limits.child_list_bytes {
            return Err(Error::OverLimit(format!(
                "the child lists take {bytes} bytes: drop some first"
            )));
        }
        Ok(())
    }

    /// Tags of the fired watches that no `wake` was told of.
    pub(super) fn spend_fired(&mut self) -> Vec<u64> {
        let mut tags = Vec::new();
        for owned in self.watches.iter_mut() {
            if !owned.spent && owned.watch.fired().is_some() {
                owned.spent = true;
                tags.push(owned.tag);
            }
        }
        tags
    }

    /// Whether there is a watch that may yet wake the component.
    pub(super) fn has_watches(&mut self) -> bool {
        self.watches.iter_mut().any(|owned| !owned.spent)
    }

    /// Whether one of the watches that are not spent has fired; otherwise `context` is woken when
    /// that changes.
    pub(super) fn poll_fired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut outcome = Poll::Pending;
        for owned in self.watches.iter_mut().filter(|owned| !owned.spent) {
            if owned.watch.poll_fired(context).is_ready() {
                outcome = Poll::Ready(());
            }
        }
        outcome
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::FutureExt;
    use futures_util::future::pending;

    use super::*;
    use crate::guest::limits::Limits;
    use crate::guest::mount::Mount;
    use crate::guest::refusal::Unheard;
    use crate::guest::scheduler::Scheduler;
    use crate::guest::surroundings::{TimeAndChance, Voice};
    use crate::session::stand_in::{MOUNT, StandIn};
    use crate::session::{Seat, SeatLimits};

    /// Time that stands still.
    struct Still;

    impl TimeAndChance for Still {
        fn now_ms(&self) -> u64 {
            0
        }
        fn wall_ms(&self) -> u64 {
            0
        }
        fn random_u64(&self) -> u64 {
            0
        }
        fn alarm(&self, _: Duration) -> Watch {
            Watch::new(pending().boxed())
        }
    }

    /// The data of a store without a component, for which no time passes.
    pub(in crate::guest) fn state(
        seat: &Arc<Seat>,
        voice: Arc<dyn Voice>,
        limits: Limits,
    ) -> State {
        let surroundings = Surroundings {
            seat: Arc::clone(seat),
            mount: Mount::new(MOUNT).unwrap(),
            scope: Arc::default(),
            voice,
            id: "participant".into(),
            owner: String::new(),
            time: Arc::new(Still),
            limits,
            witness: None,
        };
        let scheduler = Scheduler::start(wasmtime::Engine::default()).unwrap();
        State::new(surroundings, Arc::new(Turn::new(&scheduler)))
    }

    #[tokio::test]
    async fn a_delayed_host_call_goes_on_at_once_when_the_operation_is_cancelled() {
        let stand_in = StandIn::open();
        let seat = Arc::new(stand_in.seat(SeatLimits::default()));
        let limits = Limits { calls_per_second: 3, written_per_second: 10, ..Limits::default() };
        let mut state = state(&seat, Arc::new(Unheard), limits);
        let scope = Arc::clone(&state.surroundings.scope);
        state.begin_writes(1, 10).await.unwrap();
        {
            let mut delayed = pin!(state.begin_writes(1, 1));
            assert!(delayed.as_mut().now_or_never().is_none(), "so many bytes a second");
            scope.cancel();
            assert!(delayed.now_or_never().is_some_and(|begun| begun.is_ok()));
        }
        scope.begin();
        state.begin_requests(1).await.unwrap();
        {
            let mut delayed = pin!(state.begin_requests(1));
            assert!(delayed.as_mut().now_or_never().is_none(), "so many requests a second");
            scope.cancel();
            assert!(delayed.now_or_never().is_some_and(|begun| begun.is_ok()));
        }
        assert!(state.begin_release().now_or_never().is_some(), "it withdraws");
        assert!(state.begin_requests(1).now_or_never().is_none(), "it goes on all the same");
        scope.begin();
        assert!(state.begin_release().now_or_never().is_none(), "it is another operation");
    }
}
