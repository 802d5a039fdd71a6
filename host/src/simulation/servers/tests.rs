//! How sessions are taken over, and how they end: each step by itself.

use bytes::Bytes;
use wok_embedded::serve::Delivery;

use super::*;
use crate::session::{Acl as Access, Request as Asked, Watching};
use crate::simulation::chance::Chance;
use crate::simulation::frames::{self, Welcome};

const TIMEOUT_MS: u64 = 4_000;

/// Server 0 leads two others, and server 1 has a client: its session, whose connection is 1.
struct Scene {
    servers: Servers,
    session: i64,
    password: Bytes,
}

fn at(elapsed_ms: u64) -> Now {
    Now { elapsed_ms, wall_ms: 0 }
}

impl Scene {
    fn begin() -> Self {
        let servers = Servers::new(ServerVersion::V3_9, 3, &[], 0);
        let mut scene = Scene { servers, session: 0, password: Bytes::from_static(&[0; 16]) };
        scene.come(1, 1, 0);
        scene.servers.commit(0, at(0));
        scene.servers.apply(1, at(0));
        let welcome = scene.welcome(1).unwrap();
        Scene { session: welcome.session, password: welcome.password, ..scene }
    }

    /// The session's client comes to a server.
    fn come(&mut self, server: usize, connection: u64, ms: u64) {
        self.servers.open(server, connection, at(ms));
        let hello = frames::hello(0, TIMEOUT_MS, self.session, &self.password);
        self.servers.receive(server, connection, &hello, at(ms));
    }

    /// What a server has told connections since last asked, but for their ends.
    fn replies(&mut self, server: usize) -> Vec<(u64, Bytes)> {
        let deliveries = self.servers.take_deliveries(server).into_iter();
        let replies = deliveries.filter_map(|delivery| match delivery {
            Delivery::Reply { connection, frame } => Some((connection, frame.slice(4..))),
            _ => None,
        });
        replies.collect()
    }

    /// The answer to the one who has come to a server, if there is one.
    fn welcome(&mut self, server: usize) -> Option<Welcome> {
        let replies = self.replies(server);
        assert!(replies.len() <= 1, "{replies:?}");
        replies.first().map(|(_, frame)| frames::welcome(frame).unwrap())
    }

    /// Which connection of a server was told that it has the session.
    #[track_caller]
    fn accepted(&mut self, server: usize) -> Option<u64> {
        let replies = self.replies(server);
        assert!(replies.len() <= 1, "{replies:?}");
        let (connection, frame) = replies.into_iter().next()?;
        assert_eq!(frames::welcome(&frame).unwrap().session, self.session);
        Some(connection)
    }

    /// Whether a read on a connection is answered.
    fn reads(&mut self, server: usize, connection: u64, ms: u64) -> bool {
        let read = frames::request(1, &Asked::Exists("/".to_owned(), Watching::No), Access::Open);
        self.servers.receive(server, connection, &read, at(ms));
        !self.replies(server).is_empty()
    }
}

/// The leader has heard of the session when the first connection asked, and not since.
#[test]
fn the_answer_to_an_older_question_is_taken_for_a_newer_connection() {
    let mut scene = Scene::begin();
    scene.servers.stop_once_it_asks(1);
    scene.come(1, 2, 100);
    assert!(scene.servers.is_stopped(1));
    assert_eq!(scene.accepted(1), None, "the answer is not read");

    scene.servers.cut(1, 0);
    scene.servers.go_on(1);
    scene.come(1, 3, 1_900);
    scene.servers.catch_up_reading(1, at(1_900));
    assert_eq!(scene.accepted(1), Some(3));
    assert_eq!(scene.servers.pick_expired(at(4_500)).len(), 1, "as of 100 ms");
}

