//! Who runs components' code, and for how long at a time.
//!
//! Participants share the threads of the host's runtime, and nothing obliges a component to give one
//! back. So its code runs in **turns** of a tick or two: the **ticker** interrupts code that has had a
//! whole tick. A **call** that is polled has its turns on the thread that polls it, and is charged for
//! them; one that **overruns** a turn goes on in the **slow lane**, a thread that gives way to every
//! other, until it blocks or returns; that is its **detour**. What a component waits for is an
//! **errand**: the host does it where the call is polled, off the component's stack, and enters the
//! component again when there is an answer.

mod call;
mod errand;
mod slow_lane;
mod ticker;
mod turn;

use std::io;

use slow_lane::SlowLane;
use ticker::Ticker;

pub(super) use call::{CpuSpent, Metered};
pub(super) use slow_lane::Running;
pub(super) use turn::Turn;

/// The threads that keep components in check, for as long as the value lives.
#[derive(Debug)]
pub(super) struct Scheduler {
    ticker: Ticker,
    slow_lane: SlowLane,
}

impl Scheduler {
    /// Starts both threads.
    ///
    /// # Errors
    /// The machine does not let a thread start.
    pub(super) fn start(wasmtime: wasmtime::Engine) -> io::Result<Self> {
        Ok(Scheduler { ticker: Ticker::start(wasmtime)?, slow_lane: SlowLane::start()? })
    }
}
