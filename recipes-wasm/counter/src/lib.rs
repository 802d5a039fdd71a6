//! A shared counter, as the text's optimistic change of a value: read it with its version, write it
//! if the version still stands, and begin anew if somebody was faster.
//!
//! 1. Read the znode and its version.
//! 2. Write the new value at that version. Where there is nothing to write, have the ensemble
//!    confirm the version instead: a read may be older than the call, and what it shows is an answer
//!    only if a transaction says that it still stood during the call.
//! 3. If the version has changed, go to 1.
//!
//! A write whose reply is lost may have happened, and then it must not be repeated. So step 2 changes
//! an ephemeral znode of this participant as well, its marker, in the same `multi`: what became of
//! that one is known to the host after a reconnect, and so is what became of the counter.

mod bindings;
mod decide;

use std::cell::RefCell;

use bindings::exports::wok::counter::counter::{Compared, Guest};
use decide::Step;
use wok_sdk::zookeeper::{
    CreateMode, Error, MultiError, Reply, Request, SetDataRequest, VersionRequest, Write, ensure,
    get_data, multi,
};
use wok_sdk::{Marker, reads};

/// The mount is the counter's own znode.
const COUNTER: &str = "/";

/// The part of a `multi` that concerns the counter; the other one concerns the marker.
const OF_COUNTER: Option<u32> = Some(0);

/// One client's part in the counter.
#[derive(Debug)]
pub struct Counter;

thread_local! {
    static MARKER: RefCell<Option<Marker>> = const { RefCell::new(None) };
}

impl Guest for Counter {
    fn get() -> Result<i64, Error> {
        let both = [Request::Sync(COUNTER.to_owned()), Request::GetData(COUNTER.to_owned())];
        let mut found = 0;
        for reply in reads(&both) {
            match reply {
                Ok(Reply::Data(contents)) => found = value(&contents.data)?,
                // It comes with the first change.
                Ok(_) | Err(Error::NoNode) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn add(by: i64) -> Result<i64, Error> {
        match change(|value| decide::add(value, by))? {
            (_, Step::Set(sum)) => Ok(sum),
            (value, Step::Leave) => Err(Error::Invalid(format!(
                "add: {value} and {by} make more than 64 bits hold; the counter stays at {value}"
            ))),
        }
    }

    fn compare_and_set(expected: i64, new: i64) -> Result<Compared, Error> {
        Ok(match change(|value| decide::compare_and_set(value, expected, new))? {
            (_, Step::Set(_)) => Compared::Set,
            (value, Step::Leave) => Compared::Differs(value),
        })
    }
}

/// Does what `decide` says about the value, which is the counter's at the moment of the change.
/// Answers both.
fn change(decide: impl Fn(i64) -> Step) -> Result<(i64, Step), Error> {
    loop {
        let (value, version) = read()?; // 1
        let step = decide(value);
        let outcome = match step {
            Step::Set(new) => set(new, version), // 2
            Step::Leave => confirm(version),
        };
        match outcome {
            Ok(()) => return Ok((value, step)),
            Err(Missed::Changed) => {} // 3
            Err(Missed::Failed(error)) => return Err(error),
        }
    }
}

/// The value and the version of the znode, which is created where it is missing.
fn read() -> Result<(i64, i32), Error> {
    loop {
        match get_data(COUNTER) {
            Ok(contents) => return Ok((value(&contents.data)?, contents.stat.version)),
            Err(Error::NoNode) => ensure(&[COUNTER.to_owned()], CreateMode::Persistent)?,
            Err(error) => return Err(error),
        }
    }
}

fn value(data: &[u8]) -> Result<i64, Error> {
    decide::value(data).map_err(Error::Other)
}

/// Why a `multi` did nothing.
enum Missed {
    /// The counter is not any more what was read, or the marker is gone: look again.
    Changed,
    Failed(Error),
}

/// Writes the value at that version, together with the marker.
fn set(value: i64, version: i32) -> Result<(), Missed> {
    let of_counter = Write::SetData(SetDataRequest {
        path: COUNTER.to_owned(),
        data: decide::data(value),
        version: Some(version),
    });
    let marker = MARKER.take().unwrap_or_else(|| Marker::new("/adder-"));
    match multi(&[of_counter, marker.change()], &[]) {
        Ok(_) => MARKER.set(Some(marker.changed())),
        Err(MultiError { index: OF_COUNTER, error }) => {
            MARKER.set(Some(marker));
            return Err(missed(error));
        }
        // Somebody else has deleted the marker or written to it: the next change has another one.
        Err(MultiError { index: Some(_), error: Error::NoNode | Error::BadVersion }) => {
            return Err(Missed::Changed);
        }
        // The marker may be there or not. It is dropped, and so released.
        Err(MultiError { error, .. }) => return Err(Missed::Failed(error)),
    }
    Ok(())
}

/// Has the ensemble say that the counter is still at that version.
fn confirm(version: i32) -> Result<(), Missed> {
    let check = Write::Check(VersionRequest { path: COUNTER.to_owned(), version: Some(version) });
    match multi(&[check], &[]) {
        Ok(_) => Ok(()),
        // It has changed nothing, so it may be asked for again.
        Err(MultiError { error: Error::OutcomeUnknown, .. }) => Err(Missed::Changed),
        Err(MultiError { error, .. }) => Err(missed(error)),
    }
}

fn missed(error: Error) -> Missed {
    match error {
        Error::BadVersion | Error::NoNode => Missed::Changed,
        error => Missed::Failed(error),
    }
}
