//! Looks at the barrier, each of which is as fresh as what it decides.

use wok_sdk::confirmed;
use wok_sdk::zookeeper::{Contents, Error, Reply, Request, Watch, WatchRequest, watch_data};

/// The mount is the barrier's own znode.
pub(crate) const BARRIER: &str = "/";

/// Nothing waits for the barrier while idle, so the tag says nothing.
const TAG: u64 = 0;

/// Reads the barrier as it stood at some moment of this call; none if it is not up.
pub(crate) fn look() -> Result<Option<Contents>, Error> {
    match confirmed(BARRIER, Request::GetData(BARRIER.to_owned()))? {
        None => Ok(None),
        Some(Reply::Data(contents)) => Ok(Some(contents)),
        Some(_) => Err(Error::Other("get-data: another reply".to_owned())),
    }
}

/// The same, and watches for its deletion. It reads the data, since a watch set by `exists` on a znode
/// that is gone would stay.
pub(crate) fn look_and_watch() -> Result<Option<(Contents, Watch)>, Error> {
    let watched = WatchRequest { path: BARRIER.to_owned(), tag: TAG };
    match confirmed(BARRIER, Request::WatchData(watched))? {
        None => Ok(None),
        Some(Reply::WatchedData(found)) => Ok(Some(found)),
        Some(_) => Err(Error::Other("watch-data: another reply".to_owned())),
    }
}

/// Looks again after a watch has fired. What a session reads never gets older, so this read needs no
/// transaction.
pub(crate) fn look_again() -> Result<Option<(Contents, Watch)>, Error> {
    match watch_data(BARRIER, TAG) {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}
