//! Too much of what is allowed.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use wok::guest::Limits;
use wok::participant::Notice;
use wok::session::SeatLimits;
use wok_tests::proxy::{Cut, Match};
use zookeeper_client::{Acls, CreateMode};

use crate::scene::{Guest, Room, Scene};

/// An attack that ends with an answer.
async fn answered(
    scene: &Scene,
    guest: &Guest,
    operation: &str,
    body: Value,
) -> Result<Result<Value, Value>> {
    let (answer, _) = scene.beside(async { Ok(guest.answer(operation, body).await) }).await?;
    Ok(answer)
}

#[tokio::test]
async fn a_flood_of_requests_is_slowed_to_its_rate() -> Result<()> {
    let scene = Scene::new().await?;
    let limits = Limits { calls_per_second: 200, ..Limits::default() };
    let guest = scene.hostile_in(Room { limits, ..Room::default() })?;
    let flood = async {
        let start = Instant::now();
        let answer = guest.answer("call-flood", json!({"call": "exists", "count": 1000})).await;
        Ok((answer, start.elapsed()))
    };
    let ((answer, took), holds) = scene.beside(flood).await?;
    assert_eq!(answer, Ok(json!(1000)));
    // Two seconds' worth can go at once, see the bucket.
    assert!(took >= Duration::from_millis(2_900), "1000 requests took {took:?}");
    assert!(holds >= 10, "the neighbour held {holds} times in {took:?}");
    Ok(())
}

#[tokio::test]
async fn a_flood_of_what_the_host_answers_by_itself_ends_by_its_processor_time() -> Result<()> {
    let scene = Scene::new().await?;
    let flood = scene.hostile()?.fault("call-flood", json!({"call": "id", "count": u32::MAX}));
    let (fault, holds) = scene.beside(flood).await?;
    assert!(fault.contains("limits.cpu-per-call"), "{fault}");
    assert!(holds >= 1, "{holds} holds of the neighbour");
    Ok(())
}

#[tokio::test]
async fn a_hoarder_of_handles_is_told_its_limit() -> Result<()> {
    let scene = Scene::new().await?;
    for (handle, most, named) in [
        ("watch-data", 64, "limits.watches"),
        ("watch-exists", 64, "limits.watches"),
        ("watch-children", 64, "limits.watches"),
        ("children", 16, "child lists"),
    ] {
        let guest = scene.hostile()?;
        let body = json!({"handle": handle, "count": 1000});
        let hoarded = answered(&scene, &guest, "hoard", body).await?.unwrap();
        assert_eq!(hoarded["count"], most, "{hoarded}");
        let error = hoarded["error"]["over-limit"].as_str().unwrap_or_default();
        assert!(error.contains(named), "{handle}: {hoarded}");
        // It can make room by itself.
        assert_eq!(guest.answer("drop-hoard", json!({})).await, Ok(json!(most)));
    }
    let hoard = scene.hostile()?.fault("hoard", json!({"handle": "alarm", "count": 1000}));
    let (fault, _) = scene.beside(hoard).await?;
    assert!(fault.contains("64 watches and alarms; raise limits.watches"), "{fault}");
    Ok(())
}

#[tokio::test]
async fn thousands_of_watches_end_at_the_share_of_one_and_keep_nobody_out() -> Result<()> {
    let scene = Scene::new().await?;
    let limits = Limits { watches: 10_000, ..Limits::default() };
    let limits = Limits { cpu_per_call: Duration::from_secs(5), ..limits };
    let guest = scene.hostile_in(Room { limits, ..Room::default() })?;
    let body = json!({"handle": "watch-exists", "count": 5000});
    let hoarded = answered(&scene, &guest, "hoard", body).await?.unwrap();
    let count = hoarded["count"].as_u64().unwrap_or_default();
    assert!((50..5000).contains(&count), "{hoarded}");
    let error = hoarded["error"]["over-limit"].as_str().unwrap_or_default();
    assert!(error.contains("its share of the session"), "{hoarded}");
    // Others join, again and again, as if nothing were watched.
    for _ in 0..3 {
        let joined = scene.next_in_line()?;
        joined.answer("acquire", json!({})).await.unwrap();
        joined.leave().await?;
    }
    // All of it is re-armed at once on a new connection, which is what the budget is for.
    scene.proxy.cut_all(Cut::Reset);
    scene.neighbour_works().await?;
    scene.is_alive().await?;
    assert_eq!(guest.answer("drop-hoard", json!({})).await, Ok(json!(count)));
    drop(scene.hostile()?);
    scene.neighbour_works().await?;
    scene.is_alive().await
}

#[tokio::test]
async fn a_flood_of_alarms_ends() -> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    let flood = answered(&scene, &guest, "alarm-flood", json!({"count": 400})).await?.unwrap();
    assert_eq!(flood["count"], 400, "{flood}");
    Ok(())
}

