//! Changing a key: one transaction, which everybody who observes the root hears of.

use wok_sdk::zookeeper::{
    CreateMode, CreateRequest, Error, MultiError, SetDataRequest, VersionRequest, Write, Written,
    ensure, multi,
};

use crate::decide::{self, Expected, How, Refusal, Step};
use crate::marker;
use crate::{ROOT, path};

/// The parts of a change.
const OF_KEY: Option<u32> = Some(0);
const OF_ROOT: Option<u32> = Some(1);

/// A change that was made.
struct Changed {
    revision: u64,
    /// The version and the revision of the key, by what the host answers of it.
    of_key: Option<(i32, u64)>,
}

/// Why a change was not made.
enum Missed {
    /// The key's znode is not what it must be.
    Key(Error),
    Failed(Error),
}

/// Writes the value if the key is as expected. Answers the version and the revision of what it wrote.
pub(crate) fn set(key: &str, data: &[u8], expected: Expected) -> Result<(Option<i32>, u64), Error> {
    let mut how = decide::first(expected).map_err(Error::Invalid)?;
    loop {
        let refused = match change(key, &write(key, data, how)) {
            Ok(Changed { revision, of_key }) => {
                return Ok((decide::version(how, revision, of_key), revision));
            }
            Err(Missed::Key(refused)) => refused,
            Err(Missed::Failed(error)) => return Err(error),
        };
        let refusal = match refused {
            Error::NoNode => Refusal::NoNode,
            Error::NodeExists => Refusal::NodeExists,
            _ => Refusal::Other,
        };
        match decide::next(expected, how, refusal) {
            Step::Write(other) => how = other,
            Step::MakeRoot => make_root()?,
            Step::Refuse => return Err(refused),
        }
    }
}

/// Removes the key if it is as expected. Answers the revision.
pub(crate) fn remove(key: &str, expected: Expected) -> Result<u64, Error> {
    let version = expected.of_existing().map_err(Error::Invalid)?;
    let delete = Write::Delete(VersionRequest { path: path(key), version });
    match change(key, &delete) {
        Ok(Changed { revision, .. }) => Ok(revision),
        Err(Missed::Key(error) | Missed::Failed(error)) => Err(error),
    }
}

/// Does that to the key; writes the key's name into the root, which is what observers watch; and
/// changes the marker, which says what became of it if the reply is lost. All of it or nothing.
fn change(key: &str, of_key: &Write) -> Result<Changed, Missed> {
    loop {
        let marker = marker::take();
        match multi(&[of_key.clone(), touch(key), marker.change()], &[]) {
            Ok(done) => {
                marker::keep(marker.changed());
                let revision = marker::revision(done.written.last());
                let revision = revision.ok_or_else(|| {
                    Missed::Failed(Error::Other("multi: another reply".to_owned()))
                })?;
                let of_key = match done.written.first() {
                    Some(Written::DataSet(stat)) => Some((stat.version, stat.mzxid)),
                    _ => None,
                };
                return Ok(Changed { revision, of_key });
            }
            Err(MultiError { index: OF_KEY, error }) => {
                marker::keep(marker);
                return Err(Missed::Key(error));
            }
            Err(MultiError { index: OF_ROOT, error }) => {
                marker::keep(marker);
                return Err(Missed::Failed(error));
            }
            // Somebody else has deleted the marker or written to it: the next one has another name.
            Err(MultiError { index: Some(_), error: Error::NoNode | Error::BadVersion }) => {}
            // The marker may be there or not. It is dropped, and so released.
            Err(MultiError { error, .. }) => return Err(Missed::Failed(error)),
        }
    }
}

fn write(key: &str, data: &[u8], how: How) -> Write {
    let (path, data) = (path(key), data.to_vec());
    match how {
        How::Create => Write::Create(CreateRequest { path, data, mode: CreateMode::Persistent }),
        How::Replace(version) => Write::SetData(SetDataRequest { path, data, version }),
    }
}

fn touch(key: &str) -> Write {
    let (path, data) = (ROOT.to_owned(), key.as_bytes().to_vec());
    Write::SetData(SetDataRequest { path, data, version: None })
}

fn make_root() -> Result<(), Error> {
    ensure(&[ROOT.to_owned()], CreateMode::Persistent)
}
