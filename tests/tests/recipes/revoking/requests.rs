//! Requests: what they cost, what they leave of the owner, and that none is missed.

use anyhow::{Context, Result};
use serde_json::json;
use wok_tests::frames::Opcode;
use wok_tests::losses;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Cut, Match};

use super::scene::{asked, beside, by_release, data, open, path_of, revoke};

#[tokio::test]
async fn a_lock_that_is_revocable_takes_as_many_requests_as_one_that_is_not() -> Result<()> {
    for config in [json!({}), json!({ "revocable": true })] {
        let scene = open("lock", config.clone()).await?;
        let (participant, _follower) = scene.stock.join()?;
        for operation in ["acquire", "acquire", "try-acquire"] {
            // The first of all makes the directory.
            scene.proxy.clear_log();
            scene.stock.call(&participant, operation).await?.claim.context("the lock")?;
            scene.until_watched().await?;
            scene.stock.call(&participant, "release").await?.value.unwrap();
        }
        let sent = scene.proxy.requests(&scene.about());
        let sent: Vec<Opcode> = sent.iter().map(|seen| seen.opcode).collect();
        let expected = [Opcode::Create2, Opcode::GetChildren2, Opcode::GetData, Opcode::Delete];
        assert_eq!(sent, expected, "{config}");
    }
    Ok(())
}

#[tokio::test]
async fn a_holder_that_consents_by_release_is_told_and_keeps_the_lock_until_then() -> Result<()> {
    let scene = open("lock", by_release()).await?;
    let (holder, mut its_follower) = scene.stock.join()?;
    let (urgent, _follower) = scene.stock.join()?;
    let path = path_of(&scene.stock.call(&holder, "acquire").await?)?;
    let owner = data(&scene, &path).await?;

    let answer = revoke(&scene, &urgent, &path).await?;
    assert_eq!(answer.value.unwrap(), "asked");
    assert_eq!(asked(&mut its_follower).await?, path);
    assert_eq!(data(&scene, &path).await?, format!("{owner}\n__REVOKE__"));
    let line = scene.stock.call(&urgent, "contenders").await?.value.unwrap();
    assert_eq!(line, json!([{ "path": path, "owner": owner, "is-holder": true }]));
    assert!(holder.holds());

    // Asked again it has nothing new to write.
    scene.proxy.clear_log();
    assert_eq!(revoke(&scene, &urgent, &path).await?.value.unwrap(), "asked");
    assert!(scene.proxy.requests(&Match::opcode(Opcode::SetData)).is_empty());
    scene.stock.call(&holder, "release").await?.value.unwrap();
    let gone = revoke(&scene, &urgent, &path).await?;
    assert_eq!(gone.value.unwrap_err(), "no-node");
    Ok(())
}

#[tokio::test]
async fn a_request_to_one_that_waits_is_told_when_its_turn_comes() -> Result<()> {
    let scene = open("lock", by_release()).await?;
    let (first, _its_follower) = scene.stock.join()?;
    let (second, mut follower) = scene.stock.join()?;
    let (urgent, _urgents_follower) = scene.stock.join()?;
    scene.stock.call(&first, "acquire").await?.claim.context("the lock")?;
    let waiting = scene.stock.call(&second, "acquire");
    let asking = async {
        let path = eventually("the second in line", async || {
            let line = scene.stock.call(&urgent, "contenders").await?.value.unwrap();
            Ok(line[1]["path"].as_str().map(str::to_owned))
        })
        .await?;
        assert_eq!(revoke(&scene, &urgent, &path).await?.value.unwrap(), "asked");
        scene.stock.call(&first, "release").await?.value.unwrap();
        anyhow::Ok(path)
    };
    let (granted, path) = tokio::try_join!(waiting, asking)?;
    assert_eq!(path_of(&granted)?, path);
    assert_eq!(asked(&mut follower).await?, path);
    assert!(second.holds());
    Ok(())
}

/// Between the create and the first read of the own znode nobody watches it.
#[tokio::test]
async fn a_request_before_the_first_look_is_not_missed() -> Result<()> {
    let scene = open("lock", by_release()).await?;
    let (holder, mut follower) = scene.stock.join()?;
    // The first of all makes the directory.
    scene.stock.call(&holder, "acquire").await?.value.unwrap();
    scene.stock.call(&holder, "release").await?.value.unwrap();
    // The list behind the create is on its way back while somebody asks.
    let listing = Match::opcode(Opcode::GetChildren2).under(&scene.path);
    let fault = scene.proxy.inject(listing, Action::StallReplies);
    let acquiring = scene.stock.call(&holder, "acquire");
    let asking = async {
        fault.struck().await?;
        let name = eventually("the contender", async || {
            Ok(scene.admin.children(&scene.path).await?.into_iter().next())
        })
        .await?;
        scene.admin.set(&format!("{}/{name}", scene.path), b"somebody\n__REVOKE__").await?;
        scene.proxy.heal();
        anyhow::Ok(format!("/{name}"))
    };
    let (granted, path) = tokio::try_join!(acquiring, asking)?;
    assert_eq!(path_of(&granted)?, path);
    assert_eq!(asked(&mut follower).await?, path);
    Ok(())
}

