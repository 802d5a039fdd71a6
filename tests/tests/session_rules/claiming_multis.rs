//! A `multi` that takes a claim: of several znodes as one, in one round trip, in the place of another.

use std::pin::pin;

use anyhow::{Context, Result, ensure};
use futures_util::FutureExt;
use wok::session::{CreateMode, Failure, Refusal, Seat, Write, Written};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Cut, Match};

use crate::room::{LONG_TIMEOUT, Room, hold, round_trip};

/// What a server answers that has too much to do.
const THROTTLED: i32 = -127;

fn create_one(path: &str) -> Write {
    Write::Create { path: path.into(), data: b"mine".to_vec(), mode: CreateMode::Ephemeral }
}

fn delete_one(path: &str, version: Option<i32>) -> Write {
    Write::Delete { path: path.into(), version }
}

async fn loss(seat: &Seat) -> Result<String> {
    within("the claim to be lost", seat.until_claim_lost()).await
}

async fn room() -> Result<(Room, Seat)> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    Ok((room, seat))
}

fn paths<const N: usize>(room: &Room, names: [&str; N]) -> Vec<String> {
    names.map(|name| format!("{}/{name}", room.path)).to_vec()
}

#[tokio::test]
async fn several_znodes_are_claimed_as_one_in_one_round_trip() -> Result<()> {
    let (room, seat) = room().await?;
    let claim = paths(&room, ["a", "b", "c", "d", "e", "f"]);
    let other = format!("{}/other", room.path);
    let mut writes: Vec<_> = claim.iter().map(|path| create_one(path)).collect();
    writes.push(create_one(&other));
    let about = Match::any().under(&room.path);
    room.proxy.clear_log();
    room.proxy.inject(about.clone(), Action::StallReplies);
    let mut taking = pin!(seat.multi(writes, &claim));
    let sent = eventually("all of it to be sent", async || {
        Ok((room.proxy.requests(&about).len() == 8).then_some(()))
    });
    tokio::select! {
        sent = sent => sent?,
        taken = &mut taking => panic!("answered without a reply: {taken:?}"),
    }
    room.proxy.heal();
    let (written, fence) = taking.await?;
    let opcodes: Vec<_> = room.proxy.requests(&about).iter().map(|seen| seen.opcode).collect();
    let mut expected = vec![Opcode::Multi];
    expected.extend([Opcode::GetData; 6]);
    expected.push(Opcode::Exists);
    assert_eq!(opcodes, expected);
    for (path, written) in claim.iter().chain([&other]).zip(&written) {
        let there = room.admin.stat(path).await?.context("the znode")?;
        assert_eq!(fence, Some(there.czxid.unsigned_abs()));
        let Written::Created(told, stat) = written else { panic!("{written:?}") };
        assert_eq!(
            (told, stat.czxid, stat.ephemeral_owner),
            (path, there.czxid, room.session.id())
        );
    }
    // One of them is enough to lose all.
    room.admin.delete(&claim[4]).await?;
    assert_eq!(loss(&seat).await?, claim[4]);
    within("the rest to go", seat.retire()).await?;
    assert_eq!(room.admin.children(&room.path).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn what_was_created_and_cannot_be_looked_at_goes_with_its_participant() -> Result<()> {
    let (room, seat) = room().await?;
    let claim = paths(&room, ["a", "b"]);
    let looks = Match::opcode(Opcode::GetData).under(&claim[0]);
    let refusal = room.proxy.inject(looks, Action::Refuse(THROTTLED));
    let taken = seat.multi(claim.iter().map(|path| create_one(path)).collect(), &claim).await;
    ensure!(matches!(taken, Err(Failure::OutcomeUnknown)), "{taken:?}");
    refusal.struck().await?;
    assert_eq!(loss(&seat).await?, claim[0]);
    within("the rest to go", seat.retire()).await?;
    assert_eq!(room.admin.children(&room.path).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_claim_names_what_its_own_multi_creates() -> Result<()> {
    let (room, seat) = room().await?;
    let [a, b] = [format!("{}/a", room.path), format!("{}/b", room.path)];
    room.proxy.clear_log();
    for claim in [&[b.clone()][..], &[a.clone(), a.clone()]] {
        let refused = seat.multi(vec![create_one(&a)], claim).await;
        ensure!(matches!(refused, Err(Failure::Invalid(_))), "{refused:?}");
    }
    assert!(room.proxy.requests(&Match::any().under(&room.path)).is_empty());
    Ok(())
}

#[tokio::test]
async fn a_znode_that_is_gone_when_it_is_confirmed_is_a_lost_claim() -> Result<()> {
    let (room, seat) = room().await?;
    let claim = paths(&room, ["a", "b"]);
    let read = Match::opcode(Opcode::GetData).under(&claim[1]);
    let stalled = room.proxy.inject(read, Action::StallRequests);
    let writes = claim.iter().map(|path| create_one(path)).collect();
    let gone = async {
        stalled.struck().await?;
        room.admin.wait_there(&claim[1]).await?;
        room.admin.delete(&claim[1]).await?;
        room.proxy.heal();
        anyhow::Ok(())
    };
    let (taken, deleted) = tokio::join!(seat.multi(writes, &claim), gone);
    deleted?;
    assert_eq!(taken, Err(Failure::Refused { refusal: Refusal::NoNode, index: Some(1) }));
    assert_eq!(loss(&seat).await?, claim[1]);
    Ok(())
}

#[tokio::test]
async fn a_claim_that_takes_the_place_of_another_is_held_all_the_time() -> Result<()> {
    for fault in [None, Some(Action::DropReplyAndCut(Cut::Fin)), Some(Action::CutBefore(Cut::Fin))]
    {
        let (room, seat) = room().await?;
        let before = hold(&seat, &room.path).await?;
        let earlier = room.admin.stat(&before).await?.context("the znode")?.czxid;
        let after = paths(&room, ["reads"]);
        let held = seat.held().context("the claim")?;
        let _command = seat.depend(&held).context("the claim")?;
        if let Some(fault) = fault {
            room.proxy.inject(Match::opcode(Opcode::Multi).under(&room.path), fault);
        }
        let writes = vec![create_one(&after[0]), delete_one(&before, None)];
        let mut lost = pin!(seat.until_claim_lost());
        let taken = tokio::select! {
            biased;
            told = &mut lost => panic!("{fault:?}: a loss is told: {told:?}"),
            taken = within("the claim to be replaced", seat.multi(writes, &after)) => taken??,
        };
        let (_, fence) = taken;
        ensure!(fence > Some(earlier.unsigned_abs()), "{fault:?}: {fence:?}");
        assert!(seat.has_claim() && room.admin.stat(&before).await?.is_none(), "{fault:?}");
        round_trip(&seat).await?;
        assert_eq!(lost.as_mut().now_or_never(), None, "{fault:?}");
        room.admin.delete(&after[0]).await?;
        assert_eq!(within("the loss", lost).await?, after[0], "{fault:?}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_read_behind_a_lost_multi_is_read_again() -> Result<()> {
    // So many that some of the reads may go out on the next connection, before the multi is sent
    // again: which of them do is a matter of moments, so it is tried some times.
    let names: Vec<String> = (0..100).map(|it| format!("{it}")).collect();
    for claimed in [0, names.len()].repeat(4) {
        let (room, seat) = room().await?;
        let all: Vec<String> = names.iter().map(|name| format!("{}/{name}", room.path)).collect();
        let cut = Action::CutBefore(Cut::Fin);
        room.proxy.inject(Match::opcode(Opcode::Multi).under(&room.path), cut);
        let writes = all.iter().map(|path| create_one(path)).collect();
        let (written, fence) = seat.multi(writes, &all[..claimed]).await?;
        assert_eq!(fence.is_some(), claimed > 0);
        for (path, written) in all.iter().zip(&written) {
            let there = room.admin.stat(path).await?.context("the znode")?;
            let Written::Created(_, stat) = written else { panic!("{written:?}") };
            assert_eq!(stat.czxid, there.czxid, "{claimed} claimed");
        }
        within("all of it to go", seat.retire()).await?;
        assert_eq!(room.admin.children(&room.path).await?, Vec::<String>::new());
    }
    Ok(())
}

#[tokio::test]
async fn a_multi_that_is_refused_gives_nothing_up() -> Result<()> {
    let (room, seat) = room().await?;
    let before = hold(&seat, &room.path).await?;
    let after = paths(&room, ["reads"]);
    let refusal = |index| Failure::Refused { refusal: Refusal::BadVersion, index: Some(index) };
    let writes = vec![create_one(&after[0]), delete_one(&before, Some(7))];
    assert_eq!(seat.multi(writes, &after).await, Err(refusal(1)));
    assert!(seat.has_claim());
    let writes = vec![delete_one(&before, Some(7))];
    assert_eq!(seat.multi(writes, &[]).await, Err(refusal(0)));
    assert!(seat.has_claim() && room.admin.stat(&after[0]).await?.is_none());
    room.admin.delete(&before).await?;
    assert_eq!(loss(&seat).await?, before);
    Ok(())
}

#[tokio::test]
async fn a_multi_dropped_midway_leaves_the_earlier_claim_to_its_watch() -> Result<()> {
    let (room, seat) = room().await?;
    let before = hold(&seat, &room.path).await?;
    let after = paths(&room, ["reads"]);
    let stalled =
        room.proxy.inject(Match::opcode(Opcode::Multi).under(&room.path), Action::StallReplies);
    let writes = vec![create_one(&after[0]), delete_one(&before, None)];
    tokio::select! {
        struck = stalled.struck() => drop(struck?),
        taken = seat.multi(writes, &after) => panic!("answered without a reply: {taken:?}"),
    }
    room.admin.wait_gone(&before).await?;
    room.proxy.heal();
    assert_eq!(loss(&seat).await?, before);
    within("its znodes to go", seat.retire()).await?;
    assert_eq!(room.admin.children(&room.path).await?, Vec::<String>::new());
    Ok(())
}
