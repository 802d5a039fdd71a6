//! Servers that do not hear each other, and do not know it yet.

use std::time::Duration;

use anyhow::{Context, Result};
use wok_tests::wire::At::{Follower, Leader, OtherFollower};
use wok_tests::wire::message::{Watch::Leave, Watch::No, create, exists, get_data, set_data, sync};
use wok_tests::wire::{Hello, Trio, Who};

use super::check_apart;

/// Sessions that end before a server gives another one up that it does not hear.
const SHORTEST: Duration = Duration::from_secs(1);
const SHORT: Duration = Duration::from_secs(2);

/// How often somebody reads who means to keep a session.
const READING: Duration = Duration::from_millis(300);

fn connect_for(trio: &mut Trio, at: wok_tests::wire::At, timeout: Duration) -> Result<Who> {
    let hello = Hello { timeout, ..Hello::default() };
    trio.greet_at(at, "c", &hello)?.context("it was sent away")
}

#[test]
fn a_follower_that_is_cut_off_answers_reads_until_it_gives_its_leader_up() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/cut"))?;
        trio.call(b, sync("/cut"))?;
        trio.cut(Follower, Leader)?;
        trio.call(a, set_data("/cut", Some(b"new"), 0))?;
        trio.call(b, get_data("/cut", No))?;
        // It gets nowhere.
        trio.send(b, &[create("/cut/lost").into()])?;
        trio.end(b)?;
        trio.call(a, get_data("/cut", No))?;
        trio.heal()?;
        let again = trio.return_at(Follower, "again", b)?.context("it was sent away")?;
        trio.call(again, get_data("/cut", No))?;
        trio.call(again, exists("/cut/lost", No))?;
        Ok(())
    });
}

#[test]
fn a_session_ends_though_a_follower_that_is_cut_off_answers_its_reads() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let a = trio.connect_at(Leader, "a")?;
        trio.call(a, create("/kept"))?;
        let c = connect_for(trio, Follower, SHORTEST)?;
        trio.call(c, create("/kept/c").flags(1))?;
        trio.call(a, exists("/kept/c", Leave))?;
        trio.cut(Follower, Leader)?;
        for _ in 0..7 {
            trio.call(c, exists("/kept/c", No))?;
            trio.rest(READING);
        }
        // The event stands before the answer.
        trio.call(a, exists("/kept/c", No))?;
        trio.call(c, exists("/kept/c", No))?;
        trio.end(c)?;
        trio.heal()
    });
}

#[test]
fn a_leader_that_is_cut_off_answers_syncs_and_reads_and_no_writes() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/alone"))?;
        trio.call(b, sync("/alone"))?;
        trio.cut(Leader, Follower)?;
        trio.cut(Leader, OtherFollower)?;
        trio.call(a, sync("/alone"))?;
        trio.call(a, get_data("/alone", No))?;
        trio.send(a, &[set_data("/alone", Some(b"lost"), 0)])?;
        trio.end(a)?;
        trio.end(b)?;
        trio.until_serving(Follower)?;
        let b = trio.return_at(Follower, "b again", b)?.context("it was sent away")?;
        trio.call(b, set_data("/alone", Some(b"kept"), 0))?;
        trio.heal()?;
        let c = trio.connect_at(Leader, "c")?;
        trio.call(c, sync("/alone"))?;
        trio.call(c, get_data("/alone", No))?;
        Ok(())
    });
}

#[test]
fn a_leader_that_is_cut_off_answers_its_clients_syncs_whatever_it_has_proposed() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Leader, "b")?);
        trio.call(a, create("/behind"))?;
        trio.cut(Leader, Follower)?;
        trio.cut(Leader, OtherFollower)?;
        trio.send(a, &[create("/behind/lost").into()])?;
        trio.rest(READING);
        trio.call(b, sync("/behind"))?;
        trio.call(b, exists("/behind/lost", No))?;
        trio.end(b)?;
        trio.end(a)?;
        trio.heal()
    });
}

#[test]
fn a_sync_waits_for_what_its_session_has_written_by_an_earlier_connection() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let a = trio.connect_at(Leader, "a")?;
        trio.call(a, create("/own"))?;
        trio.cut(Leader, Follower)?;
        trio.cut(Leader, OtherFollower)?;
        trio.send(a, &[create("/own/lost").into()])?;
        trio.rest(READING);
        let again = trio.return_at(Leader, "again", a)?.context("it was sent away")?;
        trio.end(a)?;
        trio.send(again, &[sync("/own")])?;
        trio.end(again)?;
        trio.heal()
    });
}

#[test]
fn sessions_begin_anew_with_a_new_leader() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let b = trio.connect_at(Follower, "b")?;
        trio.call(b, create("/anew"))?;
        let c = connect_for(trio, Follower, SHORT)?;
        trio.call(c, create("/anew/c").flags(1))?;
        trio.cut(Leader, Follower)?;
        trio.cut(Leader, OtherFollower)?;
        // By then the old leader has given the session up, and could not tell.
        trio.end(b)?;
        trio.until_serving(Follower)?;
        let b = trio.return_at(Follower, "b again", b)?.context("it was sent away")?;
        // The client that writes first begins the new leader's count.
        trio.call(b, create("/anew/next"))?;
        trio.call(b, exists("/anew/c", Leave))?;
        trio.event(b)?;
        trio.heal()
    });
}
