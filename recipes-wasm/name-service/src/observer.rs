//! An observer: is told when the instances of a name change.

use wok_sdk::participant::{Level, emit, log};
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{Error, Watch};
use wok_sdk::{Followed, reason};

use crate::decide::{News, Told};

/// How long an observer that could not look waits before it looks again. Not a poll: the host has
/// already retried what reconnecting mends, and what is left is a spent limit.
const LOOK_AGAIN_MS: u64 = 1000;

/// Somebody who wants to know when the instances of a name change.
#[derive(Debug)]
pub(crate) struct Observer {
    name: String,
    directory: String,
    told: Told,
    /// Kept for its firing alone.
    _until: Until,
}

/// When an observer looks again.
#[derive(Debug)]
enum Until {
    Changed { _directory: Followed },
    Elapsed { _alarm: Watch },
}

impl Observer {
    /// Reads the revision, and follows from here.
    pub(crate) fn observe(name: String, directory: String, tag: u64) -> Result<(u64, Self), Error> {
        let followed = Followed::look(&directory, tag)?;
        let mut told = Told::default();
        told.hear(followed.revision);
        let revision = followed.revision.unwrap_or_default();
        let until = Until::Changed { _directory: followed };
        Ok((revision, Observer { name, directory, told, _until: until }))
    }

    /// The name that it follows.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Looks again when a watch has fired, and tells what changed.
    pub(crate) fn wake(self, tag: u64) -> Self {
        let Observer { name, directory, mut told, .. } = self;
        let until = match Followed::look(&directory, tag) {
            Ok(followed) => {
                tell(&name, told.hear(followed.revision));
                Until::Changed { _directory: followed }
            }
            Err(error) => {
                log(
                    Level::Warn,
                    &["look at the instances of ", &name, ": ", reason(&error)].concat(),
                );
                Until::Elapsed { _alarm: alarm(LOOK_AGAIN_MS, tag) }
            }
        };
        Observer { name, directory, told, _until: until }
    }
}

fn tell(name: &str, news: News) {
    let mut detail = vec![("name".to_owned(), name.to_owned())];
    match news {
        News::None => return,
        News::Changed(revision) => detail.push(("revision".to_owned(), revision.to_string())),
        News::Gone => {}
    }
    emit("changed", &detail);
}
