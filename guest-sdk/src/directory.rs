//! A directory whose children mean something together: read as one, and followed.

use std::mem;

use crate::names;
use crate::reading::confirmed;
use crate::reads::reads;
use crate::zookeeper::{
    Children, Contents, Error, Owner, Reply, Request, Stat, Watch, WatchRequest, exists,
    get_children, watch_exists,
};

/// How many children are read in one round trip; with them goes one more look at the directory. A host
/// takes 128 requests at once.
const READ_AT_ONCE: usize = 120;

/// How often a directory is looked at that changes during each look.
const LOOKS: u32 = 16;

/// The most bytes of names and data. Each byte of an answer is a value of 40 bytes in the host, which lets an
/// answer have 40 MiB of them, those around the data included.
const MOST_BYTES: usize = 768 << 10;

/// The most children.
const MOST_CHILDREN: usize = 10_000;

/// The children of a directory as they were together at some moment of the call.
#[derive(Debug)]
pub struct Snapshot {
    /// The newest change of the directory.
    pub revision: u64,
    /// The names and what they hold, in the order of the names' bytes.
    pub children: Vec<(String, Contents)>,
}

/// The newest change of a directory: of its own data, or of which children it has. Grows with each
/// change, also where the directory is deleted and created again.
pub fn revision(stat: &Stat) -> u64 {
    stat.czxid.max(stat.mzxid).max(stat.pzxid)
}

/// Reads the children that are `wanted` by their names, as they were at one moment of the call. None
/// if there was no such directory at some moment.
///
/// That is so as long as nobody sets the data of a child without setting that of the directory in the
/// same transaction. What a session reads never gets older, so a directory that is the same before and
/// after its children are read has not changed in between.
///
/// A child that may not be read and is not ephemeral is left out.
///
/// # Errors
/// As the reads. `other` if the directory changes during each of sixteen looks; `over-limit` if there
/// are more than 10,000 children, or more than 768 KiB of names and data.
pub fn snapshot(directory: &str, wanted: impl Fn(&str) -> bool) -> Result<Option<Snapshot>, Error> {
    let list = Request::GetChildren(directory.to_owned());
    let mut children = match confirmed(directory, list)? {
        Some(Reply::Children(children)) => children,
        None => return Ok(None),
        Some(_) => return Err(another_reply("get-children")),
    };
    for _ in 0..LOOKS {
        match look(directory, &children, &wanted)? {
            Look::One(snapshot) => return Ok(Some(snapshot)),
            Look::Gone => return Ok(None),
            Look::Changed => {}
        }
        children = match get_children(directory) {
            Ok(children) => children,
            Err(Error::NoNode) => return Ok(None),
            Err(error) => return Err(error),
        };
    }
    Err(Error::Other(format!("{directory}: changed during each of {LOOKS} looks")))
}

/// What came of a look.
enum Look {
    One(Snapshot),
    Changed,
    Gone,
}

fn look(
    directory: &str,
    children: &Children,
    wanted: impl Fn(&str) -> bool,
) -> Result<Look, Error> {
    let before = revision(&children.stat());
    let mut listed: Vec<String> = names(children).filter(|name| wanted(name)).collect();
    if listed.len() > MOST_CHILDREN {
        let count = listed.len();
        let text = format!("{directory}: {count} children, and at most {MOST_CHILDREN} are read");
        return Err(Error::OverLimit(text));
    }
    listed.sort_unstable();
    let mut found = Vec::with_capacity(listed.len());
    let mut bytes = 0_usize;
    let mut after = before;
    for some in listed.chunks_mut(READ_AT_ONCE) {
        let mut requests: Vec<Request> =
            some.iter().map(|name| Request::GetData(child(directory, name))).collect();
        requests.push(Request::Exists(directory.to_owned()));
        let mut replies = reads(&requests).into_iter();
        for name in some {
            match replies.next() {
                Some(Ok(Reply::Data(contents))) => {
                    bytes = bytes.saturating_add(name.len()).saturating_add(contents.data.len());
                    found.push((mem::take(name), contents));
                }
                Some(Err(Error::NoNode)) => return Ok(Look::Changed),
                Some(Err(Error::NoAuth)) if is_lasting(&child(directory, name))? => {}
                Some(Err(error)) => return Err(error),
                _ => return Err(another_reply("get-data")),
            }
        }
        match replies.next() {
            Some(Ok(Reply::Exists(Some(stat)))) => after = revision(&stat),
            Some(Ok(Reply::Exists(None))) => return Ok(Look::Gone),
            Some(Err(error)) => return Err(error),
            _ => return Err(another_reply("exists")),
        }
        if after != before {
            return Ok(Look::Changed);
        }
        if bytes > MOST_BYTES {
            return Err(too_large(directory, &found));
        }
    }
    let snapshot = Snapshot { revision: after, children: found };
    Ok(Look::One(snapshot))
}

