//! What it costs, counted by a proxy.

use anyhow::Result;
use serde_json::json;
use wok_tests::frames::Opcode;
use wok_tests::proxy::{Action, Match};
use wok_tests::scene::Scene;

const STAND: [Opcode; 2] = [Opcode::Create2, Opcode::GetChildren2];

#[tokio::test]
async fn each_lock_is_three_requests_and_all_are_given_back_by_one_more() -> Result<()> {
    let scene = Scene::open("multi-lock").await?;
    let (participant, _follower) = scene.stock.join()?;
    let names = json!({ "names": ["c", "a", "b"] });
    for operation in ["acquire", "try-acquire"] {
        // The first of all makes the directories.
        scene.stock.call_with(&participant, "acquire", &names).await?.value.unwrap();
        scene.stock.call(&participant, "release").await?.value.unwrap();
        scene.proxy.clear_log();
        // While no reply to the first read comes, all that one round trip takes is sent.
        let reads = Match::opcode(Opcode::GetData).under(&scene.path);
        scene.proxy.inject(reads, Action::StallReplies);
        let acquired = scene.stock.call_with(&participant, operation, &names);
        let let_go = async {
            scene.until_sent(3 * STAND.len() + 2).await?;
            let before_the_answer = scene.sent();
            scene.proxy.heal();
            anyhow::Ok(before_the_answer)
        };
        let (acquired, before_the_answer) = tokio::try_join!(acquired, let_go)?;
        assert!(acquired.claim.is_some(), "{operation}: {acquired:?}");
        let stood = [STAND, STAND, STAND].concat();
        let confirmed = [stood.as_slice(), &[Opcode::GetData; 2]].concat();
        assert_eq!(before_the_answer, confirmed, "{operation}");
        scene.until_watched().await?;
        scene.stock.call(&participant, "release").await?.value.unwrap();
        // The list has just shown the last place: it is watched some time after the answer.
        let all = [confirmed.as_slice(), &[Opcode::GetData, Opcode::Multi]].concat();
        assert_eq!(scene.sent(), all, "{operation}");
    }
    Ok(())
}

#[tokio::test]
async fn one_lock_costs_what_a_plain_lock_costs() -> Result<()> {
    let scene = Scene::open("multi-lock").await?;
    let (participant, _follower) = scene.stock.join()?;
    let names = json!({ "names": ["a"] });
    for _ in 0..2 {
        scene.proxy.clear_log();
        scene.stock.call_with(&participant, "acquire", &names).await?.value.unwrap();
        scene.until_watched().await?;
        scene.stock.call(&participant, "release").await?.value.unwrap();
    }
    let claimed = [Opcode::GetData, Opcode::Multi];
    assert_eq!(scene.sent(), [STAND, claimed].concat());
    Ok(())
}

#[tokio::test]
async fn an_attempt_that_fails_goes_no_further_and_leaves_by_one_transaction() -> Result<()> {
    let scene = Scene::open("multi-lock").await?;
    let (participant, _follower) = scene.stock.join()?;
    let ahead = format!("{}/b/_c_other-lock-0000000000", scene.path);
    scene.admin.create(&ahead, b"").await?;
    let names = json!({ "names": ["c", "b", "a"] });
    for _ in 0..2 {
        scene.proxy.clear_log();
        let busy = scene.stock.call_with(&participant, "try-acquire", &names).await?;
        assert_eq!(busy.value.unwrap(), json!({ "busy": "b" }));
        assert!(busy.claim.is_none());
    }
    assert_eq!(scene.sent(), [&STAND[..], &STAND, &[Opcode::Multi]].concat());
    let left = scene.admin.tree(&scene.path).await?;
    let left: Vec<_> = left.iter().filter(|it| it.stat.ephemeral_owner != 0).collect();
    assert!(left.is_empty(), "{left:?}");
    Ok(())
}

#[tokio::test]
async fn who_holds_is_answered_again_or_refused_without_a_request() -> Result<()> {
    let scene = Scene::open("multi-lock").await?;
    let (participant, _follower) = scene.stock.join()?;
    let names = json!({ "names": ["a", "b"] });
    let first = scene.stock.call_with(&participant, "acquire", &names).await?.value.unwrap();
    let creates = || scene.proxy.requests(&Match::creates().under(&scene.path)).len();
    let so_far = creates();
    let other_order = json!({ "names": ["b", "a"] });
    let again = scene.stock.call_with(&participant, "acquire", &other_order).await?;
    assert_eq!(again.value.unwrap(), first);
    let again = scene.stock.call_with(&participant, "try-acquire", &names).await?;
    assert_eq!(again.value.unwrap(), json!({ "granted": first }));
    for others in [json!(["a"]), json!(["a", "b", "c"]), json!(["c"])] {
        let others = json!({ "names": others });
        let refused = scene.stock.call_with(&participant, "acquire", &others).await?;
        let error = refused.value.unwrap_err();
        assert!(error["invalid"].as_str().unwrap().contains("holds other locks"), "{error}");
        assert!(refused.claim.is_some(), "it gave its locks up");
    }
    assert_eq!(creates(), so_far, "nobody stood in line");
    Ok(())
}
