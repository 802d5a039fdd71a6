//! What happened in a run, in one total order: what judges judge, and what is shown.
//!
//! One entry is one line of JSON. Three voices speak in it: the ensemble's own log
//! ([`What::Txn`]), which is the truth; the hosts, participants and applications, which say what
//! they asked, were told and believed; and the simulator, which says what it did to them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A host's number. A host that is killed and started again keeps it.
pub type HostId = u32;
/// A participant's number, never used twice in a run.
pub type ParticipantId = u32;
/// The number of a call of an operation, never used twice in a run.
pub type CallId = u32;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Simulated microseconds since the run began. Never goes back from one entry to the next.
    pub at_us: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum What {
    /// The leader committed a txn. In the order of zxids, without gaps but for failed requests.
    Txn {
        /// Its number.
        zxid: i64,
        /// The session that asked, 0 for the leader's own.
        session: i64,
        /// What it changed, in order; nothing for one that failed.
        changes: Vec<Change>,
    },
    /// A host began a session.
    SessionOpened {
        /// Which host.
        host: HostId,
        /// The session.
        session: i64,
        /// Negotiated.
        timeout_ms: u64,
    },
    /// A participant joined. Its session stays the same for as long as it lives.
    Joined {
        /// Who.
        participant: ParticipantId,
        /// Where.
        host: HostId,
        /// On which session.
        session: i64,
        /// The absolute path of what it sees as `/`.
        mount: String,
        /// The recipe's config for it; null if it has none.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        config: Value,
    },
    /// An application called an operation.
    Invoked {
        /// Whose.
        participant: ParticipantId,
        /// The call.
        call: CallId,
        /// The operation.
        operation: String,
        /// Its arguments: the body, as an API request would have it.
        arguments: Value,
    },
    /// The application was answered.
    Returned {
        /// By whom.
        participant: ParticipantId,
        /// The call.
        call: CallId,
        /// The answer.
        outcome: Outcome,
    },
    /// The application withdrew a call, or its deadline passed; the answer follows.
    Withdrawn {
        /// Whose.
        participant: ParticipantId,
        /// The call.
        call: CallId,
    },
    /// The application asked the participant to end.
    Leaving {
        /// Which.
        participant: ParticipantId,
    },
    /// A participant told its follower something.
    Told {
        /// Which.
        participant: ParticipantId,
        /// What.
        notice: Told,
    },
    /// An application that believes that it holds (it asked its participant in this very moment)
    /// wrote to the guarded resource, which refuses tokens lower than the highest it has seen.
    Wrote {
        /// Whose application.
        participant: ParticipantId,
        /// The fence it showed.
        fence: u64,
        /// Whether the resource took it.
        accepted: bool,
    },
    /// A component made a host call that reaches ZooKeeper. Paths are absolute.
    HostCall {
        /// Whose component.
        participant: ParticipantId,
        /// The call's number within the run.
        number: u64,
        /// By the contract's name: `get-children`, `contend`, `claim`, …
        name: String,
        /// What it is about; of a `multi` and a `pipeline` the path of each part.
        paths: Vec<String>,
    },
    /// The host call was answered. A call without an answer was cut off with its component.
    HostCallAnswered {
        /// Whose component.
        participant: ParticipantId,
        /// Which call.
        number: u64,
        /// `ok`, or the name of the contract's error.
        answer: String,
        /// Of `contend`: the absolute path created.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created: Option<String>,
    },
    /// A watch event reached a host: one for each server watch of its session.
    Event {
        /// Which host.
        host: HostId,
        /// Its session.
        session: i64,
        /// `created`, `deleted`, `data-changed`, `children-changed`.
        event: String,
        /// Of which znode.
        path: String,
    },
    /// A host sent a request to a server.
    Request {
        /// Which host.
        host: HostId,
        /// Its session.
        session: i64,
        /// ZooKeeper's name of the operation.
        name: String,
        /// What it is about.
        path: String,
    },
    /// A component was woken with these tags.
    Woken {
        /// Whose.
        participant: ParticipantId,
        /// The tags of its fired watches.
        tags: Vec<u64>,
    },
    /// The simulator did something to a host, a connection or the ensemble.
    Fault {
        /// What; also the row of the coverage table.
        fault: FaultKind,
        /// To which host; none if it is the ensemble's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<HostId>,
        /// The host calls it struck, by name: those in flight of the host or participant it hit.
        struck: Vec<String>,
        /// Which servers and hosts do not hear each other from then on, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut: Option<String>,
    },
    /// What the simulator did is over: a pause ended, a host is back, a server answers again.
    Healed {
        /// What is over.
        fault: FaultKind,
        /// For which host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<HostId>,
    },
    /// A host's session is over for it.
    SessionLost {
        /// Which host.
        host: HostId,
        /// The session.
        session: i64,
        /// Why, in words.
        why: String,
    },
    /// No fault comes any more and all that were are healed; applications finish what they do.
    Calm,
    /// The last entry: what is left when everybody has finished, left, and time has passed.
    Final {
        /// Every znode left below the mounts' parent, by path.
        znodes: BTreeMap<String, Left>,
        /// Calls that were invoked and never answered though their host lives.
        blocked: Vec<CallId>,
        /// Server watches left on each host's session, ended participants all.
        watches: Vec<Watches>,
    },
}

