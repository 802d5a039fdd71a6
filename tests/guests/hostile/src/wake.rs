//! What `wake` does wrong.

use wok_sdk::participant::{Level, log};
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{Error, Watch, wait, watch_data};

use crate::WAKE;
use crate::attacks::{spin, trap};
use crate::bindings::exports::wok::hostile::hostile::OnWake;
use crate::floods::pairs;

/// As many pairs as the host's limits let through.
pub(crate) const FLOOD: u32 = 45_000;

/// The tags, so that a test can tell which fired.
const DATA: u64 = 1;
const ALARM: u64 = 2;

/// What is armed and what has happened.
pub(crate) struct State {
    watches: Vec<Watch>,
    then: OnWake,
    calls: u32,
    tags: u32,
}

impl State {
    pub(crate) const fn new() -> Self {
        State { watches: Vec::new(), then: OnWake::Count, calls: 0, tags: 0 }
    }

    pub(crate) fn woken(&self) -> (u32, u32) {
        (self.calls, self.tags)
    }
}

pub(crate) fn wake_when(
    path: Option<String>,
    after_ms: Option<u64>,
    then: OnWake,
) -> Result<(), Error> {
    let mut watches = Vec::new();
    if let Some(path) = path {
        watches.push(watch_data(&path, DATA)?.1);
    }
    watches.extend(after_ms.map(|after_ms| alarm(after_ms, ALARM)));
    WAKE.with_borrow_mut(|state| {
        state.watches = watches;
        state.then = then;
    });
    Ok(())
}

pub(crate) fn wake(fired: &[u64]) {
    let then = WAKE.with_borrow_mut(|state| {
        state.calls = state.calls.saturating_add(1);
        state.tags = state.tags.saturating_add(u32::try_from(fired.len()).unwrap_or(u32::MAX));
        state.then
    });
    match then {
        OnWake::Count => drop(take_watches()),
        OnWake::Leave => {}
        OnWake::Trap => trap(),
        OnWake::Spin => spin(),
        OnWake::Wait => {
            let watches = take_watches();
            let refused = wait(&watches.iter().collect::<Vec<_>>());
            log(Level::Info, &format!("wait in wake: {refused:?}"));
        }
        OnWake::Again => again(),
        OnWake::Flood => {
            again();
            pairs(1, FLOOD);
        }
    }
}

fn again() {
    let again = vec![alarm(0, ALARM)];
    drop(take_watches());
    WAKE.with_borrow_mut(|state| state.watches = again);
}

fn take_watches() -> Vec<Watch> {
    WAKE.with_borrow_mut(|state| std::mem::take(&mut state.watches))
}
