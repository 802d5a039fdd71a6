//! Requests to give way between wok and Curator's `Revoker` and its revocable `InterProcessMutex`.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::patience::eventually;
use wok_tests::peers::Peer;
use wok_tests::process::{Ended, Program, Running};
use wok_tests::stock::Stock;
use wok_tests::zookeeper;

/// `wok hold` of a lock that is revocable, until it gives way.
async fn hold(path: &str, settings: &[&str]) -> Result<Running> {
    let settings = settings.iter().flat_map(|setting| ["--config", setting]);
    let held = Program::wok()?
        .args(["hold", "lock", "--mount", path, "--session-timeout", "4s"])
        .args(["--connect", zookeeper::shared().await.address()])
        .args(settings)
        .args(["acquire", "--", "sleep", "3600"])
        .start()?;
    held.wait_for_text("holding").await?;
    Ok(held)
}

async fn call(path: &str, operation: &[&str]) -> Result<Ended> {
    Program::wok()?
        .args(["call", "lock", "--mount", path, "--output", "json"])
        .args(["--connect", zookeeper::shared().await.address()])
        .args(operation)
        .run()
        .await
}

/// Who is first in line, and who it says it is.
async fn first(path: &str) -> Result<(String, String)> {
    let told = call(path, &["contenders"]).await?;
    let line: Value = serde_json::from_str(&told.stdout).with_context(|| format!("{told:?}"))?;
    let text = |name: &str| line[0][name].as_str().map(str::to_owned);
    text("path").zip(text("owner")).with_context(|| line.to_string())
}

#[tokio::test]
async fn curators_revoker_asks_wok_and_wok_gives_way() -> Result<()> {
    let path = zookeeper::unique_path();
    let holder = hold(&path, &["revocable=true"]).await?;
    let mut curator = Peer::curator(zookeeper::shared().await.address()).await?;
    let (znode, _) = first(&path).await?;
    curator.call(&format!("lock revoke {path}{znode}")).await?;
    curator.call(&format!("lock acquire {path} curator")).await?;
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert!(ended.stderr.contains("revoke-requested"), "{ended:?}");
    curator.call("lock release").await?;
    Ok(())
}

/// The `Revoker` writes over the owner, which a holder that goes on holding puts back.
#[tokio::test]
async fn wok_still_says_who_it_is_when_curators_revoker_has_asked_it() -> Result<()> {
    let path = zookeeper::unique_path();
    let holder = hold(&path, &["revocable=true", "consent=by-release"]).await?;
    let mut curator = Peer::curator(zookeeper::shared().await.address()).await?;
    let (znode, owner) = first(&path).await?;
    assert!(!owner.is_empty());
    curator.call(&format!("lock revoke {path}{znode}")).await?;
    holder.wait_for_text("revoke-requested").await?;
    eventually("the owner to be told again", async || {
        Ok((first(&path).await? == (znode.clone(), owner.clone())).then_some(()))
    })
    .await?;
    assert_eq!(holder.status(), None);
    Ok(())
}

#[tokio::test]
async fn wok_asks_curators_revocable_mutex_and_curator_hears_it() -> Result<()> {
    let path = zookeeper::unique_path();
    let address = zookeeper::shared().await.address();
    let mut curator = Peer::curator(address).await?;
    curator.call(&format!("lock acquire-revocable {path}")).await?;
    curator.send("lock await-request")?;
    let stock = Stock::open(address, "lock", &path).await?;
    let (urgent, _follower) = stock.join()?;
    let (asking, _its_follower) = stock.join()?;
    let (znode, owner) = first(&path).await?;
    assert_eq!(owner, "", "Curator's revocable mutex says nothing of itself");
    assert!(!curator.has_answered());

    let waiting = stock.call(&urgent, "acquire");
    let revoking = async {
        let asked = stock.call_with(&asking, "revoke", &json!({ "path": znode })).await?;
        assert_eq!(asked.value.unwrap(), "asked");
        curator.answer().await?;
        let admin = Admin::connect(address).await?;
        let (data, _) = admin.get(&format!("{path}{znode}")).await?.context("its znode")?;
        assert_eq!(data, b"__REVOKE__", "what Curator compares with, to the byte");
        curator.call("lock release").await?;
        anyhow::Ok(())
    };
    let (granted, ()) = tokio::try_join!(waiting, revoking)?;
    granted.claim.context("the lock")?;
    Ok(())
}
