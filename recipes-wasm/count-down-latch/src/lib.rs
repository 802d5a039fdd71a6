//! A count-down latch, for which ZooKeeper's recipes have no text. Its steps:
//!
//! Count down:
//!
//! 1. Look at the latch, and make it if nobody has.
//! 2. In one transaction create the id's child, write that one less remains, at the version that was
//!    read, and delete the gate if none remains.
//! 3. If the id's child was there, it is counted. If the latch has changed, or the reply was lost, read
//!    it again, and go to 2: an id that was counted finds its child.
//!
//! Wait:
//!
//! 1. Look at the latch, and make it if nobody has.
//! 2. If none remains, go on.
//! 3. Watch the gate. (No count touches it but the last, so no other one wakes a waiter.)
//! 4. When it is gone, or was, read the latch again, and go to 2.

mod bindings;
mod decide;
mod latch;

use std::cell::Cell;

use bindings::exports::wok::count_down_latch::count_down_latch::{Config, Guest};
use decide::MOST;
use latch::{Counted, count, look, look_or_make, no_gate, watch_gate};
use wok_sdk::zookeeper::{self, Error};

/// One client's part in the latch.
#[derive(Debug)]
pub struct CountDownLatch;

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(1) };
}

impl Guest for CountDownLatch {
    fn configure(config: Config) -> Result<(), String> {
        if !(1..=MOST).contains(&config.count) {
            return Err(format!("count: {} is not from 1 to {MOST}", config.count));
        }
        COUNT.set(config.count);
        Ok(())
    }

    fn count_down(id: String) -> Result<u32, Error> {
        let child = decide::name(&id).map_err(Error::Invalid)?;
        let mut found = look_or_make(COUNT.get())?; // 1
        loop {
            match count(found, &child)? {
                Counted::Open => return Ok(0),
                Counted::Now(after) => return Ok(after.remaining), // 2
                Counted::Before => return found.again().map(|found| found.latch.remaining), // 3
                Counted::Changed => found = found.again()?,        // 3
            }
        }
    }

    fn wait() -> Result<(), Error> {
        let mut found = look_or_make(COUNT.get())?; // 1
        while !found.latch.is_open() {
            let gate = watch_gate()?; // 3
            if let Some(gate) = &gate {
                zookeeper::wait(&[gate])?;
            }
            found = found.again()?; // 4
            if gate.is_none() && !found.latch.is_open() {
                return Err(no_gate());
            }
        }
        Ok(()) // 2
    }

    fn remaining() -> Result<u32, Error> {
        let count = COUNT.get();
        Ok(look(count)?.map_or(count, |found| found.latch.remaining))
    }
}
