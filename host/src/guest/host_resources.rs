//! The contract's resources: watches and child lists.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::answer::{Failed, unless_cancelled};
use super::bindings::wok::recipe::zookeeper::{
    Error, Event, HostChildren, HostWatch, Line, Place, Stat,
};
use super::child_list::ChildList;
use super::state::{OwnedWatch, Phase, State};
use super::witness::unless_killed;
use crate::session::Watch;

impl HostWatch for State {
    async fn fired(&mut self, watch: Resource<OwnedWatch>) -> Result<Option<Event>> {
        self.begin_call()?;
        let owned = self.watches.get_mut(watch.rep()).ok_or_else(|| unknown("watch"))?;
        let seat = &self.surroundings.seat;
        seat.forget_shown();
        Ok(owned.watch.fired().map(|event| match Event::from(event) {
            Event::Deleted if seat.trusts_claim(&owned.watch) => Event::ClaimDeleted,
            event => event,
        }))
    }

    async fn drop(&mut self, watch: Resource<OwnedWatch>) -> Result<()> {
        self.watches.remove(watch.rep()).map(drop).ok_or_else(|| unknown("watch"))
    }
}

impl HostChildren for State {
    async fn count(&mut self, list: Resource<ChildList>) -> Result<u32> {
        self.begin_call()?;
        Ok(self.child_list(&list)?.count)
    }

    async fn stat(&mut self, list: Resource<ChildList>) -> Result<Stat> {
        self.begin_call()?;
        Ok(self.child_list(&list)?.stat)
    }

    async fn next(&mut self, list: Resource<ChildList>, max: u32) -> Result<Vec<String>> {
        self.begin_call()?;
        Ok(self.child_list(&list)?.next(max))
    }

    async fn order(&mut self, list: Resource<ChildList>, infixes: Vec<String>) -> Result<Line> {
        self.begin_call()?;
        self.child_list(&list)?.order(infixes)
    }

    async fn position(
        &mut self,
        list: Resource<ChildList>,
        name: String,
        counter: i32,
    ) -> Result<Place> {
        self.begin_call()?;
        Ok(self.child_list(&list)?.position(&name, counter))
    }

    async fn skip(&mut self, list: Resource<ChildList>, count: u32) -> Result<()> {
        self.begin_call()?;
        self.child_list(&list)?.skip(count);
        Ok(())
    }

    async fn drop(&mut self, list: Resource<ChildList>) -> Result<()> {
        self.child_lists.remove(list.rep()).map(drop).ok_or_else(|| unknown("child list"))
    }
}

impl State {
    /// Hands a watch over to the component.
    pub(super) fn own_watch(&mut self, watch: Watch, tag: u64) -> Resource<OwnedWatch> {
        Resource::new_own(self.watches.insert(OwnedWatch { watch, tag, spent: false }))
    }

    /// Hands a child list over to the component.
    pub(super) fn own_children(&mut self, names: Vec<String>, stat: Stat) -> Resource<ChildList> {
        let list = ChildList::new(names, stat);
        // Boxed: a slot is kept for as long as the participant lives.
        Resource::new_own(self.child_lists.insert(Box::new(list)))
    }

    /// Waits until one of the watches has fired.
    pub(super) async fn wait_for(
        &mut self,
        list: &[Resource<OwnedWatch>],
    ) -> Result<Result<u32, Error>> {
        let invalid = |text: &str| Ok(Err(Error::Invalid(text.to_owned())));
        if self.phase == Phase::Wake {
            return invalid("wait within wake: keep the watch and return");
        }
        if list.is_empty() {
            return invalid("wait for no watch would never end");
        }
        if list.len() > self.surroundings.limits.watches as usize {
            return invalid("wait for more watches than can be owned");
        }
        let Self { watches, surroundings, .. } = self;
        let first_fired = poll_fn(|context| {
            // All of them are polled, so that each wakes the task.
            let mut first = Poll::Pending;
            for (index, watch) in (0_u32..).zip(list) {
                let Some(owned) = watches.get_mut(watch.rep()) else {
                    return Poll::Ready(Ok(Err(unknown("watch"))));
                };
                if owned.watch.poll_fired(context).is_ready() && first.is_pending() {
                    first = Poll::Ready(Ok(Ok(index)));
                }
            }
            first
        });
        let first_fired = pin!(first_fired);
        // Until this is dropped, and the call with it.
        let _waits = surroundings.scope.waits();
        let first_fired = unless_cancelled(&surroundings.scope, first_fired);
        let outcome = match surroundings.witness.clone() {
            None => first_fired.await,
            Some(witness) => {
                let number = witness.asked("wait", Vec::new());
                // Boxed, as it is rare: a future has room for every branch.
                let outcome = Box::pin(unless_killed(&witness, first_fired)).await;
                let answer = outcome.as_ref().map_or_else(Failed::name, |_| "ok");
                witness.answered(number, answer, None);
                outcome
            }
        };
        match outcome {
            Ok(Ok(index)) => Ok(Ok(index)),
            Ok(Err(bug)) => Err(bug),
            Err(failed @ (Failed::Cancelled | Failed::Request(_))) => Ok(Err(failed.into())),
        }
    }

    fn child_list(&mut self, list: &Resource<ChildList>) -> Result<&mut ChildList> {
        let found = self.child_lists.get_mut(list.rep());
        found.map(|list| &mut **list).ok_or_else(|| unknown("child list"))
    }
}

/// wasmtime's handle tables stand before ours, so only a bug of the host gets here.
fn unknown(what: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("host bug: a handle to an unknown {what}"))
}
