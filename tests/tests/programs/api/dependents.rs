//! A claim is kept for what an app runs under it, until the app has said that it is over.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::api::{Client, Events, serve};
use wok_tests::process::Signal;
use wok_tests::zookeeper;

use super::LOCK;

/// An app that runs something under its claim.
struct App {
    client: Client,
    stream: Events,
    /// The path of its participant.
    path: String,
}

impl App {
    async fn join(client: Client, options: &str) -> Result<App> {
        let path = format!("/v1/recipes/orders/join?dependent=true{options}");
        let body = json!({ "call": "acquire", "lease": "60s" });
        let mut stream = client.stream(&path, &body).await?;
        let joined = stream.until("joined").await?;
        let id = joined["participant"].as_str().context("a participant")?;
        Ok(App { path: format!("/v1/participants/{id}"), client, stream })
    }

    async fn ask(&self, method: &str, part: &str) -> Result<Value> {
        let answer = self.client.ask(method, &format!("{}{part}", self.path), &Value::Null).await?;
        anyhow::ensure!(answer.status < 300, "{method} {part}: {answer:?}");
        Ok(answer.body)
    }

    /// What it ran is over.
    async fn is_done(&self) -> Result<()> {
        self.ask("DELETE", "/dependent").await.map(drop)
    }
}

#[tokio::test]
async fn each_claim_of_an_app_is_kept_for_what_depends_on_it() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let serving = serve(server.address(), "", LOCK).await?;
    let mut app = App::join(serving.client(), "").await?;
    app.stream.until("held").await?;
    let client = serving.client();
    let (own, release) = (app.path.clone(), format!("{}/release", app.path));
    let release = client.post(&release, &Value::Null);
    let stops = async {
        app.stream.until("released").await?;
        app.is_done().await
    };
    let (released, stopped) = tokio::join!(release, stops);
    assert_eq!(released?.status, 200);
    stopped?;
    // Once more, by the same participant: what it said was about the claim before.
    app.ask("POST", "/acquire").await?;
    let held = app.stream.until("held").await?;
    let znode = held["path"].as_str().context("a path")?;
    let ends = client.ask("DELETE", &own, &Value::Null);
    let stops = async {
        app.stream.until("leaving").await?;
        assert!(admin.stat(znode).await?.is_some(), "something depends on it");
        app.is_done().await
    };
    let (ended, stopped) = tokio::join!(ends, stops);
    stopped?;
    assert_eq!(ended?.status, 204);
    admin.wait_gone(znode).await
}

#[tokio::test]
async fn who_follows_a_participant_is_told_that_it_is_to_end() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let mut app = App::join(serving.client(), "").await?;
    app.stream.until("held").await?;
    let (client, own) = (serving.client(), app.path.clone());
    let events = format!("{own}/events");
    let mut beside = client.follow("GET", &events, &Value::Null).await?;
    beside.until("held").await?;
    let mut all = client.follow("GET", "/v1/events", &Value::Null).await?;
    let ends = client.ask("DELETE", &own, &Value::Null);
    let follows = async {
        let told = app.stream.until("leaving").await?;
        for follower in [&mut beside, &mut all] {
            let line = follower.until("leaving").await?;
            assert_eq!(line["message"], told["message"], "{line}");
            assert_eq!(line["participant"], told["participant"], "{line}");
        }
        // Who comes only now is told where it stands.
        let mut late = client.follow("GET", &events, &Value::Null).await?;
        late.until("leaving").await?;
        app.is_done().await?;
        late.until("ended").await
    };
    let (ended, followed) = tokio::join!(ends, follows);
    followed?;
    assert_eq!(ended?.status, 204);
    Ok(())
}

#[tokio::test]
async fn who_joins_a_daemon_that_is_stopping_is_told_so() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    // What depends on the claim keeps the daemon from ending.
    let mut app = App::join(serving.client(), "").await?;
    app.stream.until("held").await?;
    serving.daemon.signal(Signal::TERM)?;
    app.stream.until("leaving").await?;
    for path in ["/v1/recipes/orders/join", "/v1/recipes/orders/call/contenders"] {
        let refused = serving.client().post(path, &Value::Null).await?;
        assert_eq!((refused.status, &refused.body["error"]), (503, &json!("unavailable")));
        assert_eq!(refused.body["message"], "this daemon is stopping", "{path}");
    }
    app.is_done().await?;
    app.stream.until("ended").await?;
    assert_eq!(serving.daemon.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_deadline_that_a_renewal_told_is_waited_for_as_well() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let serving = serve(server.address(), "", LOCK).await?;
    // The stream tells nothing more than that it is held.
    let mut app = App::join(serving.client(), "&alive=30s").await?;
    let held = app.stream.until("held").await?;
    let znode = held["path"].as_str().context("a path")?.to_owned();
    let deadline = |told: &Value| told["deadline-boottime-ms"].as_u64().context("a deadline");
    let (first, own) = (deadline(&held)?, app.path.clone());
    let told = wok_tests::patience::eventually("a later deadline", async || {
        let renewed = deadline(&app.ask("PUT", "/lease").await?["held"])?;
        Ok((renewed > first + 1_000).then_some(renewed))
    })
    .await?;
    let client = serving.client();
    let ends = client.ask("DELETE", &own, &Value::Null);
    let stands = async {
        app.stream.until("leaving").await?;
        // None is told any more: what is held is being given up.
        assert_eq!(app.ask("GET", "").await?["held"], Value::Null);
        admin.wait_gone(&znode).await?;
        anyhow::Ok(wok::clock::Boottime::now().as_nanos() / 1_000_000)
    };
    let (ended, gone) = tokio::join!(ends, stands);
    assert_eq!(ended?.status, 204);
    let gone = gone?;
    assert!(gone > told, "gone at {gone}, and the app may rely on it until {told}");
    Ok(())
}
