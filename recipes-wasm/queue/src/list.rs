//! The list of items that a consumer works through.
//!
//! The published text lists the queue once and lists it again when that list is exhausted. So it is
//! here; but items may come back, and an old list does not have them, so it is not used for long.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

use wok_sdk::participant::{Level, log};
use wok_sdk::time_and_chance::now_ms;
use wok_sdk::zookeeper::{Children, Error, Reply, Request, Stat, Watch, WatchRequest, exists};
use wok_sdk::{names, reads};

use crate::decide::{Layout, first_of};
use crate::place::{self, CLAIMS, ITEMS};

/// How many names of a list are kept: some 100 KiB of the component's memory. The list of a longer queue
/// is asked for again after so many.
const MOST_NAMES: usize = 1024;

/// How long a list is used. Who takes one item a second or fewer lists the queue each time; who takes
/// many spends two requests a second on it.
const FRESH_MS: u64 = 1000;

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
    read_ms: u64,
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

    /// Whether it may still be used.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.names.is_empty() && now_ms().saturating_sub(self.read_ms) < FRESH_MS
    }
}

/// Lists the queue.
pub(crate) fn list(layout: Layout, stuck: &BTreeSet<String>) -> Result<List, Error> {
    let read_ms = now_ms();
    let requests = [ITEMS, CLAIMS].map(|path| Request::GetChildren(path.to_owned()));
    let mut lists = Vec::with_capacity(requests.len());
    for reply in reads(&requests) {
        lists.push(match reply {
            Ok(Reply::Children(children)) => Some(children),
            // It comes with the first item, or the first claim.
            Err(Error::NoNode) => None,
            Ok(_) => return Err(Error::Other("get-children: another reply".to_owned())),
            Err(error) => return Err(error),
        });
    }
    let mut lists = lists.into_iter();
    let (items, claims) = (lists.next().flatten(), lists.next().flatten());
    if items.is_none() {
        // Before anybody takes a place in line: that makes a directory, and the wait has no end.
        place::check_mount()?;
    }
    Ok(items.map_or_else(List::default, |items| read(&items, claims, layout, stuck, read_ms)))
}

/// Lists the queue, and watches it: one of the watches fires when an item comes or comes back.
pub(crate) fn watch(layout: Layout, stuck: &BTreeSet<String>) -> Result<(List, Vec<Watch>), Error> {
    // Nothing waits for it while idle, so the tag says nothing.
    let watch = |path: &str| Request::WatchChildren(WatchRequest { path: path.to_owned(), tag: 0 });
    let requests = [ITEMS, CLAIMS].map(watch);
    'again: loop {
        let read_ms = now_ms();
        let (mut lists, mut watches) = (Vec::new(), Vec::new());
        for reply in reads(&requests) {
            match reply {
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
        return Ok((read(&items, lists.next(), layout, stuck, read_ms), watches));
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

/// Warns, once in a participant's life, that an item has a name of another layout: no participant
/// with this layout takes the item.
fn warn_of(stranger: &str) {
    thread_local! {
        static HAS_WARNED: Cell<bool> = const { Cell::new(false) };
    }
    if !HAS_WARNED.replace(true) {
        let path = place::item(stranger);
        let why = " is no item of the layout in use here, so no participant with this layout takes \
                   it: give producers and consumers the same `layout`";
        log(Level::Warn, &[&path, why].concat());
    }
}

/// The names of the items that nobody has taken, but for those that are to be left out.
///
/// The claims are read behind the items: an item whose claim is gone by then has come back, or is gone,
/// too.
fn read(
    items: &Children,
    claims: Option<Children>,
    layout: Layout,
    stuck: &BTreeSet<String>,
    read_ms: u64,
) -> List {
    let claims = claims.filter(|claims| claims.count() > 0);
    // An item's claim has the item's name.
    let mut claimed = BTreeSet::new();
    match (&claims, layout.infix()) {
        (Some(claims), Some(infix)) => drop(claims.order(&[infix.to_owned()])),
        // No word stands before the counter, so a sign could not be told from the hyphen.
        (Some(claims), None) => claimed.extend(names(claims)),
        (None, _) => {}
    }
    let is_taken = |name: &String| match (&claims, layout.infix(), layout.turn(name)) {
        (Some(claims), Some(_), Some(turn)) => claims.position(name, turn.counter()).is_there,
        _ => claimed.contains(name),
    };
    let is_out = |name: &String| stuck.contains(name) || is_taken(name);
    let mut first: Vec<String> = match layout.infix() {
        // The host puts them in order.
        Some(infix) => {
            if let Some(stranger) = items.order(&[infix.to_owned()]).stranger {
                warn_of(&stranger);
            }
            let own = names(items).filter(|name| layout.turn(name).is_some() && !is_out(name));
            own.take(MOST_NAMES + 1).collect()
        }
        None => {
            let free = names(items).filter(|name| !is_out(name));
            let found = first_of(free, layout, MOST_NAMES + 1);
            if let Some(stranger) = found.stranger {
                warn_of(&stranger);
            }
            found.names
        }
    };
    let has_more = first.len() > MOST_NAMES;
    first.truncate(MOST_NAMES);
    let stat = items.stat();
    List { names: first.into(), has_more, zxid: stat.pzxid, directory: stat.czxid, read_ms }
}
