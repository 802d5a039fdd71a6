//! The leader on its own, with a replica that lags as far as the test wants.

use super::*;
use crate::protocol::{Acl, Create};
use crate::txn::{CloseSessionTxn, CreateTxn};

const SESSION: i64 = 7;
const OTHER: i64 = 8;
const ORIGIN: Origin = Origin { server: 1, connection: 1 };
const NOW: Now = Now { elapsed_ms: 0, wall_ms: 1_000 };

fn options() -> LeaderOptions {
    LeaderOptions {
        tick_ms: 500,
        extended_types: true,
        never_used_container_ms: None,
        enforce_quota: false,
    }
}

struct Desk {
    leader: Leader,
    replica: Replica,
    proposals: Vec<Proposal>,
}

impl Desk {
    fn new() -> Self {
        let replica = Replica::new();
        let leader = Leader::new(options(), &replica, 0, 1, NOW);
        let mut desk = Desk { leader, replica, proposals: Vec::new() };
        desk.ask(Write::CreateSession { timeout_ms: 1_000 });
        desk.apply();
        desk
    }

    fn ask(&mut self, write: Write) -> Txn {
        self.ask_as(SESSION, write)
    }

    fn ask_as(&mut self, session_id: i64, write: Write) -> Txn {
        let ids = Arc::from([Id::new("ip", "127.0.0.1")]);
        let request = Request { origin: Some(ORIGIN), session_id, xid: 1, ids, write };
        let proposal = self.leader.prepare(&self.replica, request, NOW);
        self.proposals.push(proposal.clone());
        proposal.txn
    }

    fn apply(&mut self) {
        for proposal in self.proposals.drain(..) {
            self.replica.apply(&proposal.header, &proposal.txn);
            self.leader.committed(&proposal.header);
        }
    }

    fn created(&mut self, path: &str, flags: i32) -> Result<String, ErrorCode> {
        match self.ask(create(path, flags)) {
            Txn::Create(CreateTxn { path, .. }) => Ok(path),
            Txn::Error(error) => Err(error),
            other => panic!("{other:?}"),
        }
    }
}

fn create(path: &str, flags: i32) -> Write {
    let acl = Acl::open().to_vec();
    let path = path.to_owned();
    Write::Create(Create { op: OpCode::Create, path, data: None, acl, flags, ttl_ms: -1 })
}

fn delete(path: &str) -> Write {
    Write::Delete { path: path.to_owned(), version: -1 }
}

fn preset_cversion(desk: &mut Desk, path: &str, cversion: i32) {
    let mut tree = std::mem::take(&mut desk.replica);
    let node = tree.tree().get(path).unwrap();
    let stat = crate::tree::NodeStat { cversion, ..*node.stored() };
    let mut new = crate::tree::Tree::new();
    new.restore(path, None, &Acl::open(), stat);
    tree = Replica::restored(new, tree.sessions().clone(), tree.last_zxid());
    desk.replica = tree;
}

#[test]
fn requests_see_those_prepared_before_them() {
    let mut desk = Desk::new();
    assert_eq!(desk.created("/a", 0), Ok("/a".to_owned()));
    assert_eq!(desk.created("/a", 0), Err(ErrorCode::NodeExists));
    assert_eq!(desk.created("/a/b", 0), Ok("/a/b".to_owned()));
    assert_eq!(desk.ask(delete("/a")), Txn::Error(ErrorCode::NotEmpty));
    assert!(matches!(desk.ask(delete("/a/b")), Txn::Delete(_)));
    assert!(matches!(desk.ask(delete("/a")), Txn::Delete(_)));
    assert_eq!(desk.created("/a/c", 0), Err(ErrorCode::NoNode));
    desk.apply();
    assert_eq!(desk.replica.tree().len(), 4);
    assert_eq!(desk.created("/a", 0), Ok("/a".to_owned()));
}

#[test]
fn a_multi_that_fails_leaves_nothing_behind() {
    let mut desk = Desk::new();
    let multi = desk.ask(Write::Multi(vec![create("/a", 2), create("/b", 0), delete("/nope")]));
    let Txn::Multi(txns) = multi else { panic!("{multi:?}") };
    assert_eq!(txns.last().unwrap().txn, Txn::Error(ErrorCode::NoNode));
    assert_eq!(desk.created("/a", 2), Ok("/a0000000000".to_owned()));
    assert_eq!(desk.ask(delete("/b")), Txn::Error(ErrorCode::NoNode));
}

