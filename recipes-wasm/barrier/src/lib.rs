//! The barrier of ZooKeeper's recipes.
//!
//! The numbers in the code are the steps of the published pseudo-code. The barrier is up while its
//! znode exists.
//!
//! 1. Look for the barrier's znode, and watch it. (By reading its data: a watch set by `exists` on a
//!    znode that is gone would stay. A transaction in the same round trip confirms what is read.)
//! 2. If there is none, proceed.
//! 3. Otherwise wait for an event.
//! 4. Look again, and wait again until the znode is removed. (Until the one that was met in step 1 is:
//!    one with another `czxid` was raised since. The published text goes on waiting there, though the
//!    barrier was open.)

mod bindings;
mod decide;
mod look;

use std::cell::Cell;

use bindings::exports::wok::barrier::barrier::{Guest, Raising};
use decide::{Raiser, Seen, raiser, seen};
use look::{BARRIER, look, look_again, look_and_watch};
use wok_sdk::participant;
use wok_sdk::zookeeper::{self, CreateMode, Error, create, delete};

/// One client's part in the barrier.
#[derive(Debug)]
pub struct Barrier;

impl Guest for Barrier {
    fn raise() -> Result<Raising, Error> {
        let mark = next_mark();
        let data = decide::data(&participant::owner(), &mark);
        loop {
            // With its data at once, below new parents as well: kazoo's waiters take a change of the
            // data for the event that they wait for, and then never pass.
            match create(BARRIER, &data, CreateMode::Persistent) {
                Ok(_) => return Ok(Raising::Raised),
                // It is up; or the reply was lost, and a look tells.
                Err(Error::NodeExists | Error::OutcomeUnknown) => {}
                Err(error) => return Err(error),
            }
            match look()?.map(|found| raiser(&found.data, &mark)) {
                Some(Raiser::ThisCall) => return Ok(Raising::Raised),
                Some(Raiser::Other(owner)) => return Ok(Raising::WasUp(owner)),
                // It has been lowered since, or was never raised.
                None => {}
            }
        }
    }

    fn wait() -> Result<(), Error> {
        let Some((met, mut watch)) = look_and_watch()? else { return Ok(()) }; // 1, 2
        loop {
            zookeeper::wait(&[&watch])?; // 3
            let found = look_again()?; // 4
            let now = found.as_ref().map(|(contents, _)| contents.stat.czxid);
            match (seen(met.stat.czxid, now), found) {
                (Seen::StillUp, Some((_, again))) => watch = again,
                _ => return Ok(()),
            }
        }
    }

    fn lower() -> Result<(), Error> {
        // The one that is to be lowered. After a lost reply the barrier that is up may be another one,
        // which somebody relies on who was told that it is up.
        let Some(met) = look()? else { return Ok(()) };
        loop {
            match delete(BARRIER, None) {
                Ok(()) | Err(Error::NoNode) => return Ok(()),
                Err(Error::OutcomeUnknown) => {}
                Err(error) => return Err(error),
            }
            let now = look()?.map(|found| found.stat.czxid);
            if seen(met.stat.czxid, now) == Seen::Lowered {
                return Ok(());
            }
        }
    }
}

/// A mark that no other call has.
fn next_mark() -> String {
    thread_local! {
        static MADE: Cell<u32> = const { Cell::new(0) };
    }
    let number = MADE.get();
    MADE.set(number.wrapping_add(1));
    decide::mark(&participant::id(), number)
}
