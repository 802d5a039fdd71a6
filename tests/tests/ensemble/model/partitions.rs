//! Servers that do not hear each other, and do not know it yet.
//!
//! Of elections they still hear here. `tests/tests/partition/model.rs` cuts those off as well, which
//! takes root.

use std::time::Duration;

use anyhow::{Context, Result};
use wok_tests::wire::At::{self, Follower, Leader, OtherFollower};
use wok_tests::wire::message::{Watch::Leave, Watch::No, create, exists, get_data, set_data, sync};
use wok_tests::wire::{Hello, Trio, Who};

use super::check_apart;

/// Sessions that end before a server gives another one up that it does not hear.
const SHORTEST: Duration = Duration::from_secs(1);
const SHORT: Duration = Duration::from_secs(2);

/// How often somebody reads who means to keep a session.
const READING: Duration = Duration::from_millis(300);

/// After that a session of [`SHORT`] whose client was silent is near its end, and still lives.
const NEARLY_SHORT: Duration = Duration::from_millis(1_500);

/// Before that a server that is cut off has not been given up.
const A_WHILE: Duration = Duration::from_millis(1_200);

fn connect_for(trio: &mut Trio, at: At, name: &str, timeout: Duration) -> Result<Who> {
    let hello = Hello { timeout, ..Hello::default() };
    trio.greet_at(at, name, &hello)?.context("it was sent away")
}

/// Two short sessions at the two that follow, each with a znode of its name below `/short`, which
/// another session watches.
fn two_short(trio: &mut Trio, watcher: Who) -> Result<[Who; 2]> {
    trio.call(watcher, create("/short"))?;
    let c = connect_for(trio, Follower, "c", SHORT)?;
    let d = connect_for(trio, OtherFollower, "d", SHORT)?;
    for (who, path) in [(c, "/short/c"), (d, "/short/d")] {
        trio.call(who, create(path).flags(1))?;
        trio.call(watcher, exists(path, Leave))?;
    }
    // The last that is heard of them before they are silent. Their servers know all that was written.
    for who in [c, d] {
        trio.call(who, sync("/short"))?;
    }
    Ok([c, d])
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
        let c = connect_for(trio, Follower, "c", SHORTEST)?;
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
        let c = connect_for(trio, Follower, "c", SHORT)?;
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

#[test]
fn a_follower_that_is_not_heard_hears_its_leader() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/told"))?;
        let [c, d] = two_short(trio, a)?;
        trio.rest(NEARLY_SHORT);
        trio.cut_way(Follower, Leader)?;
        // The leader hears that the client of this session lives.
        trio.call(d, exists("/short/d", No))?;
        // It does not hear so of this one, though that is answered.
        trio.call(c, exists("/short/c", No))?;
        trio.call(b, get_data("/told", Leave))?;
        trio.call(a, set_data("/told", Some(b"new"), 0))?;
        trio.event(b)?;
        trio.call(b, get_data("/told", No))?;
        // The end of the session that the leader has heard nothing of comes before that of the other,
        // and the follower hears of it.
        trio.event(a)?;
        trio.end(c)?;
        trio.call(b, exists("/short/c", No))?;
        trio.send(b, &[create("/told/lost").into()])?;
        trio.event(a)?;
        trio.end(d)?;
        // The leader gives the follower up, which hears that, too.
        trio.end(b)?;
        trio.call(a, exists("/told/lost", No))?;
        trio.heal()
    });
}

#[test]
fn what_a_follower_that_hears_nothing_hands_on_is_done_and_not_answered() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        let beside = trio.connect_at(Follower, "beside")?;
        trio.call(a, create("/done"))?;
        trio.call(b, sync("/done"))?;
        trio.call(a, exists("/done/b", Leave))?;
        trio.cut_way(Leader, Follower)?;
        trio.send(b, &[create("/done/b").into()])?;
        trio.event(a)?;
        trio.call(a, exists("/done/b", No))?;
        trio.call(beside, exists("/done/b", No))?;
        trio.end(b)?;
        trio.end(beside)?;
        trio.heal()?;
        let again = trio.return_at(Follower, "again", b)?.context("it was sent away")?;
        trio.call(again, exists("/done/b", No))?;
        Ok(())
    });
}

#[test]
fn a_session_that_comes_to_a_follower_that_hears_nothing_is_kept_and_not_welcome() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let a = trio.connect_at(Leader, "a")?;
        let [c, _] = two_short(trio, a)?;
        // A ping asks for what has been heard.
        trio.rest(READING);
        trio.cut_way(Leader, Follower)?;
        trio.rest(A_WHILE);
        let hello = Hello {
            timeout: SHORT,
            session: Some(trio.key(c)?),
            last_zxid: trio.last_zxid(c)?,
            ..Hello::default()
        };
        trio.greet_at(Follower, "again", &hello)?;
        // The other session, whose client was silent for as long, ends first.
        trio.event(a)?;
        trio.event(a)?;
        trio.heal()
    });
}

#[test]
fn a_leader_that_hears_nobody_tells_those_that_follow_it_that_it_gives_up() {
    check_apart(|trio| {
        trio.keep_parts()?;
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/unheard"))?;
        trio.call(b, sync("/unheard"))?;
        trio.cut_way(Follower, Leader)?;
        trio.cut_way(OtherFollower, Leader)?;
        trio.call(a, sync("/unheard"))?;
        trio.call(b, exists("/unheard", No))?;
        // Those that follow have it, and cannot say so: it may have happened.
        trio.send(a, &[create("/unheard/open").into()])?;
        trio.end(a)?;
        trio.end(b)?;
        trio.heal()
    });
}
