//! The znodes of the latch.

use wok_sdk::confirmed;
use wok_sdk::zookeeper::{
    Contents, CreateMode, CreateRequest, Error, MultiError, Reply, Request, SetDataRequest, Stat,
    VersionRequest, Watch, Write, Written, ensure, get_data, multi, watch_data,
};

use crate::decide::{Latch, Step, agrees};

/// The mount is the latch's own znode.
const LATCH: &str = "/";

/// There until the latch opens. Only this is watched, so a count wakes nobody.
const GATE: &str = "/gate";

/// Nothing waits for the gate while idle, so the tag says nothing.
const TAG: u64 = 0;

/// The parts of a count.
const CHILD: Option<u32> = Some(0);
const OF_LATCH: Option<u32> = Some(1);
const OF_GATE: Option<u32> = Some(2);

/// The latch as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// What its data say.
    pub(crate) latch: Latch,
    /// The version of its znode, which a count must find.
    version: i32,
    /// Tells the latch from one that somebody has created in its place.
    czxid: u64,
}

impl Found {
    fn of(latch: Latch, stat: Stat) -> Self {
        Found { latch, version: stat.version, czxid: stat.czxid }
    }

    fn read(contents: &Contents, count: u32) -> Result<Option<Self>, Error> {
        let latch = Latch::parse(&contents.data).map_err(Error::Other)?;
        latch.map_or(Ok(()), |latch| agrees(latch, count)).map_err(Error::Invalid)?;
        Ok(latch.map(|latch| Found::of(latch, contents.stat)))
    }

    /// The latch as it is by now.
    ///
    /// What a session reads never gets older, and a count only happens at the version that was read,
    /// so this read needs no transaction.
    pub(crate) fn again(self) -> Result<Self, Error> {
        match Found::read(&get_data(LATCH)?, self.latch.count)? {
            Some(found) if found.czxid == self.czxid => Ok(found),
            _ => Err(Error::NoNode),
        }
    }
}

/// Looks at the latch as it stood at some moment of this call; none if nobody has made it yet.
pub(crate) fn look(count: u32) -> Result<Option<Found>, Error> {
    match contents()? {
        None => Ok(None),
        Some(contents) => Found::read(&contents, count),
    }
}

/// The same, and makes the latch if nobody has.
pub(crate) fn look_or_make(count: u32) -> Result<Found, Error> {
    loop {
        let version = match contents()? {
            None => {
                ensure(&[LATCH.to_owned()], CreateMode::Persistent)?;
                continue;
            }
            Some(contents) => match Found::read(&contents, count)? {
                Some(found) => return Ok(found),
                None => contents.stat.version,
            },
        };
        if let Some(made) = make(count, version)? {
            return Ok(made);
        }
    }
}

/// The latch's znode as it stood at some moment of this call: a read by itself could show a latch that
/// was deleted, and that was open, in the place of the one that is there.
fn contents() -> Result<Option<Contents>, Error> {
    match confirmed(LATCH, Request::GetData(LATCH.to_owned()))? {
        None => Ok(None),
        Some(Reply::Data(contents)) => Ok(Some(contents)),
        Some(_) => Err(Error::Other("get-data: another reply".to_owned())),
    }
}

/// Makes a latch of the znode without data; none if it is not any more what was read, or the reply was
/// lost.
fn make(count: u32, version: i32) -> Result<Option<Found>, Error> {
    let latch = Latch::new(count);
    match multi(&[set(latch, version), create(GATE)], &[]) {
        Ok(made) => match made.written.as_slice() {
            [Written::DataSet(stat), ..] => Ok(Some(Found::of(latch, *stat))),
            _ => Err(Error::Other("multi: another reply".to_owned())),
        },
        Err(MultiError {
            error: Error::BadVersion | Error::NoNode | Error::OutcomeUnknown,
            ..
        }) => Ok(None),
        Err(MultiError { error: Error::NodeExists, .. }) => Err(Error::Other(format!(
            "there is {GATE}, and the latch's own znode has no data: somebody has changed them; once \
             nobody uses the latch, delete both"
        ))),
        Err(failed) => Err(failed.error),
    }
}

/// What came of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// It is counted now, and the latch is like this.
    Now(Latch),
    /// It was counted before.
    Before,
    /// There is nothing to count: the latch is open.
    Open,
    /// The latch is not any more what was read, or the reply was lost.
    Changed,
}

/// Counts the id with that child: one `multi` creates the child, which happens once; writes what
/// remains at the version that was read, so that of two counts at one time each knows whether it is
/// the last; and deletes the gate if it is.
pub(crate) fn count(found: Found, child: &str) -> Result<Counted, Error> {
    let (after, gate) = match found.latch.step() {
        Step::Leave => return Ok(Counted::Open),
        Step::Count(after) => (after, None),
        Step::Open(after) => (after, Some(delete(GATE))),
    };
    let mut writes = vec![create(&[LATCH, child].concat()), set(after, found.version)];
    writes.extend(gate);
    match multi(&writes, &[]) {
        Ok(_) => Ok(Counted::Now(after)),
        Err(MultiError { index: CHILD, error: Error::NodeExists }) => Ok(Counted::Before),
        Err(MultiError { index: OF_LATCH, error: Error::BadVersion })
        | Err(MultiError { error: Error::OutcomeUnknown, .. }) => Ok(Counted::Changed),
        Err(MultiError { index: OF_GATE, error: Error::NoNode }) => Err(no_gate()),
        Err(MultiError { index: OF_GATE, error: Error::NotEmpty }) => Err(Error::Other(format!(
            "{GATE} has a child, so it cannot be opened: somebody has created one; delete the child"
        ))),
        Err(failed) => Err(failed.error),
    }
}

/// Watches the gate by reading its data, since a watch set by `exists` on a znode that is gone would
/// stay. None if there is no gate any more.
pub(crate) fn watch_gate() -> Result<Option<Watch>, Error> {
    match watch_data(GATE, TAG) {
        Ok((_, watch)) => Ok(Some(watch)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is wrong with a latch that is not open and has no gate.
pub(crate) fn no_gate() -> Error {
    Error::Other(format!(
        "{GATE} is missing, and the latch is not open: somebody has deleted it; create it again, \
         without data"
    ))
}

fn create(path: &str) -> Write {
    let (path, data, mode) = (path.to_owned(), Vec::new(), CreateMode::Persistent);
    Write::Create(CreateRequest { path, data, mode })
}

fn set(latch: Latch, version: i32) -> Write {
    let (path, data) = (LATCH.to_owned(), latch.data());
    Write::SetData(SetDataRequest { path, data, version: Some(version) })
}

fn delete(path: &str) -> Write {
    Write::Delete(VersionRequest { path: path.to_owned(), version: None })
}
