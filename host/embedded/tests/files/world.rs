//! A leader and its copy of the state, whose txns go to a log.

use std::path::Path;
use std::sync::Arc;

use wok_embedded::files::{DataDir, LogOptions, LogWriter, Recovery, encode_entry, recover};
use wok_embedded::prepare::{Leader, LeaderOptions, Origin, Proposal, Request};
use wok_embedded::protocol::{Acl, Create, Id, OpCode, Write};
use wok_embedded::replica::Replica;
use wok_embedded::time::Now;

const NOW: Now = Now { elapsed_ms: 0, wall_ms: 1_000 };

pub(crate) struct World {
    pub(crate) directory: Arc<DataDir>,
    pub(crate) replica: Replica,
    leader: Leader,
    log: LogWriter,
}

impl World {
    pub(crate) fn open(root: &Path) -> World {
        let directory = Arc::new(DataDir::take(root).unwrap());
        let (replica, _) = recover(&directory, 0, u64::MAX).unwrap();
        let options = LeaderOptions {
            tick_ms: 500,
            extended_types: true,
            never_used_container_ms: None,
            enforce_quota: false,
        };
        let leader = Leader::new(options, &replica, 0, 0, NOW);
        let log = LogOptions { preallocation: 4096, force_sync: false };
        let log = LogWriter::new(directory.clone(), log);
        World { directory, replica, leader, log }
    }

    pub(crate) fn prepare(&mut self, session_id: i64, write: Write) -> Proposal {
        let origin = Some(Origin { server: 0, connection: 1 });
        let ids = Arc::from([Id::new("digest", "me:digest")]);
        let request = Request { origin, session_id, xid: 1, ids, write };
        self.leader.prepare(&self.replica, request, NOW)
    }

    /// Logs and applies what a session asks.
    pub(crate) fn ask(&mut self, session_id: i64, write: Write) {
        let proposal = self.prepare(session_id, write);
        let mut entry = Vec::new();
        encode_entry(&proposal.header, &proposal.txn, &mut entry);
        self.log.append(proposal.header.zxid, &entry).unwrap();
        self.replica.apply(&proposal.header, &proposal.txn);
        self.leader.committed(&proposal.header);
    }

    pub(crate) fn roll(&mut self) {
        self.log.roll().unwrap();
    }
}

pub(crate) fn create(path: &str, data: &'static [u8], flags: i32) -> Write {
    let acl = Acl::open().to_vec();
    let (path, data) = (path.to_owned(), Some(bytes::Bytes::from_static(data)));
    Write::Create(Create { op: OpCode::Create, path, data, acl, flags, ttl_ms: -1 })
}

/// Reads a directory as a start does.
pub(crate) fn restart(root: &Path) -> (Replica, Recovery) {
    recover(&Arc::new(DataDir::take(root).unwrap()), 0, u64::MAX).unwrap()
}

/// Everything that is to outlive a restart, as text.
pub(crate) fn dump(replica: &Replica) -> String {
    let tree = replica.tree();
    let mut text = format!("{:#x} {:?}\n", replica.last_zxid(), replica.sessions());
    let mut next = tree.root();
    while let Some((path, node)) = next {
        let children: Vec<&str> = node.children().collect();
        let (stat, acl) = (node.stored(), node.acl());
        text += &format!("{path} {:?} {acl:?} {stat:?} {children:?}\n", node.data());
        next = tree.following(&path);
    }
    let containers: Vec<&str> = tree.containers().collect();
    let ttls: Vec<&str> = tree.ttls().collect();
    let ephemerals: Vec<_> = tree.ephemerals().collect();
    text + &format!("{containers:?} {ttls:?} {ephemerals:?} {} {}", tree.len(), tree.data_size())
}
