//! Frames at and beyond the limits.

use wok_tests::frames::Opcode;
use wok_tests::wire::Message;
use wok_tests::wire::message::{
    Body, Watch::No, check as check_version, create, exists, ping, set_data, sync,
};

use crate::check;

/// The longest frame, by default.
const LONGEST: usize = 0xf_ffff;

/// What surrounds the data in a frame that sets the data of `/big`: xid, operation, path, length
/// and version.
const AROUND: usize = 4 + 4 + 4 + 4 + 4 + 4;

#[test]
fn the_longest_frame_is_taken_and_a_longer_one_is_not() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/big"))?;
        run.call(a, set_data("/big", Some(&vec![b'x'; LONGEST - AROUND]), -1))?;
        run.call(a, exists("/big", No))?;
        run.send(a, &[set_data("/big", Some(&vec![b'x'; LONGEST - AROUND + 1]), -1)])?;
        run.end(a)?;
        let b = run.connect("b")?;
        run.call(b, exists("/big", No))?;
        run.call(b, set_data("/big", None, -1))?;
        Ok(())
    });
}

#[test]
fn first_frames_of_impossible_lengths_end_the_connection() {
    check(|run| {
        for length in [-1, 0, i32::MAX, i32::MIN, 0x10_0000] {
            run.closed_after(&length.to_be_bytes())?;
        }
        run.closed_after(b"\0\0\0\x03abc")?;
        Ok(())
    });
}

#[test]
fn later_frames_of_impossible_lengths_end_the_connection() {
    check(|run| {
        for length in [-1, i32::MAX, i32::MIN, 0x10_0000] {
            let a = run.connect("a")?;
            run.send_raw(a, &length.to_be_bytes())?;
            run.end(a)?;
        }
        Ok(())
    });
}

#[test]
fn operations_that_nobody_knows_are_met_alike() {
    check(|run| {
        for number in [77, 0, 10, 99, 102, 110, -12, i32::MAX] {
            let a = run.connect("a")?;
            run.call(a, Message::raw(Opcode::Other(number), Body::new().string("/")))?;
            run.call(a, ping()).ok();
        }
        let a = run.connect("a")?;
        run.call(a, Message::raw(Opcode::Other(20), Body::new().string("/x")))?;
        run.call(a, ping()).ok();
        Ok(())
    });
}

#[test]
fn operations_that_one_server_does_not_have_are_met_alike() {
    check(|run| {
        let a = run.connect("a")?;
        let body = Body::new().string("a").string("b").string("c").long(-1);
        run.call(a, Message::raw(Opcode::Reconfig, body))?;
        run.call(a, sync("/no"))?;
        run.call(a, sync(""))?;
        run.call(a, check_version("/", -1))?;
        run.call(a, ping()).ok();
        Ok(())
    });
}
