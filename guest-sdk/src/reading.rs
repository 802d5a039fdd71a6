//! Reads that every recipe needs.

use std::iter;

use crate::zookeeper::{
    self, Children, Error, Event, MultiError, Reply, Request, VersionRequest, Write,
};

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

/// Reads a znode as it stood at some moment of this call; none if it was not there at some moment.
///
/// The server that this host is connected to may be behind the others, and what it shows may be from
/// before the call. So a transaction, which a majority takes part in, says first whether the znode is
/// there: the server answers the read, which is sent in the same round trip, only when it has that
/// transaction. What the same session reads after that never gets older, and needs no transaction.
///
/// The read is one of this znode, with a watch or without.
///
/// # Errors
/// As `multi` and the read; never `outcome-unknown`, since the transaction changes nothing and is sent
/// again.
pub fn confirmed(path: &str, read: Request) -> Result<Option<Reply>, Error> {
    let check = Write::Check(VersionRequest { path: path.to_owned(), version: None });
    let requests = [Request::Multi(vec![check]), read];
    loop {
        let mut replies = zookeeper::pipeline(&requests).into_iter();
        let there = checked(replies.next());
        let read = replies.next();
        let read =
            read.unwrap_or_else(|| Err(Error::Other("pipeline: too few replies".to_owned())));
        match there.and(read) {
            Ok(reply) => return Ok(Some(reply)),
            Err(Error::NoNode) => return Ok(None),
            Err(Error::OutcomeUnknown) => {}
            Err(error) => return Err(error),
        }
    }
}

/// What a multi that only checks was answered.
fn checked(reply: Option<Result<Reply, Error>>) -> Result<(), Error> {
    match reply {
        Some(Ok(Reply::Multi(Ok(_)))) => Ok(()),
        Some(Ok(Reply::Multi(Err(MultiError { error, .. }))) | Err(error)) => Err(error),
        _ => Err(Error::Other("multi: another reply".to_owned())),
    }
}

// `confirmed` does not call this one: a list of replies costs each component that needs one read 2 KiB.
/// As [`confirmed`], for several reads in one round trip: what they show is not from before this call. They
/// may be of other znodes than the one that the transaction checks.
///
/// # Errors
/// As [`confirmed`], and `no-node` if the znode at `path` was not there at some moment of this call.
pub fn confirmed_reads(path: &str, reads: &[Request]) -> Result<Vec<Result<Reply, Error>>, Error> {
    let check = Write::Check(VersionRequest { path: path.to_owned(), version: None });
    let requests = [&[Request::Multi(vec![check])], reads].concat();
    loop {
        let mut replies = zookeeper::pipeline(&requests).into_iter();
        let there = checked(replies.next());
        let replies: Vec<_> = replies.collect();
        let is_unknown = |reply: &Result<Reply, Error>| matches!(reply, Err(Error::OutcomeUnknown));
        match there {
            Err(Error::OutcomeUnknown) => {}
            Ok(()) if replies.iter().any(is_unknown) => {}
            there => return there.map(|()| replies),
        }
    }
}
