//! What ends an app's participant: its connection, its process, its lease. Nothing else's.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::{TryStreamExt, stream};
use serde_json::{Value, json};
use wok::clock::Boottime;
use wok_tests::admin::Admin;
use wok_tests::api::{Client, Events, Setting, serve, serve_by_way_of};
use wok_tests::patience::eventually;
use wok_tests::process::{self, Program, Running, Signal};
use wok_tests::proxy::{Direction, Proxy};
use wok_tests::zookeeper;

use super::{LOCK, holding};

/// Members of a group: a participant each that holds nobody up.
const GROUP: &str = "[recipes.workers]\nmodule = \"group-membership\"\nmount = \"/workers\"\n";

/// Apps with a stream each, in this process.
const STREAMS: usize = 1_000;

/// Apps that are processes of their own.
const PROCESSES: usize = 20;

/// How long the host may take to notice that an app has ended.
const NOTICED_WITHIN: Duration = Duration::from_secs(1);

/// Requests that are sent at a time: a listener's queue has room for more.
const AT_A_TIME: usize = 50;

/// A curl that joins and follows.
fn curl(client: &Client, recipe: &str, body: &Value) -> Program {
    curl_to(client, &format!("/v1/recipes/{recipe}/join"), body)
}

fn curl_to(client: &Client, path: &str, body: &Value) -> Program {
    let socket = client.socket().display().to_string();
    let url = format!("http://wok{path}");
    let args = ["--silent", "--no-buffer", "--unix-socket", &socket, &url, "--json"];
    Program::new("curl").args(args).arg(body.to_string())
}

fn member(name: &str) -> Value {
    json!({ "call": { "join": { "name": name, "data": "" } }, "app": name })
}

