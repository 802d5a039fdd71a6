//! The leases: a znode for each permit that somebody holds, in a directory whose data say how many
//! permits there are.

use wok_sdk::participant::{self, Fence};
use wok_sdk::zookeeper::{
    self, Contents, CreateMode, Error, MultiError, Reply, Request, SetDataRequest, VersionRequest,
    Watch, WatchRequest, Write, get_children, get_data, multi, set_data,
};
use wok_sdk::{Contender, Named, Naming, Own, names, reads};

use crate::decide::{Leases, Stored};

/// The leases' directory, as Curator calls it.
pub(crate) const DIRECTORY: &str = "/leases";

/// How a lease is named. Curator gives it the counter of this directory; here it has the UUID and the
/// counter of the place in the queue that it was taken from, and Curator counts it whatever its name is.
const LEASE: Naming = Naming::curator("-lease-");

/// Permits that this participant holds: their leases, and what they were granted with.
#[derive(Debug)]
pub(crate) struct Permits {
    leases: Vec<Named>,
    /// The fence of all of them.
    pub(crate) fence: Fence,
}

/// How an attempt to take permits ended.
#[derive(Debug)]
pub(crate) enum Taken {
    /// They are held.
    Permits(Permits),
    /// The number was written since it was read. The place is still there.
    Changed(Own),
}

/// What a look at the directory has shown.
#[derive(Debug)]
pub(crate) enum Seen {
    /// There is no directory.
    Nothing,
    /// What there is, without a watch.
    Leases(Leases),
    /// What there is, watched: one watch fires when somebody says another number of permits, one when
    /// leases come or go.
    Watched(Leases, [Watch; 2]),
}

impl Seen {
    /// What there is.
    pub(crate) fn leases(&self) -> Option<&Leases> {
        match self {
            Seen::Nothing => None,
            Seen::Leases(leases) | Seen::Watched(leases, _) => Some(leases),
        }
    }
}

/// Reads how many permits there are and how many leases, in one request.
pub(crate) fn look() -> Result<Seen, Error> {
    match get_data(DIRECTORY) {
        Ok(read) => Ok(Seen::Leases(leases(&read, read.stat.num_children))),
        Err(Error::NoNode) => Ok(Seen::Nothing),
        Err(error) => Err(error),
    }
}

/// The same, and watches for another number of permits and for leases that come and go.
pub(crate) fn watch() -> Result<Seen, Error> {
    // Nothing waits for them while idle, so the tag says nothing.
    let watched = || WatchRequest { path: DIRECTORY.to_owned(), tag: 0 };
    let requests = [Request::WatchData(watched()), Request::WatchChildren(watched())];
    let mut replies = reads(&requests).into_iter();
    let (number, there) = (replies.next(), replies.next());
    let (read, of_number) = match number {
        Some(Ok(Reply::WatchedData(watched))) => watched,
        Some(Err(Error::NoNode)) => return Ok(Seen::Nothing),
        Some(Err(error)) => return Err(error),
        _ => return Err(other("watch-data")),
    };
    let (children, of_leases) = match there {
        Some(Ok(Reply::WatchedChildren(watched))) => watched,
        Some(Err(Error::NoNode)) => return Ok(Seen::Nothing),
        Some(Err(error)) => return Err(error),
        _ => return Err(other("watch-children")),
    };
    Ok(Seen::Watched(leases(&read, children.count()), [of_number, of_leases]))
}

fn leases(read: &Contents, taken: u32) -> Leases {
    Leases { stored: Stored::parse(&read.data), version: read.stat.version, taken }
}

