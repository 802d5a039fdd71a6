//! What it costs, counted by a proxy.

use anyhow::Result;
use serde_json::json;
use wok_tests::frames::Opcode;
use wok_tests::proxy::{Action, Match};
use wok_tests::scene::Scene;

#[tokio::test]
async fn acquire_and_release_are_six_requests_in_four_round_trips() -> Result<()> {
    let scene = Scene::open("semaphore").await?.configured(json!({ "permits": 1 }));
    let (participant, _follower) = scene.stock.join()?;
    // The first of all makes the directories.
    scene.stock.call(&participant, "acquire").await?.value.unwrap();
    scene.stock.call(&participant, "release").await?.value.unwrap();
    scene.proxy.clear_log();
    // While no reply to the transaction comes, the read that confirms it is sent all the same.
    scene.proxy.inject(Match::opcode(Opcode::Multi).under(&scene.path), Action::StallReplies);
    let acquired = scene.stock.call(&participant, "acquire");
    let acquiring =
        [Opcode::Create2, Opcode::GetChildren2, Opcode::GetData, Opcode::Multi, Opcode::GetData];
    let let_go = async {
        scene.until_sent(acquiring.len()).await?;
        scene.proxy.heal();
        anyhow::Ok(())
    };
    let (acquired, ()) = tokio::try_join!(acquired, let_go)?;
    assert!(acquired.claim.is_some(), "{acquired:?}");
    assert_eq!(scene.sent(), acquiring);
    scene.stock.call(&participant, "release").await?.value.unwrap();
    assert_eq!(scene.sent()[acquiring.len()..], [Opcode::Multi]);
    Ok(())
}