/// The apps that take part.
async fn apps(client: &Client) -> Result<Vec<String>> {
    let list = client.get("/v1/participants").await?.body["participants"].clone();
    let names = list.as_array().unwrap().iter().map(|it| it["app"].as_str().unwrap().to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

#[tokio::test]
async fn the_dead_end_and_nobody_else() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", GROUP).await?;
    let client = serving.client();
    let mut streams: Vec<(String, Events)> = Vec::new();
    for number in 0..STREAMS {
        let name = format!("stream-{number:04}");
        streams
            .push((name.clone(), client.stream("/v1/recipes/workers/join", &member(&name)).await?));
    }
    for (name, events) in &mut streams {
        events.until("answered").await.map_err(|error| error.context(name.clone()))?;
    }
    let mut processes: Vec<(String, Running)> = Vec::new();
    for number in 0..PROCESSES {
        let name = format!("curl-{number:02}");
        processes.push((name.clone(), curl(&client, "workers", &member(&name)).start()?));
    }
    // It hands its connection to a child before it is killed.
    let parent = Program::new("python3").args(["-c", PARENT]).arg(serving.socket()).start()?;
    let child = parent.wait_for_text("child ").await?.text.replace("child ", "");
    for (_, running) in &processes {
        running.wait_for_text("\"event\":\"answered\"").await?;
    }
    parent.wait_for_text("answered").await?;
    assert_eq!(apps(&client).await?.len(), STREAMS + PROCESSES + 1);
    let admin = Admin::connect(server.address()).await?;
    let group = format!("{}/workers", serving.root);
    // Every other one goes: streams are closed, processes killed with no time for anything.
    let killed = Instant::now();
    let mut number = 0;
    streams.retain(|_| {
        number += 1;
        number % 2 == 0
    });
    let (dead, alive): (Vec<_>, Vec<_>) =
        processes.into_iter().enumerate().partition(|(number, _)| number % 2 == 1);
    dead.iter().try_for_each(|(_, (_, running))| running.signal(Signal::KILL))?;
    parent.signal(Signal::KILL)?;
    let mut left: Vec<String> = streams.iter().map(|(name, _)| name.clone()).collect();
    left.extend(alive.iter().map(|(_, (name, _))| name.clone()));
    left.sort();
    let gone_without_a_word = until_so_many(&admin, &group, left.len()).await? - killed;
    // Exactly theirs, in ZooKeeper and for the host.
    assert_eq!(admin.children(&group).await?, left);
    eventually("the dead to be listed no more", async || {
        Ok((apps(&client).await?.len() == left.len()).then_some(()))
    })
    .await?;
    assert_eq!(apps(&client).await?, left);
    // The child lives, and has the connection; that keeps nothing.
    assert!(std::path::Path::new(&format!("/proc/{child}")).exists(), "the child is gone");
    process::signal(child.parse()?, Signal::TERM)?;
    for (name, events) in &mut streams {
        let line = events.until("alive").await.map_err(|error| error.context(name.clone()))?;
        assert_eq!(line["dropped"], Value::Null, "{name}");
    }
    let gone_when_asked = end_all(&client, &admin, &group).await?;
    assert!(
        gone_without_a_word <= gone_when_asked * 2 + NOTICED_WITHIN,
        "{} ended within {gone_without_a_word:?} of their deaths, and {} within \
         {gone_when_asked:?} of being asked to",
        STREAMS + PROCESSES + 1 - left.len(),
        left.len()
    );
    Ok(())
}

/// Ends all participants by their ids; answers how long so many ends take on this machine, as busy as it is.
async fn end_all(client: &Client, admin: &Admin, group: &str) -> Result<Duration> {
    let list = client.get("/v1/participants").await?.body["participants"].clone();
    let ids = list.as_array().unwrap().iter().map(|it| it["participant"].as_str().unwrap());
    let paths: Vec<String> = ids.map(|id| format!("/v1/participants/{id}")).collect();
    let asked = Instant::now();
    stream::iter(paths.iter().map(anyhow::Ok))
        .try_for_each_concurrent(AT_A_TIME, |path| async move {
            let ended = client.ask("DELETE", path, &Value::Null).await?;
            assert_eq!(ended.status, 204, "{path}: {ended:?}");
            Ok(())
        })
        .await?;
    Ok(until_so_many(admin, group, 0).await? - asked)
}

/// Waits until a directory has so many children; answers when.
async fn until_so_many(admin: &Admin, directory: &str, count: usize) -> Result<Instant> {
    // Asked rather than watched: each answer to a watch would list a thousand names.
    eventually("as many children as there should be", async || {
        let stat = admin.stat(directory).await?;
        let children = stat.map_or(0, |stat| stat.num_children);
        Ok((usize::try_from(children)? == count).then(Instant::now))
    })
    .await
}

/// Joins, forks a child that keeps the connection open, and stays until it is killed.
const PARENT: &str = r#"
import json, os, signal, socket, sys
app = socket.socket(socket.AF_UNIX)
app.connect(sys.argv[1])
child = os.fork()
if child == 0:
    signal.pause()
print("child", child, flush=True)
body = json.dumps({"call": {"join": {"name": "parent", "data": ""}}, "app": "parent"}).encode()
head = "POST /v1/recipes/workers/join HTTP/1.1\r\nHost: wok\r\nContent-Length: %d\r\n\r\n" % len(body)
app.sendall(head.encode() + body)
seen = b""
while b"answered" not in seen:
    seen += app.recv(4096)
print("answered", flush=True)
while True:
    app.recv(4096)
"#;

#[tokio::test]
async fn an_app_that_is_stopped_keeps_what_it_holds_unless_it_has_a_lease() -> Result<()> {
    let server = zookeeper::shared().await;
    let recipes = format!("{LOCK}\n{GROUP}");
    let serving = serve(server.address(), "", &recipes).await?;
    let client = serving.client();
    let plain = curl(&client, "workers", &member("plain")).start()?;
    plain.wait_for_text("\"event\":\"answered\"").await?;
    let leased = json!({ "call": "acquire", "lease": "5s", "app": "leased" });
    let leased = curl(&client, "orders", &leased).start()?;
    leased.wait_for_text("\"event\":\"held\"").await?;
    leased.pause().await?;
    plain.pause().await?;
    let mut next = client
        .stream("/v1/recipes/orders/join", &json!({ "call": "acquire", "app": "next" }))
        .await?;
    next.until("held").await?;
    // By then the lease has passed, and the other one, stopped as long, is still a member.
    assert_eq!(apps(&client).await?, ["next", "plain"]);
    plain.signal(Signal::CONT)?;
    leased.signal(Signal::CONT)?;
    // It hears of its end when it goes on.
    leased.wait_for_text("\"event\":\"ended\"").await?;
    Ok(())
}

/// What has `unshare` start a program in a PID namespace of its own. A user that is not root needs a user
/// namespace for it.
const APART: [&str; 6] =
    ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];

