//! Between the contract's words and the session room's.

use super::bindings::wok::recipe::participant::{ContenderName, UuidForm};
use super::bindings::wok::recipe::zookeeper::{
    CreateMode, CreateRequest, Error, Event, Owner, Request as GuestRequest, SetDataRequest, Stat,
    VersionRequest, Write,
};
use super::mount::PathError;
use super::state::State;
use crate::session;
use crate::znode_path;

impl From<session::Failure> for Error {
    fn from(failure: session::Failure) -> Self {
        use session::{Failure, Refusal};
        match failure {
            Failure::Refused { refusal, .. } => match refusal {
                Refusal::NoNode => Error::NoNode,
                Refusal::NodeExists => Error::NodeExists,
                Refusal::NotEmpty => Error::NotEmpty,
                Refusal::BadVersion => Error::BadVersion,
                Refusal::NoChildrenForEphemerals => Error::NoChildrenForEphemerals,
                Refusal::NoAuth => Error::NoAuth,
                Refusal::QuotaExceeded => Error::QuotaExceeded,
                other @ (Refusal::Unimplemented | Refusal::Throttled) => {
                    Error::Other(other.to_string())
                }
                Refusal::Other(text) => Error::Other(text),
            },
            Failure::OutcomeUnknown => Error::OutcomeUnknown,
            Failure::OverLimit(text) => Error::OverLimit(text),
            Failure::Invalid(text) => Error::Invalid(text),
            // Host calls do not return when the session is lost; see `answer`.
            lost @ Failure::SessionLost => Error::Other(lost.to_string()),
        }
    }
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Refused { source: znode_path::PathError::Reserved, .. } => {
                Error::Denied(error.to_string())
            }
            PathError::Refused { .. } | PathError::TooLong { .. } => {
                Error::Invalid(error.to_string())
            }
        }
    }
}

impl From<session::Event> for Event {
    fn from(event: session::Event) -> Self {
        match event {
            session::Event::Created => Event::Created,
            session::Event::Deleted => Event::Deleted,
            session::Event::DataChanged => Event::DataChanged,
            session::Event::ChildrenChanged => Event::ChildrenChanged,
            session::Event::Elapsed => Event::Elapsed,
        }
    }
}

impl From<CreateMode> for session::CreateMode {
    fn from(mode: CreateMode) -> Self {
        match mode {
            CreateMode::Persistent => session::CreateMode::Persistent,
            CreateMode::PersistentSequential => session::CreateMode::PersistentSequential,
            CreateMode::Ephemeral => session::CreateMode::Ephemeral,
            CreateMode::Container => session::CreateMode::Container,
        }
    }
}

/// A slash and a UUID with hyphens: what the host adds to a contender's directory besides what the
/// component says.
const CONTENDER_BYTES: usize = 1 + 36;

/// What the server appends to a sequential name: a counter, with a sign after 2^31 creates.
const COUNTER_BYTES: usize = 11;

impl State {
    /// Where a contender is created and how it is named. Its path obeys the bound of all paths: the
    /// host keeps it for as long as the znode lives, watches it, and lists it to others.
    pub(super) fn contender(
        &self,
        parent: &str,
        name: ContenderName,
    ) -> Result<(String, session::ContenderName), Error> {
        let ContenderName { before, uuid, after } = name;
        let more = CONTENDER_BYTES + before.len() + after.len() + COUNTER_BYTES;
        let parent = self.surroundings.mount.resolve_with_room(parent, more)?;
        // Stand-ins for what the host puts between and after, so that the whole is checked. Not by the formatter:
        // its frames took another page of the component's stack, which stays in memory.
        let example = [before.as_str(), "uuid", &after, "0"].concat();
        znode_path::check_segment(&example)
            .map_err(|problem| Error::Invalid(format!("contender name {example:?}: {problem}")))?;
        let uuid = match uuid {
            UuidForm::Hyphenated => session::UuidForm::Hyphenated,
            UuidForm::Simple => session::UuidForm::Simple,
        };
        Ok((parent, session::ContenderName { before, uuid, after }))
    }

    /// The metadata of the znode at an absolute path, as this component may see it.
    pub(super) fn stat(&self, absolute: &str, stat: &session::Stat) -> Stat {
        let owner = match self.surroundings.seat.owner(absolute, stat) {
            session::Owner::None => Owner::None,
            session::Owner::Me => Owner::Me,
            session::Owner::Other => Owner::Other,
        };
        Stat {
            czxid: stat.czxid.cast_unsigned(),
            mzxid: stat.mzxid.cast_unsigned(),
            pzxid: stat.pzxid.cast_unsigned(),
            ctime_ms: stat.ctime_ms.cast_unsigned(),
            mtime_ms: stat.mtime_ms.cast_unsigned(),
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            owner,
            data_length: stat.data_length.cast_unsigned(),
            num_children: stat.num_children.cast_unsigned(),
        }
    }

