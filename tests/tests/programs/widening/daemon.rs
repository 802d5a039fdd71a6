//! The same in `wok run`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;
use wok_tests::admin::{self, Admin};
use wok_tests::patience::eventually;
use wok_tests::process::{Program, Signal};
use wok_tests::proxy::Proxy;
use wok_tests::{scratch, zookeeper};

/// Participants that fit on a session where each reserves 8 KiB of 80.
const PER_SESSION: usize = 10;

/// Recipes that the daemon keeps: five more than a session has room for.
const RECIPES: usize = PER_SESSION + 5;

/// Each recipe's claim: the session that owns its znode, and its fence.
async fn claims(admin: &Admin, root: &str) -> Result<Option<BTreeMap<usize, (i64, i64)>>> {
    let mut claims = BTreeMap::new();
    for recipe in 0..RECIPES {
        let mount = format!("{root}/{recipe:02}");
        let names = match admin.stat(&mount).await? {
            Some(_) => admin.children(&mount).await?,
            None => Vec::new(),
        };
        let [name] = names.as_slice() else { return Ok(None) };
        let Some(stat) = admin.stat(&format!("{mount}/{name}")).await? else { return Ok(None) };
        claims.insert(recipe, (stat.ephemeral_owner, stat.czxid));
    }
    Ok(Some(claims))
}

#[tokio::test]
async fn a_daemon_has_as_many_sessions_as_it_needs_and_starts_afresh_what_one_takes_along()
-> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let root = zookeeper::unique_path();
    let recipes: String = (0..RECIPES)
        .map(|recipe| {
            format!(
                "[recipes.r{recipe}]\nmodule = \"lock\"\nmount = \"/{recipe:02}\"\n\
                 limits.watched-paths = \"8KiB\"\nrun = {{ call = \"acquire\" }}\n"
            )
        })
        .collect();
    let directory = scratch::dir()?;
    let config = directory.path().join("wok.toml");
    let zookeeper = format!(
        "[zookeeper]\nconnect = \"{}\"\nroot = \"{root}\"\nsessions = 2\nacl = \"open\"\n",
        proxy.address()
    );
    fs::write(&config, zookeeper + &recipes)?;
    let running = Program::wok()?.args([Path::new("run"), &config]).start()?;

    let admin = Admin::connect(server.address()).await?;
    let before = eventually("all recipes to hold", async || claims(&admin, &root).await).await?;
    let sessions = proxy.sessions();
    let [stays, goes] = sessions.as_slice() else { panic!("two sessions in {sessions:?}") };
    let owned = |claims: &BTreeMap<usize, (i64, i64)>, by: i64| {
        claims.values().filter(|(owner, _)| *owner == by).count()
    };
    assert_eq!((owned(&before, stays.id), owned(&before, goes.id)), (PER_SESSION, 5));

    admin::expire(server.address(), goes).await?;
    running.wait_for_text("session lost").await?;
    let after = eventually("all recipes to hold again", async || {
        let claims = claims(&admin, &root).await?;
        Ok(claims.filter(|claims| owned(claims, goes.id) == 0))
    })
    .await?;
    for (recipe, claim) in &before {
        let is_the_same = after.get(recipe) == Some(claim);
        assert_eq!(is_the_same, claim.0 == stays.id, "recipe {recipe}: {claim:?}");
    }
    let lines = running.lines();
    // Not by the proxy: a host that is slow to be told of the end looks with a session of its own
    // whether there is a server at all.
    let connected = lines.iter().filter(|line| line.text.contains(" connected "));
    assert_eq!(connected.count(), 3, "{lines:#?}");
    let lost = lines
        .iter()
        .filter(|line| line.text.contains("session lost") && line.text.contains("open="));
    assert_eq!(lost.count(), 1);

    running.signal(Signal::TERM)?;
    let ended = running.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert_eq!(ended.stderr.matches("session ended").count(), 3, "{ended:?}");
    for recipe in 0..RECIPES {
        let left = admin.children(&format!("{root}/{recipe:02}")).await?;
        assert_eq!(left, Vec::<String>::new());
    }
    Ok(())
}
