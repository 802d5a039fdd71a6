//! Reads that every recipe needs.

use std::cell::Cell;
use std::iter;

use crate::participant::{Level, log};
use crate::zookeeper::{self, Children, Error, Event};
use crate::{Contender, Naming};

/// How many names are lifted at once: a component's memory never shrinks, so a batch is what a look
/// at a directory costs for good (about 3 KiB with a contender's name), however long the list is. A
/// larger one would save no time: a host call costs less than to read the names it brings.
const BATCH: u32 = 32;

/// The names of the children, fetched from the host in batches.
pub fn names(children: &Children) -> impl Iterator<Item = String> {
    iter::repeat_with(|| children.next(BATCH)).take_while(|batch| !batch.is_empty()).flatten()
}

/// The contenders among the children.
///
/// Warns, once in a participant's life, of a contender of another naming: the clients that use that
/// naming stand in another line, and so the first of both lines hold at once. Costs no request.
pub fn contenders(children: &Children, naming: Naming) -> impl Iterator<Item = Contender> {
    names(children).filter_map(move |name| {
        if naming.is_of_another(&name) && !HAS_WARNED.replace(true) {
            let warning = [
                "/",
                &*name,
                " is no contender of the naming in use here: clients of another naming do not see \
                 each other's turns, and may hold at the same time; give all of them the same \
                 naming (`format` of a stock recipe), or other directories",
            ];
            log(Level::Warn, &warning.concat());
        }
        naming.read(name)
    })
}

thread_local! {
    /// Whether this participant, which has its component's memory for itself, has warned.
    static HAS_WARNED: Cell<bool> = const { Cell::new(false) };
}

/// How a znode went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It was the claim of a participant of this host. Where only the first of a line claims,
    /// nobody is ahead any more.
    AsClaim,
    /// It was no claim, or another host's, or it went unseen.
    Otherwise,
}

/// Waits until there is no such znode.
///
/// Reads the data, not the existence: a watch set by `exists` on a znode that is gone would stay.
/// A change of the data only has the znode looked at again; its deletion is a fact and is not.
///
/// # Errors
/// As `watch-data` and `wait`; so `cancelled` when the caller withdraws.
pub fn wait_until_gone(path: &str) -> Result<Gone, Error> {
    // Nothing waits for it while idle, so the tag says nothing.
    const TAG: u64 = 0;
    loop {
        let watch = match zookeeper::watch_data(path, TAG) {
            Ok((_, watch)) => watch,
            Err(Error::NoNode) => return Ok(Gone::Otherwise),
            Err(error) => return Err(error),
        };
        zookeeper::wait(&[&watch])?;
        match watch.fired() {
            Some(Event::ClaimDeleted) => return Ok(Gone::AsClaim),
            Some(Event::Deleted) => return Ok(Gone::Otherwise),
            _ => {}
        }
    }
}
