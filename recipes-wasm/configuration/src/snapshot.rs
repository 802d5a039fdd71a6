//! Reading keys: one by itself, or all of them at one revision.

use std::cell::RefCell;

use wok_sdk::names;
use wok_sdk::zookeeper::{Contents, Error, Reply, Request, pipeline};

use crate::decide::{Look, is_key, is_snapshot};
use crate::{ROOT, path};

/// How often a snapshot looks before it gives up: a look takes one round trip, and the server answers
/// its reads one behind the other, so only constant writing spoils this many.
const LOOKS: usize = 16;

/// The most keys of a snapshot.
const MOST_KEYS: usize = 1000;

/// The most bytes of a snapshot's values. Each is a value of 40 bytes in the host, which lets an answer have
/// 40 MiB of them, those around the data included.
const MOST_BYTES: usize = 768 << 10;

/// As many requests as the host takes in one pipeline.
const PIPELINE: usize = 128;

/// Where replies that are none of a key's stand among those of a look: behind the `sync`, and last.
const BEFORE_KEYS: usize = 2;

thread_local! {
    /// The keys that the newest list had: a guess of what the next look will find, and no more. With
    /// it a look takes one round trip, in which the list says whether the guess was right.
    static GUESS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The value of a key, as the server's leader knows it; none if it has none.
pub(crate) fn get(key: &str) -> Result<Option<Contents>, Error> {
    let path = path(key);
    let reads = [Request::Sync(path.clone()), Request::GetData(path)];
    loop {
        let mut replies = pipeline(&reads).into_iter();
        let synced = replies.next().map_or(Ok(()), |reply| reply.map(drop));
        match synced.and_then(|()| data(replies.next())) {
            // The connection was lost, and nothing was written.
            Err(Error::OutcomeUnknown) => {}
            other => return other,
        }
    }
}

/// All keys, in order, and their values at one revision.
pub(crate) fn snapshot() -> Result<(u64, Vec<(String, Contents)>), Error> {
    let mut keys = GUESS.take();
    let mut looks = 0;
    while looks < LOOKS {
        // What this session reads after that never gets older, so the first look alone needs it.
        let sync = (looks == 0).then(|| Request::Sync(ROOT.to_owned()));
        let (look, values) = match look(sync, &keys) {
            Ok(found) => found,
            // The connection was lost, and nothing was written.
            Err(Error::OutcomeUnknown) => continue,
            Err(error) => return Err(error),
        };
        if let Some(revision) = is_snapshot(&look, &keys) {
            GUESS.set(look.listed);
            return Ok((revision, keys.into_iter().zip(values).collect()));
        }
        if look.listed.len() > MOST_KEYS {
            return Err(Error::OverLimit(format!(
                "snapshot: {} keys, and at most {MOST_KEYS} fit; give some of them a mount of their \
                 own",
                look.listed.len()
            )));
        }
        keys = look.listed;
        looks += 1;
    }
    Err(Error::Other(format!(
        "snapshot: the configuration changed during each of {LOOKS} looks; ask again when it is \
         written less often"
    )))
}

/// Reads the root, the list of the keys, these keys, and the root again, in this order.
fn look(sync: Option<Request>, keys: &[String]) -> Result<(Look, Vec<Contents>), Error> {
    let root = || Request::GetData(ROOT.to_owned());
    let has_sync = sync.is_some();
    let mut requests: Vec<Request> = sync.into_iter().collect();
    requests.extend([root(), Request::GetChildren(ROOT.to_owned())]);
    requests.extend(keys.iter().map(|key| Request::GetData(path(key))));
    requests.push(root());

    let mut look = Look { is_whole: true, ..Look::default() };
    let (mut values, mut bytes) = (Vec::new(), 0_usize);
    let mut place = usize::from(!has_sync);
    for part in requests.chunks(PIPELINE) {
        for reply in pipeline(part) {
            match place {
                0 => drop(reply?),
                1 => look.before = data(Some(reply))?.map(|root| root.stat.mzxid),
                BEFORE_KEYS => look.listed = listed(reply)?,
                _ if place <= BEFORE_KEYS + keys.len() => match data(Some(reply))? {
                    Some(value) => {
                        bytes = bytes.saturating_add(value.data.len());
                        values.push(value);
                    }
                    None => look.is_whole = false,
                },
                _ => look.after = data(Some(reply))?.map(|root| root.stat.mzxid),
            }
            place += 1;
        }
        if bytes > MOST_BYTES {
            return Err(Error::OverLimit(format!(
                "snapshot: more than {MOST_BYTES} bytes; give some of the keys a mount of their own"
            )));
        }
    }
    Ok((look, values))
}

/// The keys among the children, in order.
fn listed(reply: Result<Reply, Error>) -> Result<Vec<String>, Error> {
    match reply {
        Ok(Reply::Children(children)) => {
            let mut keys: Vec<String> = names(&children).filter(|name| is_key(name)).collect();
            keys.sort_unstable();
            Ok(keys)
        }
        // It comes with the first key.
        Err(Error::NoNode) => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(_) => Err(Error::Other("get-children: another reply".to_owned())),
    }
}

/// The data of a reply; none if there is no such znode.
fn data(reply: Option<Result<Reply, Error>>) -> Result<Option<Contents>, Error> {
    match reply {
        Some(Ok(Reply::Data(contents))) => Ok(Some(contents)),
        Some(Err(Error::NoNode)) => Ok(None),
        Some(Err(error)) => Err(error),
        _ => Err(Error::Other("get-data: another reply".to_owned())),
    }
}
