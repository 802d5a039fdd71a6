//! Sessions: taken up again, refused, expired, closed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use wok_tests::frames::{Fields, SessionKey};
use wok_tests::wire::message::{
    Acl, Watch::Leave, Watch::No, add_watch, auth, close_session, create, exists, get_children,
    get_data, get_ephemerals, ping, set_data, who_am_i,
};
use wok_tests::wire::{Hello, ReadOnlyByte, Reply, Run, Who};

use crate::check;

/// Twice the tick of both servers: the shortest that they grant.
const SHORTEST: Duration = Duration::from_secs(1);

fn back(session: SessionKey) -> Hello {
    Hello { session: Some(session), ..Hello::default() }
}

#[test]
fn a_session_is_taken_up_with_its_nodes_and_without_its_watches_and_proofs() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, auth("digest", "u:p"))?;
        run.call(a, create("/taken").flags(1))?;
        run.call(a, create("/taken-mine").acls(&[Acl::new(31, "auth", "")]))?;
        run.call(a, get_data("/taken", Leave))?;
        let hello = Hello { timeout: Duration::from_secs(3), ..back(run.key(a)?) };
        let again = run.greet("again", &hello)?.context("no answer")?;
        run.end(a)?;
        run.call(again, exists("/taken", No))?;
        run.call(again, get_ephemerals("/"))?;
        run.call(again, who_am_i())?;
        run.call(again, get_data("/taken-mine", No))?;
        run.call(again, set_data("/taken", None, -1))?;
        run.call(again, ping())?;
        run.close(again)?;
        let third = run.greet("third", &back(run.key(a)?))?.context("no answer")?;
        run.call(third, exists("/taken", No))?;
        Ok(())
    });
}

#[test]
fn a_wrong_password_is_refused_and_ends_the_right_connection() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/wrong").flags(1))?;
        for password in [vec![9; 16], vec![0; 16], vec![], vec![9; 17]] {
            let key = SessionKey { password, ..run.key(a)? };
            let wrong = run.greet("wrong", &back(key))?.context("no answer")?;
            run.end(wrong)?;
        }
        run.end(a)?;
        let right = run.greet("right", &back(run.key(a)?))?.context("no answer")?;
        run.call(right, exists("/wrong", No))?;
        Ok(())
    });
}

#[test]
fn a_session_that_never_was_or_is_over_is_refused() {
    check(|run| {
        let a = run.connect("a")?;
        let key = run.key(a)?;
        run.call(a, close_session())?;
        run.end(a)?;
        let never = SessionKey { id: 12_345, password: vec![1; 16] };
        for key in [key, never] {
            let refused = run.greet("refused", &back(key))?.context("no answer")?;
            run.end(refused)?;
        }
        Ok(())
    });
}

/// The server's clock at a creation.
fn created_ms(reply: Option<Reply>) -> Result<i64> {
    let body = reply.context("the connection ended")?.body;
    let mut fields = Fields::new(&body);
    let (_czxid, _mzxid) = (fields.long()?, fields.long()?);
    Ok(fields.long()?)
}

fn server_ms(run: &mut Run, who: Who, path: &str) -> Result<i64> {
    run.call(who, create(path))?;
    created_ms(run.call(who, exists(path, No))?)
}

fn until_gone(run: &mut Run, who: Who, path: &str) -> Result<()> {
    const NO_NODE: i32 = -101;
    while run.call(who, exists(path, No))?.context("the connection ended")?.error != NO_NODE {}
    Ok(())
}

#[test]
fn silent_sessions_expire_in_turn_not_early_and_each_takes_its_nodes_at_one_zxid() {
    check(|run| {
        let (watcher, other) = (run.connect("watcher")?, run.connect("other")?);
        run.call(watcher, create("/expiry"))?;
        let hello = |timeout| Hello { timeout, ..Hello::default() };
        // Asked for in the other order than they expire, three ticks apart.
        let late = run.greet("late", &hello(SHORTEST * 5 / 2))?.context("no answer")?;
        let soon = run.greet("soon", &hello(SHORTEST / 10))?.context("no answer")?;
        for (who, name) in [(late, "late"), (soon, "soon")] {
            for child in ["1", "2", "3"] {
                run.call(who, create(&format!("/expiry/{name}-{child}")).flags(1))?;
            }
        }
        run.call(watcher, add_watch("/expiry", 1))?;
        let start_ms = server_ms(run, watcher, "/expiry/start")?;
        run.call(late, ping())?;
        run.call(soon, ping())?;
        for (who, name, timeout) in [(soon, "soon", SHORTEST), (late, "late", SHORTEST * 5 / 2)] {
            run.end(who)?;
            // Apache may end a silent connection, by another clock, before its session.
            run.aside(|run| until_gone(run, other, &format!("/expiry/{name}-1")))?;
            run.unordered();
            let path = format!("/expiry/after-{name}");
            let passed_ms = server_ms(run, watcher, &path)? - start_ms;
            // Milliseconds of two clocks: each may have just begun.
            ensure!(passed_ms + 2 >= i64::try_from(timeout.as_millis())?, "early: {passed_ms} ms");
            run.call(watcher, exists("/expiry", No))?;
        }
        for who in [soon, late] {
            let gone = run.greet("gone", &back(run.key(who)?))?.context("no answer")?;
            run.end(gone)?;
        }
        Ok(())
    });
}

#[test]
fn a_closed_session_is_answered_then_ended_and_its_nodes_are_gone_for_the_next_read() {
    check(|run| {
        let (a, b) = (run.connect("a")?, run.connect("b")?);
        run.call(a, create("/closed"))?;
        for child in ["/closed/1", "/closed/2"] {
            run.call(a, create(child).flags(1))?;
            run.call(b, exists(child, Leave))?;
        }
        run.call(b, get_children("/closed", Leave))?;
        run.call(a, close_session())?;
        run.unordered();
        run.call(b, get_children("/closed", No))?;
        run.call(b, exists("/closed", No))?;
        run.end(a)?;
        Ok(())
    });
}

#[test]
fn timeouts_are_kept_within_bounds() {
    check(|run| {
        for timeout_ms in [0, 1, 999, 1_001, 9_999, 10_001, 1_000_000_000] {
            let timeout = Duration::from_millis(timeout_ms);
            run.greet("bounded", &Hello { timeout, ..Hello::default() })?;
        }
        Ok(())
    });
}

#[test]
fn first_messages_of_old_clients_and_of_those_that_have_seen_more_are_met_alike() {
    check(|run| {
        let old = Hello { read_only: ReadOnlyByte::LeftOut, ..Hello::default() };
        let old = run.greet("old", &old)?.context("no answer")?;
        run.call(old, exists("/", No))?;
        let now = run.last_zxid(old)?;
        for last_zxid in [now, now + 100, i64::MAX, -1] {
            run.greet("seen", &Hello { last_zxid, ..Hello::default() })?;
        }
        Ok(())
    });
}
