//! The list of items that a consumer works through.
//!
//! The published text wants an up-to-date list: one that is thrown away when the queue changes. Here each
//! `take` lists the queue anew, and behind a `sync`, so that the server which answers has everything that
//! was in the queue when it was asked.

use std::collections::{BTreeSet, VecDeque};

use wok_sdk::zookeeper::{Children, Error, Reply, Request, Stat, Watch, WatchRequest, exists};
use wok_sdk::{names, reads};

use crate::decide::{INFIX, Turn, first_of};
use crate::place::{self, CLAIMS, ITEMS};

/// How many names of a list are kept: as many as are taken at once, and some more for those who are late.
const MOST_NAMES: usize = 128;

/// Names of items that nobody had taken, the one whose turn is first in front.
#[derive(Debug, Default)]
pub(crate) struct List {
    names: VecDeque<String>,
    /// Whether there were more than are kept.
    has_more: bool,
    /// The newest transaction that the list can know.
    zxid: u64,
    /// The transaction that created the directory which was listed.
    directory: u64,
}

impl List {
    /// Takes the next names off the list, at most so many.
    pub(crate) fn next(&mut self, most: usize) -> Vec<String> {
        self.names.drain(..most.min(self.names.len())).collect()
    }

    /// Puts names back in front.
    pub(crate) fn put_back(&mut self, names: Vec<String>) {
        names.into_iter().rev().for_each(|name| self.names.push_front(name));
    }

    /// Whether an item that was created by that transaction, and read since, can be the one that the list
    /// names: the directory may have been removed meanwhile, and its counter begun anew.
    ///
    /// Where the directory's counter has come to its end, a new item leaves `pzxid` as it is. So where the item
    /// is newer than the list, this looks whether the directory is the one that was listed.
    pub(crate) fn has(&self, czxid: u64) -> Result<bool, Error> {
        let is_same = |stat: Stat| stat.czxid == self.directory;
        Ok(czxid <= self.zxid || exists(ITEMS)?.is_some_and(is_same))
    }

    /// Whether nothing was in the queue that is not on the list or was.
    pub(crate) fn is_whole(&self) -> bool {
        !self.has_more
    }
}

/// The same, answered by a server that has heard of everything by now. (By everything that the leader
/// knows: one that is cut off from the others may not know that yet.)
fn up_to_date(lists: [Request; 2]) -> Vec<Request> {
    let mut requests = vec![Request::Sync(ITEMS.to_owned())];
    requests.extend(lists);
    requests
}

/// Lists the queue.
pub(crate) fn list(stuck: &BTreeSet<String>) -> Result<List, Error> {
    let lists = [ITEMS, CLAIMS].map(|path| Request::GetChildren(path.to_owned()));
    let requests = up_to_date(lists);
    let mut lists = Vec::with_capacity(requests.len());
    for reply in reads(&requests) {
        lists.push(match reply {
            Ok(Reply::Synced) => continue,
            Ok(Reply::Children(children)) => Some(children),
            // It comes with the first item, or the first claim.
            Err(Error::NoNode) => None,
            Ok(_) => return Err(Error::Other("get-children: another reply".to_owned())),
            Err(error) => return Err(error),
        });
    }
    let mut lists = lists.into_iter();
    let (items, claims) = (lists.next().flatten(), lists.next().flatten());
    Ok(items.map_or_else(List::default, |items| read(&items, claims, stuck)))
}

/// Lists the queue, and watches it: one of the watches fires when an item comes or comes back.
pub(crate) fn watch(stuck: &BTreeSet<String>) -> Result<(List, Vec<Watch>), Error> {
    // Nothing waits for it while idle, so the tag says nothing.
    let watch = |path: &str| Request::WatchChildren(WatchRequest { path: path.to_owned(), tag: 0 });
    let requests = up_to_date([ITEMS, CLAIMS].map(watch));
    'again: loop {
        let (mut lists, mut watches) = (Vec::new(), Vec::new());
        for reply in reads(&requests) {
            match reply {
                Ok(Reply::Synced) => {}
                Ok(Reply::WatchedChildren((children, watch))) => {
                    lists.push(children);
                    watches.push(watch);
                }
                // The server has removed what nobody used, and what is not there is not watched.
                Err(Error::NoNode) => {
                    place::furnish()?;
                    continue 'again;
                }
                Ok(_) => return Err(Error::Other("watch-children: another reply".to_owned())),
                Err(error) => return Err(error),
            }
        }
        let mut lists = lists.into_iter();
        let Some(items) = lists.next() else { return Ok((List::default(), watches)) };
        return Ok((read(&items, lists.next(), stuck), watches));
    }
}

/// Those of the names whose items are there still, and not claimed.
pub(crate) fn left(names: Vec<String>) -> Result<Vec<String>, Error> {
    if names.is_empty() {
        return Ok(names);
    }
    let ask = |name: &String| [place::item(name), place::claim(name)].map(Request::Exists);
    let asks: Vec<_> = names.iter().flat_map(ask).collect();
    let replies = reads(&asks);
    let mut left = Vec::with_capacity(names.len());
    for (name, both) in names.into_iter().zip(replies.chunks(2)) {
        match both {
            [Ok(Reply::Exists(item)), Ok(Reply::Exists(claim))] => {
                if item.is_some() && claim.is_none() {
                    left.push(name);
                }
            }
            [Err(error), _] | [_, Err(error)] => return Err(error.clone()),
            _ => return Err(Error::Other("exists: another reply".to_owned())),
        }
    }
    Ok(left)
}

/// The names of the items that nobody has taken, but for those that are to be left out.
///
/// The claims are read behind the items: an item whose claim is gone by then has come back, or is gone,
/// too.
fn read(items: &Children, claims: Option<Children>, stuck: &BTreeSet<String>) -> List {
    if let Some(claims) = &claims {
        // An item's claim has the item's name.
        claims.order(&[INFIX.to_owned()]);
    }
    let is_taken = |name: &String| {
        let claims = claims.as_ref().filter(|claims| claims.count() > 0);
        let place = claims.zip(Turn::of(name));
        place.is_some_and(|(claims, turn)| claims.position(name, turn.counter()).is_there)
    };
    let is_out = |name: &String| stuck.contains(name) || is_taken(name);
    let mut first = first_of(names(items).filter(|name| !is_out(name)), MOST_NAMES + 1);
    let has_more = first.len() > MOST_NAMES;
    first.truncate(MOST_NAMES);
    let stat = items.stat();
    List { names: first.into(), has_more, zxid: stat.pzxid, directory: stat.czxid }
}