#[test]
fn sequences_go_on_after_deletes_and_failures() {
    let mut desk = Desk::new();
    assert_eq!(desk.created("/q-", 2).unwrap(), "/q-0000000000");
    desk.ask(delete("/q-0000000000"));
    assert_eq!(desk.created("/x/q-", 2), Err(ErrorCode::NoNode));
    assert_eq!(desk.created("/q-", 2).unwrap(), "/q-0000000001");
    desk.apply();
    assert_eq!(desk.created("/q-", 2).unwrap(), "/q-0000000002");
}

#[test]
fn a_count_that_has_come_to_its_end_stays_there_but_for_creates_under_way_together() {
    let mut desk = Desk::new();
    desk.created("/p", 0).unwrap();
    desk.apply();
    preset_cversion(&mut desk, "/p", i32::MAX);
    assert_eq!(desk.created("/p/", 2).unwrap(), "/p/2147483647");
    assert_eq!(desk.created("/p/", 2).unwrap(), "/p/-2147483648");
    desk.apply();
    assert_eq!(desk.created("/p/next-", 2).unwrap(), "/p/next-2147483647");
    desk.apply();
    assert_eq!(desk.created("/p/again-", 2).unwrap(), "/p/again-2147483647");
}

#[test]
fn a_closing_session_takes_what_it_was_about_to_create() {
    let mut desk = Desk::new();
    desk.created("/e1", 1).unwrap();
    desk.apply();
    desk.created("/e2", 1).unwrap();
    desk.ask(delete("/e1"));
    let close = desk.ask(Write::CloseSession);
    let Txn::CloseSession(close) = close else { panic!("{close:?}") };
    assert_eq!(close.paths, Some(vec!["/e2".to_owned()]));
    assert_eq!(desk.created("/e3", 1), Err(ErrorCode::SessionExpired));
    desk.apply();
    assert_eq!(desk.created("/e3", 1), Err(ErrorCode::UnknownSession));
}

#[test]
fn a_closing_session_leaves_what_another_is_about_to_create_in_its_place() {
    let mut desk = Desk::new();
    desk.created("/e1", 1).unwrap();
    desk.created("/e2", 1).unwrap();
    desk.apply();
    desk.ask(delete("/e1"));
    desk.ask(delete("/e2"));
    desk.ask_as(OTHER, Write::CreateSession { timeout_ms: 1_000 });
    desk.ask_as(OTHER, create("/e1", 1));
    desk.ask_as(OTHER, create("/e2", 0));
    let close = desk.ask(Write::CloseSession);
    assert_eq!(close, Txn::CloseSession(CloseSessionTxn { paths: Some(Vec::new()) }));
    desk.apply();
    assert_eq!(desk.replica.tree().stat("/e1").unwrap().ephemeral_owner, OTHER);
    assert_eq!(desk.replica.tree().stat("/e2").unwrap().ephemeral_owner, 0);
}

#[test]
fn a_container_goes_once_it_has_had_a_child() {
    let mut desk = Desk::new();
    let container = Write::Create(Create {
        op: OpCode::CreateContainer,
        path: "/c".to_owned(),
        data: None,
        acl: Acl::open().to_vec(),
        flags: 4,
        ttl_ms: -1,
    });
    desk.ask(container);
    desk.apply();
    let sweep = |desk: &mut Desk| desk.leader.sweep(&desk.replica, NOW).len();
    assert_eq!(sweep(&mut desk), 0);
    desk.created("/c/x", 0).unwrap();
    desk.apply();
    assert_eq!(sweep(&mut desk), 0);
    desk.ask(delete("/c/x"));
    desk.apply();
    assert_eq!(sweep(&mut desk), 1);
}

#[test]
fn errors_come_in_apaches_order() {
    let mut desk = Desk::new();
    desk.created("/e", 1).unwrap();
    desk.apply();
    let cases = [
        ("/x/y", 9, ErrorCode::BadArguments),
        ("x", 0, ErrorCode::BadArguments),
        ("/nope//x", 0, ErrorCode::NoNode),
        ("/nope/", 0, ErrorCode::NoNode),
        ("/zookeeper/", 0, ErrorCode::BadArguments),
        ("/😀", 0, ErrorCode::BadArguments),
        ("/e", 0, ErrorCode::NodeExists),
        ("/e/x", 0, ErrorCode::NoChildrenForEphemerals),
        ("/t", 5, ErrorCode::BadArguments),
    ];
    for (path, flags, error) in cases {
        assert_eq!(desk.created(path, flags), Err(error), "{path} {flags}");
    }
    assert_eq!(desk.ask(delete("/zookeeper")), Txn::Error(ErrorCode::BadArguments));
    assert_eq!(desk.ask(delete("/zookeeper/")), Txn::Error(ErrorCode::NoNode));
}
