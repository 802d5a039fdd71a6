//! Apps are told of a loss before anybody else can hold.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::admin::{self, Admin};
use wok_tests::api::{Client, Events, Serving, Setting, serve, serve_as};
use wok_tests::frames::{Opcode, SessionKey};
use wok_tests::patience::eventually;
use wok_tests::process::{Program, Signal};
use wok_tests::proxy::{Action, Cut, Direction, Match, Proxy};
use wok_tests::zookeeper;

use super::LOCK;
use super::ends::now_ms;

fn acquire() -> Value {
    json!({ "call": "acquire" })
}

const JOIN: &str = "/v1/recipes/orders/join";

#[tokio::test]
async fn a_znode_that_is_deleted_is_told_to_the_app_that_held_it() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let mut app = client.stream(JOIN, &acquire()).await?;
    let held = app.until("held").await?;
    let admin = Admin::connect(server.address()).await?;
    admin.delete(held["path"].as_str().unwrap()).await?;
    let lost = app.until("lost").await?;
    assert_eq!((&lost["reason"], &lost["cause"]), (&json!("znode-deleted"), &json!("deleted")));
    assert_eq!(app.until("ended").await?["how"], "lost");
    assert_eq!(app.next().await?, None);
    Ok(())
}

#[tokio::test]
async fn an_expired_session_is_told_to_every_app_and_the_next_join_has_another() -> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let serving = serve(proxy.address(), "", LOCK).await?;
    let client = serving.client();
    let mut holder = client.stream(JOIN, &acquire()).await?;
    let joined = holder.until("joined").await?;
    holder.until("held").await?;
    let mut waiter = client.stream(JOIN, &acquire()).await?;
    waiter.until("waiting").await?;
    // Another one may be there, which asks for the servers' tick.
    let sessions = proxy.sessions();
    let is_it = |it: &&SessionKey| joined["session"] == format!("{:#x}", it.id);
    let session = sessions.iter().find(is_it).with_context(|| format!("{sessions:?}"))?;
    // The host must not be back before the session is over: it would be told of its znode's deletion first.
    proxy.refuse();
    admin::expire(server.address(), session).await?;
    proxy.welcome();
    for app in [&mut holder, &mut waiter] {
        assert_eq!(app.until("lost").await?["reason"], "session");
        assert_eq!(app.until("ended").await?["how"], "lost");
    }
    let again = within_a_new_session(&client, &joined["session"]).await?;
    assert_ne!(again, joined["session"]);
    // Nothing of the old session is left, nor of the app of the new one, which has gone.
    let admin = Admin::connect(server.address()).await?;
    let directory = format!("{}/locks/orders", serving.root);
    admin.wait_children(&directory, "nobody to be left", <[_]>::is_empty).await?;
    Ok(())
}

/// Who called a recipe has joined nothing that could be joined again.
#[tokio::test]
async fn a_call_whose_session_ends_is_told_that_it_may_have_been_done() -> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let recipe = "[recipes.orders]\nmodule = \"counter\"\nmount = \"/orders\"\n";
    let serving = serve(proxy.address(), "", recipe).await?;
    let client = serving.client();
    let (call, one) = ("/v1/recipes/orders/call/add", json!({ "by": 1 }));
    let added = client.post(call, &one).await?;
    assert_eq!((added.status, &added.body), (200, &json!(1)), "{added:?}");
    let writes = Match::opcode(Opcode::Multi).under(&format!("{}/orders", serving.root));
    let written = proxy.inject(writes, Action::StallReplies);
    let adding = client.post(call, &one);
    let meanwhile = async {
        written.struck().await?;
        // As in the test above; and the reply that is held back must not come first.
        proxy.refuse();
        proxy.cut_all(Cut::Reset);
        for session in proxy.sessions() {
            // One that asked for the servers' tick may be over.
            admin::expire(server.address(), &session).await.ok();
        }
        proxy.welcome();
        anyhow::Ok(())
    };
    let (told, done) = tokio::join!(adding, meanwhile);
    done?;
    let told = told?;
    assert_eq!((told.status, &told.body["error"]), (410, &json!("ended")), "{told:?}");
    assert_eq!(told.body["reason"], "session", "{told:?}");
    let message = told.body["message"].as_str().unwrap();
    assert!(message.contains("may have been written, so look"), "{message}");
    assert!(!message.contains("join again"), "{message}");
    let admin = Admin::connect(server.address()).await?;
    let (count, _) = admin.get(&format!("{}/orders", serving.root)).await?.context("a counter")?;
    assert_eq!(count, 2_u64.to_be_bytes(), "it was done");
    Ok(())
}