#[tokio::test]
async fn an_app_that_is_stopped_without_a_lease_is_given_up_when_its_stream_is_full() -> Result<()>
{
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let stopped = json!({ "call": "acquire", "app": "stopped" });
    // Ten lines a second fill all that lies between within a while.
    let stopped = curl_to(&client, "/v1/recipes/orders/join?alive=100ms", &stopped).start()?;
    let held = stopped.wait_for_text("\"event\":\"held\"").await?;
    let held: Value = serde_json::from_str(&held.text)?;
    stopped.pause().await?;
    let mut next = client
        .stream("/v1/recipes/orders/join", &json!({ "call": "acquire", "app": "next" }))
        .await?;
    next.until("waiting").await?;
    let later = next.until("held").await?;
    assert!(later["fence"].as_u64() > held["fence"].as_u64(), "{held} {later}");
    assert_eq!(apps(&client).await?, ["next"]);
    // Its connection is closed, which it finds when it goes on.
    stopped.signal(Signal::CONT)?;
    stopped.exit().await?;
    Ok(())
}

#[tokio::test]
async fn an_app_of_another_pid_namespace_ends_with_its_connection() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let inside = curl(&client, "orders", &json!({ "call": "acquire" }));
    let inside = inside.by_way_of("unshare", APART).start()?;
    let held = inside.wait_for_text("\"event\":\"held\"").await?;
    let held: Value = serde_json::from_str(&held.text)?;
    inside.signal(Signal::KILL)?;
    let mut next = client.stream("/v1/recipes/orders/join", &json!({ "call": "acquire" })).await?;
    let next = next.until("held").await?;
    assert!(next["fence"].as_u64() > held["fence"].as_u64(), "{held} {next}");
    Ok(())
}

/// The other way round: the daemon has no number of the app's process, and no handle of it.
#[tokio::test]
async fn a_daemon_that_cannot_see_its_apps_goes_by_their_connections_and_leases() -> Result<()> {
    let server = zookeeper::shared().await;
    let setting = Setting { connect: server.address(), root: None, api: "" };
    let recipes = format!("{LOCK}\n{GROUP}");
    let serving = serve_by_way_of(setting, &recipes, |wok| wok.by_way_of("unshare", APART)).await?;
    let client = serving.client();
    // A child of this one keeps the connection, and with it the participant.
    let parent = Program::new("python3").args(["-c", PARENT]).arg(serving.socket()).start()?;
    let child = parent.wait_for_text("child ").await?.text.replace("child ", "");
    parent.wait_for_text("answered").await?;
    let list = client.get("/v1/participants").await?.body;
    assert_eq!(list["participants"][0]["pid"], Value::Null, "the daemon sees the app: {list}");
    parent.signal(Signal::KILL)?;
    parent.exit().await?;
    // Killed, this one has nobody who keeps the connection.
    let app = curl(&client, "orders", &json!({ "call": "acquire", "app": "killed" })).start()?;
    app.wait_for_text("\"event\":\"held\"").await?;
    let mut next = client
        .stream("/v1/recipes/orders/join", &json!({ "call": "acquire", "app": "next" }))
        .await?;
    next.until("waiting").await?;
    app.signal(Signal::KILL)?;
    next.until("held").await?;
    drop(next);
    // Of a lease nothing need be seen.
    let (leased, held) = hold_detached(&client, "2s").await?;
    let renewed = client.ask("PUT", &format!("{leased}/lease"), &Value::Null).await?;
    assert_eq!(renewed.status, 200, "{renewed:?}");
    let told = deadline(&held)?.max(deadline(&renewed.body)?);
    let mut next = client
        .stream("/v1/recipes/orders/join", &json!({ "call": "acquire", "app": "next" }))
        .await?;
    next.until("held").await?;
    assert!(now_ms() >= told, "the next one holds at {}, and the app may until {told}", now_ms());
    // All that time the child has kept what its parent had joined.
    assert_eq!(apps(&client).await?, ["next", "parent"]);
    process::signal(child.parse()?, Signal::TERM)?;
    eventually("the child's connection to end", async || {
        Ok((apps(&client).await? == ["next"]).then_some(()))
    })
    .await
}

