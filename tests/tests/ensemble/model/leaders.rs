//! Another leader.

use anyhow::Context;
use wok_tests::wire::At::{Follower, Leader, OtherFollower};
use wok_tests::wire::message::{
    Rearmed, Watch::Leave, Watch::No, create, exists, get_children2, get_data, get_ephemerals,
    set_data, set_watches, sync,
};

use super::check;

#[test]
fn sessions_and_what_was_answered_outlive_their_leader() {
    check(|trio| {
        let who = [
            trio.connect_at(Leader, "a")?,
            trio.connect_at(Follower, "b")?,
            trio.connect_at(OtherFollower, "c")?,
        ];
        trio.call(who[0], create("/outlives"))?;
        for of in who {
            trio.call(of, create("/outlives/e-").flags(3))?;
            trio.call(of, create("/outlives/p-").flags(2))?;
        }
        trio.change_leader()?;
        for of in who {
            trio.end(of)?;
        }
        // The client that writes first begins the new leader's count.
        let first = trio.connect_at(Leader, "first")?;
        trio.call(first, get_children2("/outlives", No))?;
        for (at, of, name) in [
            (OtherFollower, who[0], "a again"),
            (Leader, who[1], "b again"),
            (Follower, who[2], "c again"),
        ] {
            let there = trio.connect_at(at, "there")?;
            trio.call(there, sync("/outlives"))?;
            let again = trio.return_at(at, name, of)?.context("it was sent away")?;
            trio.call(again, get_ephemerals("/"))?;
            trio.call(again, create("/outlives/e-").flags(3))?;
            trio.call(again, get_children2("/outlives", No))?;
        }
        Ok(())
    });
}

#[test]
fn watches_are_taken_to_the_next_leader() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/next"))?;
        trio.call(b, sync("/next"))?;
        trio.call(b, get_data("/next", Leave))?;
        trio.call(b, exists("/next/no", Leave))?;
        let since = trio.last_zxid(b)?;
        trio.change_leader()?;
        trio.end(a)?;
        trio.end(b)?;
        let again = trio.return_at(Leader, "b again", b)?.context("it was sent away")?;
        let rearmed = Rearmed { data: &["/next"], exist: &["/next/no"], child: &[] };
        trio.call(again, set_watches(since, rearmed))?;
        let c = trio.connect_at(Follower, "c")?;
        trio.call(c, set_data("/next", None, 0))?;
        trio.call(c, create("/next/no"))?;
        trio.call(again, sync("/next"))?;
        trio.call(again, get_data("/next", No))?;
        Ok(())
    });
}

#[test]
fn who_has_heard_from_a_new_leader_is_sent_away_by_its_followers_until_it_has_written() {
    check(|trio| {
        let a = trio.connect_at(Leader, "a")?;
        trio.call(a, create("/idle").flags(1))?;
        trio.change_leader()?;
        trio.end(a)?;
        let again = trio.return_at(Leader, "again", a)?.context("it was sent away")?;
        trio.call(again, exists("/idle", No))?;
        trio.close(again)?;
        assert_eq!(trio.return_at(Follower, "too early", again)?, None);
        let b = trio.connect_at(Follower, "b")?;
        trio.call(b, sync("/idle"))?;
        let third = trio.return_at(Follower, "third", again)?.context("it was sent away")?;
        trio.call(third, exists("/idle", No))?;
        Ok(())
    });
}
