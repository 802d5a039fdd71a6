//! To ask a contender to give way, and to be asked.

use crate::participant::{Fence, Level, emit, log, owner};
use crate::time_and_chance::alarm;
use crate::zookeeper::{
    Contents, Error, Event, Reply, Request, Watch, delete, set_data, wait, watch_data,
};
use crate::{Naming, RevokeRequest, confirmed, name_of};

/// The event that tells a request.
const REQUESTED: &str = "revoke-requested";

/// How long a participant that could not look at its own znode waits before it looks again. This is no
/// poll: the host has already retried what reconnecting mends, and what is left is a spent limit.
const LOOK_AGAIN_MS: u64 = 1000;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It stands on the znode.
    Stands,
    /// The znode is gone.
    Gone,
    /// The znode's participant did not give way in time, and this participant deleted its znode.
    Forced,
}

/// Asks the contender at `path` in `directory` to give way: the request is added to its data, so that
/// it still says whose it is. One that is asked already is not written again.
///
/// With a time to force after, waits until the contender is gone, and deletes it once that time has
/// passed on this host's own clock. A znode with a UUID in its name does not come back, so nobody else is
/// struck, however the line has changed by then.
///
/// # Errors
/// `invalid` if that is no contender's path; `no-node` if it is gone before it is asked; otherwise as
/// `set-data`, `watch-data`, `wait` and `delete`. Only the deletion may answer `outcome-unknown`.
pub fn ask_to_give_way(
    directory: &str,
    naming: &Naming,
    path: &str,
    request: RevokeRequest,
    force_after_ms: Option<u64>,
) -> Result<Asked, Error> {
    let Some(contender) = naming.read(name_of(path).to_owned()) else {
        return Err(Error::Invalid(format!("{path} is no contender's; `contenders` tells them")));
    };
    let path = contender.path(directory);
    write_request(&path, request)?;
    match force_after_ms {
        None => Ok(Asked::Stands),
        Some(after_ms) => force(&path, request, after_ms),
    }
}

fn write_request(path: &str, request: RevokeRequest) -> Result<(), Error> {
    loop {
        let read = read_newest(path)?;
        if request.is_in(&read.data) {
            return Ok(());
        }
        match set_data(path, &request.added_to(&read.data), Some(read.stat.version)) {
            Ok(_) => return Ok(()),
            // Somebody has written meanwhile, or perhaps it was this very request.
            Err(Error::BadVersion | Error::OutcomeUnknown) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A znode as it stood at some moment of this call: the path may come from somebody whose server is ahead
/// of ours, and that nobody is there to be asked is said as a fact.
fn read_newest(path: &str) -> Result<Contents, Error> {
    match confirmed(path, Request::GetData(path.to_owned()))? {
        Some(Reply::Data(read)) => Ok(read),
        Some(_) => Err(Error::Other("get-data: another reply".to_owned())),
        None => Err(Error::NoNode),
    }
}

fn force(path: &str, request: RevokeRequest, after_ms: u64) -> Result<Asked, Error> {
    // Both are waited for here, so their tags say nothing.
    const TAG: u64 = 0;
    let time = alarm(after_ms, TAG);
    let holder = loop {
        let (read, watch) = match watch_data(path, TAG) {
            Ok(watched) => watched,
            Err(Error::NoNode) => return Ok(Asked::Gone),
            Err(error) => return Err(error),
        };
        wait(&[&time, &watch])?;
        if let Some(Event::Deleted | Event::ClaimDeleted) = watch.fired() {
            return Ok(Asked::Gone);
        }
        if time.fired().is_some() {
            break String::from_utf8_lossy(request.owner(&read.data)).into_owned();
        }
    };
    let forcer = owner();
    log(
        Level::Warn,
        &format!(
            "{forcer} deletes {path} of {holder}, which was asked {after_ms} ms ago to give way"
        ),
    );
    match delete(path, None) {
        Ok(()) => Ok(Asked::Forced),
        Err(Error::NoNode) => Ok(Asked::Gone),
        Err(error) => Err(error),
    }
}

/// What a participant that was woken has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing that it has not told before.
    Nothing,
    /// Somebody asks it to give way. The event `revoke-requested` has told its application.
    Request,
}

/// A participant that listens for requests on its own znode.
#[derive(Debug)]
pub struct Listening {
    path: String,
    request: RevokeRequest,
    tag: u64,
    /// Kept so that the host wakes the participant when it fires.
    _watch: Watch,
    /// The version of the data that was told last, or written here behind that.
    told: Option<i32>,
}

impl Listening {
    /// Goes on from the first look at the own znode, which it has to have read and watched since it
    /// created the znode. A request that was made in between is in what was read, and no watch will
    /// tell of it: then the participant is woken as soon as it is idle.
    pub fn from_first_look(
        path: &str,
        request: RevokeRequest,
        tag: u64,
        look: (Contents, Watch),
    ) -> Self {
        let (read, watch) = look;
        let watch = if request.is_in(&read.data) { alarm(0, tag) } else { watch };
        Listening { path: path.to_owned(), request, tag, _watch: watch, told: None }
    }

    /// Listens on another znode of its own from now on, which took the place of the one before. The
    /// participant looks at it as soon as it is idle.
    #[must_use]
    pub fn moved_to(self, path: &str) -> Self {
        let Listening { request, tag, .. } = self;
        Listening { path: path.to_owned(), request, tag, _watch: alarm(0, tag), told: None }
    }

    /// Looks what woke the participant, tells a request that is new, and listens on. `fence` is that of
    /// the claim that is asked for.
    pub fn wake(&mut self, fence: Fence) -> Heard {
        let (read, watch) = match watch_data(&self.path, self.tag) {
            Ok(look) => look,
            // The host tells the loss.
            Err(Error::NoNode) => return Heard::Nothing,
            Err(error) => {
                log(Level::Warn, &format!("look for a request on {}: {error}", self.path));
                self._watch = alarm(LOOK_AGAIN_MS, self.tag);
                return Heard::Nothing;
            }
        };
        self._watch = watch;
        if !self.request.is_in(&read.data) || self.told == Some(read.stat.version) {
            return Heard::Nothing;
        }
        self.told = Some(read.stat.version);
        let detail =
            [("path".to_owned(), self.path.clone()), ("fence".to_owned(), fence.to_string())];
        emit(REQUESTED, &detail);
        if self.request.owner(&read.data).is_empty() {
            self.restore_owner(read.stat.version);
        }
        Heard::Request
    }

    /// Writes the own owner's text before a request that has replaced it, as Curator's does.
    fn restore_owner(&mut self, version: i32) {
        let data = self.request.added_to(&self.request.without(&owner()));
        match set_data(&self.path, &data, Some(version)) {
            Ok(stat) => self.told = Some(stat.version),
            // Somebody has written again, or it is gone: the watch tells.
            Err(Error::BadVersion | Error::NoNode) => {}
            Err(error) => {
                log(Level::Warn, &format!("write the owner back to {}: {error}", self.path));
            }
        }
    }
}
