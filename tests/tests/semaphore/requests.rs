//! What it costs, counted by a proxy.

use anyhow::Result;
use serde_json::json;
use wok_tests::frames::Opcode;
use wok_tests::patience::eventually;
use wok_tests::proxy::{Action, Match, Proxy};
use wok_tests::stock::Stock;
use wok_tests::zookeeper;

#[tokio::test]
async fn acquire_and_release_are_six_requests_in_four_round_trips() -> Result<()> {
    let server = zookeeper::shared().await;
    let (proxy, path) = (Proxy::start(server.address())?, zookeeper::unique_path());
    let stock = Stock::open(proxy.address(), "semaphore", &path).await?;
    let stock = stock.configured(json!({ "permits": 1 }));
    let (participant, _follower) = stock.join()?;
    let about = || Match::any().under(&path);
    let sent =
        || -> Vec<Opcode> { proxy.requests(&about()).iter().map(|seen| seen.opcode).collect() };
    // The first of all makes the directories.
    stock.call(&participant, "acquire").await?.value.unwrap();
    stock.call(&participant, "release").await?.value.unwrap();
    proxy.clear_log();
    // While no reply to the transaction comes, the read that confirms it is sent all the same.
    proxy.inject(Match::opcode(Opcode::Multi).under(&path), Action::StallReplies);
    let acquired = stock.call(&participant, "acquire");
    let acquiring =
        [Opcode::Create2, Opcode::GetChildren2, Opcode::GetData, Opcode::Multi, Opcode::GetData];
    let let_go = async {
        eventually("all of it to be sent", async || {
            Ok((sent().len() >= acquiring.len()).then_some(()))
        })
        .await?;
        proxy.heal();
        anyhow::Ok(())
    };
    let (acquired, ()) = tokio::try_join!(acquired, let_go)?;
    assert!(acquired.claim.is_some(), "{acquired:?}");
    assert_eq!(sent(), acquiring);
    stock.call(&participant, "release").await?.value.unwrap();
    assert_eq!(sent()[acquiring.len()..], [Opcode::Multi]);
    Ok(())
}
