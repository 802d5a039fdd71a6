//! A stock lock at a fresh path, in the test's own process, with a session behind a proxy.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok::participant::{Answer, Follower, Notice, Participant};
use wok_tests::admin::Admin;
use wok_tests::patience::within;
use wok_tests::proxy::{Match, Proxy};
use wok_tests::stock::Stock;
use wok_tests::zookeeper;

/// Settings of a holder that is told, and gives the lock back when its application says so.
pub(super) fn by_release() -> Value {
    json!({ "revocable": true, "consent": "by-release" })
}

pub(super) struct Scene {
    pub(super) stock: Stock,
    /// The lock's directory.
    pub(super) path: String,
    pub(super) proxy: Proxy,
    pub(super) admin: Admin,
}

impl Scene {
    pub(super) async fn open(recipe: &str, config: Value) -> Result<Self> {
        let path = zookeeper::unique_path();
        Scene::open_at(recipe, config, path).await
    }

    pub(super) async fn open_at(recipe: &str, config: Value, path: String) -> Result<Self> {
        let server = zookeeper::shared().await;
        let proxy = Proxy::start(server.address())?;
        let admin = Admin::connect(server.address()).await?;
        let stock = Stock::open(proxy.address(), recipe, &path).await?.configured(config);
        Ok(Scene { stock, path, proxy, admin })
    }

    /// Another one at the same path, with a session and settings of its own.
    pub(super) async fn beside(&self, recipe: &str, config: Value) -> Result<Self> {
        Scene::open_at(recipe, config, self.path.clone()).await
    }

    pub(super) async fn call(&self, participant: &Participant, operation: &str) -> Result<Answer> {
        self.stock.call(participant, operation).await
    }

    pub(super) async fn revoke(&self, participant: &Participant, path: &str) -> Result<Answer> {
        self.stock.call_with(participant, "revoke", &json!({ "path": path })).await
    }

    pub(super) fn about(&self) -> Match {
        Match::any().under(&self.path)
    }

    /// The data of a contender, by its path as the recipe tells it.
    pub(super) async fn data(&self, path: &str) -> Result<String> {
        let read = self.admin.get(&format!("{}{path}", self.path)).await?;
        Ok(String::from_utf8(read.context("the contender's znode")?.0)?)
    }
}

/// The path of a grant, as the recipe tells it.
pub(super) fn path_of(answer: &Answer) -> Result<String> {
    let grant = answer.value.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(grant["path"].as_str().with_context(|| grant.to_string())?.to_owned())
}

/// Waits until the participant tells a request; answers the path that it names.
pub(super) async fn asked(follower: &mut Follower) -> Result<String> {
    let told = async {
        while let Some(notice) = follower.next().await {
            if let Notice::Emitted { event, detail } = notice
                && event == "revoke-requested"
            {
                return detail.into_iter().find(|(name, _)| name == "path").map(|(_, path)| path);
            }
        }
        None
    };
    within("a request to be told", told).await?.context("the participant ended")
}
