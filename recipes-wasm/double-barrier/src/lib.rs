//! The double barrier of ZooKeeper's recipes.
//!
//! The numbers in the code are the steps of the published pseudo-code. The barrier is a generation here,
//! a znode of its own for each round, and `ready` is a change of its data: so it is no child that could
//! be counted, and no round finds that of the round before.
//!
//! Enter:
//!
//! 1. Make a name for the own znode.
//! 2. Watch `ready`. (The generation's data; if they are set already, the round is another one's.)
//! 3. Create the own znode, an ephemeral one. (If the generation has not opened by then.)
//! 4. List the generation.
//! 5. If some are missing, wait for `ready`.
//! 6. Otherwise create `ready`. (By a `multi` that checks each member, so that all are there in that
//!    moment. It names those who are inside; others go on to the next generation.)
//!
//! Leave:
//!
//! 1. List the generation.
//! 2. If no member is left, all have finished.
//! 3. If only the own znode is left, delete it. (The generation goes with it.)
//! 4. If it is the lowest, wait for the highest.
//! 5. Otherwise delete it, if it is still there, and wait for the lowest.
//! 6. Go to 1.

mod bindings;
mod decide;
mod enter;
mod generation;
mod leave;

use std::cell::RefCell;

use bindings::exports::wok::double_barrier::double_barrier::{Config, Entry, Guest};
use enter::Inside;
use leave::Finished;
use wok_sdk::zookeeper::Error;

/// A round opens by one `multi`, which has a part for each member and two more, and 128 at most.
const LARGEST: u32 = 126;

/// One client's part in the barrier.
#[derive(Debug)]
pub struct DoubleBarrier;

struct State {
    size: u32,
    place: Place,
}

enum Place {
    /// With the generation that the next round is likely to be in.
    Outside {
        next: Option<i32>,
    },
    Inside(Inside),
    /// It has finished, and has not seen all others finish.
    Leaving(Finished),
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { size: 1, place: Place::Outside { next: None } }) };
}

impl Guest for DoubleBarrier {
    fn configure(config: Config) -> Result<(), String> {
        if !(1..=LARGEST).contains(&config.size) {
            return Err(format!("size: {} is not from 1 to {LARGEST}", config.size));
        }
        STATE.with_borrow_mut(|state| state.size = config.size);
        Ok(())
    }

    fn enter() -> Result<Entry, Error> {
        STATE.with_borrow_mut(|state| {
            let next = match &state.place {
                Place::Inside(inside) => return Ok(entry(inside)),
                Place::Outside { next } => *next,
                Place::Leaving(finished) => Some(finished.number.wrapping_add(1)),
            };
            let inside = enter::enter(state.size, next)?;
            let entry = entry(&inside);
            state.place = Place::Inside(inside);
            Ok(entry)
        })
    }

    fn leave() -> Result<(), Error> {
        STATE.with_borrow_mut(|state| {
            let outside = Place::Outside { next: None };
            let (finished, own) = match std::mem::replace(&mut state.place, outside) {
                Place::Inside(inside) => {
                    let (finished, own) = Finished::of(inside);
                    (finished, Some(own))
                }
                Place::Leaving(finished) => (finished, None),
                outside @ Place::Outside { .. } => {
                    state.place = outside;
                    let text = "leave: this participant is not inside";
                    return Err(Error::Invalid(text.to_owned()));
                }
            };
            let left = finished.leave(own);
            state.place = match left {
                Ok(()) => Place::Outside { next: Some(finished.number.wrapping_add(1)) },
                Err(_) => Place::Leaving(finished),
            };
            left
        })
    }
}

fn entry(inside: &Inside) -> Entry {
    Entry { path: inside.own.path().to_owned(), fence: inside.fence }
}
