//! What the host keeps for one component: the data of its store.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::bindings::wok::recipe::zookeeper::Error;
use super::bucket::{Bucket, Taken};
use super::child_list::ChildList;
use super::giving_up::Claimed;
use super::limits::{Growth, LimitReached};
use super::scheduler::Turn;
use super::slab::Slab;
use super::surroundings::{Surroundings, TimeAndChance};
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

/// Waits until there is so much in the bucket, and takes it out.
async fn take(bucket: &mut Bucket, amount: usize, time: &dyn TimeAndChance) {
    while let Taken::NotBefore(wait) = bucket.take(amount as u64, || time.now_ms()) {
        let mut alarm = time.alarm(wait);
        std::future::poll_fn(|context| alarm.poll_fired(context)).await;
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
    /// over the rate: a loop around a request slows itself.
    #[inline]
    pub(super) async fn begin_requests(&mut self, requests: usize) -> wasmtime::Result<()> {
        self.begin_call()?;
        take(&mut self.requests, requests, &*self.surroundings.time).await;
        Ok(())
    }

    /// As [`Self::begin_requests`], where so many bytes are written.
    pub(super) async fn begin_writes(
        &mut self,
        requests: usize,
        bytes: usize,
    ) -> wasmtime::Result<()> {
        self.begin_requests(requests).await?;
        take(&mut self.written, bytes, &*self.surroundings.time).await;
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
