//! An observer: follows the election without standing in it.

use wok_sdk::participant::{Level, emit, log};
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{Error, Watch};
use wok_sdk::{Naming, reason};

use crate::bindings::exports::wok::leader_election::leader_election::Term;
use crate::decide::{News, Told};
use crate::election::watch_leader;

/// As a candidate's: a pause after a spent limit, not a poll.
const LOOK_AGAIN_MS: u64 = 1000;

/// Somebody who wants to know who leads.
#[derive(Debug)]
pub(crate) struct Observer {
    told: Told,
    naming: Naming,
    /// Kept for its firing alone.
    _watch: Watch,
}

impl Observer {
    /// Looks who leads, and follows from here.
    pub(crate) fn observe(naming: Naming, tag: u64) -> Result<(Option<Term>, Self), Error> {
        let (leader, watch) = watch_leader(naming, tag)?;
        let mut told = Told::default();
        told.hear(leader.as_ref().map(|leader| leader.fence));
        Ok((leader, Observer { told, naming, _watch: watch }))
    }

    /// Looks again when the watch has fired, and tells what changed.
    pub(crate) fn wake(self, tag: u64) -> Self {
        let Observer { mut told, naming, .. } = self;
        let watch = match watch_leader(naming, tag) {
            Ok((leader, watch)) => {
                tell(told.hear(leader.as_ref().map(|leader| leader.fence)), leader);
                watch
            }
            Err(error) => {
                log(Level::Warn, &["look who leads: ", reason(&error)].concat());
                alarm(LOOK_AGAIN_MS, tag)
            }
        };
        Observer { told, naming, _watch: watch }
    }
}

fn tell(news: News, leader: Option<Term>) {
    let detail = match (news, leader) {
        (News::None, _) => return,
        (News::Leader, Some(leader)) => vec![
            ("path".to_owned(), leader.path),
            ("fence".to_owned(), leader.fence.to_string()),
            ("owner".to_owned(), leader.owner),
        ],
        (News::Leader | News::Vacant, _) => Vec::new(),
    };
    emit("leader-changed", &detail);
}