/// Joins until there is another session than that one; answers which.
async fn within_a_new_session(client: &Client, old: &Value) -> Result<Value> {
    wok_tests::patience::eventually("another session", async || {
        // Refused as long as there is none.
        let Ok(mut app) = client.stream(JOIN, &acquire()).await else { return Ok(None) };
        let session = app.until("joined").await?["session"].clone();
        app.until("held").await?;
        Ok((session != *old).then_some(session))
    })
    .await
}

/// The guardian may end the command before the session is judged.
#[tokio::test]
async fn what_the_daemon_itself_holds_is_lost_and_not_left() -> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let recipes = "[recipes.scheduler]\nmodule = \"leader-election\"\nmount = \"/scheduler\"\n\
                   run = { call = \"volunteer\" }\nwhile-held = { exec = [\"sleep\", \"1000\"] }\n";
    let serving = serve(proxy.address(), "", recipes).await?;
    let client = serving.client();
    let id = wok_tests::patience::eventually("the leader", async || {
        let listed = client.get("/v1/participants").await?.body;
        let leader = &listed["participants"][0];
        let id = leader["participant"].as_str().map(str::to_owned);
        Ok(id.filter(|_| leader["state"] == "held"))
    })
    .await?;
    let path = format!("/v1/participants/{id}/events");
    let mut events = client.follow("GET", &path, &Value::Null).await?;
    events.until("joined").await?;
    proxy.stall(Direction::Both);
    assert_eq!(events.until("lost").await?["reason"], "session");
    assert_eq!(events.until("ended").await?["how"], "lost");
    // There is no other session as long as ZooKeeper cannot be reached.
    let ready = client.get("/readyz").await?;
    assert_eq!((ready.status, &ready.body["error"]), (503, &json!("unavailable")), "{ready:?}");
    Ok(())
}

/// A candidate learns when its turn comes that its place in line is gone.
#[tokio::test]
async fn who_waits_for_nothing_any_more_is_told_so_and_may_be_called_again() -> Result<()> {
    const JOIN: &str = "/v1/recipes/scheduler/join";
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let recipes = "[recipes.scheduler]\nmodule = \"leader-election\"\nmount = \"/scheduler\"\n";
    let serving = serve(server.address(), "", recipes).await?;
    let client = serving.client();
    let volunteer = json!({ "call": "volunteer" });
    let mut leader = client.stream(JOIN, &volunteer).await?;
    leader.until("held").await?;
    let mut app = client.stream(JOIN, &volunteer).await?;
    let id = app.until("joined").await?["participant"].as_str().unwrap().to_owned();
    app.until("waiting").await?;
    let hold = ["hold", "scheduler", "volunteer", "--socket"];
    let hold = Program::wok()?.args(hold).args([serving.socket()]).args(["--", "true"]).start()?;
    let election = format!("{}/scheduler", serving.root);
    let three = |now: &[String]| now.len() == 3;
    let mut line = admin.wait_children(&election, "three candidates", three).await?;
    // A candidate that does not watch another one yet is told that its znode is gone by `volunteer` itself.
    let is_behind = |one: &&Value| one["waiting"]["behind"].is_object();
    eventually("both to watch whom they wait for", async || {
        let list = client.get("/v1/participants").await?.body["participants"].clone();
        Ok((list.as_array().unwrap().iter().filter(is_behind).count() == 2).then_some(()))
    })
    .await?;
    line.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    for candidate in &line[1..] {
        admin.delete(&format!("{election}/{candidate}")).await?;
    }
    drop(leader);
    assert_eq!(app.until("recipe-event").await?["name"], "withdrawn");
    assert_eq!(app.next().await?.unwrap()["event"], "idle");
    let path = format!("/v1/participants/{id}");
    assert_eq!(client.get(&path).await?.body["state"], "joined");
    let mut beside = client.follow("GET", &format!("{path}/events"), &Value::Null).await?;
    beside.until("idle").await?;
    let ended = hold.ended().await?;
    assert_eq!(ended.code(), Some(75), "{ended:?}");
    assert!(ended.stderr.contains("waits for nothing any more"), "{}", ended.stderr);
    assert_eq!(client.post(&format!("{path}/volunteer"), &Value::Null).await?.status, 200);
    app.until("held").await?;
    Ok(())
}