    /// A part of a `multi`, with its path resolved. The session room bounds its data.
    pub(super) fn write(&self, write: Write) -> Result<session::Write, Error> {
        match write {
            Write::Create(CreateRequest { path, data, mode }) => {
                self.create_write(&path, data, mode)
            }
            Write::Delete(VersionRequest { path, version }) => {
                Ok(session::Write::Delete { path: self.resolve(&path)?, version })
            }
            Write::SetData(SetDataRequest { path, data, version }) => {
                self.set_data_write(&path, data, version)
            }
            Write::Check(VersionRequest { path, version }) => {
                Ok(session::Write::Check { path: self.resolve(&path)?, version })
            }
        }
    }

    pub(super) fn create_write(
        &self,
        path: &str,
        data: Vec<u8>,
        mode: CreateMode,
    ) -> Result<session::Write, Error> {
        let more = match mode {
            // The server would append the counter to the mount's own path, and create a neighbour of the mount.
            CreateMode::PersistentSequential if path == "/" => {
                let problem =
                    "/ is the mount: a sequential znode needs a name in it, such as /item-";
                return Err(Error::Invalid(problem.to_owned()));
            }
            CreateMode::PersistentSequential => COUNTER_BYTES,
            CreateMode::Persistent | CreateMode::Ephemeral | CreateMode::Container => 0,
        };
        let path = self.surroundings.mount.resolve_with_room(path, more)?;
        Ok(session::Write::Create { path, data, mode: mode.into() })
    }

    pub(super) fn set_data_write(
        &self,
        path: &str,
        data: Vec<u8>,
        version: Option<i32>,
    ) -> Result<session::Write, Error> {
        let path = self.resolve(path)?;
        Ok(session::Write::SetData { path, data, version })
    }

    pub(super) fn resolve(&self, path: &str) -> Result<String, Error> {
        Ok(self.surroundings.mount.resolve(path)?)
    }
}

/// Bytes that a request writes.
pub(super) fn bytes_of_request(request: &GuestRequest) -> usize {
    match request {
        GuestRequest::Create(CreateRequest { path, data, .. })
        | GuestRequest::SetData(SetDataRequest { path, data, .. }) => path.len() + data.len(),
        GuestRequest::Delete(VersionRequest { path, .. }) => path.len(),
        GuestRequest::Multi(writes) => writes.iter().map(bytes_of_write).sum(),
        GuestRequest::Exists(_)
        | GuestRequest::GetData(_)
        | GuestRequest::GetChildren(_)
        | GuestRequest::WatchExists(_)
        | GuestRequest::WatchData(_)
        | GuestRequest::WatchChildren(_)
        | GuestRequest::Sync(_) => 0,
    }
}

/// Bytes that a part of a `multi` writes.
pub(super) fn bytes_of_write(write: &Write) -> usize {
    match write {
        Write::Create(CreateRequest { path, data, .. })
        | Write::SetData(SetDataRequest { path, data, .. }) => path.len() + data.len(),
        Write::Delete(VersionRequest { path, .. }) | Write::Check(VersionRequest { path, .. }) => {
            path.len()
        }
    }
}

/// What the contract calls a request.
pub(super) fn name_of(request: &session::Request) -> &'static str {
    use session::{Request, Watching, Write};
    match request {
        Request::Write(Write::Create { .. }) => "create",
        Request::Write(Write::Delete { .. }) => "delete",
        Request::Write(Write::SetData { .. }) => "set-data",
        Request::Write(Write::Check { .. }) => "check",
        Request::Multi(_) => "multi",
        Request::Exists(_, Watching::No) => "exists",
        Request::Exists(_, Watching::Yes) => "watch-exists",
        Request::GetData(_, Watching::No) => "get-data",
        Request::GetData(_, Watching::Yes) => "watch-data",
        Request::GetChildren(_, Watching::No) => "get-children",
        Request::GetChildren(_, Watching::Yes) => "watch-children",
        Request::Sync(_) => "sync",
    }
}

/// Which znodes a request is about.
pub(super) fn paths_of(request: &session::Request) -> Vec<String> {
    match request {
        session::Request::Write(write) => vec![path_of(write).to_owned()],
        session::Request::Multi(writes) => {
            writes.iter().map(|write| path_of(write).to_owned()).collect()
        }
        session::Request::Exists(path, _)
        | session::Request::GetData(path, _)
        | session::Request::GetChildren(path, _)
        | session::Request::Sync(path) => vec![path.clone()],
    }
}

/// Which znode a write is about.
pub(super) fn path_of(write: &session::Write) -> &str {
    match write {
        session::Write::Create { path, .. }
        | session::Write::Delete { path, .. }
        | session::Write::SetData { path, .. }
        | session::Write::Check { path, .. } => path,
    }
}
