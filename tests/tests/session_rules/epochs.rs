//! Rule 5: an expired session is over for good, and the next one is another.

use anyhow::{Context, Result};
use wok::session::{Failure, SeatLimits, SessionLoss, SessionState};
use wok_tests::admin;
use wok_tests::patience::within;
use wok_tests::zookeeper;

use crate::room::{LONG_TIMEOUT, Room, contender, hold, list, round_trip, watch_data};

#[tokio::test]
async fn an_expired_session_is_lost_once_and_its_seats_with_it() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let (seat, bystander) = (room.seat(), room.seat());
    let path = hold(&seat, &room.path).await?;
    let _watch = watch_data(&bystander, &path).await?;
    let mut state = room.session.state();
    let key = room.proxy.sessions().pop().context("the proxy saw no session")?;
    assert_eq!(key.id, room.session.id());
    admin::expire(zookeeper::shared().await.address(), &key).await?;

    let lost = SessionState::Lost(SessionLoss::Expired);
    within("the loss", state.wait_for(|it| matches!(it, SessionState::Lost(_)))).await??;
    assert_eq!(*state.borrow_and_update(), lost);
    within("the seat to learn it", seat.until_session_lost()).await?;
    assert!(!seat.is_live() && !bystander.is_live());
    assert_eq!(seat.claim(&path).await.map(drop), Err(Failure::SessionLost));
    assert_eq!(list(&bystander, "/").await, Err(Failure::SessionLost));
    let contended = bystander.contend(&room.path, contender(), Vec::new()).await;
    assert_eq!(contended.map(drop), Err(Failure::SessionLost));
    // Nothing is left to do for them, and nothing hangs.
    within("the seat to retire", seat.retire()).await?;

    let next = wok::session::open(&room.options).await?;
    assert_ne!(next.id(), room.session.id());
    let fresh = next.join(&room.path, SeatLimits::default())?;
    hold(&fresh, &room.path).await?;
    assert_eq!(round_trip(&bystander).await, Err(Failure::SessionLost), "not carried over");

    // Closing it does not rewrite why it was lost, nor tell it again.
    room.session.close().await;
    assert_eq!(*state.borrow(), lost);
    assert!(!state.has_changed().unwrap_or(false));
    next.close().await;
    Ok(())
}

#[tokio::test]
async fn closing_deletes_what_is_left_and_says_so() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    within("the session to close", room.session.close()).await?;
    assert!(room.admin.stat(&path).await?.is_none(), "the server has answered before");
    assert_eq!(room.session.until_lost().await, SessionLoss::Closed);
    assert_eq!(round_trip(&seat).await, Err(Failure::SessionLost));
    Ok(())
}