#[tokio::test]
async fn an_app_that_gives_up_its_request_leaves_nothing() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let _holder = holding(&client).await?;
    let requests = [
        ("/v1/recipes/orders/call/acquire", json!({})),
        ("/v1/recipes/orders/join", json!({ "call": "acquire", "detached": true, "lease": "1h" })),
    ];
    for (path, body) in requests {
        let request = client.post(path, &body);
        let waits = eventually("it to wait", async || {
            let list = client.get("/v1/participants").await?.body["participants"].clone();
            Ok(list.as_array().unwrap().iter().any(|it| it["state"] == "waiting").then_some(()))
        });
        tokio::select! {
            answer = request => panic!("{path}: {answer:?}"),
            waits = waits => waits?,
        }
        // Dropped: the connection is closed.
        eventually("it to be gone", async || Ok((apps(&client).await?.len() == 1).then_some(())))
            .await?;
    }
    let admin = Admin::connect(server.address()).await?;
    let directory = format!("{}/locks/orders", serving.root);
    admin.wait_children(&directory, "the holder alone", |names| names.len() == 1).await?;
    Ok(())
}

#[tokio::test]
async fn an_end_says_what_the_call_of_the_join_has_come_to() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let join = "/v1/recipes/orders/join";
    let _holder = holding(&client).await?;
    for (body, told, why) in [
        (json!({ "call": "release" }), "refused", "release, was refused: "),
        (json!({ "call": "acquire", "timeout": "1ms" }), "timed-out", "acquire, was not answered"),
    ] {
        let mut app = client.stream(join, &body).await?;
        app.until(told).await?;
        let ended = app.until("ended").await?;
        assert_eq!(ended["how"], "left", "{ended}");
        let message = ended["message"].as_str().context("a message")?;
        let why = format!("the call that it joined with, {why}");
        assert!(message.contains(&why), "{why:?} is not in {message}");
    }
    Ok(())
}

/// The clock of the deadlines.
pub(super) fn now_ms() -> u64 {
    Boottime::now().as_nanos() / 1_000_000
}

fn deadline(answer: &Value) -> Result<u64> {
    answer["held"]["deadline-boottime-ms"].as_u64().with_context(|| answer.to_string())
}

/// Takes the lock without a stream; answers the participant's path and the whole answer.
async fn hold_detached(client: &Client, lease: &str) -> Result<(String, Value)> {
    let join = json!({ "call": "acquire", "detached": true, "lease": lease });
    let held = client.post("/v1/recipes/orders/join", &join).await?;
    assert_eq!(held.status, 201, "{held:?}");
    let id = held.body["participant"].as_str().context("an id")?;
    Ok((format!("/v1/participants/{id}"), held.body))
}

/// An operator follows participants of others, and is told why they have left as their own apps are.
#[tokio::test]
async fn whoever_follows_is_told_why_a_participant_has_left() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let mut everybody = client.follow("GET", "/v1/events", &Value::Null).await?;
    hold_detached(&client, "500ms").await?;
    let ended = everybody.until("ended").await?;
    assert_eq!(ended["message"], "its lease has passed without a renewal", "{ended}");
    let (app, _) = hold_detached(&client, "1h").await?;
    let mut follower = client.follow("GET", &format!("{app}/events"), &Value::Null).await?;
    follower.until("held").await?;
    assert_eq!(client.ask("DELETE", &app, &Value::Null).await?.status, 204);
    for follower in [&mut everybody, &mut follower] {
        let ended = follower.until("ended").await?;
        assert_eq!(ended["message"], "its app has ended it", "{ended}");
    }
    Ok(())
}

#[tokio::test]
async fn no_deadline_is_told_beyond_a_lease_and_a_lease_that_has_passed_stays_so() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let (app, held) = hold_detached(&client, "2s").await?;
    let told = deadline(&held)?;
    assert!(told <= now_ms() + 2_000, "{held}");
    let renewal = format!("{app}/lease");
    let renewed = client.ask("PUT", &renewal, &Value::Null).await?.body;
    let told = told.max(deadline(&renewed)?);
    assert!(told <= now_ms() + 2_000, "{renewed}");
    let mut next = client.stream("/v1/recipes/orders/join", &json!({ "call": "acquire" })).await?;
    next.until("held").await?;
    assert!(now_ms() >= told, "the next one holds at {}, and the app may until {told}", now_ms());
    let late = client.ask("PUT", &renewal, &Value::Null).await?;
    assert!([404, 410].contains(&late.status), "{late:?}");
    Ok(())
}

/// How often an app renews that is well ahead of its lease.
const RENEW_EVERY: Duration = Duration::from_millis(200);

