//! Who is told of what, and when.

use wok_tests::wire::message::{
    Message, Rearmed, Watch, Watch::Leave, Watch::No, add_watch, check_watches, close_session,
    create, delete, exists, get_children, get_children2, get_data, ping, remove_watches, set_data,
    set_watches, set_watches2,
};

use crate::check;

#[test]
fn a_deleted_node_is_told_once_to_who_watches_data_and_children() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/once"))?;
        run.call(a, get_data("/once", Leave))?;
        run.call(a, exists("/once", Leave))?;
        run.call(a, get_children("/once", Leave))?;
        run.call(a, delete("/once", -1))?;
        run.call(a, create("/once"))?;
        run.call(a, ping())?;
        Ok(())
    });
}

#[test]
fn a_watch_on_a_missing_node_tells_of_its_creation_and_of_nothing_else() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, exists("/later", Leave))?;
        run.call(a, create("/later"))?;
        run.call(a, set_data("/later", None, -1))?;
        run.call(a, delete("/later", -1))?;
        run.call(a, ping())?;
        Ok(())
    });
}

#[test]
fn reading_a_missing_node_leaves_no_watch() {
    check(|run| {
        let a = run.connect("a")?;
        let reads: [fn(&str, Watch) -> Message; 3] = [get_data, get_children, get_children2];
        for read in reads {
            run.call(a, read("/unread", Leave))?;
        }
        run.call(a, check_watches("/unread", 3))?;
        run.call(a, create("/unread"))?;
        run.call(a, set_data("/unread", None, -1))?;
        run.call(a, delete("/unread", -1))?;
        Ok(())
    });
}

#[test]
fn an_event_precedes_the_writers_answer_and_every_later_answer_to_others() {
    check(|run| {
        let (a, b) = (run.connect("a")?, run.connect("b")?);
        run.call(a, create("/before"))?;
        for round in 0..20 {
            run.call(a, get_data("/before", Leave))?;
            run.call(b, get_data("/before", Leave))?;
            run.call(a, set_data("/before", Some(b"new"), round))?;
            run.call(b, get_data("/before", No))?;
        }
        Ok(())
    });
}

#[test]
fn watches_that_stay_tell_of_their_depths() {
    check(|run| {
        let (a, b, c) = (run.connect("a")?, run.connect("b")?, run.connect("c")?);
        for depth in ["/deep", "/deep/1", "/deep/1/2"] {
            run.call(a, add_watch(depth, 0))?;
            run.call(b, add_watch(depth, 1))?;
        }
        for round in 0..2 {
            for path in ["/deep", "/deep/1", "/deep/1/2", "/deep/1/2/3"] {
                run.call(c, create(path))?;
                run.call(c, set_data(path, None, -1))?;
            }
            if round == 1 {
                run.call(a, remove_watches("/deep/1", 3))?;
                run.call(b, remove_watches("/deep", 3))?;
            }
            for path in ["/deep/1/2/3", "/deep/1/2", "/deep/1", "/deep"] {
                run.call(c, delete(path, -1))?;
            }
            run.call(a, ping())?;
            run.call(b, ping())?;
        }
        for mode in [-1, 2, 3] {
            run.call(a, add_watch("/deep", mode))?;
        }
        Ok(())
    });
}

#[test]
fn watches_of_several_kinds_on_one_path_replace_each_other_alike() {
    check(|run| {
        let (a, b) = (run.connect("a")?, run.connect("b")?);
        let add = [add_watch("/kind", 0), add_watch("/kind", 1)];
        let leave = [get_data("/kind", Leave), get_children("/kind", Leave)];
        for first in add.iter().chain(&leave) {
            for second in add.iter().chain(&leave) {
                run.call(b, create("/kind"))?;
                run.call(a, first.clone())?;
                run.call(a, second.clone())?;
                for _ in 0..2 {
                    run.call(b, set_data("/kind", None, -1))?;
                    run.call(b, create("/kind/x"))?;
                    run.call(b, set_data("/kind/x", None, -1))?;
                    run.call(b, delete("/kind/x", -1))?;
                    run.call(a, ping())?;
                }
                for kind in [1, 2, 3] {
                    run.call(a, check_watches("/kind", kind))?;
                }
                run.call(b, delete("/kind", -1))?;
                run.call(a, remove_watches("/kind", 3))?;
            }
        }
        Ok(())
    });
}

#[test]
fn watches_of_each_kind_are_removed_once() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/removed"))?;
        let leave = [
            get_data("/removed", Leave),
            get_children("/removed", Leave),
            exists("/removed", Leave),
            add_watch("/removed", 0),
            add_watch("/removed", 1),
        ];
        for watch in leave {
            for kind in 0..7 {
                run.call(a, watch.clone())?;
                run.call(a, check_watches("/removed", kind))?;
                run.call(a, remove_watches("/removed", kind))?;
                run.call(a, remove_watches("/removed", kind))?;
                run.call(a, set_data("/removed", None, -1))?;
                run.call(a, remove_watches("/removed", 3))?;
            }
        }
        run.call(a, remove_watches("/removed/no", 3))?;
        run.call(a, remove_watches("", 3))?;
        Ok(())
    });
}

#[test]
fn rearmed_watches_tell_what_was_missed() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/armed"))?;
        run.call(a, create("/armed/a"))?;
        run.call(a, exists("/armed/no", No))?;
        let paths = &["/armed/a", "/armed/gone", "/armed"];
        let (exist, current) = (&["/armed/a", "/armed/later"], run.last_zxid(a)?);
        for since in [0, current, current - 1, i64::MAX] {
            let rearmed = Rearmed { data: paths, exist, child: paths };
            run.call(a, set_watches(since, rearmed))?;
            run.call(a, set_watches2(since, rearmed, &["/armed/a"], &["/armed"]))?;
            run.call(a, create("/armed/later"))?;
            run.call(a, set_data("/armed/a", None, -1))?;
            run.call(a, create("/armed/a/x"))?;
            run.call(a, delete("/armed/a/x", -1))?;
            run.call(a, delete("/armed/later", -1))?;
            run.call(a, ping())?;
            for path in ["/armed", "/armed/a", "/armed/gone", "/armed/later"] {
                run.call(a, remove_watches(path, 3))?;
            }
        }
        run.call(a, set_watches(0, Rearmed::default()))?;
        Ok(())
    });
}

#[test]
fn watches_die_with_their_connection() {
    check(|run| {
        let (a, b, c) = (run.connect("a")?, run.connect("b")?, run.connect("c")?);
        for who in [a, b] {
            run.call(who, exists("/counted-1", Leave))?;
            run.call(who, exists("/counted-2", Leave))?;
            run.call(who, add_watch("/counted-3", 1))?;
        }
        let total = |text: &str| text.lines().last().unwrap_or_default().to_owned();
        let count = |text: &str| {
            let line = text.lines().find(|line| line.starts_with("zk_watch_count"));
            line.unwrap_or_default().to_owned()
        };
        for who in [a, b] {
            run.note(total(&run.word("wchs")?));
            run.note(count(&run.word("mntr")?));
            // The end of the connection comes after the end of its watches.
            run.call(who, close_session())?;
            run.end(who)?;
            run.call(c, ping())?;
        }
        run.note(total(&run.word("wchs")?));
        Ok(())
    });
}
