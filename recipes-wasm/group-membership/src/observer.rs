//! An observer: is told when the group changes, whether it is a member or not.

use wok_sdk::participant::{Level, emit, log};
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{Error, Watch};
use wok_sdk::{Followed, reason};

use crate::DIRECTORY;
use crate::decide::{News, Told};

/// How long an observer that could not look waits before it looks again. Not a poll: the host has
/// already retried what reconnecting mends, and what is left is a spent limit.
const LOOK_AGAIN_MS: u64 = 1000;

/// Nothing else is woken, so the tag says nothing.
const TAG: u64 = 1;

/// Somebody who wants to know when the group changes.
#[derive(Debug)]
pub(crate) struct Observer {
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
    pub(crate) fn observe() -> Result<(u64, Self), Error> {
        let directory = Followed::look(DIRECTORY, TAG)?;
        let mut told = Told::default();
        told.hear(directory.revision);
        let revision = directory.revision.unwrap_or_default();
        Ok((revision, Observer { told, _until: Until::Changed { _directory: directory } }))
    }

    /// Looks again when a watch has fired, and tells what changed.
    pub(crate) fn wake(self) -> Self {
        let mut told = self.told;
        let until = match Followed::look(DIRECTORY, TAG) {
            Ok(directory) => {
                match told.hear(directory.revision) {
                    News::None => {}
                    News::Changed(revision) => {
                        let detail = ("revision".to_owned(), revision.to_string());
                        emit("members-changed", &[detail]);
                    }
                    News::Gone => emit("members-changed", &[]),
                }
                Until::Changed { _directory: directory }
            }
            Err(error) => {
                log(Level::Warn, &["look at the group: ", reason(&error)].concat());
                Until::Elapsed { _alarm: alarm(LOOK_AGAIN_MS, TAG) }
            }
        };
        Observer { told, _until: until }
    }
}