#[tokio::test]
async fn a_flood_of_events_is_bounded_by_its_bytes_and_by_its_follower() -> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    answered(&scene, &guest, "emit-flood", json!({"count": 900, "bytes": 1000})).await?.unwrap();
    let emitted = emitted_by(guest).await?;
    let per_second = Limits::default().emit_per_second as usize;
    assert!(emitted.received > 0, "{emitted:?}");
    assert!(emitted.received * 1000 <= 3 * per_second, "{emitted:?}");

    // Small ones fit into the rate, but not into what is kept for a follower that does not read.
    let guest = scene.hostile()?;
    answered(&scene, &guest, "emit-flood", json!({"count": 400, "bytes": 1})).await?.unwrap();
    let emitted = emitted_by(guest).await?;
    assert_eq!(emitted.received as u64 + emitted.missed, 400, "{emitted:?}");
    assert_eq!(emitted.received, 256, "{emitted:?}");
    Ok(())
}

#[derive(Debug)]
struct Emitted {
    received: usize,
    missed: u64,
}

/// What is left for a follower that reads nothing until its participant has ended.
async fn emitted_by(mut guest: Guest) -> Result<Emitted> {
    guest.participant.leave();
    let notices = guest.notices().await?;
    let received = notices.iter().filter(|notice| matches!(notice, Notice::Emitted { .. })).count();
    Ok(Emitted { received, missed: guest.follower.dropped() })
}

#[tokio::test]
async fn events_of_thousands_of_pairs_are_dropped_whole_and_empty_pairs_are_charged() -> Result<()>
{
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    answered(&scene, &guest, "pair-flood", json!({"count": 4, "pairs": 45_000})).await?.unwrap();
    let emitted = emitted_by(guest).await?;
    assert_eq!((emitted.received, emitted.missed), (0, 0), "{emitted:?}");

    let guest = scene.hostile()?;
    answered(&scene, &guest, "pair-flood", json!({"count": 200, "pairs": 60})).await?.unwrap();
    let emitted = emitted_by(guest).await?;
    // Each pair is charged 64 bytes, and so is the event; two seconds' worth can go at once.
    let most = 2 * Limits::default().emit_per_second as usize / (61 * 64);
    assert!((1..=most).contains(&emitted.received), "{emitted:?}");
    Ok(())
}

#[tokio::test]
async fn a_name_as_long_as_no_path_may_be_is_refused_before_it_is_sent() -> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    let requests = scene.proxy.requests(&Match::any().under(&scene.mount)).len();
    for (before, after) in [(98_000, 0), (0, 98_000), (4000, 4000), (4096 - 60, 0)] {
        for operation in ["escape-contend", "escape-contend-and-list"] {
            let name = json!({
                "parent": "/", "before": "x".repeat(before), "after": "x".repeat(after),
            });
            let refused = answered(&scene, &guest, operation, name).await?.unwrap_err();
            let text = refused["invalid"].as_str().unwrap_or_default();
            assert!(text.contains("longer than 4096 bytes") && text.len() < 500, "{refused}");
        }
    }
    assert_eq!(scene.proxy.requests(&Match::any().under(&scene.mount)).len(), requests);
    // One that is just short enough can do all that others can, and gives its room back.
    let before = 4096 - scene.mount.len() - 60;
    for _ in 0..20 {
        let name = json!({"parent": "/", "before": "x".repeat(before), "after": ""});
        let path = answered(&scene, &guest, "escape-contend", name).await?.unwrap();
        let path = json!({ "path": path });
        answered(&scene, &guest, "escape-claim", path.clone()).await?.unwrap();
        answered(&scene, &guest, "escape-release", path).await?.unwrap();
    }
    scene.next_in_line()?.leave().await
}

#[tokio::test]
async fn large_replies_are_asked_for_a_few_at_a_time_and_end_at_a_bound() -> Result<()> {
    let scene = Scene::new().await?;
    scene.admin.create(&format!("{}/big", scene.mount), &vec![7; 900_000]).await?;
    let guest = scene.hostile()?;
    for _ in 0..2 {
        let read = answered(&scene, &guest, "read-often", json!({"path": "/big", "count": 128}));
        let read = read.await?.unwrap().as_u64().unwrap_or_default();
        // 8 MiB, and what was under way then.
        assert!((9..=13).contains(&read), "{read}");
    }
    // Small ones are asked for together once one of them is known.
    scene.admin.create(&format!("{}/small", scene.mount), b"small").await?;
    let read = answered(&scene, &guest, "read-often", json!({"path": "/small", "count": 128}));
    assert_eq!(read.await?, Ok(json!(128)));
    Ok(())
}

#[tokio::test]
async fn what_is_written_is_slowed_to_its_rate() -> Result<()> {
    let scene = Scene::new().await?;
    let limits = Limits { written_per_second: 400_000, ..Limits::default() };
    let guest = scene.hostile_in(Room { limits, ..Room::default() })?;
    let flood = async {
        let start = Instant::now();
        let answer = guest.answer("write-often", json!({"count": 10, "bytes": 200_000})).await;
        Ok((answer, start.elapsed()))
    };
    let ((answer, took), holds) = scene.beside(flood).await?;
    assert_eq!(answer, Ok(json!(null)));
    // Two million bytes, of which two seconds' worth can go at once.
    assert!(took >= Duration::from_millis(2_900), "{took:?}");
    assert!(holds >= 10, "the neighbour held {holds} times in {took:?}");
    Ok(())
}

