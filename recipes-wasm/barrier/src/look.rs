//! Looks at the barrier, each of which is as fresh as what it decides.

use wok_sdk::zookeeper::{
    Contents, Error, MultiError, Reply, Request, VersionRequest, Watch, WatchRequest, Write,
    pipeline, watch_data,
};

/// The mount is the barrier's own znode.
pub(crate) const BARRIER: &str = "/";

/// Nothing waits for the barrier while idle, so the tag says nothing.
const TAG: u64 = 0;

/// Reads the barrier as it stood at some moment of this call; none if it is not up.
pub(crate) fn look() -> Result<Option<Contents>, Error> {
    match confirmed(Request::GetData(BARRIER.to_owned()))? {
        None => Ok(None),
        Some(Reply::Data(contents)) => Ok(Some(contents)),
        Some(_) => Err(Error::Other("get-data: another reply".to_owned())),
    }
}

/// The same, and watches for its deletion. It reads the data, since a watch set by `exists` on a znode
/// that is gone would stay.
pub(crate) fn look_and_watch() -> Result<Option<(Contents, Watch)>, Error> {
    match confirmed(Request::WatchData(WatchRequest { path: BARRIER.to_owned(), tag: TAG }))? {
        None => Ok(None),
        Some(Reply::WatchedData(found)) => Ok(Some(found)),
        Some(_) => Err(Error::Other("watch-data: another reply".to_owned())),
    }
}

/// Looks again after a watch has fired. What a session reads never gets older, so this read needs no
/// transaction.
pub(crate) fn look_again() -> Result<Option<(Contents, Watch)>, Error> {
    unless_gone(watch_data(BARRIER, TAG))
}

/// Reads behind a transaction that says whether the barrier is up, in the same round trip. The server
/// that this host is connected to may be behind the others: a read by itself could show a barrier that
/// was lowered, or none where one was raised, before the call began. The server answers this read only
/// when it has the transaction.
fn confirmed(read: Request) -> Result<Option<Reply>, Error> {
    let check = Write::Check(VersionRequest { path: BARRIER.to_owned(), version: None });
    let requests = [Request::Multi(vec![check]), read];
    loop {
        let mut replies = pipeline(&requests).into_iter();
        let confirmed = match replies.next() {
            Some(Ok(Reply::Multi(Ok(_)))) => Ok(()),
            Some(Ok(Reply::Multi(Err(MultiError { error, .. }))) | Err(error)) => Err(error),
            _ => Err(Error::Other("multi: another reply".to_owned())),
        };
        let read = match (confirmed, replies.next()) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(read)) => read,
            (Ok(()), None) => Err(Error::Other("a pipeline without its second reply".to_owned())),
        };
        match read {
            // The transaction has changed nothing, so it may be sent again.
            Err(Error::OutcomeUnknown) => {}
            read => return unless_gone(read),
        }
    }
}

fn unless_gone<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}
