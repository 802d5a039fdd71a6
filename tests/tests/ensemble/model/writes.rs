//! Writes through any server, and those that nobody hears the outcome of.

use anyhow::{Context, Result};
use wok_tests::frames::Fields;
use wok_tests::frames::Opcode::{Create2, CreateContainer};
use wok_tests::wire::At::{self, Follower, Leader};
use wok_tests::wire::message::{
    Message, Watch::No, check as check_version, create, delete, exists, get_children2, get_data,
    multi, set_data, sync,
};
use wok_tests::wire::{Lost, Trio};

use super::check;

/// Loses each kind of write, and looks at what is there.
fn lose_each(trio: &mut Trio, at: At, lost: Lost) -> Result<()> {
    let a = trio.connect_at(Leader, "a")?;
    let directory = format!("/lost-{lost:?}-{at:?}");
    let child = |name: &str| format!("{directory}/{name}");
    trio.call(a, create(&directory))?;
    for name in ["changed", "deleted"] {
        trio.call(a, create(&child(name)))?;
    }
    let mut last = trio.connect_at(at, "b")?;
    let writes: [Message; 6] = [
        create(&child("_c_7e4c8f5e-5b43-4d55-a3d0-2a0dcd1b6a5b-lock-")).by(Create2).flags(3).into(),
        create(&child("named")).flags(1).into(),
        create(&child("directory")).by(CreateContainer).flags(4).into(),
        set_data(&child("changed"), Some(b"new"), 0),
        delete(&child("deleted"), -1),
        multi(&[check_version(&directory, -1), create(&child("multi")).flags(2).into()]),
    ];
    for (number, write) in writes.into_iter().enumerate() {
        trio.lose(last, lost, write)?;
        let name = format!("after write {number}");
        last = trio.return_at(at, &name, last)?.context("it was sent away")?;
        trio.call(last, sync(&directory))?;
        trio.call(last, get_children2(&directory, No))?;
        trio.call(last, get_data(&child("changed"), No))?;
    }
    trio.call(a, get_children2(&directory, No))?;
    Ok(())
}

#[test]
fn a_lost_request_has_not_happened() {
    check(|trio| lose_each(trio, Leader, Lost::Request));
    check(|trio| lose_each(trio, Follower, Lost::Request));
}

#[test]
fn a_lost_reply_is_of_a_request_that_has_happened() {
    check(|trio| lose_each(trio, Leader, Lost::Reply));
    check(|trio| lose_each(trio, Follower, Lost::Reply));
}

#[test]
fn the_counter_of_a_directory_counts_what_was_created_and_deleted_by_whomever() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        for _ in 0..2 {
            // Made anew, it counts anew.
            trio.call(a, create("/counted"))?;
            let creates = [
                (a, create("/counted/s-").by(Create2).flags(3)),
                (b, create("/counted/s-").by(Create2).flags(3)),
                (a, create("/counted/named")),
                (b, create("/counted/t-").flags(2)),
                (b, create("/counted/other")),
                (a, create("/counted/s-").flags(2)),
                (b, create("/counted/").flags(3)),
            ];
            let mut paths = Vec::new();
            for (who, create) in creates {
                let reply = trio.call(who, create)?.context("no answer")?;
                paths.push(Fields::new(&reply.body).string()?);
            }
            // It is refused as a whole, and counts nothing.
            let parts = [create("/counted/m-").flags(2).into(), check_version("/counted/no", -1)];
            trio.call(b, multi(&parts))?;
            trio.call(b, create("/counted/other"))?;
            for path in paths {
                trio.call(b, delete(&path, -1))?;
            }
            let reply = trio.call(b, create("/counted/s-").flags(2))?.context("no answer")?;
            trio.call(b, get_children2("/counted", No))?;
            trio.call(b, delete(&Fields::new(&reply.body).string()?, -1))?;
            trio.call(b, delete("/counted", -1))?;
        }
        Ok(())
    });
}

#[test]
fn a_multi_tells_of_each_part_what_it_tells_at_any_server() {
    check(|trio| {
        for (at, name) in [(Leader, "a"), (Follower, "b")] {
            let who = trio.connect_at(at, name)?;
            let path = format!("/parts-{name}");
            let child = format!("{path}/x");
            let all = [
                create(&path).into(),
                create(&child).by(Create2).flags(3).into(),
                create(&child).flags(1).into(),
                set_data(&path, None, 0),
                check_version(&path, 1),
                delete(&child, -1),
            ];
            trio.call(who, multi(&all))?;
            trio.call(who, get_children2(&path, No))?;
            let failing = [set_data(&path, None, 1), delete(&child, -1), create(&child).into()];
            trio.call(who, multi(&failing))?;
            trio.call(who, get_data(&path, No))?;
            trio.call(who, multi(&[]))?;
        }
        Ok(())
    });
}

#[test]
fn a_write_that_is_refused_takes_a_zxid_at_any_server() {
    check(|trio| {
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/refused"))?;
        trio.call(a, create("/refused/x").flags(1))?;
        for who in [a, b] {
            trio.call(who, sync("/refused"))?;
            let refused: [Message; 6] = [
                create("/refused").into(),
                create("/refused/no/child").into(),
                create("/refused/x/child").into(),
                delete("/refused", -1),
                delete("/refused/no", -1),
                set_data("/refused", None, 7),
            ];
            for write in refused {
                trio.call(who, write)?;
            }
            trio.call(who, exists("/refused", No))?;
        }
        trio.call(a, sync("/refused"))?;
        trio.call(a, set_data("/refused", None, -1))?;
        Ok(())
    });
}