#[test]
fn an_answer_for_which_no_connection_waits_any_more_is_dropped() {
    let mut scene = Scene::begin();
    scene.servers.stop_once_it_asks(1);
    scene.come(1, 2, 100);
    scene.servers.go_on(1);
    // This time the second question gets there, and its answer is behind that to the first.
    scene.come(1, 3, 1_900);
    scene.servers.catch_up_reading(1, at(1_900));
    assert_eq!(scene.accepted(1), Some(3));
    assert_eq!(scene.servers.pick_expired(at(4_500)), [], "the leader has heard of it at 1900 ms");
    assert_eq!(scene.servers.pick_expired(at(6_000)).len(), 1);
}

#[test]
fn a_leader_that_is_cut_off_takes_sessions_over() {
    let mut scene = Scene::begin();
    for other in [1, 2] {
        scene.servers.cut(0, other);
        scene.servers.cut(other, 0);
    }
    for other in [1, 2] {
        scene.servers.listen(other, 1, at(SILENCE_MS));
    }
    scene.servers.settle(&mut Chance::new(1, "election"), at(2_600));
    assert!(matches!(scene.servers.leads(), Some(1 | 2)));
    scene.come(0, 2, 2_700);
    assert_eq!(scene.accepted(0), Some(2));
}

#[test]
fn a_server_that_was_stopped_hears_the_end_behind_all_else() {
    let mut scene = Scene::begin();
    scene.servers.stop_once_it_asks(1);
    scene.come(1, 2, 0);
    for ms in (BEAT_MS..=SILENCE_MS).step_by(250) {
        scene.servers.beat(0, 1, at(ms));
    }
    // Its leader has given it up, and it does not know.
    assert!(scene.servers.serves(1));
    scene.servers.listen(1, 1, at(SILENCE_MS));
    assert!(scene.servers.serves(1));
    scene.servers.go_on(1);
    scene.servers.catch_up_reading(1, at(3_000));
    assert_eq!(scene.accepted(1), Some(2), "what was said before the end is read");
    assert!(!scene.servers.serves(1));
}

#[test]
fn a_session_is_picked_then_refused_then_closed() {
    let mut scene = Scene::begin();
    let picked = scene.servers.pick_expired(at(4_500));
    let [expiry] = picked[..] else { panic!("{picked:?}") };

    // Nothing tells that it is picked.
    scene.come(2, 2, 4_500);
    scene.servers.apply(2, at(4_500));
    assert_eq!(scene.accepted(2), Some(2));

    scene.servers.refuse_expired(expiry);
    scene.come(0, 3, 4_501);
    assert_eq!(scene.welcome(0).map(|welcome| welcome.session), Some(0));
    assert!(scene.reads(1, 1, 4_501), "a server that follows answers");
    assert!(scene.servers.truth().sessions().contains_key(&scene.session));

    scene.servers.close_expired(expiry, at(4_502));
    assert!(scene.servers.truth().sessions().contains_key(&scene.session));
    scene.servers.commit(0, at(4_503));
    assert!(!scene.servers.truth().sessions().contains_key(&scene.session));
    assert!(scene.reads(1, 1, 4_503), "it has not heard of the end");
    scene.servers.apply(1, at(4_504));
    assert!(!scene.reads(1, 1, 4_504));
}

/// A leader that is no leader any more ends nothing.
#[test]
fn what_a_leader_has_picked_ends_with_its_reign() {
    let mut scene = Scene::begin();
    let picked = scene.servers.pick_expired(at(4_500));
    let [expiry] = picked[..] else { panic!("{picked:?}") };
    scene.servers.lose_leader();
    scene.servers.settle(&mut Chance::new(1, "election"), at(4_600));
    scene.servers.refuse_expired(expiry);
    scene.servers.close_expired(expiry, at(4_700));
    let leads = scene.servers.leads().unwrap();
    assert_eq!(scene.servers.ready(leads), 0);
    scene.come(leads, 2, 4_800);
    assert_eq!(scene.accepted(leads), Some(2));
}
