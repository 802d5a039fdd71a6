//! Snapshots that are taken while txns go on.

use std::os::unix::fs::FileExt as _;

use proptest::prelude::*;
use wok_embedded::files::{SnapshotNode, SnapshotWriter, encode_entry, purge};
use wok_embedded::protocol::{Acl, Id, Write};

use super::world::{World, create, dump, restart};

#[derive(Debug, Clone)]
enum Step {
    Ask(i64, Ask),
    /// Nodes that go into the snapshot; the first step of this kind begins it.
    Piece(usize),
    /// All the rest, and the end of the snapshot.
    Finish,
}

#[derive(Debug, Clone)]
enum Ask {
    Create(&'static str, i32),
    Delete(&'static str),
    Set(&'static str),
    Allow(&'static str, i32),
    Both(&'static str, &'static str),
    Open,
    Close,
}

const PATHS: [&str; 9] =
    ["/a", "/a/x", "/a/x/y", "/a-b", "/b", "/b/x", "/c", "/c/x", "/zookeeper/quota/q"];

fn ask() -> impl Strategy<Value = Ask> {
    let path = || prop::sample::select(&PATHS[..]);
    prop_oneof![
        // Persistent, ephemeral, sequential, container.
        6 => (path(), prop::sample::select(vec![0, 0, 0, 1, 1, 2, 4]))
            .prop_map(|(path, flags)| Ask::Create(path, flags)),
        5 => path().prop_map(Ask::Delete),
        2 => path().prop_map(Ask::Set),
        2 => (path(), 0..4).prop_map(|(path, user)| Ask::Allow(path, user)),
        2 => (path(), path()).prop_map(|(a, b)| Ask::Both(a, b)),
        1 => Just(Ask::Open),
        1 => Just(Ask::Close),
    ]
}

fn write(ask: Ask) -> Write {
    match ask {
        Ask::Create(path, flags) => create(path, b"data", flags),
        Ask::Delete(path) => Write::Delete { path: path.to_owned(), version: -1 },
        Ask::Set(path) => Write::SetData { path: path.to_owned(), data: None, version: -1 },
        Ask::Allow(path, user) => {
            let acl = vec![Acl { permissions: 31, id: Id::new("world", "anyone") }];
            let more = Acl { permissions: user, id: Id::new("ip", "127.0.0.1") };
            Write::SetAcl { path: path.to_owned(), acl: [acl, vec![more]].concat(), version: -1 }
        }
        Ask::Both(a, b) => {
            Write::Multi(vec![Write::Delete { path: a.to_owned(), version: -1 }, create(b, b"", 0)])
        }
        Ask::Open => Write::CreateSession { timeout_ms: 1_000 },
        Ask::Close => Write::CloseSession,
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..4_i64, ask()).prop_map(|(session_id, ask)| Step::Ask(session_id, ask)),
        3 => (1..4_usize).prop_map(Step::Piece),
        1 => Just(Step::Finish),
    ]
}

/// A snapshot that is being taken as the server takes it.
struct Taking {
    writer: SnapshotWriter,
    zxid: i64,
    at: Option<std::sync::Arc<str>>,
}

impl Taking {
    fn begin(world: &mut World) -> Taking {
        world.roll();
        let sessions = world.replica.sessions().clone();
        let writer = SnapshotWriter::begin(world.directory.clone(), sessions).unwrap();
        Taking { writer, zxid: world.replica.last_zxid(), at: None }
    }

    fn take(&mut self, world: &World, count: usize) {
        for _ in 0..count {
            let tree = world.replica.tree();
            let next = self.at.as_ref().map_or_else(|| tree.root(), |at| tree.following(at));
            let Some((path, node)) = next else { return };
            self.writer.add(&[SnapshotNode::of(path.clone(), node)]).unwrap();
            self.at = Some(path);
        }
    }
}

#[test]
fn a_child_whose_parent_is_deleted_again_on_replay_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let mut world = World::open(scratch.path());
    for session_id in [1, 2] {
        world.ask(session_id, Write::CreateSession { timeout_ms: 1_000 });
    }
    let delete = |path: &str| Write::Delete { path: path.to_owned(), version: -1 };
    world.ask(1, create("/a", b"old", 0));
    let mut taking = Taking::begin(&mut world);
    taking.take(&world, 1);
    world.ask(1, delete("/a"));
    world.ask(1, create("/a", b"new", 0));
    world.ask(1, create("/a/x", b"data", 1));
    taking.take(&world, usize::MAX);
    taking.writer.finish(taking.zxid).unwrap();
    let expected = dump(&world.replica);
    drop(world);
    assert_eq!(dump(&restart(scratch.path()).0), expected);
}

/// The nodes of a snapshot are of different times, and so is what was counted of them.
#[test]
fn quotas_are_counted_anew_from_a_snapshot_that_was_taken_while_txns_went_on() {
    let scratch = tempfile::tempdir().unwrap();
    let mut world = World::open(scratch.path());
    world.ask(1, Write::CreateSession { timeout_ms: 1_000 });
    world.ask(1, create("/a", b"data", 0));
    for path in ["", "/zookeeper_limits", "/zookeeper_stats"] {
        world.ask(1, create(&format!("/zookeeper/quota/a{path}"), b"count=9,bytes=9", 0));
    }
    let mut taking = Taking::begin(&mut world);
    // The root, and what is to be counted, but not the count.
    taking.take(&world, 2);
    for name in ["b", "c", "z"] {
        world.ask(1, create(&format!("/a/{name}"), b"more", 0));
    }
    world.ask(1, Write::Delete { path: "/a/c".to_owned(), version: -1 });
    taking.take(&world, usize::MAX);
    taking.writer.finish(taking.zxid).unwrap();
    world.ask(1, Write::SetData { path: "/a/z".to_owned(), data: None, version: -1 });
    let stats = world.replica.tree().get("/zookeeper/quota/a/zookeeper_stats").unwrap();
    assert_eq!(stats.data().unwrap(), "count=3,bytes=8");
    let expected = dump(&world.replica);
    drop(world);
    let (replica, recovery) = restart(scratch.path());
    assert_eq!(recovery.snapshot.unwrap().extension().unwrap(), "5");
    assert_eq!(dump(&replica), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_restart_shows_what_was_there_wherever_the_crash_came(
        before in prop::collection::vec(step(), 0..30),
        steps in prop::collection::vec(step(), 0..70),
        torn in any::<prop::sample::Index>(),
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let mut world = World::open(scratch.path());
        for session_id in 1..4 {
            world.ask(session_id, Write::CreateSession { timeout_ms: 1_000 });
        }
        let mut taking: Option<Taking> = None;
        for step in before.into_iter().chain(steps) {
            match step {
                Step::Ask(session_id, ask) => world.ask(session_id, write(ask)),
                Step::Piece(count) => {
                    let mut current =
                        taking.take().unwrap_or_else(|| Taking::begin(&mut world));
                    current.take(&world, count);
                    taking = Some(current);
                }
                Step::Finish => {
                    if let Some(mut current) = taking.take() {
                        current.take(&world, usize::MAX);
                        current.writer.finish(current.zxid).unwrap();
                        purge(&world.directory).unwrap();
                    }
                }
            }
        }
        // The crash comes while one more txn is being written.
        let proposal = world.prepare(1, create("/torn", b"lost", 0));
        let mut entry = Vec::new();
        encode_entry(&proposal.header, &proposal.txn, &mut entry);
        let logs = world.directory.logs().unwrap();
        let last = world.directory.log(*logs.last().unwrap());
        let bytes = std::fs::read(&last).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let file = std::fs::File::options().write(true).open(last).unwrap();
        file.set_len(bytes.len().max(end + 200) as u64).unwrap();
        file.write_all_at(&entry[..torn.index(entry.len())], end as u64).unwrap();
        let expected = dump(&world.replica);
        drop((taking, world));
        let (replica, _) = restart(scratch.path());
        prop_assert_eq!(dump(&replica), expected);
    }
}
