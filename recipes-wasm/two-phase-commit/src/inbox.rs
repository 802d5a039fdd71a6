//! The transactions that ask a site for its vote.

use wok_sdk::participant::{Level, emit, log};
use wok_sdk::reason;
use wok_sdk::time_and_chance::{alarm, wall_ms};
use wok_sdk::zookeeper::{Contents, Error, Request, Watch, WatchRequest};

use crate::replies::Replies;
use crate::terms::{Terms, check_name};
use crate::transaction::{DIRECTORY, Paths, read_decision, read_vote};

/// The tag of the watch on the directory.
pub(crate) const ARRIVALS: u64 = 2;

/// How many transactions are read in one round trip.
const AT_ONCE: usize = 32;

/// How many are answered.
const MOST_ANSWERED: usize = 64;

/// The most bytes of their payloads. Each is a value of 40 bytes in the host, which lets an answer have 40 MiB
/// of them, those around the data included.
const MOST_BYTES: usize = 768 << 10;

/// How many are told of in a second, so that the host drops none of the events: it takes 64 KiB of them in a
/// second, and one takes some 200 bytes.
const MOST_TOLD: usize = 100;

/// As that of a transaction: a pause after a spent limit.
const LOOK_AGAIN_MS: u64 = 1000;

/// A transaction that asks the site.
#[derive(Clone, Debug)]
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
    /// The transactions that there were at the last look, whomever they ask, in the order of their names; but
    /// for those that the site has yet to be told of.
    known: Vec<Paths>,
    /// Kept for its firing alone: when there are others, or soon where some have yet to be told.
    _watch: Watch,
}

impl Inbox {
    /// Looks which transactions ask the site, and from here on for others.
    pub(crate) fn open(site: String) -> Result<(Vec<Letter>, Self), Error> {
        check_name(&site).map_err(Error::Invalid)?;
        let (mut known, mut watch) = list()?;
        let mut asks = asking(&site, &known)?;
        let mut later = Vec::new();
        if asks.len() > MOST_ANSWERED {
            sort_out_late(&mut asks)?;
            later = asks.split_off(MOST_ANSWERED);
            asks.sort_unstable_by_key(|asks| asks.czxid);
        }
        let (letters, unread) = read(asks)?;
        later.extend(unread);
        if !later.is_empty() {
            forget(&mut known, &later);
            watch = alarm(0, ARRIVALS);
        }
        Ok((letters, Inbox { site, known, _watch: watch }))
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
            Ok((mut there, mut watch, mut asks)) => {
                let later = asks.split_off(asks.len().min(MOST_TOLD));
                for Asks { paths, .. } in asks {
                    let path = paths.transaction().to_owned();
                    emit("asked", &[("transaction".to_owned(), path)]);
                }
                if !later.is_empty() {
                    forget(&mut there, &later);
                    watch = alarm(LOOK_AGAIN_MS, ARRIVALS);
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

/// Leaves those out that the site has yet to be told of.
fn forget(known: &mut Vec<Paths>, later: &[Asks]) {
    known.retain(|paths| later.iter().all(|later| later.paths != *paths));
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

/// Puts those whose time is over behind the others. By this host's clock, which may be wrong: so none is left
/// out for that.
fn sort_out_late(asks: &mut Vec<Asks>) -> Result<(), Error> {
    let (mut in_time, mut late) = (Vec::with_capacity(asks.len()), Vec::new());
    let now_ms = wall_ms();
    while !asks.is_empty() {
        let some: Vec<Asks> = asks.drain(..asks.len().min(AT_ONCE)).collect();
        let own = |asks: &Asks| Request::GetData(asks.paths.transaction().to_owned());
        let mut replies = Replies::of(&some.iter().map(own).collect::<Vec<_>>());
        for asks in some {
            match replies.data() {
                Ok(own) if deadline_ms(&own).is_some_and(|end| end > now_ms) => in_time.push(asks),
                Ok(_) => late.push(asks),
                // It is deleted.
                Err(Error::NoNode) => {}
                Err(error) => return Err(error),
            }
        }
    }
    in_time.append(&mut late);
    *asks = in_time;
    Ok(())
}

/// When the time of a transaction is over, by the server's clock; none if its data are none of this recipe's.
fn deadline_ms(own: &Contents) -> Option<u64> {
    Terms::parse(&own.data).map(|terms| own.stat.ctime_ms.saturating_add(terms.within_ms))
}

/// Reads those, and answers as well which of them did not fit.
fn read(asks: Vec<Asks>) -> Result<(Vec<Letter>, Vec<Asks>), Error> {
    let (mut letters, mut unread) = (Vec::with_capacity(asks.len()), Vec::new());
    let mut bytes = 0;
    for some in asks.chunks(AT_ONCE) {
        let mut reads = Vec::with_capacity(2 * some.len());
        for Asks { paths, .. } in some {
            reads.push(Request::GetData(paths.transaction().to_owned()));
            reads.push(Request::GetData(paths.payload()));
        }
        let mut replies = Replies::of(&reads);
        for asks in some {
            let Some((own, payload)) = replies.pair()? else { continue };
            let Some(deadline_ms) = deadline_ms(&own) else { continue };
            bytes += payload.data.len();
            match bytes > MOST_BYTES {
                true => unread.push(asks.clone()),
                false => letters.push(Letter {
                    path: asks.paths.transaction().to_owned(),
                    payload: payload.data,
                    deadline_ms,
                }),
            }
        }
    }
    Ok((letters, unread))
}