/// Creates the directory, which says how many permits there are. To be called by the first in the queue
/// alone: so that a number which the first in the queue has read, and whose version it checks when it
/// takes permits, is never that of an earlier directory. False if there is a directory already.
pub(crate) fn create(permits: u32, mode: CreateMode) -> Result<bool, Error> {
    match zookeeper::create(DIRECTORY, &Stored::data(permits), mode) {
        Ok(_) => Ok(true),
        Err(Error::NodeExists) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Says how many permits there are, if the data have that version, or whatever they are. False if they
/// have another one, or if there is no directory.
pub(crate) fn set(permits: u32, version: Option<i32>) -> Result<bool, Error> {
    match set_data(DIRECTORY, &Stored::data(permits), version) {
        Ok(_) => Ok(true),
        Err(Error::NoNode | Error::BadVersion) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes so many permits in exchange for the place in the queue, in one transaction: the leases are
/// there, and claimed, in the moment in which the next in the queue has its turn. `version` is that of
/// the data that say how many `permits` there are.
///
/// Nobody but the first in the queue creates leases, and in that transaction this place is still there.
/// Still the leases may have been read before the one ahead took its own. A session may move to a server
/// that is behind just as its participant becomes the first, and that server shows fewer leases than there
/// are. (Before ZooKeeper 3.9 a client does not remember how new the event was that told it of its turn, so
/// it accepts that server; a leader that is cut off answers even a `sync`.) So each transaction writes the
/// number once more: its version tells of every lease that was created since the number was read.
pub(crate) fn take(place: Own, wanted: u32, permits: u32, version: i32) -> Result<Taken, Error> {
    let Some(lease) = LEASE.in_the_place_of(place.contender()) else {
        return Err(Error::Other(format!("{}: no place in a queue", place.path())));
    };
    let paths: Vec<String> = (1..=wanted).map(|number| path(&lease, number)).collect();
    let owner = participant::owner();
    let gone = VersionRequest { path: place.path().to_owned(), version: None };
    let (path_of_number, data) = (DIRECTORY.to_owned(), Stored::data(permits).to_vec());
    let number = SetDataRequest { path: path_of_number, data, version: Some(version) };
    let mut writes = vec![Write::Delete(gone), Write::SetData(number)];
    writes.extend(paths.iter().map(|path| Named::write(path, owner.as_bytes())));
    // Before the request: its caller may withdraw while it is under way.
    let leases: Vec<Named> = paths.iter().cloned().map(Named::of).collect();
    match multi(&writes, &paths) {
        Ok(committed) => {
            place.gone();
            let fence = committed.fence;
            let fence = fence.ok_or_else(|| Error::Other("multi: no fence".to_owned()))?;
            Ok(Taken::Permits(Permits { leases, fence }))
        }
        Err(MultiError { index: Some(1), error: Error::BadVersion | Error::NoNode }) => {
            forget(leases);
            Ok(Taken::Changed(place))
        }
        // Somebody has deleted the place.
        Err(MultiError { index: Some(0), error: Error::NoNode }) => {
            place.gone();
            forget(leases);
            Err(Error::NoNode)
        }
        Err(failed) => Err(failed.error),
    }
}

impl Permits {
    /// The paths of the leases.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.leases.iter().map(|lease| lease.path().to_owned()).collect()
    }

    /// How many they are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.leases.len()).unwrap_or(u32::MAX)
    }

    /// Gives them back in one transaction, so that who waits is woken once.
    ///
    /// # Errors
    /// As `multi`. Where the server refuses, as by an access list, all of them are still held.
    pub(crate) fn give_back(&mut self) -> Result<(), Error> {
        let delete = |path| Write::Delete(VersionRequest { path, version: None });
        let writes: Vec<Write> = self.paths().into_iter().map(delete).collect();
        match multi(&writes, &[]) {
            Ok(_) => {
                forget(std::mem::take(&mut self.leases));
                Ok(())
            }
            // None is given back.
            Err(MultiError { index: Some(_), error }) if !matches!(error, Error::NoNode) => {
                Err(error)
            }
            // The host deletes those that are left, one by one.
            Err(failed) => {
                self.leases.clear();
                Err(failed.error)
            }
        }
    }
}

/// Guards them no more: they are gone, or never were.
fn forget(leases: Vec<Named>) {
    for lease in leases {
        lease.gone();
    }
}

/// The leases whose names say that they are some, at most so many. Others count as well.
pub(crate) fn holders(most: usize) -> Result<Vec<Contender>, Error> {
    match get_children(DIRECTORY) {
        Ok(children) => {
            let leases = names(&children).filter_map(|name| LEASE.read(name));
            Ok(leases.take(most).collect())
        }
        Err(Error::NoNode) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The path of the lease with that number of one grant.
fn path(lease: &Contender, number: u32) -> String {
    match number {
        1 => lease.path(DIRECTORY),
        _ => [DIRECTORY, "/", &number.to_string(), "-", &lease.name].concat(),
    }
}

fn other(request: &str) -> Error {
    Error::Other([request, ": another reply"].concat())
}
