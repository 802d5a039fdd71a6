//! What these tests do to a stock lock, and look at.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok::participant::{Answer, Follower, Notice, Participant};
use wok_tests::patience::within;
use wok_tests::scene::Scene;

/// Settings of a holder that is told, and gives the lock back when its application says so.
pub(super) fn by_release() -> Value {
    json!({ "revocable": true, "consent": "by-release" })
}

pub(super) async fn open(recipe: &str, config: Value) -> Result<Scene> {
    Ok(Scene::open(recipe).await?.configured(config))
}

/// Another recipe at the same path, with a session and settings of its own.
pub(super) async fn beside(scene: &Scene, recipe: &str, config: Value) -> Result<Scene> {
    Ok(Scene::open_at(recipe, scene.path.clone()).await?.configured(config))
}

pub(super) async fn revoke(scene: &Scene, participant: &Participant, path: &str) -> Result<Answer> {
    scene.stock.call_with(participant, "revoke", &json!({ "path": path })).await
}

/// The data of a contender, by its path as the recipe tells it.
pub(super) async fn data(scene: &Scene, path: &str) -> Result<String> {
    let read = scene.admin.get(&format!("{}{path}", scene.path)).await?;
    Ok(String::from_utf8(read.context("the contender's znode")?.0)?)
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