#[tokio::test]
async fn term_has_every_app_told_and_releases_all_that_is_held() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let mut holder = client.stream(JOIN, &acquire()).await?;
    holder.until("held").await?;
    let mut waiter = client.stream(JOIN, &acquire()).await?;
    waiter.until("waiting").await?;
    serving.daemon.signal(Signal::TERM)?;
    for app in [&mut holder, &mut waiter] {
        assert_eq!(app.until("ended").await?["how"], "left");
        assert_eq!(app.next().await?, None);
    }
    assert_eq!(serving.daemon.ended().await?.code(), Some(0));
    assert!(!serving.socket().exists(), "the socket's file stays behind");
    let admin = Admin::connect(server.address()).await?;
    let directory = format!("{}/locks/orders", serving.root);
    assert_eq!(admin.children(&directory).await?, Vec::<String>::new());
    Ok(())
}

/// Two daemons of one lock, on those servers.
async fn two_daemons(first: &str, second: &str) -> Result<(Serving, Serving)> {
    let root = zookeeper::unique_path();
    let at = |connect| Setting { connect, root: Some(&root), api: "" };
    tokio::try_join!(serve_as(at(first), LOCK), serve_as(at(second), LOCK))
}

fn deadline(line: &Value) -> Result<u64> {
    line["deadline-boottime-ms"].as_u64().with_context(|| format!("no deadline: {line}"))
}

/// How an app gives back what it holds.
#[derive(Debug, Clone, Copy)]
enum GivesBack {
    ByClosing,
    ByACall,
}

#[tokio::test]
async fn an_app_is_told_that_its_daemon_stops_before_another_host_can_hold() -> Result<()> {
    let server = zookeeper::shared().await;
    for way in [GivesBack::ByClosing, GivesBack::ByACall] {
        let (stopped, other) = two_daemons(server.address(), server.address()).await?;
        let mut holder = stopped.client().stream(JOIN, &acquire()).await?;
        let held = holder.until("held").await?;
        let mut next = other.client().stream(JOIN, &acquire()).await?;
        next.until("waiting").await?;
        stopped.daemon.signal(Signal::TERM)?;
        let told = async {
            let leaving = holder.until("leaving").await?;
            let told = std::time::Instant::now();
            give_back(&stopped.client(), holder, &leaving, way).await?;
            anyhow::Ok((leaving, told))
        };
        let next_held = async {
            let held = next.until("held").await?;
            anyhow::Ok((held, std::time::Instant::now()))
        };
        let ((leaving, told), (next_held, at)) = tokio::try_join!(told, next_held)?;
        assert!(told < at, "{way:?}: {leaving} {next_held}");
        assert_eq!(leaving["message"], "the daemon stops", "{way:?}: {leaving}");
        assert!(deadline(&leaving)? >= deadline(&held)?, "{way:?}: {leaving} after {held}");
        assert_eq!(stopped.daemon.ended().await?.code(), Some(0), "{way:?}");
    }
    Ok(())
}