/// The watches that are left on a host's session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Watches {
    /// Which host.
    pub host: HostId,
    /// How many.
    pub count: usize,
}

/// A znode that is left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// The zxid that created it.
    pub czxid: i64,
    /// Its session, 0 if it is not ephemeral.
    pub ephemeral_owner: i64,
}

/// What a txn changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Change {
    /// A znode was created; its `czxid` is the txn's zxid.
    Created {
        /// Where, the counter included.
        path: String,
        /// Its session, 0 if it is not ephemeral.
        ephemeral_owner: i64,
        /// What it holds.
        #[serde(default, skip_serializing_if = "Data::is_empty")]
        data: Data,
    },
    /// A znode was deleted; a closed session's go one by one, in its own txn.
    Deleted {
        /// Which.
        path: String,
    },
    /// A znode's data was set.
    DataSet {
        /// Which.
        path: String,
        /// The version that it has now.
        #[serde(default)]
        version: i32,
        /// What it holds now.
        #[serde(default, skip_serializing_if = "Data::is_empty")]
        data: Data,
    },
    /// A session began.
    SessionCreated {
        /// Which.
        session: i64,
    },
    /// A session ended, closed by its client or expired.
    SessionClosed {
        /// Which.
        session: i64,
    },
}

/// What a znode holds: as text where it is text, otherwise as a list of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Spelled", into = "Spelled")]
pub struct Data(Vec<u8>);

impl Data {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Self {
        Data(bytes)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Spelled {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Spelled> for Data {
    fn from(spelled: Spelled) -> Self {
        Data(match spelled {
            Spelled::Text(text) => text.into_bytes(),
            Spelled::Bytes(bytes) => bytes,
        })
    }
}

impl From<Data> for Spelled {
    fn from(data: Data) -> Self {
        String::from_utf8(data.0)
            .map_or_else(|error| Spelled::Bytes(error.into_bytes()), Spelled::Text)
    }
}

/// How a call was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// With the operation's result.
    Ok {
        /// The result.
        value: Value,
        /// Whether the participant holds a claim, as far as it knows.
        holds: bool,
    },
    /// With the operation's own error.
    Err {
        /// The error: a string, or an object with one key, as in the API.
        value: Value,
        /// Whether the participant holds a claim, as far as it knows.
        holds: bool,
    },
    /// It was withdrawn, and nothing of it is left.
    Cancelled,
    /// The participant ended meanwhile.
    Ended,
    /// Another operation was under way.
    Busy,
}

/// What a participant told its follower.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "kebab-case")]
pub enum Told {
    /// Its contender znode exists.
    Waiting {
        /// The znode.
        path: String,
    },
    /// It holds a claim.
    Held {
        /// The claim's znode.
        path: String,
        /// The fence.
        fence: u64,
    },
    /// It gives a claim up; the znode is about to be deleted, or just was.
    Released {
        /// The claim's znode.
        path: String,
    },
    /// In doubt: what is held is still held.
    Suspended,
    /// The doubt is over.
    Resumed,
    /// An event of the recipe's own.
    Emitted {
        /// Its name.
        event: String,
        /// Its details.
        detail: BTreeMap<String, String>,
    },
    /// What was held is lost.
    Lost {
        /// `session`, `znode-deleted` or `fault`.
        reason: String,
    },
    /// The last: why the participant ended, `left`, `lost` or `failed`.
    Ended {
        /// Which of them.
        how: String,
        /// The fault of a component that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<String>,
    },
}

/// What the simulator does to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The connection breaks; the request under way never reaches the server.
    LostBefore,
    /// The connection breaks; the request under way takes effect and its reply is lost.
    LostAfter,
    /// Replies and requests of a connection take much longer.
    Delay,
    /// The connection stands, but nothing comes through in either direction.
    HalfOpen,
    /// The ensemble expires the session, though its client is there.
    Expiry,
    /// The client goes to another server, which may be behind.
    Move,
    /// A server falls behind: it applies what is committed only after a while.
    Lag,
    /// Another server becomes the leader: all connections break, and a new epoch begins.
    LeaderChange,
    /// Two servers do not hear each other, and nobody is told.
    LinkCut,
    /// A host and its server do not hear each other; others are within reach.
    HostCut,
    /// A server and the hosts at it are cut off from the other servers.
    ServerCut,
    /// The leader and the hosts at it are cut off from the other servers.
    LeaderCut,
    /// The host goes to a server that is stopped between its question to the leader whether the session
    /// is valid and the answer, and goes on later.
    ServerPause,
    /// The host's process is stopped and goes on later.
    Pause,
    /// The host's process is killed, and started again after a while.
    HostKill,
    /// A participant's component is killed.
    GuestKill,
    /// An application withdraws its call.
    Cancel,
    /// The host's wall clock jumps.
    ClockJump,
}

impl FaultKind {
    /// All of them, in the order of the coverage table.
    pub const ALL: [FaultKind; 18] = [
        FaultKind::LostBefore,
        FaultKind::LostAfter,
        FaultKind::Delay,
        FaultKind::HalfOpen,
        FaultKind::Expiry,
        FaultKind::Move,
        FaultKind::Lag,
        FaultKind::LeaderChange,
        FaultKind::LinkCut,
        FaultKind::HostCut,
        FaultKind::ServerCut,
        FaultKind::LeaderCut,
        FaultKind::ServerPause,
        FaultKind::Pause,
        FaultKind::HostKill,
        FaultKind::GuestKill,
        FaultKind::Cancel,
        FaultKind::ClockJump,
    ];

