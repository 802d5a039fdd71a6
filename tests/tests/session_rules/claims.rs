//! Rules 3 and 8: what a claim is, how its loss is told, and writes that depend on it.

use std::future::poll_fn;
use std::pin::pin;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use wok::session::{
    CreateMode, Event, Failure, Owner, Refusal, Reply, Request, Seat, SessionLoss, Watching, Write,
    Written,
};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Cut, Direction, Match};

use crate::room::{
    LONG_TIMEOUT, Room, TIMEOUT, contender, create_named, delete, hold, list, round_trip,
    watch_data,
};

async fn loss(seat: &Seat) -> Result<String> {
    within("the claim to be lost", seat.until_claim_lost()).await
}

/// Whatever the session was sent so far has been heard of: a loss that is not told now is none.
async fn check_no_loss(seat: &Seat) -> Result<()> {
    round_trip(seat).await?;
    let told = seat.until_claim_lost().now_or_never();
    anyhow::ensure!(told.is_none(), "a loss is told: {told:?}");
    Ok(())
}

#[tokio::test]
async fn only_a_znode_of_the_own_ledger_can_be_claimed() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let (seat, neighbour) = (room.seat(), room.seat());
    let (neighbours, _) = neighbour.contend(&room.path, contender(), Vec::new()).await?;
    let others = format!("{}/others", room.path);
    room.admin.create(&others, b"").await?;
    for path in [&neighbours, &others, &room.path] {
        let refused = seat.claim(path).await;
        let Err(Failure::Invalid(text)) = refused else { panic!("{path}: {refused:?}") };
        assert!(text.contains(path.as_str()), "{text}");
        assert!(matches!(seat.release(path).await, Err(Failure::Invalid(_))));
    }
    neighbour.claim(&neighbours).await?;
    assert!(!seat.has_claim() && neighbour.has_claim());
    Ok(())
}

#[tokio::test]
async fn an_ephemeral_znode_of_a_multi_is_known_for_ones_own_and_goes_with_its_participant()
-> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let (seat, neighbour) = (room.seat(), room.seat());
    let path = format!("{}/named", room.path);
    let (data, mode) = (Vec::new(), CreateMode::Ephemeral);
    let multi = Request::Multi(vec![Write::Create { path: path.clone(), data, mode }]);
    let Reply::Multi(written) = seat.submit(multi).await? else { panic!("another reply") };
    let [Written::Created(created, stat)] = written.as_slice() else { panic!("{written:?}") };
    let there = room.admin.stat(&path).await?.context("the znode")?;
    assert_eq!((created, stat.czxid), (&path, there.czxid));
    assert_eq!(seat.owner(&path, stat), Owner::Me);
    assert_eq!(neighbour.owner(&path, stat), Owner::Other);
    within("its znodes to go", seat.retire()).await?;
    assert_eq!(room.admin.stat(&path).await?, None);
    Ok(())
}

#[tokio::test]
async fn a_znode_that_is_gone_or_replaced_cannot_be_claimed() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let named = format!("{}/named", room.path);
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let (gone, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    create_named(&seat, &named).await?;
    room.admin.delete(&gone).await?;
    room.admin.delete(&named).await?;
    room.admin.create(&named, b"").await?;
    for path in [&gone, &named] {
        let refused = seat.claim(path).await;
        assert_eq!(refused, Err(Refusal::NoNode.into()), "{path}");
    }
    assert!(!seat.has_claim());
    Ok(())
}

#[tokio::test]
async fn a_claim_deleted_by_hand_is_lost_and_told_once() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let (seat, neighbour) = (room.seat(), room.seat());
    let path = hold(&seat, &room.path).await?;
    hold(&neighbour, &room.path).await?;
    check_no_loss(&seat).await?;
    assert!(seat.still_holds(&path));
    room.admin.delete(&path).await?;
    // The deletion is heard before the answer, and counts before the loss is told.
    round_trip(&seat).await?;
    assert!(seat.has_claim() && !seat.still_holds(&path));
    assert_eq!(loss(&seat).await?, path);
    assert!(!seat.has_claim());
    check_no_loss(&seat).await?;
    check_no_loss(&neighbour).await
}

/// A participant that gives a claim up while the server does not answer learns of the loss at the local
/// deadline.
#[tokio::test]
async fn what_is_being_given_up_counts_until_it_is_gone() -> Result<()> {
    let room = Room::open(TIMEOUT).await?;
    let seat = room.seat();
    hold(&seat, &room.path).await?;
    room.proxy.stall(Direction::Both);
    let lost = within("the session to be lost", seat.retire()).await?;
    assert_eq!(lost, Some(SessionLoss::Deadline));
    Ok(())
}

