//! What the server refuses to give back: it is held as before, and can be given back later.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::scene::Scene;

/// What a recipe's participant does to come to own something, and to give it back.
struct Owning {
    recipe: &'static str,
    take: (&'static str, Value),
    give_back: &'static str,
    /// Whether who has it already is answered the same again.
    is_idempotent: bool,
}

fn all() -> [Owning; 8] {
    let owning =
        |recipe, take, give_back, is_idempotent| Owning { recipe, take, give_back, is_idempotent };
    let nothing = Value::Null;
    let instance = json!({ "name": "web", "address": "10.0.0.1:80", "metadata": [] });
    [
        owning("lock", ("acquire", nothing.clone()), "release", true),
        owning("read-write-lock", ("acquire-read", nothing.clone()), "release", true),
        owning("read-write-lock", ("acquire-write", nothing.clone()), "release", true),
        owning("multi-lock", ("acquire", json!({ "names": ["a", "b"] })), "release", true),
        owning("semaphore", ("acquire", json!({ "permits": 2 })), "release", true),
        owning("leader-election", ("volunteer", nothing), "resign", true),
        owning("group-membership", ("join", json!({ "name": "a", "data": "" })), "leave", false),
        owning("name-service", ("register", instance), "deregister", false),
    ]
}

#[tokio::test]
async fn what_the_server_does_not_let_go_is_held_as_before() -> Result<()> {
    for Owning { recipe, take: (take, with), give_back, is_idempotent } in all() {
        let scene = Scene::open(recipe).await?.configured(settings(recipe));
        let (owner, mut follower) = scene.stock.join()?;
        let taken = scene.value(&owner, take, with.clone()).await.context(recipe)?;
        let directories = directories(&scene).await?;
        for directory in &directories {
            scene.admin.let_children_go(directory, false).await?;
        }
        let refused = scene.value(&owner, give_back, Value::Null).await;
        let told = refused.expect_err("nobody may delete anything there").to_string();
        assert!(told.contains("no-auth"), "{recipe}: {told}");
        if is_idempotent {
            assert_eq!(scene.value(&owner, take, with).await.context(recipe)?, taken);
        }
        for directory in &directories {
            scene.admin.let_children_go(directory, true).await?;
        }
        scene.value(&owner, give_back, Value::Null).await.context(recipe)?;
        let told = scene.value(&owner, give_back, Value::Null).await.expect_err("it is given back");
        assert!(told.to_string().contains("invalid"), "{recipe}: {told}");
        drop(owner);
        while follower.next().await.is_some() {}
    }
    Ok(())
}

fn settings(recipe: &str) -> Value {
    match recipe {
        "semaphore" => json!({ "permits": 2 }),
        _ => json!({}),
    }
}

/// All that have ephemeral children.
async fn directories(scene: &Scene) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for znode in scene.admin.tree(&scene.path).await? {
        let directory = znode.path.rsplit_once('/').map(|(directory, _)| directory.to_owned());
        if znode.stat.ephemeral_owner != 0 {
            found.extend(directory);
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}
