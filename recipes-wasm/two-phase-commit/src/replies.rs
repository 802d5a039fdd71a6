//! The replies to reads that are sent together.

use wok_sdk::zookeeper::{Children, Contents, Error, Reply, Request, Stat, Watch, pipeline};

/// The replies to a pipeline of reads, taken one after the other.
pub(crate) struct Replies {
    rest: std::vec::IntoIter<Result<Reply, Error>>,
    /// The watches of those that were taken.
    pub(crate) watches: Vec<Watch>,
}

impl Replies {
    pub(crate) fn of(requests: &[Request]) -> Self {
        Replies { rest: pipeline(requests).into_iter(), watches: Vec::new() }
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

    pub(crate) fn children(&mut self) -> Result<Children, Error> {
        match self.next()? {
            Reply::Children(children) => Ok(children),
            Reply::WatchedChildren((children, watch)) => {
                self.watches.push(watch);
                Ok(children)
            }
            _ => Err(unexpected()),
        }
    }

    pub(crate) fn exists(&mut self) -> Result<Option<Stat>, Error> {
        match self.next()? {
            Reply::Exists(stat) => Ok(stat),
            _ => Err(unexpected()),
        }
    }
}

fn unexpected() -> Error {
    Error::Other("pipeline: another reply".to_owned())
}