#[tokio::test]
async fn a_claim_deleted_while_the_connection_is_down_is_lost() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    room.disconnect().await?;
    room.admin.delete(&path).await?;
    room.proxy.heal();
    assert_eq!(loss(&seat).await?, path);
    Ok(())
}

#[tokio::test]
async fn new_data_in_the_claims_znode_is_no_loss_and_its_deletion_still_is() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    let reads = Match::opcode(Opcode::GetData).under(&path);
    let mut lost = pin!(loss(&seat));
    for changes in 1..=3 {
        room.admin.set(&path, b"changed").await?;
        let looked = eventually("another look", async || {
            let answered =
                room.proxy.requests(&reads).iter().filter(|it| it.answer.is_some()).count();
            Ok((answered > changes).then_some(()))
        });
        tokio::select! {
            looked = looked => looked?,
            told = &mut lost => panic!("a loss is told: {told:?}"),
        }
        round_trip(&seat).await?;
    }
    assert!(lost.as_mut().now_or_never().is_none());
    assert!(seat.has_claim());
    room.admin.delete(&path).await?;
    assert_eq!(lost.await?, path);
    Ok(())
}

#[tokio::test]
async fn a_neighbours_watch_makes_a_claim_cost_no_request() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let (seat, waiter) = (room.seat(), room.seat());
    let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    let watch = watch_data(&waiter, &path).await?;
    let about = Match::any().under(&path);
    let before = room.proxy.requests(&about).len();
    seat.claim(&path).await?;
    round_trip(&seat).await?;
    assert_eq!(room.proxy.requests(&about).len(), before);
    // The claim keeps the watch alive on its own.
    drop((watch, waiter));
    round_trip(&seat).await?;
    room.admin.delete(&path).await?;
    assert_eq!(loss(&seat).await?, path);
    Ok(())
}

#[tokio::test]
async fn a_claim_behind_a_list_that_shows_it_waits_for_no_reply() -> Result<()> {
    for is_listed_again in [false, true] {
        // One of its own: after the deletion by hand nothing that the session was told is believed.
        let room = Room::open(LONG_TIMEOUT).await?;
        let seat = room.seat();
        let (path, stat) = match is_listed_again {
            false => seat.contend_and_list(&room.path, contender(), Vec::new()).await?.0,
            true => {
                let created = seat.contend(&room.path, contender(), Vec::new()).await?;
                list(&seat, &room.path).await?;
                created
            }
        };
        let fence = seat.claim(&path).now_or_never().context("a round trip")??;
        assert_eq!(fence, stat.czxid.unsigned_abs());
        let about = Match::opcode(Opcode::GetData).under(&path);
        let mut lost = pin!(loss(&seat));
        // Followed, as a participant does it: the watch is armed.
        let armed = eventually("the read that arms the watch", async || {
            let reads = room.proxy.requests(&about);
            Ok((reads.iter().filter(|read| read.answer.is_some()).count() == 1).then_some(()))
        });
        tokio::select! {
            told = &mut lost => panic!("a loss is told: {told:?}"),
            armed = armed => armed?,
        }
        room.admin.delete(&path).await?;
        assert_eq!(lost.await?, path);
    }
    Ok(())
}

#[tokio::test]
async fn a_claim_of_a_znode_that_has_gone_since_it_was_listed_is_lost() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let ((path, _), _) = seat.contend_and_list(&room.path, contender(), Vec::new()).await?;
    room.admin.delete(&path).await?;
    seat.claim(&path).await?;
    assert_eq!(loss(&seat).await?, path);
    assert!(!seat.has_claim());
    Ok(())
}

