//! The replies to reads that are sent together.

use wok_sdk::zookeeper::{Children, Contents, Error, Reply, Request, Stat, Watch};
use wok_sdk::{confirmed_reads, reads};

use crate::transaction::DIRECTORY;

/// How many names are fetched from the host at once.
const BATCH: u32 = 32;

/// The replies to a pipeline of reads, taken one after the other.
pub(crate) struct Replies {
    rest: std::vec::IntoIter<Result<Reply, Error>>,
    /// The watches of those that were taken.
    pub(crate) watches: Vec<Watch>,
}

impl Replies {
    pub(crate) fn of(requests: &[Request]) -> Self {
        Replies { rest: reads(requests).into_iter(), watches: Vec::new() }
    }

    /// Of a server that has caught up with the leader before it answers.
    pub(crate) fn caught_up(requests: &[Request]) -> Result<Self, Error> {
        let sync = Request::Sync(DIRECTORY.to_owned());
        let mut replies = Replies::of(&[&[sync], requests].concat());
        replies.next()?;
        Ok(replies)
    }

    /// As things stood at some moment of this call, which a `sync` does not assure: a leader that is cut off
    /// answers one.
    pub(crate) fn confirmed(requests: &[Request]) -> Result<Self, Error> {
        let replies = match confirmed_reads(DIRECTORY, requests) {
            // Without the directory there is nothing in it, as the reads would say.
            Err(Error::NoNode) => return Ok(Replies::of(requests)),
            replies => replies?,
        };
        Ok(Replies { rest: replies.into_iter(), watches: Vec::new() })
    }

    fn next(&mut self) -> Result<Reply, Error> {
        self.rest.next().unwrap_or_else(|| Err(unexpected()))
    }

    pub(crate) fn data(&mut self) -> Result<Contents, Error> {
        match self.next()? {
            Reply::Data(contents) => Ok(contents),
            Reply::WatchedData((contents, watch)) => {
                self.watches.push(watch);
                Ok(contents)
            }
            _ => Err(unexpected()),
        }
    }

    /// Two of them; none if one of the znodes is not there.
    pub(crate) fn pair(&mut self) -> Result<Option<(Contents, Contents)>, Error> {
        match (self.data(), self.data()) {
            (Ok(first), Ok(second)) => Ok(Some((first, second))),
            (Err(Error::NoNode), _) | (_, Err(Error::NoNode)) => Ok(None),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    pub(crate) fn children(&mut self) -> Result<Vec<String>, Error> {
        match self.next()? {
            Reply::Children(children) => Ok(all(&children)),
            Reply::WatchedChildren((children, watch)) => {
                self.watches.push(watch);
                Ok(all(&children))
            }
            _ => Err(unexpected()),
        }
    }

    /// The watch of the reply that was taken last.
    pub(crate) fn watch(mut self) -> Result<Watch, Error> {
        self.watches.pop().ok_or_else(unexpected)
    }

    pub(crate) fn exists(&mut self) -> Result<Option<Stat>, Error> {
        match self.next()? {
            Reply::Exists(stat) => Ok(stat),
            Reply::WatchedExists((stat, watch)) => {
                self.watches.push(watch);
                Ok(stat)
            }
            _ => Err(unexpected()),
        }
    }
}

/// The names of all children. The one place where they are collected, which saves code.
#[inline(never)]
fn all(children: &Children) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let batch = children.next(BATCH);
        if batch.is_empty() {
            return all;
        }
        all.extend(batch);
    }
}

fn unexpected() -> Error {
    Error::Other("pipeline: another reply".to_owned())
}
