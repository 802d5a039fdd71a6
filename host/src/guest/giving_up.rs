//! What a component has claimed, and how the followers learn that it gives it up.
//!
//! Of a `release` they are told before it is sent: once the znode is gone, another may hold. Of other
//! writes they are told when these are answered: a write that is refused gives nothing up. But where
//! something depends on the claim, such as a command, that has to end before the znodes go, for somebody
//! else may hold them then. It ends when it is told, so then it is told before.
//!
//! So who hears that a claim is given up knows that nothing may be done under it any more, and not that
//! its znodes are gone.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::state::State;
use super::surroundings::Voice;
use crate::session::{self, Fence, Seat};

/// Znodes that were claimed as one. Paths are absolute.
#[derive(Debug)]
pub(super) struct Claimed {
    /// The first is the one that was told.
    pub(super) paths: Vec<String>,
    pub(super) fence: Fence,
}

impl Claimed {
    fn told(&self) -> &str {
        self.paths.first().map_or("", String::as_str)
    }

    fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|it| it == path)
    }
}

/// What some requests give up if they are carried out.
pub(super) struct GivingUp {
    /// The znodes that each of them deletes, by its place among them.
    deleted: Vec<(usize, String)>,
    /// The claims that they belong to, as they were told.
    claims: Vec<(String, Fence)>,
    voice: Arc<dyn Voice>,
    is_told: Arc<AtomicBool>,
}

impl GivingUp {
    /// What tells the followers while the requests are under way.
    pub(super) fn telling(&self, seat: &Arc<Seat>) -> Telling {
        Telling {
            claims: self.claims.iter().map(|(path, _)| path.clone()).collect(),
            seat: Arc::clone(seat),
            voice: Arc::clone(&self.voice),
            is_told: Arc::clone(&self.is_told),
        }
    }
}

/// Tells the followers that claims are given up. A request is made of it where the errand is done: a
/// future that is made before takes room on the component's stack, for as long as the component lives.
pub(super) struct Telling {
    claims: Vec<String>,
    seat: Arc<Seat>,
    voice: Arc<dyn Voice>,
    is_told: Arc<AtomicBool>,
}

/// Has the followers told, if they are to be, once the session waits for what depends on the claims, and
/// not before.
pub(super) async fn told_beside<T>(
    telling: Option<Telling>,
    request: impl Future<Output = T>,
) -> T {
    let Some(Telling { claims, seat, voice, is_told }) = telling else {
        return request.await;
    };
    let told = async {
        seat.until_waited_for().await;
        is_told.store(true, Ordering::Release);
        claims.iter().for_each(|path| voice.released(path));
        pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        answer = request => answer,
        never = told => match never {},
    }
}

impl State {
    /// What of the claim the requests give up; none, as mostly, if nothing.
    pub(super) fn giving_up<'a>(
        &self,
        requests: impl IntoIterator<Item = &'a session::Request>,
    ) -> Option<GivingUp> {
        if self.claimed.is_empty() {
            return None;
        }
        let (mut deleted, mut claims) = (Vec::new(), Vec::new());
        for (place, request) in requests.into_iter().enumerate() {
            for path in deletions(request) {
                let Some(claimed) = self.claimed.iter().find(|it| it.has(path)) else { continue };
                deleted.push((place, path.to_owned()));
                let claim = (claimed.told().to_owned(), claimed.fence);
                if !claims.contains(&claim) {
                    claims.push(claim);
                }
            }
        }
        let voice = Arc::clone(&self.surroundings.voice);
        (!deleted.is_empty()).then(|| GivingUp { deleted, claims, voice, is_told: Arc::default() })
    }

    /// The requests were answered: those for which `is_done` have given up what they delete.
    pub(super) fn given_up(&mut self, what: GivingUp, is_done: impl Fn(usize) -> bool) {
        let GivingUp { deleted, claims, is_told, .. } = what;
        let is_told = is_told.load(Ordering::Acquire);
        for (_, path) in deleted.iter().filter(|(place, _)| is_done(*place)) {
            self.forget_claim(path, is_told);
        }
        if !is_told {
            return;
        }
        for (path, fence) in claims {
            // What was told has not come to pass, as where the caller withdrew while something still depended
            // on the claim. Not so if somebody else has deleted the znode meanwhile. And of a write that was
            // sent and not answered nobody knows whether it happened: the claim's watch tells.
            let is_claimed = self.claimed.iter().any(|it| it.has(&path));
            if is_claimed && self.surroundings.seat.still_holds(&path) {
                self.surroundings.voice.held(&path, fence);
            }
        }
    }

    /// Tells that a claim is given up, if the znode at `path` is one of its own; answers which.
    pub(super) fn released(&mut self, path: &str) -> Option<Claimed> {
        self.forget_claim(path, false)
    }

    /// Tells a claim as held again that was told as given up but could not be, unless it is lost meanwhile.
    pub(super) fn stands(&mut self, claimed: Claimed) {
        if self.surroundings.seat.still_holds(claimed.told()) {
            self.surroundings.voice.held(claimed.told(), claimed.fence);
            self.claimed.push(claimed);
        }
    }

    fn forget_claim(&mut self, path: &str, is_told: bool) -> Option<Claimed> {
        let at = self.claimed.iter().position(|it| it.has(path))?;
        let claimed = self.claimed.swap_remove(at);
        if !is_told {
            self.surroundings.voice.released(claimed.told());
        }
        Some(claimed)
    }

    /// Tells that the znodes are claimed, in the place of earlier ones that the writes have deleted.
    pub(super) fn claimed(
        &mut self,
        paths: Vec<String>,
        fence: Fence,
        replaced: &[session::Write],
    ) {
        let is_replaced = |it: &Claimed| {
            let mut deleted = replaced.iter().filter_map(deleted);
            deleted.any(|path| it.has(path)) || paths.iter().any(|path| it.has(path))
        };
        self.claimed.retain(|it| !is_replaced(it));
        let claimed = Claimed { paths, fence };
        self.surroundings.voice.held(claimed.told(), fence);
        self.claimed.push(claimed);
    }
}

