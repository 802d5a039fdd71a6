//! A candidate: in line, or leading.

use wok_sdk::participant::{Fence, Level, emit, log, owner, release};
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{
    Children, CreateMode, CreateRequest, Error, Event, MultiError, Owner, SetDataRequest,
    VersionRequest, Watch, Write, get_children, get_data, multi, watch_data,
};
use wok_sdk::{Naming, Own, line_up, reason, wait_until_gone};

use crate::decide::{Step, Then, decide};
use crate::election::{ANNOUNCEMENT, DIRECTORY, announcement, path};

/// How long a candidate that could not look at the election waits before it looks again. Not a poll:
/// the host has already retried what reconnecting mends, and what is left is a spent limit.
const LOOK_AGAIN_MS: u64 = 1000;

/// Somebody who volunteered.
#[derive(Debug)]
pub(crate) struct Candidate {
    own: Own,
    naming: Naming,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Others volunteered earlier.
    Waits { watch: Watch, then: Then },
    /// It leads.
    Leads { fence: Fence, has_announced: bool },
}

impl Candidate {
    /// Joins the election. `tag` is that of its watches from here on.
    pub(crate) fn volunteer(naming: Naming, tag: u64) -> Result<Self, Error> {
        // 1, 2
        let (own, children) = Own::contend_and_list(DIRECTORY, &naming, owner().as_bytes())?;
        let place = take_place(&own, children, naming, tag)?; // 3
        Ok(Candidate { own, naming, place })
    }

    /// Goes on when its watch has fired. None if it is a candidate no more.
    pub(crate) fn wake(self, tag: u64) -> Option<Self> {
        let Candidate { own, naming, place } = self;
        let next = match &place {
            Place::Leads { .. } => Ok(place),
            Place::Waits { watch, then } => match (watch.fired(), then) {
                // Only a leader claims, so all candidates before it had gone.
                (Some(Event::ClaimDeleted), _) | (Some(Event::Deleted), Then::Lead) => lead(&own),
                _ => look(&own, naming, tag),
            },
        };
        let place = match next {
            Ok(place) => place,
            Err(Error::NoNode) => {
                emit("withdrawn", &[("reason".to_owned(), "its znode was deleted".to_owned())]);
                return None;
            }
            Err(error) => {
                log(Level::Warn, &["look at the election: ", reason(&error)].concat());
                Place::Waits { watch: alarm(LOOK_AGAIN_MS, tag), then: Then::LookAgain }
            }
        };
        Some(Candidate { own, naming, place })
    }

    /// Its znode.
    pub(crate) fn path(&self) -> &str {
        self.own.path()
    }

    /// The fence of its term, if it leads.
    pub(crate) fn fence(&self) -> Option<Fence> {
        match self.place {
            Place::Leads { fence, .. } => Some(fence),
            Place::Waits { .. } => None,
        }
    }

    /// Steps down. The announcement goes first: nobody should find it beside the next leader.
    ///
    /// # Errors
    /// As `participant.release`. Where the server refuses, it is still a candidate.
    pub(crate) fn resign(&mut self) -> Result<(), Error> {
        if matches!(self.place, Place::Leads { has_announced: true, .. }) {
            // If it is gone already, or does not go yet: the host sees to it, and the term ends.
            let _ = release(ANNOUNCEMENT);
        }
        self.own.try_release()
    }

    /// Whether it has stepped down.
    pub(crate) fn has_resigned(&self) -> bool {
        self.own.is_released()
    }

    /// Writes the announcement, fenced by the own znode.
    pub(crate) fn announce(&mut self, data: &[u8]) -> Result<(), Error> {
        let Place::Leads { has_announced, .. } = &mut self.place else {
            return Err(Error::Invalid("announce: this participant does not lead".to_owned()));
        };
        // Before the request: its reply may be lost, and the znode has to go either way.
        *has_announced = true;
        let data = announcement(&self.own.contender().name, data);
        loop {
            match self.while_leading(create_announcement(&data)) {
                Err(MultiError { index: Some(1), error: Error::NodeExists }) => {}
                other => return other.map_err(|failed| failed.error),
            }
            match get_data(ANNOUNCEMENT).map(|found| found.stat.owner) {
                Ok(Owner::Me) => match self.while_leading(replace_announcement(&data)) {
                    Err(MultiError { index: Some(1), error: Error::NoNode }) => {}
                    other => return other.map_err(|failed| failed.error),
                },
                // An earlier leader's, which its own host is about to delete. To delete it here would
                // race with that, and the second deletion could hit the znode created in between.
                Ok(Owner::Other) => {
                    wait_until_gone(ANNOUNCEMENT)?;
                }
                Ok(Owner::None) => {
                    let reason =
                        "announce: `announcement` is not ephemeral, so no leader's; delete it";
                    return Err(Error::Invalid(reason.to_owned()));
                }
                Err(Error::NoNode) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn while_leading(&self, write: Write) -> Result<(), MultiError> {
        let term = VersionRequest { path: self.own.path().to_owned(), version: None };
        multi(&[Write::Check(term), write], &[]).map(|_| ())
    }
}

/// Steps 2 and 3, once more.
fn look(own: &Own, naming: Naming, tag: u64) -> Result<Place, Error> {
    take_place(own, get_children(DIRECTORY)?, naming, tag)
}

/// Step 3: a watch on the largest lower counter. Leads if there is none.
fn take_place(own: &Own, mut children: Children, naming: Naming, tag: u64) -> Result<Place, Error> {
    loop {
        let step = decide(own.contender(), &line_up(&children, naming));
        match step {
            Step::Lead => return lead(own),
            Step::Gone => return Err(Error::NoNode),
            Step::Watch { predecessor, then } => match watch_data(&path(&predecessor), tag) {
                Ok((_, watch)) => return Ok(Place::Waits { watch, then }),
                // Gone since the list was read.
                Err(Error::NoNode) if then == Then::Lead => return lead(own),
                Err(Error::NoNode) => children = get_children(DIRECTORY)?,
                Err(error) => return Err(error),
            },
        }
    }
}

/// From here the host watches the znode, and the participant ends when it is lost.
fn lead(own: &Own) -> Result<Place, Error> {
    let fence = own.claim()?;
    let path = own.path().to_owned();
    emit("elected", &[("path".to_owned(), path), ("fence".to_owned(), fence.to_string())]);
    Ok(Place::Leads { fence, has_announced: false })
}

fn create_announcement(data: &[u8]) -> Write {
    Write::Create(CreateRequest {
        path: ANNOUNCEMENT.to_owned(),
        data: data.to_vec(),
        mode: CreateMode::Ephemeral,
    })
}

fn replace_announcement(data: &[u8]) -> Write {
    Write::SetData(SetDataRequest {
        path: ANNOUNCEMENT.to_owned(),
        data: data.to_vec(),
        version: None,
    })
}
