//! Rule 4: the host gives a session up before the server does, and keeps one that is idle.

use std::time::Duration;

use anyhow::Result;
use wok::session::{Failure, SessionLoss, SessionState};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Cut, Direction, Match};

use crate::room::{LONG_TIMEOUT, Room, contender, hold, round_trip, set};

fn heartbeats() -> Match {
    Match::opcode(Opcode::Exists).and(|seen| seen.path.as_deref() == Some("/"))
}

#[tokio::test]
async fn silence_is_doubt_then_loss_while_the_server_still_has_the_znode() -> Result<()> {
    // Long, so that a slow machine has its share of what lies between the two deadlines.
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    room.proxy.stall(Direction::Both);
    let mut state = room.session.state();
    within("doubt", state.wait_for(|it| *it != SessionState::Connected)).await??;
    assert_eq!(*state.borrow_and_update(), SessionState::Suspended);
    assert!(seat.is_live(), "in doubt, but not lost");
    let loss = within("the loss", room.session.until_lost()).await?;
    assert!(room.admin.stat(&path).await?.is_some(), "the server was faster");
    assert_eq!(loss, SessionLoss::Deadline);
    assert!(!seat.is_live());
    assert_eq!(round_trip(&seat).await, Err(Failure::SessionLost));
    room.admin.wait_gone(&path).await
}

#[tokio::test]
async fn a_session_that_was_given_up_stays_lost_when_the_connection_comes_back() -> Result<()> {
    let room = Room::open(Duration::from_secs(2)).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    // The server hears of this session all the time, and will not expire it.
    room.proxy.stall(Direction::Replies);
    assert_eq!(within("the loss", room.session.until_lost()).await?, SessionLoss::Deadline);
    room.proxy.heal();
    for outcome in [
        seat.claim(&path).await.map(drop),
        seat.release(&path).await,
        seat.submit(set(&path, b"late")).await.map(drop),
        seat.contend(&room.path, contender(), Vec::new()).await.map(drop),
    ] {
        assert_eq!(outcome, Err(Failure::SessionLost));
    }
    assert_eq!(*room.session.state().borrow(), SessionState::Lost(SessionLoss::Deadline));
    // Whoever opens the next one drops this one, and its znodes go.
    let Room { session, admin, proxy, .. } = room;
    drop(seat);
    drop(session);
    admin.wait_gone(&path).await?;
    drop(proxy);
    Ok(())
}

#[tokio::test]
async fn the_times_are_those_of_the_timeout_that_the_server_granted() -> Result<()> {
    // The server grants between 2 and 20 of its ticks of 500 ms.
    for (asked, granted) in [(60_000, 10_000), (50, 1_000), (4_000, 4_000)] {
        let room = Room::open(Duration::from_millis(asked)).await?;
        let timing = room.session.timing();
        assert_eq!(timing.timeout(), Duration::from_millis(granted), "asked for {asked} ms");
        assert!(room.session.deadline().remaining() <= timing.timeout() * 3 / 4);
        room.session.close().await;
    }
    Ok(())
}

#[tokio::test]
async fn heartbeats_keep_an_idle_session_for_many_times_its_timeout() -> Result<()> {
    let room = Room::open(Duration::from_secs(2)).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    room.proxy.clear_log();
    // A heartbeat each tenth of the timeout.
    let kept = eventually("31 heartbeats", async || {
        Ok((room.proxy.requests(&heartbeats()).len() > 30).then_some(()))
    });
    tokio::select! {
        kept = kept => kept?,
        loss = room.session.until_lost() => panic!("lost: {loss:?}"),
    }
    assert!(seat.is_live() && seat.has_claim());
    assert!(room.admin.stat(&path).await?.is_some());
    let others = room.proxy.requests(&Match::any()).len();
    assert_eq!(others, room.proxy.requests(&heartbeats()).len(), "the session was idle");
    Ok(())
}

#[tokio::test]
async fn doubt_ends_when_the_connection_comes_back_in_time() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    let id = room.session.id();
    for cut in [Cut::Fin, Cut::Reset] {
        room.proxy.refuse();
        room.proxy.cut_all(cut);
        room.until("doubt", |state| state == SessionState::Suspended).await?;
        room.proxy.heal();
        room.until("contact", |state| state == SessionState::Connected).await?;
    }
    room.proxy.inject(heartbeats(), Action::HalfOpen);
    room.until("doubt", |state| state == SessionState::Suspended).await?;
    room.until("contact", |state| state == SessionState::Connected).await?;
    assert_eq!(room.session.id(), id);
    assert!(room.admin.stat(&path).await?.is_some_and(|stat| stat.ephemeral_owner == id));
    round_trip(&seat).await?;
    Ok(())
}