/// That the children have more bytes than are read, and which of those that were read is to blame.
fn too_large(directory: &str, found: &[(String, Contents)]) -> Error {
    let largest = found.iter().max_by_key(|(_, contents)| contents.data.len());
    let (name, length) = largest.map_or(("", 0), |(name, it)| (&**name, it.data.len()));
    Error::OverLimit(format!(
        "{directory}: the children have more than {MOST_BYTES} bytes, and no more are read; {} has \
         {length} of them: delete what does not belong there, or use several directories",
        child(directory, name)
    ))
}

/// Whether the znode is not ephemeral: what somebody else keeps there and lets nobody read. ZooKeeper
/// shows the metadata to everybody.
fn is_lasting(path: &str) -> Result<bool, Error> {
    Ok(exists(path)?.is_some_and(|stat| stat.owner == Owner::None))
}

/// The path of a child.
pub fn child(directory: &str, name: &str) -> String {
    match directory {
        "/" => ["/", name].concat(),
        directory => [directory, "/", name].concat(),
    }
}

/// A directory that is followed: when one of its watches has fired, it may have changed.
#[derive(Debug)]
pub struct Followed {
    /// The newest change of the directory; none if there is no such directory.
    pub revision: Option<u64>,
    watches: Vec<Watch>,
}

impl Followed {
    /// Reads a directory and watches it: its data, its children, and whether it is there.
    ///
    /// # Errors
    /// As `watch-data` and `watch-children`, but for `no-node`.
    pub fn look(directory: &str, tag: u64) -> Result<Self, Error> {
        let watch = || WatchRequest { path: directory.to_owned(), tag };
        let requests = [Request::WatchData(watch()), Request::WatchChildren(watch())];
        loop {
            let mut replies = reads(&requests).into_iter();
            match (replies.next(), replies.next()) {
                (
                    Some(Ok(Reply::WatchedData((_, of_data)))),
                    Some(Ok(Reply::WatchedChildren((children, of_children)))),
                ) => {
                    // The children were read last, and after both watches were set.
                    let revision = Some(revision(&children.stat()));
                    return Ok(Followed { revision, watches: vec![of_data, of_children] });
                }
                (Some(Err(Error::NoNode)), _) => {
                    if let (None, watch) = watch_exists(directory, tag)? {
                        return Ok(Followed { revision: None, watches: vec![watch] });
                    }
                }
                // Deleted between the two.
                (_, Some(Err(Error::NoNode))) => {}
                (Some(Err(error)), _) | (_, Some(Err(error))) => return Err(error),
                _ => return Err(another_reply("watch-children")),
            }
        }
    }

    /// Waits until it may have changed.
    ///
    /// # Errors
    /// As `wait`.
    pub fn wait(&self) -> Result<(), Error> {
        let watches: Vec<&Watch> = self.watches.iter().collect();
        crate::zookeeper::wait(&watches).map(|_| ())
    }
}

/// Waits until the directory's newest change is later than that revision, and answers it. 0 stands for
/// no such directory, before and after.
///
/// # Errors
/// As [`Followed::look`] and `wait`; so `cancelled` when the caller withdraws.
pub fn wait_for_change(directory: &str, after: u64) -> Result<u64, Error> {
    // Nothing waits for it while idle, so the tag says nothing.
    const TAG: u64 = 0;
    loop {
        let followed = Followed::look(directory, TAG)?;
        match followed.revision {
            Some(revision) if revision > after => return Ok(revision),
            // A server that is behind may not have the directory yet.
            None if after > 0 => {
                let read = Request::Exists(directory.to_owned());
                if confirmed(directory, read)?.is_none() {
                    return Ok(0);
                }
            }
            _ => followed.wait()?,
        }
    }
}

fn another_reply(request: &str) -> Error {
    Error::Other(format!("{request}: another reply"))
}