#[tokio::test]
async fn a_request_while_the_connection_is_lost_is_told_when_it_is_back() -> Result<()> {
    let scene = open("lock", by_release()).await?;
    let (holder, mut follower) = scene.stock.join()?;
    let path = path_of(&scene.stock.call(&holder, "acquire").await?)?;
    scene.proxy.refuse();
    scene.proxy.cut_all(Cut::Reset);
    scene.admin.set(&format!("{}{path}", scene.path), b"somebody\n__REVOKE__").await?;
    scene.proxy.welcome();
    assert_eq!(asked(&mut follower).await?, path);
    assert!(holder.holds());
    Ok(())
}

/// Curator's `Revoker` writes its word and nothing else.
#[tokio::test]
async fn a_request_that_takes_the_owners_place_is_heard_and_the_owner_written_back() -> Result<()> {
    for (format, word) in [("curator", "__REVOKE__"), ("kazoo", "unlock")] {
        let config = json!({ "revocable": true, "consent": "by-release", "format": format });
        let scene = open("lock", config).await?;
        let (holder, mut follower) = scene.stock.join()?;
        let path = path_of(&scene.stock.call(&holder, "acquire").await?)?;
        let owner = data(&scene, &path).await?;
        for _ in 0..2 {
            scene.admin.set(&format!("{}{path}", scene.path), word.as_bytes()).await?;
            assert_eq!(asked(&mut follower).await?, path);
            eventually("the owner to be written back", async || {
                Ok((data(&scene, &path).await? == format!("{owner}\n{word}")).then_some(()))
            })
            .await?;
        }
        // What it has written itself is no other request.
        scene.stock.call(&holder, "release").await?.value.unwrap();
        holder.leave();
        let left = async {
            let mut told = Vec::new();
            while let Some(notice) = follower.next().await {
                told.push(format!("{notice:?}"));
            }
            told
        };
        let left = within("the participant to end", left).await?;
        assert!(left.iter().all(|notice| !notice.contains("revoke-requested")), "{left:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_request_is_made_once_whichever_of_its_requests_or_replies_is_lost() -> Result<()> {
    let holding = open("lock", by_release()).await?;
    let (holder, mut follower) = holding.stock.join()?;
    let played = losses::each(&losses::EVERY, async |loss| {
        let path = path_of(&holding.stock.call(&holder, "acquire").await?)?;
        let owner = data(&holding, &path).await?;
        let asking = beside(&holding, "lock", json!({})).await?;
        let (urgent, _urgents_follower) = asking.stock.join()?;
        let fault = loss.befall(&asking.proxy, &asking.path);
        let answer = revoke(&asking, &urgent, &path).await?;
        assert_eq!(answer.value.unwrap(), "asked", "{loss}");
        assert_eq!(asked(&mut follower).await?, path, "{loss}");
        let (data, stat) =
            asking.admin.get(&format!("{}{path}", asking.path)).await?.context("the holder")?;
        assert_eq!(String::from_utf8(data)?, format!("{owner}\n__REVOKE__"));
        assert_eq!(stat.version, 1, "{loss}");
        holding.stock.call(&holder, "release").await?.value.unwrap();
        Ok(fault.has_struck())
    })
    .await?;
    // The read and the write.
    assert!(played >= 3 * 2, "only {played} faults struck");
    Ok(())
}

#[tokio::test]
async fn what_is_no_contender_and_ones_own_znode_are_not_asked() -> Result<()> {
    let scene = open("lock", json!({ "revocable": true })).await?;
    let (holder, _follower) = scene.stock.join()?;
    let own = path_of(&scene.stock.call(&holder, "acquire").await?)?;
    scene.admin.create(&format!("{}/config", scene.path), b"mine").await?;
    let shown = format!("{}{own}", scene.path);
    for path in ["/config", "/", "config", "/x-lock-0000000001/config", &own, &shown] {
        let refused = revoke(&scene, &holder, path).await?.value.unwrap_err();
        assert!(refused["invalid"].is_string(), "{path}: {refused}");
    }
    assert_eq!(data(&scene, "/config").await?, "mine");
    assert!(holder.holds());
    let gone = revoke(&scene, &holder, "/x-lock-0000000001").await?.value.unwrap_err();
    assert_eq!(gone, "no-node");
    Ok(())
}

#[tokio::test]
async fn a_contender_is_asked_by_the_path_that_its_holder_is_shown() -> Result<()> {
    let scene = open("lock", json!({ "revocable": true })).await?;
    let (holder, _follower) = scene.stock.join()?;
    let own = path_of(&scene.stock.call(&holder, "acquire").await?)?;
    let (other, _other_follower) = scene.stock.join()?;
    let shown = format!("{}{own}", scene.path);
    revoke(&scene, &other, &shown).await?.value.unwrap();
    scene.admin.wait_gone(&shown).await
}
