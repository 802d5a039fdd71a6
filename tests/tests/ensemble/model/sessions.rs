//! Sessions that move, end and expire while their servers know more or less of it.

use std::time::Duration;

use anyhow::{Context, Result};
use wok_tests::wire::At::{self, Follower, Leader, OtherFollower};
use wok_tests::wire::message::{
    Watch::Leave, Watch::No, check as check_version, close_session, create, delete, exists,
    get_children2, get_data, get_ephemerals, multi, ping, set_data, sync,
};
use wok_tests::wire::{Hello, Trio, Who};

use super::check;

/// Twice the tick of both ensembles: the shortest that they grant.
const SHORTEST: Duration = Duration::from_secs(1);

fn welcome(trio: &mut Trio, at: At, name: &str, old: Who) -> Result<Who> {
    trio.return_at(at, name, old)?.context("it was sent away")
}

#[test]
fn a_session_goes_to_another_server_with_its_znodes() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(b, create("/goes").flags(1))?;
        trio.close(b)?;
        let mut last = b;
        for (at, name) in [(OtherFollower, "second"), (Leader, "third"), (Follower, "fourth")] {
            // A client that has written here has made this server know of the session.
            let there = trio.connect_at(at, "there")?;
            trio.call(there, sync("/goes"))?;
            last = welcome(trio, at, name, last)?;
            trio.call(last, get_ephemerals("/"))?;
            trio.call(last, set_data("/goes", None, -1))?;
            trio.call(last, get_data("/goes", No))?;
            trio.close(last)?;
        }
        trio.call(a, exists("/goes", No))?;
        Ok(())
    });
}

/// A session at one server goes to another, and its old connection writes.
fn writes_from_the_past(trio: &mut Trio, old: At, new: At) -> Result<()> {
    let a = trio.connect_at(old, "a")?;
    trio.call(a, create("/past").flags(1))?;
    let there = trio.connect_at(new, "there")?;
    trio.call(there, sync("/past"))?;
    let again = welcome(trio, new, "again", a)?;
    trio.call(again, set_data("/past", Some(b"new"), 0))?;
    trio.call(a, set_data("/past", Some(b"old"), -1))?;
    trio.call(again, sync("/past"))?;
    trio.call(again, get_data("/past", No))?;
    trio.call(again, delete("/past", -1))?;
    Ok(())
}

#[test]
fn the_old_connection_of_a_session_that_went_away_cannot_write() {
    check(|trio| writes_from_the_past(trio, Leader, Follower));
    check(|trio| writes_from_the_past(trio, Follower, Leader));
    check(|trio| writes_from_the_past(trio, Follower, OtherFollower));
}

#[test]
fn the_old_connection_of_a_session_that_went_away_cannot_write_by_a_multi_either() {
    check(|trio| {
        let a = trio.connect_at(Follower, "a")?;
        trio.call(a, create("/past"))?;
        let there = trio.connect_at(OtherFollower, "there")?;
        trio.call(there, sync("/past"))?;
        let again = welcome(trio, OtherFollower, "again", a)?;
        trio.call(again, set_data("/past", Some(b"new"), 0))?;
        trio.call(a, multi(&[check_version("/past", -1), set_data("/past", Some(b"old"), -1)]))?;
        trio.call(again, sync("/past"))?;
        trio.call(again, get_data("/past", No))?;
        trio.call(again, delete("/past", -1))?;
        Ok(())
    });
}

/// A session at one server goes to another, and its old connection reads.
fn reads_from_the_past(trio: &mut Trio, old: At, new: At) -> Result<()> {
    let (a, beside) = (trio.connect_at(old, "a")?, trio.connect_at(old, "beside")?);
    trio.call(a, create("/past"))?;
    let there = trio.connect_at(new, "there")?;
    trio.call(there, sync("/past"))?;
    trio.call(beside, sync("/past"))?;
    let again = welcome(trio, new, "again", a)?;
    trio.call(a, get_data("/past", No))?;
    trio.call(again, get_data("/past", No))?;
    trio.call(again, delete("/past", -1))?;
    Ok(())
}

#[test]
fn the_old_connection_of_a_session_that_went_away_can_read_at_a_follower() {
    check(|trio| reads_from_the_past(trio, Follower, Leader));
    check(|trio| reads_from_the_past(trio, Follower, OtherFollower));
}

#[test]
fn the_old_connection_of_a_session_that_went_away_cannot_read_at_the_leader() {
    check(|trio| reads_from_the_past(trio, Leader, Follower));
}

#[test]
fn a_session_that_was_closed_elsewhere_is_over_everywhere() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(b, create("/over").flags(1))?;
        let again = welcome(trio, Leader, "again", b)?;
        trio.call(again, close_session())?;
        trio.end(again)?;
        trio.end(b)?;
        trio.call(a, exists("/over", No))?;
        for (at, name) in [(Leader, "1"), (Follower, "2"), (OtherFollower, "3")] {
            let there = trio.connect_at(at, "there")?;
            trio.call(there, sync("/"))?;
            let refused = welcome(trio, at, name, b)?;
            trio.end(refused)?;
        }
        Ok(())
    });
}

#[test]
fn a_follower_that_is_behind_serves_a_session_that_is_over() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(b, create("/unknown").flags(1))?;
        trio.hold(Follower)?;
        let again = welcome(trio, Leader, "again", b)?;
        trio.call(again, close_session())?;
        trio.end(again)?;
        trio.call(a, exists("/unknown", No))?;
        for _ in 0..3 {
            trio.call(b, exists("/unknown", No))?;
            trio.call(b, get_ephemerals("/"))?;
            trio.call(b, ping())?;
        }
        trio.send(b, &[create("/unknown/too-late").into()])?;
        trio.let_go(Follower)?;
        trio.end(b)?;
        // Whether the write reaches the leader before, and takes a zxid, is left open.
        let there = trio.aside(|trio| trio.call(a, exists("/unknown/too-late", No)))?;
        trio.note(there.context("no answer")?.error);
        Ok(())
    });
}

#[test]
fn a_client_that_has_seen_more_is_sent_away() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/seen"))?;
        trio.call(b, sync("/seen"))?;
        trio.hold(Follower)?;
        trio.call(a, set_data("/seen", None, -1))?;
        trio.close(a)?;
        assert_eq!(trio.return_at(Follower, "too early", a)?, None);
        trio.let_go(Follower)?;
        trio.call(b, sync("/seen"))?;
        let again = welcome(trio, Follower, "in time", a)?;
        trio.call(again, get_data("/seen", No))?;
        Ok(())
    });
}

#[test]
fn a_silent_session_expires_and_all_servers_tell_of_it() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/silent"))?;
        let hello = Hello { timeout: SHORTEST, ..Hello::default() };
        let c = trio.greet_at(OtherFollower, "c", &hello)?.context("it was sent away")?;
        trio.call(c, create("/silent/1").flags(1))?;
        trio.call(c, create("/silent/2").flags(3))?;
        for who in [a, b] {
            trio.call(who, sync("/silent"))?;
            trio.call(who, exists("/silent/1", Leave))?;
        }
        // Whether its server closes the connection before the session ends is the server's choice.
        trio.close(c)?;
        for who in [a, b] {
            trio.event(who)?;
            trio.call(who, get_children2("/silent", No))?;
        }
        let refused = welcome(trio, OtherFollower, "back", c)?;
        trio.end(refused)?;
        Ok(())
    });
}
