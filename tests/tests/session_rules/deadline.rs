//! Rule 4: the host gives a session up before the server does, and keeps one that is idle.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use wok::session::{Failure, Fence, Refusal, Request, SessionLoss, SessionState, Watching};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Cut, Direction, Match, Proxy};
use wok_tests::stock::Stock;
use wok_tests::zookeeper;

use crate::room::{LONG_TIMEOUT, Room, contender, hold, round_trip, set, watch_data};

/// ZooKeeper's code for it.
const THROTTLED: i32 = -127;

/// The heartbeats of a session that has no ephemeral znode. A session that has some sends the same
/// request each time that its heartbeat is answered.
fn syncs() -> Match {
    Match::opcode(Opcode::Sync).and(|seen| seen.path.as_deref() == Some("/"))
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
    // Somebody is still about who may act on what was held.
    assert!(room.admin.stat(&path).await?.is_some());
    // With the last one it goes, though the session itself is kept.
    drop(seat);
    room.admin.wait_gone(&path).await?;
    within("the session's end", room.session.close()).await?;
    Ok(())
}

#[tokio::test]
async fn what_depends_on_a_claim_has_the_margin_to_end_when_the_host_gives_the_session_up()
-> Result<()> {
    for ends in [true, false] {
        let room = Room::open(LONG_TIMEOUT).await?;
        let seat = room.seat();
        let path = hold(&seat, &room.path).await?;
        let dependent = seat.held().and_then(|held| seat.depend(&held)).context("the claim")?;
        // The server hears of this session all the time, and will not expire it.
        room.proxy.stall(Direction::Replies);
        let loss = within("the loss", room.session.until_lost()).await?;
        assert_eq!(loss, SessionLoss::Deadline);
        room.proxy.heal();
        let mut let_go =
            pin!(async { tokio::join!(seat.until_independent(), room.session.until_let_go()) });
        assert_eq!(let_go.as_mut().now_or_never(), None);
        assert!(room.admin.stat(&path).await?.is_some());
        if ends {
            drop(dependent);
            within("the end of what depends", seat.until_independent()).await?;
        } else {
            within("the margin", let_go).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_a_participant_held_goes_when_it_ends_though_its_caller_keeps_it() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let proxy = Proxy::start(zookeeper::shared().await.address())?;
    let lock = Stock::open(proxy.address(), "lock", &zookeeper::unique_path()).await?;
    let (participant, follower) = lock.join()?;
    let claim = lock.call(&participant, "acquire").await?.claim;
    let path = claim.context("the lock is held")?.path;
    // The server hears of this session all the time, and will not expire it.
    proxy.stall(Direction::Replies);
    let loss = within("the loss", participant.session().until_lost()).await?;
    assert_eq!(loss, SessionLoss::Deadline);
    proxy.heal();
    admin.wait_gone(&path).await?;
    assert!(!participant.holds() && participant.tenure()().is_none());
    drop((participant, follower));
    Ok(())
}

#[tokio::test]
async fn the_times_are_those_of_the_timeout_that_the_server_granted() -> Result<()> {
    // The server grants between 2 and 20 of its ticks of 500 ms.
    for (asked, granted) in [(60_000, 10_000), (50, 1_000), (4_000, 4_000)] {
        let room = Room::open(Duration::from_millis(asked)).await?;
        let timing = room.session.timing();
        assert_eq!(timing.timeout(), Duration::from_millis(granted), "asked for {asked} ms");
        assert!(room.session.deadline().remaining() <= timing.timeout() * 5 / 8);
        room.session.close().await;
    }
    Ok(())
}

#[tokio::test]
async fn who_holds_learns_the_servers_tick_and_holds_out_for_longer() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let before = room.session.timing();
    assert_eq!(before.patience(), LONG_TIMEOUT * 5 / 8);
    eventually("two heartbeats", async || {
        Ok((room.proxy.requests(&syncs()).len() >= 2).then_some(()))
    })
    .await?;
    let unchanged = (room.session.timing(), room.proxy.sessions().len());
    assert_eq!(unchanged, (before, 1), "there is no znode");
    hold(&seat, &room.path).await?;
    let learned = eventually("the servers' tick", async || {
        let now = room.session.timing();
        Ok((now != before).then_some(now))
    })
    .await?;
    // A quarter of the 4 s that are granted, a heartbeat, and a fortieth of the timeout.
    assert_eq!(learned.margin(), Duration::from_millis(2_250));
    assert_eq!(learned.timeout(), LONG_TIMEOUT);
    assert!(seat.is_live() && seat.has_claim());
    let sessions = room.proxy.sessions();
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    // Its session does not stay.
    let closes = Match::opcode(Opcode::CloseSession);
    assert_eq!(room.proxy.requests(&closes).len(), 1);
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
        Ok((room.proxy.requests(&Match::heartbeats()).len() > 30).then_some(()))
    });
    tokio::select! {
        kept = kept => kept?,
        loss = room.session.until_lost() => panic!("lost: {loss:?}"),
    }
    assert!(seat.is_live() && seat.has_claim());
    assert!(room.admin.stat(&path).await?.is_some());
    let others = Match::any().and(|seen| seen.path.as_deref() != Some("/"));
    assert_eq!(room.proxy.requests(&others).len(), 0, "the session was idle");
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
    room.proxy.inject(Match::heartbeats(), Action::HalfOpen);
    room.until("doubt", |state| state == SessionState::Suspended).await?;
    room.until("contact", |state| state == SessionState::Connected).await?;
    assert_eq!(room.session.id(), id);
    assert!(room.admin.stat(&path).await?.is_some_and(|stat| stat.ephemeral_owner == id));
    round_trip(&seat).await?;
    Ok(())
}