async fn give_back(client: &Client, mut app: Events, told: &Value, way: GivesBack) -> Result<()> {
    match way {
        GivesBack::ByClosing => drop(app),
        GivesBack::ByACall => {
            let id = told["participant"].as_str().context("an id")?;
            let release = format!("/v1/participants/{id}/release");
            let released = client.post(&release, &Value::Null).await?;
            assert_eq!(released.status, 200, "{released:?}");
            assert_eq!(app.until("ended").await?["how"], "left");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_daemon_that_stops_keeps_what_an_app_was_told_that_goes_on() -> Result<()> {
    let server = zookeeper::shared().await;
    let (stopped, other) = two_daemons(server.address(), server.address()).await?;
    let join = format!("{JOIN}?alive=100ms");
    let mut holder = stopped.client().stream(&join, &acquire()).await?;
    let held = holder.until("held").await?;
    let mut next = other.client().stream(JOIN, &acquire()).await?;
    next.until("waiting").await?;
    stopped.daemon.signal(Signal::TERM)?;
    let goes_on = async {
        let mut told = vec![deadline(&held)?];
        let mut leaving = None;
        while let Some(line) = holder.next().await? {
            match line["event"].as_str() {
                Some("leaving") => leaving = Some(deadline(&line)?),
                // No line moves the deadline any more.
                _ if leaving.is_some() => {
                    assert_eq!(line["deadline-boottime-ms"], Value::Null, "{line}");
                }
                _ => told.extend(line["deadline-boottime-ms"].as_u64()),
            }
        }
        let until = leaving.context("it was not told that it is to end")?;
        assert!(told.iter().all(|told| *told <= until), "{told:?}, and {until} in the end");
        anyhow::Ok(until)
    };
    let next_held = async {
        next.until("held").await?;
        anyhow::Ok(now_ms())
    };
    let (until, at) = tokio::try_join!(goes_on, next_held)?;
    assert!(at >= until, "the next one holds at {at}, and the app may until {until}");
    assert_eq!(stopped.daemon.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_killed_daemon_is_an_end_of_the_stream_long_before_its_session_ends() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let mut holder = client.stream(JOIN, &acquire()).await?;
    let held = holder.until("held").await?;
    serving.daemon.signal(Signal::KILL)?;
    // It breaks off, which no stream does that ends in order.
    let broken = async {
        while holder.next().await?.is_some() {}
        anyhow::Ok(())
    };
    assert!(broken.await.is_err(), "the stream ended in order");
    let admin = Admin::connect(server.address()).await?;
    let path = held["path"].as_str().unwrap();
    assert!(admin.stat(path).await?.is_some(), "the claim went before the app knew");
    // The socket's file is another daemon's to take over, once the kernel has ended this one.
    serving.daemon.exit().await?;
    let config = serving.directory().join("wok.toml");
    let next = wok_tests::process::Program::wok()?.arg("run").arg(config).start()?;
    next.wait_for_text("the API is served").await?;
    admin.wait_gone(path).await?;
    next.signal(Signal::TERM)?;
    next.ended().await?;
    Ok(())
}

#[tokio::test]
async fn an_app_hears_of_a_loss_before_another_host_can_hold() -> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let (cut_off, other) = two_daemons(proxy.address(), server.address()).await?;
    let mut holder = cut_off.client().stream(JOIN, &acquire()).await?;
    let held = holder.until("held").await?;
    assert!(held["deadline-boottime-ms"].as_u64() > Some(0), "{held}");
    let mut next = other.client().stream(JOIN, &acquire()).await?;
    next.until("waiting").await?;
    proxy.stall(Direction::Both);
    let told = async {
        holder.until("suspended").await?;
        let lost = holder.until("lost").await?;
        anyhow::Ok((lost, std::time::Instant::now()))
    };
    let held = async {
        let held = next.until("held").await?;
        anyhow::Ok((held, std::time::Instant::now()))
    };
    let ((lost, told), (held, at)) = tokio::try_join!(told, held)?;
    assert_eq!(lost["reason"], "session", "{lost}");
    assert!(told < at, "{lost} {held}");
    // Nothing is left but the claim of the next one.
    let admin = Admin::connect(server.address()).await?;
    let claim = held["path"].as_str().context("a path")?;
    let (directory, _) = claim.rsplit_once('/').context("a parent")?;
    admin
        .wait_children(directory, "the next one alone", |names| {
            names.iter().map(|name| format!("{directory}/{name}")).eq([claim])
        })
        .await?;
    Ok(())
}