/// Renews until two leases have passed since a deadline that was told; answers the latest that was told.
async fn outlive(client: &Client, app: &str, held: &Value, lease: Duration) -> Result<u64> {
    let lease = u64::try_from(lease.as_millis())?;
    let (first, mut told) = (deadline(held)?, deadline(held)?);
    let mut ticks = tokio::time::interval(RENEW_EVERY);
    while now_ms() < first + 2 * lease {
        ticks.tick().await;
        let renewed = client.ask("PUT", &format!("{app}/lease"), &Value::Null).await?;
        assert_eq!(renewed.status, 200, "{renewed:?}");
        assert_eq!(renewed.body["held"]["fence"], held["held"]["fence"], "{renewed:?}");
        told = told.max(deadline(&renewed.body)?);
    }
    Ok(told)
}

#[tokio::test]
async fn who_renews_outlives_the_first_lease_and_ends_when_nobody_renews_any_more() -> Result<()> {
    const LEASE: Duration = Duration::from_secs(3);
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let acquire = json!({ "call": "acquire" });
    // Without a stream.
    let (app, held) = hold_detached(&client, "3s").await?;
    let mut next = client.stream("/v1/recipes/orders/join", &acquire).await?;
    next.until("waiting").await?;
    let mut beside = client.follow("GET", &format!("{app}/events"), &Value::Null).await?;
    let told = outlive(&client, &app, &held, LEASE).await?;
    let now = next.until("held").await?;
    assert!(now_ms() >= told, "the next one holds at {}, and the app may until {told}", now_ms());
    assert!(now["fence"].as_u64() > held["held"]["fence"].as_u64(), "{held} {now}");
    assert_eq!(beside.until("ended").await?["how"], "left");
    drop(next);
    // With one, which stays open: the lease ends the participant all the same.
    let leased = json!({ "call": "acquire", "lease": "3s" });
    let mut stream = client.stream("/v1/recipes/orders/join", &leased).await?;
    let id = stream.until("joined").await?["participant"].as_str().context("an id")?.to_owned();
    stream.until("held").await?;
    let app = format!("/v1/participants/{id}");
    let held = client.get(&app).await?.body;
    let mut next = client.stream("/v1/recipes/orders/join", &acquire).await?;
    next.until("waiting").await?;
    let told = outlive(&client, &app, &held, LEASE).await?;
    next.until("held").await?;
    assert!(now_ms() >= told, "the next one holds at {}, and the app may until {told}", now_ms());
    let ended = stream.until("ended").await?;
    assert!(ended["message"].as_str().is_some_and(|it| it.contains("lease")), "{ended}");
    Ok(())
}

#[tokio::test]
async fn a_daemon_that_stops_keeps_what_an_app_without_a_stream_was_told() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let (app, held) = hold_detached(&client, "1h").await?;
    let path = held["held"]["path"].as_str().context("a path")?.to_owned();
    let renewed = client.ask("PUT", &format!("{app}/lease"), &Value::Null).await?.body;
    serving.daemon.signal(Signal::TERM)?;
    // What is told while the daemon stops is no later.
    eventually("a renewal to be refused", async || {
        let renewal = client.ask("PUT", &format!("{app}/lease"), &Value::Null).await?;
        Ok((renewal.status == 410).then_some(()))
    })
    .await?;
    let ready = client.get("/readyz").await?;
    assert_eq!((ready.status, &ready.body["error"]), (503, &json!("unavailable")), "{ready:?}");
    admin.wait_gone(&path).await?;
    let (gone, told) = (now_ms(), deadline(&renewed)?);
    assert!(gone >= told, "gone at {gone}, and the app may rely on it until {told}");
    assert_eq!(serving.daemon.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn who_waits_as_the_daemon_stops_is_told_that_and_not_the_error_of_the_module() -> Result<()>
{
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let serving = serve(proxy.address(), "", LOCK).await?;
    let client = serving.client();
    let _holder = holding(&client).await?;
    let mut waiter =
        client.stream("/v1/recipes/orders/join", &json!({ "call": { "acquire": {} } })).await?;
    waiter.until("waiting").await?;
    // Its module answers at once. The participant ends later: its place in line cannot be given up now.
    proxy.stall(Direction::Both);
    serving.daemon.signal(Signal::TERM)?;
    let mut told = Vec::new();
    while let Some(line) = waiter.next().await? {
        told.push(line);
    }
    assert!(told.iter().all(|line| line["event"] != "refused"), "{told:?}");
    let ended = told.last().context("no event")?;
    assert_eq!(ended["event"], "ended", "{told:?}");
    assert!(ended["message"].to_string().contains("the daemon stops"), "{told:?}");
    assert_eq!(serving.daemon.ended().await?.code(), Some(0));
    Ok(())
}
