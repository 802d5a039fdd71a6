//! The read-write lock: readers are asked as writers are, and a downgrade loses no request.

use anyhow::{Context, Result};
use serde_json::json;
use wok_tests::frames::Opcode;
use wok_tests::patience::eventually;
use wok_tests::proxy::Action;

use super::scene::{asked, by_release, data, open, path_of, revoke};

const RECIPE: &str = "read-write-lock";

#[tokio::test]
async fn readers_that_are_asked_give_way_to_a_writer() -> Result<()> {
    let scene = open(RECIPE, json!({ "revocable": true })).await?;
    let (one, mut its_follower) = scene.stock.join()?;
    let (other, mut others_follower) = scene.stock.join()?;
    let (writer, _writers_follower) = scene.stock.join()?;
    let (urgent, _urgents_follower) = scene.stock.join()?;
    let first = path_of(&scene.stock.call(&one, "acquire-read").await?)?;
    let second = path_of(&scene.stock.call(&other, "acquire-read").await?)?;
    let writing = scene.stock.call(&writer, "acquire-write");
    let asking = async {
        for path in [&first, &second] {
            assert_eq!(revoke(&scene, &urgent, path).await?.value.unwrap(), "asked");
        }
        assert_eq!(asked(&mut its_follower).await?, first);
        assert_eq!(asked(&mut others_follower).await?, second);
        anyhow::Ok(())
    };
    let (granted, ()) = tokio::try_join!(writing, asking)?;
    granted.claim.context("the lock")?;
    assert!(writer.holds() && !one.holds() && !other.holds());
    Ok(())
}

#[tokio::test]
async fn a_writer_that_was_asked_is_asked_as_a_reader_too() -> Result<()> {
    let scene = open(RECIPE, by_release()).await?;
    let (holder, mut follower) = scene.stock.join()?;
    let (urgent, _urgents_follower) = scene.stock.join()?;
    let writing = path_of(&scene.stock.call(&holder, "acquire-write").await?)?;
    let owner = data(&scene, &writing).await?;
    revoke(&scene, &urgent, &writing).await?.value.unwrap();
    assert_eq!(asked(&mut follower).await?, writing);
    let reading = path_of(&scene.stock.call(&holder, "downgrade").await?)?;
    assert_ne!(reading, writing);
    assert_eq!(data(&scene, &reading).await?, format!("{owner}\n__REVOKE__"));
    assert_eq!(asked(&mut follower).await?, reading);
    assert!(holder.holds());
    Ok(())
}

/// The request comes when the holder has read its znode and not yet replaced it.
#[tokio::test]
async fn a_request_in_the_middle_of_a_downgrade_is_not_lost() -> Result<()> {
    let scene = open(RECIPE, by_release()).await?;
    let (holder, mut follower) = scene.stock.join()?;
    let writing = path_of(&scene.stock.call(&holder, "acquire-write").await?)?;
    // The first multi does not arrive until the request is there.
    let is_multi = scene.about().and(|seen| seen.opcode == Opcode::Multi);
    let fault = scene.proxy.inject(is_multi, Action::StallRequests);
    let downgrading = scene.stock.call(&holder, "downgrade");
    let asking = async {
        fault.struck().await?;
        scene.admin.set(&format!("{}{writing}", scene.path), b"somebody\n__REVOKE__").await?;
        scene.proxy.heal();
        anyhow::Ok(())
    };
    let (downgraded, ()) = tokio::try_join!(downgrading, asking)?;
    let reading = path_of(&downgraded)?;
    assert_eq!(data(&scene, &reading).await?, "somebody\n__REVOKE__");
    eventually("the reader to be told", async || {
        Ok((asked(&mut follower).await? == reading).then_some(()))
    })
    .await?;
    assert!(holder.holds());
    Ok(())
}

#[tokio::test]
async fn a_read_write_lock_that_is_revocable_takes_as_many_requests() -> Result<()> {
    let scene = open(RECIPE, json!({ "revocable": true })).await?;
    let (participant, _follower) = scene.stock.join()?;
    for operation in ["acquire-read", "acquire-write", "acquire-read"] {
        scene.proxy.clear_log();
        scene.stock.call(&participant, operation).await?.claim.context("the lock")?;
        scene.until_watched().await?;
        scene.stock.call(&participant, "release").await?.value.unwrap();
    }
    let sent = scene.proxy.requests(&scene.about());
    let sent: Vec<Opcode> = sent.iter().map(|seen| seen.opcode).collect();
    let expected = [Opcode::Create2, Opcode::GetChildren2, Opcode::GetData, Opcode::Delete];
    assert_eq!(sent, expected);
    Ok(())
}
