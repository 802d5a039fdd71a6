//! Rule 6: a session never watches more than its client can watch again after a reconnect.

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use wok::session::{Failure, Seat, SeatLimits, SessionState};
use wok_tests::frames::Opcode;
use wok_tests::patience::eventually;
use wok_tests::proxy::{Cut, Match};

use crate::room::{LONG_TIMEOUT, Room, contender, fired, round_trip, watch_data};

/// What those who join have together, and what one of them may watch beyond that: far below what
/// would make a second frame of 128 KiB when watches are set again.
const JOINED_BYTES: usize = 80 * 1024;
const SHARE_BYTES: usize = 12 * 1024;

fn join_until_refused(room: &Room) -> (Vec<Seat>, Failure) {
    let mut seats = Vec::new();
    loop {
        match room.session.join(&room.path, SeatLimits::default()) {
            Ok(seat) => seats.push(seat),
            Err(refusal) => return (seats, refusal),
        }
    }
}

/// Takes the connection away. Answers how many bytes the frame takes by which the watches are set
/// again; there is one.
async fn set_again(room: &Room, seats: &[Seat]) -> Result<usize> {
    room.proxy.clear_log();
    room.proxy.cut_all(Cut::Reset);
    // Two round trips: one may be answered by a connection that is about to break again.
    for seat in seats.iter().take(2) {
        round_trip(seat).await?;
    }
    let set_again =
        Match::any().and(|seen| matches!(seen.opcode, Opcode::SetWatches | Opcode::SetWatches2));
    let frames = eventually("the watches to be set again", async || {
        let seen = room.proxy.requests(&set_again);
        Ok(seen.iter().all(|frame| frame.answer.is_some()).then_some(seen))
    })
    .await?;
    ensure!(frames.len() == 1, "{} frames", frames.len());
    Ok(frames[0].length)
}

#[tokio::test]
async fn a_participant_too_many_is_refused_when_it_joins() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.proxy.clear_log();
    let (mut seats, refusal) = join_until_refused(&room);
    let Failure::OverLimit(text) = &refusal else { panic!("{refusal:?}") };
    ensure!(text.contains(&room.path), "{text}");
    // Each can watch one znode below its mount at a time, or a predecessor and a claim in turn.
    ensure!(seats.len() * (room.path.len() + 64) > JOINED_BYTES - 200, "only {}", seats.len());
    ensure!(room.proxy.requests(&Match::any().under(&room.path)).is_empty());
    seats.pop();
    room.session.join(&room.path, SeatLimits::default())?;
    Ok(())
}

#[tokio::test]
async fn all_that_joined_can_wait_at_once_and_a_reconnect_wakes_none_and_loses_none() -> Result<()>
{
    let mut room = Room::open(LONG_TIMEOUT).await?;
    // As long as a mount usually is: the length decides how many fit.
    room.path = format!("/waiters-{}", std::process::id());
    room.admin.create(&room.path, b"").await?;
    let (seats, _) = join_until_refused(&room);
    ensure!(seats.len() >= 1_000, "only {}", seats.len());
    let waiting = seats.iter().map(async |seat| {
        let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
        let watch = watch_data(seat, &path).await?;
        Ok::<_, Failure>((path, watch))
    });
    let waiting = try_join_all(waiting).await?;

    let length = set_again(&room, &seats).await?;
    ensure!(length < 128 * 1024, "{length} bytes");
    ensure!(waiting.iter().all(|(_, watch)| watch.fired().is_none()), "a reconnect is no event");

    for (path, watch) in waiting {
        room.admin.delete(&path).await?;
        fired(watch).await?;
    }
    assert_eq!(*room.session.state().borrow(), SessionState::Connected);
    Ok(())
}

#[tokio::test]
async fn those_who_watch_one_znode_beyond_their_room_pay_once_as_the_client_sets_it_again_once()
-> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let long = format!("{}/{}", room.path, "n".repeat(4_000));
    room.admin.create(&long, b"").await?;
    let seats: Vec<_> = (0..300).map(|_| room.seat()).collect();
    let watches = try_join_all(seats.iter().map(|seat| watch_data(seat, &long))).await?;
    let length = set_again(&room, &seats).await?;
    ensure!((4_000..8_000).contains(&length), "{length} bytes");
    ensure!(watches.iter().all(|watch| watch.fired().is_none()), "a reconnect is no event");
    room.admin.delete(&long).await?;
    for watch in watches {
        fired(watch).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_participant_reserves_what_it_will_watch_or_is_refused_when_it_joins() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let reserving = SeatLimits { watched_paths: 32 * 1024, ..SeatLimits::default() };
    let join = || room.session.join(&room.path, reserving);
    let (first, _second) = (join()?, join()?);
    ensure!(matches!(join(), Err(Failure::OverLimit(_))), "80 KiB are enough for two");
    // More than its share would be, and others can still join.
    let _other = room.seat();
    let path = |number| format!("{}/{number}{}", room.path, "n".repeat(4_000));
    let paths: Vec<_> = (0..7).map(path).collect();
    for path in &paths {
        room.admin.create(path, b"").await?;
    }
    let watches = try_join_all(paths.iter().map(|path| watch_data(&first, path))).await?;
    ensure!(watches.iter().all(|watch| watch.fired().is_none()));
    Ok(())
}

#[tokio::test]
async fn a_participant_cannot_watch_more_than_its_share_and_keeps_nobody_out() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let long = format!("{}/{}", room.path, "n".repeat(SHARE_BYTES / 8));
    room.admin.create(&long, b"").await?;
    let (greedy, neighbour) = (room.seat(), room.seat());
    let (own, _) = neighbour.contend(&room.path, contender(), Vec::new()).await?;
    let mut watches = Vec::new();
    let refusal = loop {
        match watch_data(&greedy, &long).await {
            Ok(watch) => watches.push(watch),
            Err(refusal) => break refusal,
        }
    };
    ensure!(matches!(refusal, Failure::OverLimit(_)), "{refusal:?}");
    let watched = watches.len() * long.len();
    ensure!(watched + long.len() > SHARE_BYTES, "only {}", watches.len());
    ensure!(watched <= SHARE_BYTES + room.path.len() + 64, "{}", watches.len());
    let (joined, _) = join_until_refused(&room);
    ensure!((joined.len() + 2) * (room.path.len() + 64) > JOINED_BYTES - 200, "{}", joined.len());
    drop(joined);
    // What the neighbour reserved when it joined is still its own.
    neighbour.claim(&own).await?;
    // What is dropped, or has fired, is free again.
    watches.pop();
    watches.push(watch_data(&greedy, &long).await?);
    room.admin.set(&long, b"changed").await?;
    for watch in watches {
        fired(watch).await?;
    }
    watch_data(&greedy, &long).await?;
    Ok(())
}
