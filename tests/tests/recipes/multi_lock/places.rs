//! What becomes of the other places when one of them is not there any more.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok::participant::{Follower, Participant};
use wok_tests::frames::Opcode;
use wok_tests::proxy::{Action, Match};
use wok_tests::scene::Scene;

/// The one in the line of `b`.
const AHEAD: &str = "_c_other-lock-0000000000";

/// The locks `a` and `b`, and somebody in the line of `b`, of which a participant wants both.
struct TwoLocks {
    scene: Scene,
    participant: Participant,
    _follower: Follower,
}

impl TwoLocks {
    async fn open() -> Result<Self> {
        let scene = Scene::open("multi-lock").await?;
        scene.admin.create(&format!("{}/b/{AHEAD}", scene.path), b"").await?;
        let (participant, follower) = scene.stock.join()?;
        Ok(TwoLocks { scene, participant, _follower: follower })
    }

    fn directory(&self, name: &str) -> String {
        format!("{}/{name}", self.scene.path)
    }

    async fn call(&self, operation: &str) -> Result<Result<Value, Value>> {
        let names = json!({ "names": ["b", "a"] });
        let answer = self.scene.stock.call_with(&self.participant, operation, &names).await?;
        assert_eq!(answer.claim.is_some(), answer.value.as_ref().is_ok_and(Value::is_array));
        Ok(answer.value)
    }

    /// Waits until the participant stands in both lines, and deletes its place in one of them.
    async fn delete_its_place(&self, name: &str) -> Result<()> {
        let second = self.directory("b");
        self.scene.admin.wait_children(&second, "two in line", |names| names.len() == 2).await?;
        let directory = self.directory(name);
        let names = self.scene.admin.children(&directory).await?;
        let own = names.iter().find(|name| *name != AHEAD).context("its place")?;
        self.scene.admin.delete(&format!("{directory}/{own}")).await
    }

    async fn the_one_ahead_goes(&self) -> Result<()> {
        self.scene.admin.delete(&format!("{}/{AHEAD}", self.directory("b"))).await
    }

    async fn nobody_is_left(&self) -> Result<()> {
        for name in ["a", "b"] {
            assert_eq!(
                self.scene.admin.children(&self.directory(name)).await?,
                Vec::<String>::new()
            );
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_wait_whose_first_place_was_deleted_fails_and_gives_the_second_back() -> Result<()> {
    let locks = TwoLocks::open().await?;
    let deleted = async {
        locks.delete_its_place("a").await?;
        locks.the_one_ahead_goes().await
    };
    let (answer, ()) = tokio::try_join!(locks.call("acquire"), deleted)?;
    assert_eq!(answer.unwrap_err(), "no-node");
    locks.nobody_is_left().await?;
    // It can ask again, and is not taken for one that holds.
    let granted = locks.call("acquire").await?.unwrap();
    assert_eq!(granted.as_array().map(Vec::len), Some(2));
    Ok(())
}

#[tokio::test]
async fn an_attempt_that_fails_leaves_nothing_though_one_of_its_places_was_deleted() -> Result<()> {
    let locks = TwoLocks::open().await?;
    // Its place for `b` is there, and it does not know yet that it is not the first.
    let second = Match::creates().under(&locks.directory("b"));
    locks.scene.proxy.inject(second, Action::StallReplies);
    let deleted = async {
        locks.delete_its_place("a").await?;
        locks.scene.proxy.heal();
        anyhow::Ok(())
    };
    let (answer, ()) = tokio::try_join!(locks.call("try-acquire"), deleted)?;
    assert_eq!(answer.unwrap(), json!({ "busy": "b" }));
    let multis = Match::opcode(Opcode::Multi).under(&locks.scene.path);
    assert_eq!(locks.scene.proxy.requests(&multis).len(), 1, "it was refused, and not sent again");
    locks.the_one_ahead_goes().await?;
    locks.nobody_is_left().await
}

#[tokio::test]
async fn the_fences_are_those_of_the_znodes_one_for_each_lock() -> Result<()> {
    let locks = TwoLocks::open().await?;
    locks.the_one_ahead_goes().await?;
    let granted = locks.call("acquire").await?.unwrap();
    let mut fences = Vec::new();
    for (grant, name) in granted.as_array().context("grants")?.iter().zip(["a", "b"]) {
        assert_eq!(grant["name"], name);
        let path = grant["path"].as_str().context("a path")?;
        let stat =
            locks.scene.admin.stat(&format!("{}{path}", locks.scene.path)).await?.context("it")?;
        assert_eq!(grant["fence"].as_u64(), Some(stat.czxid.unsigned_abs()), "{granted}");
        fences.push(stat.czxid);
    }
    assert!(fences[0] < fences[1], "they came one after the other");
    Ok(())
}
