//! What the host keeps for one component: the data of its store.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use super::bindings::wok::recipe::zookeeper::{Error, Stat};
use super::bucket::{Bucket, Taken};
use super::limits::{Growth, LimitReached};
use super::meter::Turn;
use super::slab::Slab;
use super::surroundings::Surroundings;
use super::voice_box::VoiceBox;
use super::witness::KILLED;
use crate::session::Watch;

/// The data of a store.
#[derive(Debug)]
pub(super) struct State {
    pub(super) surroundings: Surroundings,
    /// Shared with whoever polls its calls.
    pub(super) turn: Arc<Turn>,
    pub(super) growth: Growth,
    pub(super) watches: Slab<OwnedWatch>,
    pub(super) child_lists: Slab<Box<ChildList>>,
    pub(super) phase: Phase,
    /// Absolute paths of the claim's znodes, while it stands.
    pub(super) claimed: Vec<String>,
    pub(super) voice_box: VoiceBox,
    calls: Bucket,
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

/// A list of children that the component takes in batches.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "the generated bindings are as public as they can be")]
pub struct ChildList {
    pub(super) count: u32,
    pub(super) stat: Stat,
    pub(super) names: vec::IntoIter<String>,
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
            calls: Bucket::full(limits.calls_per_second.into(), now_ms),
            surroundings,
            turn,
        }
    }

    /// Counts host calls, and delays those over the rate: a loop around a host call slows itself.
    /// An error is the end of a component that a simulation kills.
    #[inline]
    pub(super) async fn count_calls(&mut self, calls: usize) -> wasmtime::Result<()> {
        if self.surroundings.witness.as_ref().is_some_and(|witness| witness.is_killed()) {
            return Err(wasmtime::Error::msg(KILLED));
        }
        let time = &self.surroundings.time;
        while let Taken::NotBefore(wait) = self.calls.take(calls as u64, || time.now_ms()) {
            let mut alarm = time.alarm(wait);
            std::future::poll_fn(|context| alarm.poll_fired(context)).await;
        }
        Ok(())
    }

    /// Refuses before anything is sent what would be one watch too many.
    pub(super) fn check_watches(&self) -> Result<(), Error> {
        let maximum = self.surroundings.limits.watches;
        if self.watches.len() < maximum as usize {
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
    pub(super) fn check_child_lists(&self, more: usize) -> Result<(), Error> {
        let maximum = self.surroundings.limits.child_lists;
        if self.child_lists.len() + more <= maximum as usize {
            return Ok(());
        }
        Err(Error::OverLimit(format!("more than {maximum} child lists: drop some first")))
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
