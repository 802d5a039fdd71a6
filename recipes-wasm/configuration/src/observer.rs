//! An observer: it watches the root, and is told of every change by that one znode.

use wok_sdk::participant::{Level, emit, log};
use wok_sdk::reason;
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{self, Contents, Error, Watch, watch_data, watch_exists};

use crate::ROOT;
use crate::decide::{News, Root, Told, is_key};

/// The tag of what it watches.
const TAG: u64 = 1;

/// How long an observer that could not look waits before it looks again. This is no poll: the host has
/// already retried what reconnecting mends, and what is left is a spent limit.
const LOOK_AGAIN_MS: u64 = 1000;

/// Somebody who follows the configuration.
#[derive(Debug)]
pub(crate) struct Observer {
    told: Told,
    /// Kept for its firing alone.
    _watch: Watch,
}

impl Observer {
    /// Looks at the root, and follows from here. Answers the revision.
    pub(crate) fn observe() -> Result<(u64, Self), Error> {
        let (root, watch) = watch_root()?;
        let mut told = Told::default();
        told.hear(root.as_ref().map(found));
        let revision = root.map_or(0, |root| root.stat.mzxid);
        Ok((revision, Observer { told, _watch: watch }))
    }

    /// Looks again when the watch has fired, in one read that watches as well, and tells what is new.
    pub(crate) fn wake(self) -> Self {
        let Observer { mut told, .. } = self;
        let watch = match watch_root() {
            Ok((root, watch)) => {
                tell(told.hear(root.as_ref().map(found)), root);
                watch
            }
            Err(error) => {
                log(Level::Warn, &["look at the configuration: ", reason(&error)].concat());
                alarm(LOOK_AGAIN_MS, TAG)
            }
        };
        Observer { told, _watch: watch }
    }
}

/// Waits for a revision after that one. Revisions are zxids, which only grow: a server that is behind
/// shows a lower one, which is no news whatever it was.
pub(crate) fn wait(after: u64) -> Result<u64, Error> {
    loop {
        let (root, watch) = watch_root()?;
        match root.map(|root| root.stat.mzxid) {
            Some(revision) if revision > after => return Ok(revision),
            _ => zookeeper::wait(&[&watch])?,
        };
    }
}

fn found(root: &Contents) -> Root {
    Root { revision: root.stat.mzxid, version: root.stat.version, created: root.stat.czxid }
}

/// The root, and a watch that fires when it is not this any more; none if there is no root yet, and
/// then the watch fires when there is.
fn watch_root() -> Result<(Option<Contents>, Watch), Error> {
    loop {
        match watch_data(ROOT, TAG) {
            Ok((root, watch)) => return Ok((Some(root), watch)),
            // Where the root has come since, it is read once more.
            Err(Error::NoNode) => {
                if let (None, watch) = watch_exists(ROOT, TAG)? {
                    return Ok((None, watch));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn tell(news: News, root: Option<Contents>) {
    let revision = |revision: u64| ("revision".to_owned(), revision.to_string());
    let detail = match news {
        News::None => return,
        News::Gone => Vec::new(),
        News::Several(newest) => vec![revision(newest)],
        News::One(newest) => {
            // Whatever else another client has written there is no key, and names none.
            let key = root.and_then(|root| String::from_utf8(root.data).ok());
            let key = key.filter(|key| is_key(key)).map(|key| ("key".to_owned(), key));
            [revision(newest)].into_iter().chain(key).collect()
        }
    };
    emit("changed", &detail);
}
