//! Reads that every recipe needs.

use std::iter;

use crate::zookeeper::{self, Children, Error, Event};

/// How many names are lifted at once: a component's memory never shrinks, so a batch is what a look
/// at a directory costs for good (about 3 KiB with a contender's name), however long the list is. A
/// larger one would save no time: a host call costs less than to read the names it brings.
pub(crate) const BATCH: u32 = 32;

/// The names of the children, fetched from the host in batches.
pub fn names(children: &Children) -> impl Iterator<Item = String> {
    iter::repeat_with(|| children.next(BATCH)).take_while(|batch| !batch.is_empty()).flatten()
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
