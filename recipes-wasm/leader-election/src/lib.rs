//! The leader election of ZooKeeper's recipes.
//!
//! The numbers in the code are the steps of the published pseudo-code:
//!
//! 1. Create an ephemeral sequential znode in the election's directory, with a GUID in its name.
//! 2. List the directory.
//! 3. Watch the candidate with the largest lower counter.
//!
//! Steps 1 and 2 are sent together: ZooKeeper carries them out in their order.
//!
//! When it is gone: list again; lead if no counter is lower, otherwise watch as in step 3.
//! (If the one that went was the first, there is nobody left to look for.) The text leaves open
//! whether a leader knows that it leads: it is told by `elected`, and can tell others by `announce`.

mod bindings;
mod candidate;
mod decide;
mod election;
mod observer;

use std::cell::RefCell;

use bindings::exports::wok::leader_election::leader_election::{
    Candidacy, Config, Format, Guest, Term,
};
use candidate::Candidate;
use observer::Observer;
use wok_sdk::Naming;
use wok_sdk::zookeeper::Error;

const CURATOR: Naming = Naming::curator("-latch-");
const KAZOO: Naming = Naming::kazoo("__lock__");

/// The tags of the two that watch.
const CANDIDATE: u64 = 1;
const OBSERVER: u64 = 2;

/// One client's part in an election.
#[derive(Debug)]
pub struct LeaderElection;

struct State {
    naming: Naming,
    candidate: Option<Candidate>,
    observer: Option<Observer>,
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { naming: CURATOR, candidate: None, observer: None }) };
}

impl Guest for LeaderElection {
    fn configure(config: Config) -> Result<(), String> {
        let naming = match config.format.unwrap_or(Format::Curator) {
            Format::Curator => CURATOR,
            Format::Kazoo => KAZOO,
        };
        STATE.with_borrow_mut(|state| state.naming = naming);
        Ok(())
    }

    fn wake(fired: Vec<u64>) {
        STATE.with_borrow_mut(|state| {
            if fired.contains(&CANDIDATE) {
                let candidate = state.candidate.take();
                state.candidate = candidate.and_then(|candidate| candidate.wake(CANDIDATE));
            }
            if fired.contains(&OBSERVER) {
                let observer = state.observer.take();
                state.observer = observer.map(|observer| observer.wake(OBSERVER));
            }
        });
    }

    fn volunteer() -> Result<Candidacy, Error> {
        STATE.with_borrow_mut(|state| {
            let candidate = match state.candidate.take() {
                Some(candidate) => candidate,
                None => Candidate::volunteer(state.naming, CANDIDATE)?,
            };
            let candidate = state.candidate.insert(candidate);
            Ok(Candidacy { path: candidate.path().to_owned(), fence: candidate.fence() })
        })
    }

    fn resign() -> Result<(), Error> {
        let Some(mut candidate) = STATE.with_borrow_mut(|state| state.candidate.take()) else {
            return Err(Error::Invalid("resign: this participant is no candidate".to_owned()));
        };
        let resigned = candidate.resign();
        if !candidate.has_resigned() {
            STATE.with_borrow_mut(|state| state.candidate = Some(candidate));
        }
        resigned
    }

    fn leader() -> Result<Option<Term>, Error> {
        election::leader(STATE.with_borrow(|state| state.naming))
    }

    fn announce(data: Vec<u8>) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| match &mut state.candidate {
            Some(candidate) => candidate.announce(&data),
            None => Err(Error::Invalid("announce: this participant does not lead".to_owned())),
        })
    }

    fn observe() -> Result<Option<Term>, Error> {
        STATE.with_borrow_mut(|state| {
            let (leader, observer) = Observer::observe(state.naming, OBSERVER)?;
            state.observer = Some(observer);
            Ok(leader)
        })
    }
}
