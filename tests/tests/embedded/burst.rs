//! Many requests without waiting, and a client that does not read.

use anyhow::Context;
use wok_tests::wire::message::{
    Message, Watch::Leave, Watch::No, close_session, create, delete, exists, get_children,
    get_data, multi, ping, set_data, sync,
};

use crate::check;

/// Small enough to be sent while nothing is read.
const REQUESTS: usize = 1_000;

fn mixed(index: usize) -> Message {
    let path = format!("/burst/{}", index % 7);
    match index % 9 {
        0 | 5 => create(&path).into(),
        1 => set_data(&path, Some(b"burst"), -1),
        2 => exists(&path, Leave),
        3 => get_data(&path, No),
        4 => get_children("/burst", Leave),
        6 => multi(&[create("/burst/m").into(), delete("/burst/m", -1)]),
        7 => delete(&path, -1),
        _ => sync(&path),
    }
}

#[test]
fn a_burst_is_answered_in_order() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/burst"))?;
        let requests: Vec<_> = (0..REQUESTS).map(mixed).collect();
        run.send(a, &requests)?;
        for _ in &requests {
            run.reply(a)?;
        }
        run.call(a, ping())?;
        Ok(())
    });
}

#[test]
fn what_is_behind_a_close_within_a_burst_is_not_done() {
    check(|run| {
        let (a, b) = (run.connect("a")?, run.connect("b")?);
        run.call(a, create("/cut"))?;
        let child = |index| create(&format!("/cut/{index}")).into();
        let mut requests: Vec<Message> = (0..200).map(child).collect();
        requests.push(close_session());
        requests.extend((200..400).map(child));
        run.send(a, &requests)?;
        for _ in 0..=200 {
            run.reply(a)?;
        }
        // Apache may still refuse what is behind, or be gone before.
        run.aside(|run| run.end(a))?;
        let children = run.aside(|run| run.call(b, get_children("/cut", No)))?;
        run.note(children.context("no answer")?.body.len());
        Ok(())
    });
}

/// Answers of 16 MiB in all: more than the sockets between the two hold.
const UNREAD: usize = 16;

#[test]
fn a_client_that_does_not_read_holds_nobody_up_and_is_answered_later() {
    check(|run| {
        let (slow, other) = (run.connect("slow")?, run.connect("other")?);
        run.call(other, create("/slow").data(Some(&vec![b'x'; 1_000_000])))?;
        run.send(slow, &vec![get_data("/slow", No); UNREAD])?;
        for _ in 0..50 {
            run.call(other, create("/slow/x"))?;
            run.call(other, delete("/slow/x", -1))?;
        }
        for _ in 0..UNREAD {
            // Its zxid is that of the moment at which it was read.
            let reply = run.aside(|run| run.reply(slow))?.context("the slow client was cut")?;
            run.note(reply.body.len());
        }
        run.call(slow, exists("/slow", No))?;
        Ok(())
    });
}