fn deletions(request: &session::Request) -> impl Iterator<Item = &str> {
    let writes = match request {
        session::Request::Write(write) => std::slice::from_ref(write),
        session::Request::Multi(writes) => writes,
        _ => &[],
    };
    writes.iter().filter_map(deleted)
}

fn deleted(write: &session::Write) -> Option<&str> {
    match write {
        session::Write::Delete { path, .. } => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::{Mutex, PoisonError};

    use futures_util::FutureExt;

    use super::*;
    use crate::guest::bindings::wok::recipe::participant::Host as _;
    use crate::guest::limits::Limits;
    use crate::guest::state::tests::state;
    use crate::guest::surroundings::LogLevel;
    use crate::session::SeatLimits;
    use crate::session::stand_in::{StandIn, hold};

    #[derive(Default)]
    struct Heard(Mutex<Vec<&'static str>>);

    impl Heard {
        fn hear(&self, what: &'static str) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
        }

        fn take(&self) -> Vec<&'static str> {
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }

    impl Voice for Heard {
        fn waiting(&self, _: &str) {}
        fn held(&self, _: &str, _: Fence) {
            self.hear("held");
        }
        fn released(&self, _: &str) {
            self.hear("released");
        }
        fn emit(&self, _: &str, _: Vec<(String, String)>) {}
        fn log(&self, _: LogLevel, _: &str) {}
    }

    #[tokio::test]
    async fn a_release_is_told_before_the_znode_can_be_gone() {
        let stand_in = StandIn::open();
        let seat = Arc::new(stand_in.seat(SeatLimits::default()));
        let path = hold(&seat).await;
        let held = seat.held().unwrap();
        let heard = Arc::new(Heard::default());
        let mut state = state(&seat, heard.clone(), Limits::default());
        state.claimed(vec![path.clone()], held.fence, &[]);
        assert_eq!(heard.take(), ["held"]);
        let own = state.surroundings.mount.strip(&path).unwrap();
        assert!(state.release(own).now_or_never().is_none(), "it is not answered");
        assert_eq!(heard.take(), ["released"]);
        assert!(seat.still_holds(&path), "its deletion was not even sent");
    }

    #[tokio::test]
    async fn what_was_told_as_given_up_is_told_as_held_again_if_its_deletion_was_never_sent() {
        let stand_in = StandIn::open();
        let seat = Arc::new(stand_in.seat(SeatLimits::default()));
        let path = hold(&seat).await;
        let held = seat.held().unwrap();
        let heard = Arc::new(Heard::default());
        let mut state = state(&seat, heard.clone(), Limits::default());
        state.claimed(vec![path.clone()], held.fence, &[]);
        assert_eq!(heard.take(), ["held"]);
        let delete = session::Write::Delete { path: path.clone(), version: None };
        let requests =
            [session::Request::Write(delete.clone()), session::Request::Multi(vec![delete])];
        let dependent = seat.depend(&held).unwrap();
        let [delete, multi] = &requests;
        for request in [delete, multi] {
            let given_up = state.giving_up([request]).unwrap();
            let telling = Some(given_up.telling(&seat));
            // A caller that withdraws has the request dropped.
            let deleting = told_beside(telling, seat.submit(request.clone()));
            assert!(pin!(deleting).now_or_never().is_none());
            state.surroundings.scope.cancel();
            state.given_up(given_up, |_| false);
            assert_eq!(heard.take(), ["released", "held"], "{request:?}");
        }
        let given_up = state.giving_up([multi]).unwrap();
        let telling = Some(given_up.telling(&seat));
        {
            let mut deleting = pin!(told_beside(telling, seat.submit(multi.clone())));
            assert!(deleting.as_mut().now_or_never().is_none());
            stand_in.hold_writes_up();
            drop(dependent);
            assert!(deleting.now_or_never().is_none());
        }
        state.given_up(given_up, |_| false);
        assert_eq!(heard.take(), ["released"], "it was sent, and nobody knows what became of it");
    }
}