/// Has the server answer heartbeats as one does that has too much to do: without asking the others.
/// Whatever else is asked is answered as ever.
fn refuse_heartbeats(room: &Room) {
    for nth in 1..=1_000 {
        room.proxy.inject(Match::heartbeats().nth(nth), Action::Refuse(THROTTLED));
    }
}

#[tokio::test]
async fn answers_of_a_server_alone_do_not_keep_a_session() -> Result<()> {
    let room = Room::open(Duration::from_secs(2)).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    refuse_heartbeats(&room);
    let mut reads = 0;
    let read_on = async {
        loop {
            seat.submit(Request::Exists(path.clone(), Watching::No)).await?;
            reads += 1;
        }
    };
    let outcome: Result<(), Failure> = within("the loss", read_on).await?;
    assert_eq!(outcome, Err(Failure::SessionLost));
    assert!(reads > 0);
    assert_eq!(*room.session.state().borrow(), SessionState::Lost(SessionLoss::Deadline));
    Ok(())
}

#[tokio::test]
async fn a_session_costs_transactions_only_while_it_has_ephemeral_znodes() -> Result<()> {
    let room = Room::open(Duration::from_secs(4)).await?;
    let seat = room.seat();
    let beaten = async |kind: &Match| {
        room.proxy.clear_log();
        eventually("six heartbeats", async || {
            Ok((room.proxy.requests(kind).len() >= 6).then_some(()))
        })
        .await
    };
    beaten(&syncs()).await?;
    assert_eq!(room.proxy.requests(&Match::heartbeats()).len(), 0);
    let path = hold(&seat, &room.path).await?;
    beaten(&Match::heartbeats()).await?;
    // One `sync` behind each heartbeat's answer, and one more where the answer is late.
    let (behind, beats) =
        (room.proxy.requests(&syncs()), room.proxy.requests(&Match::heartbeats()));
    assert!((1..=2 * beats.len() + 1).contains(&behind.len()), "{behind:?} behind {beats:?}");
    seat.release(&path).await?;
    beaten(&syncs()).await?;
    assert_eq!(room.proxy.requests(&Match::heartbeats()).len(), 0);
    Ok(())
}

#[tokio::test]
async fn who_holds_nothing_keeps_the_place_in_line_until_the_server_says_otherwise() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    room.proxy.stall(Direction::Both);
    eventually("the local deadline", async || Ok((!seat.is_live()).then_some(()))).await?;
    room.until("doubt", |state| state == SessionState::Suspended).await?;
    room.proxy.heal();
    // Nothing is held before the server has said that the session lives on.
    seat.claim(&path).await?;
    assert!(seat.is_live() && seat.has_claim());
    room.until("contact", |state| state == SessionState::Connected).await
}

#[tokio::test]
async fn a_claim_after_a_long_silence_asks_the_ensemble_first() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    refuse_heartbeats(&room);
    room.until("doubt", |state| state == SessionState::Suspended).await?;
    let mut claim = pin!(seat.claim(&path));
    still_asked_for_contact(&room, &mut claim).await?;
    assert!(!seat.has_claim());
    room.proxy.heal();
    claim.await?;
    assert!(seat.is_live() && seat.has_claim());
    Ok(())
}

#[tokio::test]
async fn a_znode_that_goes_while_the_ensemble_is_asked_is_not_claimed() -> Result<()> {
    for changes_first in [false, true] {
        let room = Room::open(LONG_TIMEOUT).await?;
        let seat = room.seat();
        let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
        // The claim shares this watch, and reads nothing.
        let _watch = watch_data(&seat, &path).await?;
        refuse_heartbeats(&room);
        room.until("doubt", |state| state == SessionState::Suspended).await?;
        let mut claim = pin!(seat.claim(&path));
        still_asked_for_contact(&room, &mut claim).await?;
        if changes_first {
            room.admin.set(&path, b"new").await?;
        }
        room.admin.delete(&path).await?;
        room.proxy.heal();
        assert_eq!(claim.await, Err(Refusal::NoNode.into()), "changes first: {changes_first}");
        assert!(!seat.has_claim());
    }
    Ok(())
}

/// Waits until a claim has asked for contact five times without an answer.
async fn still_asked_for_contact(
    room: &Room,
    claim: &mut (impl Future<Output = Result<Fence, Failure>> + Unpin),
) -> Result<()> {
    let refused = || room.proxy.requests(&Match::heartbeats()).len();
    let before = refused();
    let asked = eventually("five more", async || Ok((refused() >= before + 5).then_some(())));
    tokio::select! {
        biased;
        claimed = claim => anyhow::bail!("claimed on old contact: {claimed:?}"),
        asked = asked => asked,
    }
}