#[tokio::test]
async fn a_znode_that_goes_by_no_work_of_ours_is_a_doubt_however_it_was_watched() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let (seat, waiter, other) = (room.seat(), room.seat(), room.seat());
    let watching = [
        |path: String| Request::GetData(path, Watching::Yes),
        |path: String| Request::Exists(path, Watching::Yes),
    ];
    for watch in watching {
        // The waiter watches two znodes of this session, of which somebody deletes one: the session
        // may be ending, and the other be gone as well without a word yet.
        let (gone, _) = other.contend(&room.path, contender(), Vec::new()).await?;
        let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
        let watched = waiter.submit(watch(gone.clone())).await?;
        let _shared = watch_data(&waiter, &path).await?;
        room.admin.delete(&gone).await?;
        round_trip(&waiter).await?;
        let (Reply::Data(.., Some(mut fired)) | Reply::Exists(_, Some(mut fired))) = watched else {
            panic!("{watched:?}")
        };
        assert_eq!(
            within("its deletion", poll_fn(|cx| fired.poll_fired(cx))).await?,
            Event::Deleted
        );
        room.proxy.clear_log();
        seat.claim(&path).await?;
        let reads = Match::opcode(Opcode::GetData).under(&path);
        assert_eq!(room.proxy.requests(&reads).len(), 1, "a doubt asks for a look");
        seat.release(&path).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_neighbours_watch_that_has_fired_confirms_nothing() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let (seat, waiter) = (room.seat(), room.seat());
    let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    let _watch = watch_data(&waiter, &path).await?;
    room.admin.delete(&path).await?;
    round_trip(&seat).await?;
    assert_eq!(seat.claim(&path).await, Err(Refusal::NoNode.into()));
    Ok(())
}

#[tokio::test]
async fn a_release_is_not_a_loss() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    let mut lost = pin!(seat.until_claim_lost());
    // Followed while it is released, as a participant does it.
    tokio::select! {
        released = seat.release(&path) => released?,
        told = &mut lost => panic!("a loss is told: {told:?}"),
    }
    round_trip(&seat).await?;
    assert_eq!(lost.as_mut().now_or_never(), None);

    for fault in [None, Some(Action::DropReplyAndCut(Cut::Reset))] {
        let path = hold(&seat, &room.path).await?;
        if let Some(fault) = fault {
            room.proxy.inject(Match::opcode(Opcode::Delete).under(&path), fault);
        }
        tokio::select! {
            released = seat.release(&path) => released?,
            told = &mut lost => panic!("a loss is told: {told:?}"),
        }
        round_trip(&seat).await?;
        assert_eq!(lost.as_mut().now_or_never(), None);
    }

    let path = hold(&seat, &room.path).await?;
    let writes = vec![Write::Delete { path, version: None }];
    tokio::select! {
        deleted = seat.submit(Request::Multi(writes)) => drop(deleted?),
        told = &mut lost => panic!("a loss is told: {told:?}"),
    }
    round_trip(&seat).await?;
    assert_eq!(lost.as_mut().now_or_never(), None);
    assert!(!seat.has_claim());
    Ok(())
}

#[tokio::test]
async fn a_claim_stays_as_long_as_something_depends_on_it() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let deletes = Match::opcode(Opcode::Delete);
    let (seat, witness) = (room.seat(), room.seat());
    let multi =
        |path: &str| Request::Multi(vec![Write::Delete { path: path.into(), version: None }]);
    for way in 0..4 {
        let path = hold(&seat, &room.path).await?;
        let token = seat.held().and_then(|held| seat.depend(&held)).context("the claim")?;
        room.proxy.clear_log();
        let mut gone = pin!(async {
            match way {
                0 => seat.release(&path).await,
                1 => seat.submit(delete(&path)).await.map(drop),
                2 => seat.submit(multi(&path)).await.map(drop),
                _ => seat.pipeline(vec![delete(&path)]).await.map(drop),
            }
        });
        assert!(gone.as_mut().now_or_never().is_none(), "way {way}");
        round_trip(&witness).await?;
        assert!(gone.as_mut().now_or_never().is_none(), "way {way}");
        round_trip(&witness).await?;
        assert!(room.proxy.requests(&deletes).is_empty(), "way {way}");
        assert!(room.admin.stat(&path).await?.is_some());
        drop(token);
        gone.await?;
        assert!(room.admin.stat(&path).await?.is_none());
    }
    Ok(())
}

