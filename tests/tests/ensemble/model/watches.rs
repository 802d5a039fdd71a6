//! Who is told of what on which server, and when.

use wok_tests::wire::At::{Follower, Leader, OtherFollower};
use wok_tests::wire::message::{
    Rearmed, Watch::Leave, Watch::No, close_session, create, delete, exists, get_children2,
    get_data, multi, set_data, set_watches, sync,
};

use super::check;

#[test]
fn an_event_comes_before_the_answer_that_shows_the_change() {
    check(|trio| {
        let a = trio.connect_at(Leader, "a")?;
        let (b, c) = (trio.connect_at(Follower, "b")?, trio.connect_at(OtherFollower, "c")?);
        trio.call(a, create("/event"))?;
        for (round, by) in (0..).zip([a, b, c, a, b, c]) {
            for who in [a, b, c] {
                trio.call(who, sync("/event"))?;
                trio.call(who, get_data("/event", Leave))?;
                trio.call(who, get_children2("/event", Leave))?;
            }
            trio.call(by, set_data("/event", None, round))?;
            trio.call(by, create("/event/x").flags(2))?;
            for who in [a, b, c] {
                trio.call(who, sync("/event"))?;
                trio.call(who, get_data("/event", No))?;
                trio.call(who, get_children2("/event", No))?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_watch_on_a_follower_that_is_behind_fires_when_it_catches_up() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/late"))?;
        trio.call(b, sync("/late"))?;
        trio.hold(Follower)?;
        trio.call(a, set_data("/late", None, 0))?;
        trio.call(a, create("/late/x"))?;
        // Left after the change, by a server that does not know of it: it fires for it.
        trio.call(b, get_data("/late", Leave))?;
        trio.call(b, exists("/late/x", Leave))?;
        trio.call(b, get_children2("/late", Leave))?;
        trio.let_go(Follower)?;
        for _ in 0..3 {
            trio.event(b)?;
        }
        trio.call(b, get_data("/late", No))?;
        Ok(())
    });
}

#[test]
fn the_events_of_a_multi_come_in_its_order() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/all"))?;
        trio.call(a, create("/all/old"))?;
        trio.call(b, sync("/all"))?;
        trio.call(b, get_data("/all", Leave))?;
        trio.call(b, get_children2("/all", Leave))?;
        trio.call(b, exists("/all/old", Leave))?;
        trio.call(b, exists("/all/young", Leave))?;
        let parts = [
            create("/all/young").into(),
            delete("/all/old", -1),
            set_data("/all", None, -1),
            set_data("/all/young", None, 0),
        ];
        trio.call(a, multi(&parts))?;
        trio.call(b, sync("/all"))?;
        trio.call(b, get_children2("/all", No))?;
        Ok(())
    });
}

#[test]
fn the_end_of_a_session_is_one_txn_and_told_znode_by_znode() {
    check(|trio| {
        let a = trio.connect_at(Leader, "a")?;
        let (b, c) = (trio.connect_at(Follower, "b")?, trio.connect_at(OtherFollower, "c")?);
        trio.call(a, create("/ends"))?;
        for child in ["/ends/1", "/ends/2", "/ends/3"] {
            trio.call(c, create(child).flags(1))?;
        }
        trio.call(c, create("/ends/4"))?;
        for who in [a, b] {
            trio.call(who, sync("/ends"))?;
            for child in ["/ends/1", "/ends/2", "/ends/3"] {
                trio.call(who, exists(child, Leave))?;
            }
            trio.call(who, get_children2("/ends", Leave))?;
        }
        trio.call(c, close_session())?;
        trio.end(c)?;
        for who in [a, b] {
            trio.unordered();
            trio.call(who, sync("/ends"))?;
            trio.call(who, get_children2("/ends", No))?;
        }
        Ok(())
    });
}

#[test]
fn watches_that_are_taken_to_another_server_tell_what_was_missed_and_wait_for_the_rest() {
    check(|trio| {
        let a = trio.connect_at(Leader, "a")?;
        let (b, c) = (trio.connect_at(Follower, "b")?, trio.connect_at(OtherFollower, "c")?);
        let paths = ["/moved/changed", "/moved/deleted", "/moved/same"];
        trio.call(a, create("/moved"))?;
        for path in paths {
            trio.call(a, create(path))?;
        }
        trio.call(b, sync("/moved"))?;
        for path in paths {
            trio.call(b, get_data(path, Leave))?;
        }
        trio.call(b, get_children2("/moved", Leave))?;
        trio.call(b, exists("/moved/created", Leave))?;
        trio.call(b, exists("/moved/never", Leave))?;
        trio.call(c, sync("/moved"))?;
        let since = trio.last_zxid(b)?;
        trio.close(b)?;
        trio.call(a, set_data("/moved/changed", None, -1))?;
        trio.call(a, delete("/moved/deleted", -1))?;
        trio.call(a, create("/moved/created"))?;
        trio.call(c, sync("/moved"))?;
        let again = trio.return_at(OtherFollower, "again", b)?.expect("it is welcome");
        let exist = &["/moved/created", "/moved/never"];
        let rearmed = Rearmed { data: &paths, exist, child: &["/moved"] };
        trio.call(again, set_watches(since, rearmed))?;
        trio.call(a, set_data("/moved/same", None, -1))?;
        trio.call(a, set_data("/moved/changed", None, -1))?;
        trio.call(a, create("/moved/never"))?;
        trio.call(again, sync("/moved"))?;
        trio.call(again, get_children2("/moved", No))?;
        Ok(())
    });
}

#[test]
fn watches_taken_to_a_server_that_is_behind_fire_when_it_catches_up() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/behind"))?;
        trio.call(a, create("/behind/gone"))?;
        trio.call(b, sync("/behind"))?;
        let since = trio.last_zxid(b)?;
        trio.hold(Follower)?;
        trio.call(a, set_data("/behind", None, -1))?;
        trio.call(a, delete("/behind/gone", -1))?;
        trio.call(a, create("/behind/new"))?;
        let rearmed = Rearmed {
            data: &["/behind", "/behind/gone"],
            exist: &["/behind/new"],
            child: &["/behind"],
        };
        trio.call(b, set_watches(since, rearmed))?;
        trio.call(b, get_children2("/behind", No))?;
        trio.let_go(Follower)?;
        trio.call(b, sync("/behind"))?;
        trio.call(b, get_children2("/behind", No))?;
        Ok(())
    });
}