#[tokio::test]
async fn persistent_znodes_end_at_their_limit_and_those_that_are_consumed_make_room() -> Result<()>
{
    let scene = Scene::new().await?;
    let seat = SeatLimits { persistent_znodes: 100, ..SeatLimits::default() };
    let guest = scene.hostile_in(Room { seat, ..Room::default() })?;
    let created = answered(&scene, &guest, "persist", json!({"count": 500})).await?.unwrap();
    // The directory is one.
    assert_eq!(created["count"], 99, "{created}");
    let error = created["error"]["over-limit"].as_str().unwrap_or_default();
    assert!(error.contains("limits.persistent-znodes"), "{created}");
    let items = format!("{}/items", scene.mount);
    for item in scene.admin.children(&items).await? {
        scene.admin.delete(&format!("{items}/{item}")).await?;
    }
    let created = answered(&scene, &guest, "persist", json!({"count": 50})).await?.unwrap();
    assert_eq!(created, json!({"count": 50}));
    Ok(())
}

#[tokio::test]
async fn too_much_data_is_answered_and_never_sent() -> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    for bytes in [1_000_000, 2_000_000] {
        let refused = answered(&scene, &guest, "big-create", json!({"bytes": bytes})).await?;
        let refused = refused.unwrap_err();
        let text = refused["invalid"].as_str().unwrap_or_default();
        assert!(text.contains("the limit is 921600"), "{refused}");
    }
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    // What fits does so, and comes back.
    let fits = answered(&scene, &guest, "big-create", json!({"bytes": 900_000})).await?;
    assert_eq!(fits, Ok(json!(null)));
    let data = answered(&scene, &guest, "escape-get-data", json!({"path": "/big"})).await?;
    assert_eq!(data.unwrap().as_str().map(str::len), Some(900_000));
    let (fault, _) =
        scene.beside(scene.hostile()?.fault("big-create", json!({"bytes": 4_000_000}))).await?;
    assert!(fault.contains("bytes handed to the host in one call"), "{fault}");
    Ok(())
}

#[tokio::test]
async fn batches_beyond_their_bound_are_not_sent() -> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    let requests = scene.proxy.requests(&Match::any().under(&scene.mount)).len();
    let refused = answered(&scene, &guest, "big-multi", json!({"count": 1000})).await?;
    let text = refused.unwrap_err()["invalid"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("at most 128"), "{text}");
    let answered_well = answered(&scene, &guest, "big-pipeline", json!({"count": 900})).await?;
    assert_eq!(answered_well, Ok(json!(0)));
    assert_eq!(scene.proxy.requests(&Match::any().under(&scene.mount)).len(), requests);
    Ok(())
}

#[tokio::test]
async fn ephemeral_znodes_end_at_their_limit_and_go_with_the_participant() -> Result<()> {
    let scene = Scene::new().await?;
    let room =
        Room { seat: SeatLimits { znodes: 100, ..SeatLimits::default() }, ..Room::default() };
    let guest = scene.hostile_in(room)?;
    let created = answered(&scene, &guest, "create-flood", json!({"count": 500})).await?.unwrap();
    assert_eq!(created["count"], 100, "{created}");
    let error = created["error"]["over-limit"].as_str().unwrap_or_default();
    assert!(error.contains("limits.znodes"), "{created}");
    assert_eq!(scene.left_behind().await?.len(), 100);
    scene.beside(guest.leave()).await?;
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_directory_of_thousands_is_handed_out_in_batches() -> Result<()> {
    let scene = Scene::new().await?;
    let client = scene.admin.client();
    for hundred in 0..50 {
        let mut multi = client.new_multi_writer();
        for number in 0..100 {
            let path = format!("{}/a-child-with-a-long-name-{hundred}-{number}", scene.mount);
            multi.add_create(&path, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all()))?;
        }
        multi.commit().await?;
    }
    let guest = scene.hostile()?;
    // It asks for all at once; one batch is what it gets.
    assert_eq!(answered(&scene, &guest, "big-list", json!({})).await?, Ok(json!(4096)));
    Ok(())
}

#[tokio::test]
async fn lines_that_would_keep_the_host_busy_end_the_component() -> Result<()> {
    let scene = Scene::new().await?;
    for (lines, infixes, bytes, told) in [
        (5, 1, 8, "order: at most 4 lines are made of one list"),
        (1, 9, 8, "order: give at most 8 infixes"),
        (1, 1, 0, "each of 1 to 64 bytes"),
        (1, 1, 65, "each of 1 to 64 bytes"),
    ] {
        let body = json!({"lines": lines, "infixes": infixes, "bytes": bytes});
        let guest = scene.hostile()?;
        let (fault, _) = scene.beside(guest.fault("order-flood", body)).await?;
        assert!(fault.contains(told), "{fault}");
    }
    let most = json!({"lines": 4, "infixes": 8, "bytes": 64});
    assert_eq!(answered(&scene, &scene.hostile()?, "order-flood", most).await?, Ok(json!(null)));
    Ok(())
}
