//! The transactions that ask a site for its vote.

use wok_sdk::participant::{Level, emit, log};
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{Error, Request, Watch, WatchRequest};

use crate::replies::{Replies, reason};
use crate::terms::{Terms, check_name};
use crate::transaction::{DIRECTORY, Paths, read_decision, read_vote};

/// The tag of the watch on the directory.
pub(crate) const ARRIVALS: u64 = 2;

/// How many transactions are read in one round trip.
const AT_ONCE: usize = 32;

/// How many are answered: with their payloads they take a tenth of a component's memory.
const MOST_ANSWERED: usize = 64;

/// As that of a transaction: a pause after a spent limit.
const LOOK_AGAIN_MS: u64 = 1000;

/// A transaction that asks the site.
#[derive(Debug)]
pub(crate) struct Asks {
    paths: Paths,
    czxid: u64,
}

/// A transaction that asks the site, with all there is to know of it.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) path: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) deadline_ms: u64,
}

/// What a site was told, and what tells it of more.
#[derive(Debug)]
pub(crate) struct Inbox {
    site: String,
    /// The transactions that there were at the last look, whomever they ask, in the order of their names.
    known: Vec<Paths>,
    /// Kept for its firing alone.
    _watch: Watch,
}

impl Inbox {
    /// Looks which transactions ask the site, and from here on for others.
    pub(crate) fn open(site: String) -> Result<(Vec<Letter>, Self), Error> {
        check_name(&site).map_err(Error::Invalid)?;
        let (there, watch) = list()?;
        let mut asks = asking(&site, &there)?;
        asks.truncate(MOST_ANSWERED);
        let letters = read(&asks)?;
        Ok((letters, Inbox { site, known: there, _watch: watch }))
    }

    /// Looks again when somebody has begun a transaction, or deleted one.
    pub(crate) fn wake(self) -> Self {
        let Inbox { site, known, .. } = self;
        let look = || {
            let (there, watch) = list()?;
            let mut others = there.clone();
            others.retain(|paths| place(&known, paths.transaction()).is_err());
            let asks = asking(&site, &others)?;
            Ok::<_, Error>((there, watch, asks))
        };
        let (known, watch) = match look() {
            Ok((there, watch, asks)) => {
                for Asks { paths, .. } in asks {
                    let path = paths.transaction().to_owned();
                    emit("asked", &[("transaction".to_owned(), path)]);
                }
                (there, watch)
            }
            Err(error) => {
                log(Level::Warn, &["look for transactions: ", reason(&error)].concat());
                (known, alarm(LOOK_AGAIN_MS, ARRIVALS))
            }
        };
        Inbox { site, known, _watch: watch }
    }
}

/// The names of all transactions, and a watch that fires when there are others.
fn list() -> Result<(Vec<Paths>, Watch), Error> {
    let about = || WatchRequest { path: DIRECTORY.to_owned(), tag: ARRIVALS };
    loop {
        // The server may be behind, and have none of what was begun just now.
        let mut replies = Replies::caught_up(&[Request::WatchChildren(about())])?;
        match replies.children() {
            Ok(children) => {
                let mut there = Vec::new();
                for name in children {
                    if let Some(paths) = Paths::of_child(&name)
                        && let Err(place) = place(&there, paths.transaction())
                    {
                        there.insert(place, paths);
                    }
                }
                return Ok((there, replies.watch()?));
            }
            // The directory comes with the first transaction.
            Err(Error::NoNode) => {
                let mut replies = Replies::of(&[Request::WatchExists(about())]);
                if replies.exists()?.is_none() {
                    return Ok((Vec::new(), replies.watch()?));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Where a transaction is, or would be, in that order.
fn place(all: &[Paths], transaction: &str) -> Result<usize, usize> {
    all.binary_search_by(|paths| paths.transaction().cmp(transaction))
}

/// Those of them that ask the site, are not decided, and have no vote of it: in the order in which they
/// were begun.
fn asking(site: &str, all: &[Paths]) -> Result<Vec<Asks>, Error> {
    let mut asks = Vec::new();
    for some in all.chunks(AT_ONCE) {
        let mut reads = Vec::with_capacity(2 * some.len());
        for paths in some {
            reads.push(Request::GetData(paths.vote(site)));
            reads.push(Request::GetData(paths.decision()));
        }
        let mut replies = Replies::of(&reads);
        for paths in some {
            // One that has no such znode does not ask the site, or is deleted.
            let Some((vote, decision)) = replies.pair()? else { continue };
            // What this recipe has not written asks nobody.
            if let (Some(None), Ok(None)) = (read_vote(&vote), read_decision(paths, &decision)) {
                let (paths, czxid) = (paths.clone(), vote.stat.czxid);
                let place = asks.partition_point(|asks: &Asks| asks.czxid < czxid);
                asks.insert(place, Asks { paths, czxid });
            }
        }
    }
    Ok(asks)
}

fn read(asks: &[Asks]) -> Result<Vec<Letter>, Error> {
    let mut letters = Vec::with_capacity(asks.len());
    for some in asks.chunks(AT_ONCE) {
        let mut reads = Vec::with_capacity(2 * some.len());
        for Asks { paths, .. } in some {
            reads.push(Request::GetData(paths.transaction().to_owned()));
            reads.push(Request::GetData(paths.payload()));
        }
        let mut replies = Replies::of(&reads);
        for Asks { paths, .. } in some {
            let Some((own, payload)) = replies.pair()? else { continue };
            if let Some(terms) = Terms::parse(&own.data) {
                letters.push(Letter {
                    path: paths.transaction().to_owned(),
                    payload: payload.data,
                    deadline_ms: own.stat.ctime_ms.saturating_add(terms.within_ms),
                });
            }
        }
    }
    Ok(letters)
}
