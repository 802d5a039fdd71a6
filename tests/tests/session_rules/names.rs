//! Two participants of one session that create the same name: the second waits for the outcome of
//! the first.

use std::pin::pin;

use anyhow::{Result, ensure};
use futures_util::FutureExt;
use wok::session::{CreateMode, Refusal, Request, Write};
use wok_tests::patience::within;
use wok_tests::proxy::{Action, Match};

use crate::room::{LONG_TIMEOUT, Room, create, create_named, round_trip};

#[tokio::test]
async fn a_second_create_of_a_name_waits_for_the_outcome_of_the_first() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let named = format!("{}/named", room.path);
    let creates = Match::creates().under(&named);
    let (first, second) = (room.seat(), room.seat());
    let stalled = room.proxy.inject(creates.clone(), Action::StallReplies);
    let mut one = pin!(create_named(&first, &named));
    tokio::select! {
        struck = stalled.struck() => drop(struck?),
        created = &mut one => panic!("answered without a reply: {created:?}"),
    }
    let mut other = pin!(second.submit(create(&named, CreateMode::Ephemeral)));
    ensure!(other.as_mut().now_or_never().is_none(), "it did not wait");
    ensure!(room.proxy.requests(&creates).len() == 1, "it did not wait");
    room.proxy.heal();
    let (one, other) = tokio::join!(one, other);
    one?;
    assert_eq!(other.map(drop), Err(Refusal::NodeExists.into()));
    Ok(())
}

#[tokio::test]
async fn a_create_that_nobody_waits_for_any_more_is_looked_up_by_the_next() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let named = format!("{}/named", room.path);
    let (first, second) = (room.seat(), room.seat());
    let stalled = room.proxy.inject(Match::creates().under(&named), Action::StallReplies);
    tokio::select! {
        struck = stalled.struck() => drop(struck?),
        created = create_named(&first, &named) => panic!("answered without a reply: {created:?}"),
    }
    let stat = room.admin.wait_there(&named).await?;
    room.proxy.heal();
    let refused = second.submit(create(&named, CreateMode::Ephemeral));
    let refused = within("its outcome", refused).await?.map(drop);
    assert_eq!(refused, Err(Refusal::NodeExists.into()));
    assert!(second.claim(&named).await.is_err());
    assert_eq!(first.claim(&named).await?, stat.czxid.unsigned_abs(), "it is the first one's");
    Ok(())
}

#[tokio::test]
async fn a_create_that_was_never_sent_is_no_hindrance_and_takes_nobody_elses_along() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let named = format!("{}/named", room.path);
    let (first, second) = (room.seat(), room.seat());
    room.disconnect().await?;
    ensure!(pin!(create_named(&first, &named)).as_mut().now_or_never().is_none());
    room.proxy.heal();
    let stat = within("the other's create", create_named(&second, &named)).await??;
    // Ephemeral, and of the same session: only the ledgers tell whose it is.
    within("the first to retire", first.retire()).await?;
    round_trip(&second).await?;
    assert_eq!(room.admin.stat(&named).await?.map(|it| it.czxid), Some(stat.czxid));
    assert_eq!(second.claim(&named).await?, stat.czxid.unsigned_abs());
    Ok(())
}

#[tokio::test]
async fn two_that_create_each_others_names_do_not_wait_for_ever() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let (first, second) = (room.seat(), room.seat());
    for round in 0..20 {
        let names = ["a", "b"].map(|name| format!("{}/{name}{round}", room.path));
        let part = |path: &String| Write::Create {
            path: path.clone(),
            data: Vec::new(),
            mode: CreateMode::Ephemeral,
        };
        let one = first.submit(Request::Multi(names.iter().map(part).collect()));
        let other = second.submit(Request::Multi(names.iter().rev().map(part).collect()));
        let both = async { tokio::join!(one, other) };
        let (one, other) = within("both to be answered", both).await?;
        ensure!(one.is_ok() != other.is_ok(), "{one:?}, {other:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_znode_that_is_created_again_after_somebody_deleted_it_is_released() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let named = format!("{}/named", room.path);
    let seat = room.seat();
    create_named(&seat, &named).await?;
    room.admin.delete(&named).await?;
    create_named(&seat, &named).await?;
    seat.release(&named).await?;
    assert_eq!(room.admin.children(&room.path).await?, Vec::<String>::new());
    Ok(())
}