    /// Whether it is nothing if it does not last.
    pub fn needs_time(self) -> bool {
        let is_pause = matches!(self, FaultKind::Pause | FaultKind::ServerPause);
        let is_slowness = matches!(self, FaultKind::Delay | FaultKind::Lag);
        is_pause || is_slowness || self.is_cut()
    }

    /// Whether it is the silence of a way.
    pub fn is_cut(self) -> bool {
        self.is_between_servers() || self == FaultKind::HostCut
    }

    /// Whether it is one between servers.
    pub fn is_between_servers(self) -> bool {
        matches!(self, FaultKind::LinkCut | FaultKind::ServerCut | FaultKind::LeaderCut)
    }

    /// Whether it strikes a server that follows another.
    pub fn is_of_a_follower(self) -> bool {
        matches!(self, FaultKind::Lag | FaultKind::ServerPause)
    }

    /// Whether it is about one request, rather than about a host or the ensemble.
    pub fn is_of_a_request(self) -> bool {
        matches!(self, FaultKind::LostBefore | FaultKind::LostAfter)
    }

    /// As histories and scenario files spell it.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::LostBefore => "lost-before",
            FaultKind::LostAfter => "lost-after",
            FaultKind::Delay => "delay",
            FaultKind::HalfOpen => "half-open",
            FaultKind::Expiry => "expiry",
            FaultKind::Move => "move",
            FaultKind::Lag => "lag",
            FaultKind::LeaderChange => "leader-change",
            FaultKind::LinkCut => "link-cut",
            FaultKind::HostCut => "host-cut",
            FaultKind::ServerCut => "server-cut",
            FaultKind::LeaderCut => "leader-cut",
            FaultKind::ServerPause => "server-pause",
            FaultKind::Pause => "pause",
            FaultKind::HostKill => "host-kill",
            FaultKind::GuestKill => "guest-kill",
            FaultKind::Cancel => "cancel",
            FaultKind::ClockJump => "clock-jump",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_called_in_tables_what_it_is_called_in_histories() {
        for fault in FaultKind::ALL {
            assert_eq!(serde_json::to_value(fault).unwrap(), fault.name());
        }
    }

    #[test]
    fn data_comes_back_from_its_line_whether_it_is_text_or_not() {
        for bytes in [b"text".to_vec(), vec![0xff, 0], Vec::new()] {
            let change = Change::DataSet { path: "/a".to_owned(), version: 1, data: bytes.into() };
            let line = serde_json::to_string(&change).unwrap();
            assert_eq!(serde_json::from_str::<Change>(&line).unwrap(), change, "{line}");
        }
    }

    #[test]
    fn the_last_entry_comes_back_from_its_line() {
        let znodes = BTreeMap::from([("/a".to_owned(), Left { czxid: 1, ephemeral_owner: 2 })]);
        let watches = vec![Watches { host: 1, count: 2 }];
        let entry = Entry { at_us: 3, what: What::Final { znodes, blocked: vec![4], watches } };
        let line = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry);
    }
}