#[tokio::test]
async fn several_znodes_are_claimed_as_one_or_not_at_all() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let mut paths = Vec::new();
    for name in ["a", "b", "c"] {
        let directory = format!("{}/{name}", room.path);
        let (created, _) = seat.contend(&directory, contender(), Vec::new()).await?;
        paths.push(created);
    }
    for wrong in [vec![], vec![paths[0].clone(), paths[1].clone(), paths[0].clone()]] {
        assert!(matches!(seat.claim_all(&wrong).await, Err(Failure::Invalid(_))), "{wrong:?}");
    }
    let (there, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    let (gone, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    room.admin.delete(&gone).await?;
    assert_eq!(seat.claim_all(&[there, gone]).await, Err(Refusal::NoNode.into()));
    assert!(!seat.has_claim());

    room.proxy.clear_log();
    // What was refused lets go of its watches, at any time.
    let about = Match::opcode(Opcode::GetData).under(&room.path);
    room.proxy.inject(about.clone(), Action::StallReplies);
    let mut claiming = pin!(seat.claim_all(&paths));
    let in_one_trip = eventually("a read of each", async || {
        Ok((room.proxy.requests(&about).len() == paths.len()).then_some(()))
    });
    tokio::select! {
        claimed = &mut claiming => panic!("claimed without an answer: {claimed:?}"),
        sent = in_one_trip => sent?,
    }
    room.proxy.heal();
    let fences = claiming.await?;
    for (path, fence) in paths.iter().zip(&fences) {
        let stat = room.admin.stat(path).await?.context("the znode")?;
        assert_eq!(stat.czxid.unsigned_abs(), *fence, "{path}");
    }
    let held = seat.held().context("the claim")?;
    assert_eq!((held.path.as_str(), held.fence), (paths[0].as_str(), fences[0]));
    room.admin.delete(&paths[1]).await?;
    assert_eq!(loss(&seat).await?, paths[1]);
    Ok(())
}

#[tokio::test]
async fn nothing_can_depend_on_a_claim_that_is_being_given_up() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    let held = seat.held().context("the claim")?;
    let deletes = Match::opcode(Opcode::Delete).under(&path);
    let stalled = room.proxy.inject(deletes, Action::StallReplies);
    let mut gone = pin!(seat.release(&path));
    tokio::select! {
        struck = stalled.struck() => drop(struck?),
        gone = &mut gone => panic!("answered without a reply: {gone:?}"),
    }
    assert!(seat.depend(&held).is_none());
    room.proxy.heal();
    gone.await?;
    assert!(seat.depend(&held).is_none());
    // Nor on that of a participant that ends.
    hold(&seat, &room.path).await?;
    let held = seat.held().context("the claim")?;
    drop(seat.depend(&held).context("it is held")?);
    seat.until_independent().await;
    assert!(seat.depend(&held).is_none() && seat.has_claim());
    Ok(())
}

#[tokio::test]
async fn what_comes_to_depend_on_a_claim_while_its_deletion_is_prepared_is_waited_for() -> Result<()>
{
    let room = Room::open(LONG_TIMEOUT).await?;
    let (seat, neighbour) = (room.seat(), room.seat());
    let path = hold(&seat, &room.path).await?;
    let held = seat.held().context("the claim")?;
    let named = format!("{}/named", room.path);
    let stalled = room.proxy.inject(Match::creates().under(&named), Action::StallReplies);
    let mut created = pin!(create_named(&neighbour, &named));
    tokio::select! {
        struck = stalled.struck() => drop(struck?),
        created = &mut created => panic!("answered without a reply: {created:?}"),
    }
    // The name is the neighbour's to create: until that is decided, nothing is sent.
    let (data, mode) = (Vec::new(), CreateMode::Ephemeral);
    let create = Write::Create { path: named.clone(), data, mode };
    let writes = vec![Write::Delete { path: path.clone(), version: None }, create];
    let mut giving_up = pin!(seat.submit(Request::Multi(writes)));
    assert!(giving_up.as_mut().now_or_never().is_none());
    let command = seat.depend(&held).context("it is still held")?;
    room.proxy.heal();
    created.await?;
    let multis = Match::opcode(Opcode::Multi).under(&path);
    for _ in 0..2 {
        round_trip(&neighbour).await?;
        assert!(giving_up.as_mut().now_or_never().is_none());
        assert!(room.proxy.requests(&multis).is_empty());
    }
    drop(command);
    let refused = giving_up.await.map(drop);
    assert_eq!(refused, Err(Failure::Refused { refusal: Refusal::NodeExists, index: Some(1) }));
    assert!(seat.has_claim() && room.admin.stat(&path).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_fenced_write_fails_once_the_claim_is_gone() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let guarded = format!("{}/guarded", room.path);
    room.admin.create(&guarded, b"0").await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    let fenced = |data: &[u8]| {
        Request::Multi(vec![
            Write::Check { path: path.clone(), version: None },
            Write::SetData { path: guarded.clone(), data: data.into(), version: None },
        ])
    };
    seat.submit(fenced(b"1")).await?;
    room.admin.delete(&path).await?;
    let refused = seat.submit(fenced(b"2")).await.map(drop);
    assert_eq!(refused, Err(Failure::Refused { refusal: Refusal::NoNode, index: Some(0) }));
    let (data, _) = room.admin.get(&guarded).await?.expect("it was created");
    assert_eq!(data, b"1");
    Ok(())
}
