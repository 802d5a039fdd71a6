//! What a follower that is behind says.

use wok_tests::wire::At::{Follower, Leader, OtherFollower};
use wok_tests::wire::message::{
    Watch::Leave, Watch::No, create, delete, exists, get_children2, get_data, multi, set_data, sync,
};

use super::check;

#[test]
fn a_follower_that_is_behind_answers_from_the_past_and_a_sync_waits_for_the_present() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/stale"))?;
        trio.call(a, create("/stale/old"))?;
        trio.call(b, sync("/stale"))?;
        trio.hold(Follower)?;
        trio.call(a, set_data("/stale", Some(b"new"), 0))?;
        trio.call(a, delete("/stale/old", -1))?;
        trio.call(a, create("/stale/young"))?;
        for _ in 0..3 {
            trio.call(b, get_data("/stale", No))?;
            trio.call(b, exists("/stale/old", No))?;
            trio.call(b, exists("/stale/young", No))?;
            trio.call(b, get_children2("/stale", No))?;
        }
        trio.send(b, &[sync("/stale"), get_data("/stale", No), get_children2("/stale", No)])?;
        trio.let_go(Follower)?;
        for _ in 0..3 {
            trio.reply(b)?;
        }
        Ok(())
    });
}

#[test]
fn one_follower_may_know_what_the_other_does_not() {
    check(|trio| {
        let a = trio.connect_at(Leader, "a")?;
        let (b, c) = (trio.connect_at(Follower, "b")?, trio.connect_at(OtherFollower, "c")?);
        trio.call(a, create("/apart"))?;
        trio.call(b, sync("/apart"))?;
        trio.call(c, sync("/apart"))?;
        trio.hold(Follower)?;
        trio.call(c, set_data("/apart", Some(b"by c"), -1))?;
        trio.call(c, get_data("/apart", No))?;
        trio.call(b, get_data("/apart", No))?;
        trio.call(a, get_data("/apart", No))?;
        trio.let_go(Follower)?;
        trio.call(b, sync("/apart"))?;
        trio.call(b, get_data("/apart", No))?;
        Ok(())
    });
}

#[test]
fn a_write_through_a_follower_that_is_behind_happens_and_is_answered_late() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, exists("/own", Leave))?;
        trio.call(b, sync("/own"))?;
        trio.hold(Follower)?;
        trio.send(b, &[create("/own").into(), get_data("/own", No)])?;
        trio.event(a)?;
        trio.call(a, set_data("/own", Some(b"by a"), 0))?;
        trio.let_go(Follower)?;
        // It sees its own write, and maybe more.
        trio.reply(b)?;
        trio.aside(|trio| trio.reply(b))?;
        trio.call(b, sync("/own"))?;
        trio.call(b, get_data("/own", No))?;
        Ok(())
    });
}

#[test]
fn a_session_reads_its_own_writes_in_the_order_it_asked() {
    check(|trio| {
        let b = trio.connect_at(Follower, "b")?;
        trio.call(b, create("/order"))?;
        let mut asked = Vec::new();
        for round in 0..5 {
            let path = format!("/order/{round}");
            asked.push(exists(&path, No));
            asked.push(create(&path).into());
            asked.push(get_children2("/order", No));
            asked.push(set_data(&path, Some(b"1"), 0));
            asked.push(get_data(&path, No));
            asked.push(multi(&[create(&format!("{path}/x")).into(), set_data(&path, None, 1)]));
            asked.push(exists(&path, No));
        }
        trio.send(b, &asked)?;
        for _ in asked {
            trio.reply(b)?;
        }
        Ok(())
    });
}

#[test]
fn what_a_follower_has_not_heard_of_decides_all_the_same() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/decided"))?;
        trio.call(b, sync("/decided"))?;
        trio.hold(Follower)?;
        trio.call(a, create("/decided/x"))?;
        trio.call(a, set_data("/decided", None, 0))?;
        trio.call(b, exists("/decided/x", No))?;
        trio.send(
            b,
            &[
                create("/decided/x").into(),
                set_data("/decided", None, 0),
                delete("/decided", -1),
                create("/decided/y").flags(2).into(),
            ],
        )?;
        trio.let_go(Follower)?;
        for _ in 0..4 {
            trio.reply(b)?;
        }
        Ok(())
    });
}
