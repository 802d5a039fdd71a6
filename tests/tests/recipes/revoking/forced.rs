//! Force, where it is agreed on: after its time, the one that was asked, and nobody else.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use wok::participant::{Ending, Loss, Notice};
use wok_tests::frames::Opcode;
use wok_tests::patience::within;
use wok_tests::proxy::Match;

use super::scene::{beside, by_release, open, path_of, revoke};

#[tokio::test]
async fn who_does_not_give_way_in_time_is_forced_and_told_that_it_has_lost() -> Result<()> {
    let scene = open("lock", by_release()).await?;
    let forceful = beside(&scene, "lock", json!({ "force-after-ms": 400 })).await?;
    let (holder, mut follower) = scene.stock.join()?;
    let (next, _nexts_follower) = scene.stock.join()?;
    let (urgent, _urgents_follower) = forceful.stock.join()?;
    let path = path_of(&scene.stock.call(&holder, "acquire").await?)?;
    let began = Instant::now();
    let waiting = scene.stock.call(&next, "acquire");
    let forcing = revoke(&forceful, &urgent, &path);
    let (granted, forced) = tokio::try_join!(waiting, forcing)?;
    assert_eq!(forced.value.unwrap(), "forced");
    // Time is what is promised here.
    assert!(began.elapsed().as_millis() >= 400);
    assert_ne!(path_of(&granted)?, path);
    let ended = async {
        while let Some(notice) = follower.next().await {
            if let Notice::Ended(ending) = notice {
                return Some(ending);
            }
        }
        None
    };
    let ending = within("the loss to be told", ended).await?.context("an end")?;
    assert!(matches!(ending, Ending::Lost(Loss::Znode { .. })), "{ending:?}");
    assert!(next.holds());
    Ok(())
}

#[tokio::test]
async fn who_gives_way_before_is_not_forced_and_neither_is_the_next() -> Result<()> {
    let scene = open("lock", json!({ "revocable": true })).await?;
    let forceful = beside(&scene, "lock", json!({ "force-after-ms": 3_600_000 })).await?;
    let (holder, _follower) = scene.stock.join()?;
    let (next, _nexts_follower) = scene.stock.join()?;
    let (urgent, _urgents_follower) = forceful.stock.join()?;
    let path = path_of(&scene.stock.call(&holder, "acquire").await?)?;
    let waiting = scene.stock.call(&next, "acquire");
    let asking = revoke(&forceful, &urgent, &path);
    let (granted, asked) = tokio::try_join!(waiting, asking)?;
    assert_eq!(asked.value.unwrap(), "gone");
    granted.claim.context("the lock")?;
    assert!(next.holds() && !holder.holds());
    let deletes = forceful.proxy.requests(&Match::opcode(Opcode::Delete));
    assert!(deletes.is_empty(), "{deletes:?}");
    Ok(())
}

#[tokio::test]
async fn times_that_mean_nothing_are_refused_when_the_recipe_is_joined() -> Result<()> {
    for (config, told) in [
        (json!({ "force-after-ms": 0 }), "force-after-ms: 0 leaves no time"),
        (json!({ "consent": "at-once" }), "consent: nobody asks"),
    ] {
        for recipe in ["lock", "read-write-lock"] {
            let scene = open(recipe, config.clone()).await?;
            let (_participant, mut follower) = scene.stock.join()?;
            let ended = async {
                let mut last = None;
                while let Some(notice) = follower.next().await {
                    last = Some(format!("{notice:?}"));
                }
                last
            };
            let last = within("the participant to end", ended).await?.context("a last notice")?;
            assert!(last.contains(told), "{last}");
        }
    }
    Ok(())
}
