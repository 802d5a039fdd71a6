//! Rule 6: one-shot watches, which survive reconnects and each other.

use anyhow::{Result, ensure};
use futures_util::FutureExt;
use wok::session::{Event, Reply, Request, Seat, Watch, Watching};
use wok_tests::proxy::Cut;

use crate::room::{LONG_TIMEOUT, Room, fired, round_trip, watch_data};

/// Watches a znode that is not there, one that is, and the children of that one.
async fn three_watches(seat: &Seat, path: &str) -> Result<[Watch; 3]> {
    let absent = seat.submit(Request::Exists(format!("{path}/absent"), Watching::Yes)).await?;
    let Reply::Exists(None, Some(absent)) = absent else { panic!("{absent:?}") };
    let children = seat.submit(Request::GetChildren(path.into(), Watching::Yes)).await?;
    let Reply::Children(_, _, Some(children)) = children else { panic!("{children:?}") };
    Ok([absent, watch_data(seat, path).await?, children])
}

async fn check_fired(watches: [Watch; 3]) -> Result<()> {
    let expected = [Event::Created, Event::DataChanged, Event::ChildrenChanged];
    for (watch, event) in watches.into_iter().zip(expected) {
        let seen = fired(watch).await?;
        ensure!(seen == event, "{seen:?} instead of {event:?}");
    }
    Ok(())
}

#[tokio::test]
async fn watches_survive_a_reconnect() -> Result<()> {
    for cut in [Cut::Fin, Cut::Reset] {
        let room = Room::open(LONG_TIMEOUT).await?;
        room.admin.create(&room.path, b"").await?;
        let seat = room.seat();
        let watches = three_watches(&seat, &room.path).await?;
        room.proxy.cut_all(cut);
        // Answered on the next connection.
        round_trip(&seat).await?;
        ensure!(watches.iter().all(|watch| watch.fired().is_none()), "a reconnect is no event");
        room.admin.set(&room.path, b"changed").await?;
        room.admin.create(&format!("{}/absent", room.path), b"").await?;
        check_fired(watches).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_changes_while_the_connection_is_down_is_told_afterwards() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let watches = three_watches(&seat, &room.path).await?;
    room.disconnect().await?;
    room.admin.set(&room.path, b"changed").await?;
    room.admin.create(&format!("{}/absent", room.path), b"").await?;
    room.proxy.heal();
    check_fired(watches).await
}

#[tokio::test]
async fn a_watch_fires_once() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let watch = watch_data(&seat, &room.path).await?;
    room.admin.set(&room.path, b"1").await?;
    assert_eq!(fired(watch.clone()).await?, Event::DataChanged);
    room.admin.delete(&room.path).await?;
    round_trip(&seat).await?;
    assert_eq!(watch.fired(), Some(Event::DataChanged));
    Ok(())
}

#[tokio::test]
async fn a_watch_dropped_by_one_participant_does_not_cost_another_its_own() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let (leaving, staying) = (room.seat(), room.seat());
    let path = room.path.as_str();
    for round in 0..300 {
        let dropped = watch_data(&leaving, path).await?;
        let watch = match round % 4 {
            // The removal is under way when the read is sent.
            0 => {
                drop(dropped);
                watch_data(&staying, path).await?
            }
            // The read is under way when the watch is removed.
            1 => {
                let mut read = Box::pin(watch_data(&staying, path));
                let answered = read.as_mut().now_or_never();
                drop(dropped);
                match answered {
                    Some(watch) => watch?,
                    None => read.await?,
                }
            }
            // So is an event.
            2 => {
                let (changed, watch) = tokio::join!(room.admin.set(path, b"now"), async {
                    drop(dropped);
                    watch_data(&staying, path).await
                });
                changed?;
                watch?
            }
            // Both watch, then one leaves.
            _ => {
                let watch = watch_data(&staying, path).await?;
                drop(dropped);
                watch
            }
        };
        room.admin.set(path, b"changed").await?;
        fired(watch).await.map_err(|error| error.context(format!("round {round}")))?;
    }
    Ok(())
}
