//! What it costs, counted by a proxy, and what is refused without a request.

use anyhow::{Context, Result};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Match};
use wok_tests::scene::Scene;

#[tokio::test]
async fn acquire_and_release_are_four_requests_in_two_round_trips() -> Result<()> {
    let scene = Scene::open("read-write-lock").await?;
    let (participant, _follower) = scene.stock.join()?;
    for operation in ["acquire-read", "acquire-write", "try-acquire-read", "try-acquire-write"] {
        // The first of all makes the directory.
        scene.stock.call(&participant, "acquire-read").await?.value.unwrap();
        scene.stock.call(&participant, "release").await?.value.unwrap();
        scene.proxy.clear_log();
        // While no reply comes, all that one round trip takes is sent.
        scene.proxy.inject(scene.about(), Action::StallReplies);
        let acquired = scene.stock.call(&participant, operation);
        let let_go = async {
            scene.until_sent(2).await?;
            let first_trip = scene.sent();
            scene.proxy.heal();
            anyhow::Ok(first_trip)
        };
        let (acquired, first_trip) = tokio::try_join!(acquired, let_go)?;
        assert!(acquired.claim.is_some(), "{operation}: {acquired:?}");
        assert_eq!(first_trip, [Opcode::Create2, Opcode::GetChildren2], "{operation}");
        scene.until_watched().await?;
        scene.stock.call(&participant, "release").await?.value.unwrap();
        // The watch on the own znode is armed some time after the grant; nobody waits for it.
        let expected = [Opcode::Create2, Opcode::GetChildren2, Opcode::GetData, Opcode::Delete];
        assert_eq!(scene.sent(), expected, "{operation}");
    }
    Ok(())
}

#[tokio::test]
async fn an_upgrade_is_refused_at_once_and_costs_nothing() -> Result<()> {
    let scene = Scene::open("read-write-lock").await?;
    let (one, _its_follower) = scene.stock.join()?;
    let (other, _the_others) = scene.stock.join()?;
    for participant in [&one, &other] {
        scene.stock.call(participant, "acquire-read").await?.value.unwrap();
    }
    let creates = || scene.proxy.requests(&Match::creates().under(&scene.path)).len();
    let so_far = creates();
    for participant in [&one, &other] {
        for operation in ["acquire-write", "try-acquire-write"] {
            let before = scene.admin.children(&scene.path).await?;
            let refused = scene.stock.call(participant, operation).await?;
            let error = refused.value.unwrap_err();
            let told = error["invalid"].as_str().with_context(|| error.to_string())?;
            assert!(told.contains("release it first"), "{told}");
            assert!(refused.claim.is_some(), "{operation} gave the lock up");
            assert_eq!(scene.admin.children(&scene.path).await?, before);
        }
    }
    assert_eq!(creates(), so_far, "nobody stood in line to write");
    scene.stock.call(&other, "release").await?.value.unwrap();
    let again = scene.stock.call(&one, "downgrade").await?;
    assert_eq!(again.value.unwrap()["mode"], "read");
    Ok(())
}

#[tokio::test]
async fn a_downgrade_of_nothing_is_refused() -> Result<()> {
    let scene = Scene::open("read-write-lock").await?;
    let (participant, _follower) = scene.stock.join()?;
    let refused = scene.stock.call(&participant, "downgrade").await?;
    assert_eq!(refused.value.unwrap_err()["invalid"], "downgrade: the lock is not held");
    assert_eq!(scene.sent(), []);
    Ok(())
}

#[tokio::test]
async fn a_downgrade_is_one_round_trip_though_something_depends_on_the_claim() -> Result<()> {
    let scene = Scene::open("read-write-lock").await?;
    let (participant, _follower) = scene.stock.join()?;
    let writing =
        scene.stock.call(&participant, "acquire-write").await?.claim.context("the lock")?;
    // As for a command: a claim that is given up waits for what depends on it.
    let _command = participant.depend(&writing).context("the lock")?;
    // Behind it: a writer that must not get in.
    let behind = format!("{}/_c_later-__WRIT__0000000001", scene.path);
    scene.admin.create(&behind, b"").await?;
    scene.until_watched().await?;
    scene.proxy.clear_log();
    scene.proxy.inject(scene.about(), Action::StallReplies);
    let downgraded = scene.stock.call(&participant, "downgrade");
    let let_go = async {
        scene.until_sent(2).await?;
        let one_trip = scene.sent();
        scene.proxy.heal();
        anyhow::Ok(one_trip)
    };
    let (downgraded, one_trip) = tokio::try_join!(downgraded, let_go)?;
    assert_eq!(one_trip, [Opcode::Multi, Opcode::GetData]);
    assert_eq!(scene.sent(), one_trip);
    let reading = downgraded.claim.context("the lock")?;
    assert_eq!(reading.path, writing.path.replace("__WRIT__", "__READ__"));
    assert!(reading.fence > writing.fence);
    let stat = scene.admin.stat(&reading.path).await?.context("the reader's znode")?;
    assert_eq!(stat.czxid.unsigned_abs(), reading.fence);
    assert!(scene.admin.stat(&writing.path).await?.is_none());
    assert!(participant.holds());
    Ok(())
}

#[tokio::test]
async fn readers_that_give_back_at_once_do_not_wait_for_what_confirms_their_claims() -> Result<()> {
    // More than may read at a time what nobody knows the size of.
    const READERS: usize = 24;
    let scene = Scene::open("read-write-lock").await?;
    let (writer, _follower) = scene.stock.join()?;
    scene.stock.call(&writer, "acquire-write").await?.value.unwrap();
    scene.until_watched().await?;
    let readers: Vec<_> = (0..READERS).map(|_| scene.stock.join()).collect::<Result<_>>()?;
    // The writer's znode is read by the host for its claim, and for each reader.
    let waiting = 1 + READERS;
    // As many of the readers' claims may be confirmed at a time.
    let confirmed = async || {
        let sent = scene.sent().iter().filter(|it| **it == Opcode::GetData).count();
        Ok((sent >= waiting + 16).then_some(()))
    };
    let lines = readers.iter().map(|(reader, _)| async {
        scene.stock.call(reader, "acquire-read").await?.value.unwrap();
        eventually("the claims to be confirmed", confirmed).await?;
        scene.stock.call(reader, "release").await?.value.unwrap();
        anyhow::Ok(())
    });
    let hand_over = async {
        let about = Match::opcode(Opcode::GetData).under(&scene.path);
        eventually("all to wait", async || {
            Ok((scene.proxy.requests(&about).len() >= waiting).then_some(()))
        })
        .await?;
        // No reply comes to what confirms the readers' claims, until all have gone on without it.
        scene.proxy.inject(about, Action::StallReplies);
        scene.stock.call(&writer, "release").await?.value.unwrap();
        eventually("the claims to be confirmed", confirmed).await?;
        scene.proxy.heal();
        anyhow::Ok(())
    };
    let all = futures_util::future::try_join(futures_util::future::try_join_all(lines), hand_over);
    within("all readers to have been in and out", all).await??;
    Ok(())
}
