//! The local API: apps take part through a daemon on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod as_documented;
mod dependents;
mod ends;
mod every_recipe;
mod in_turn;
mod losses;
mod refusals;
mod remote;
mod slow_readers;
mod ways;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::api::{Client, Events, serve};
use wok_tests::guests;
use wok_tests::process::{Program, Signal};
use wok_tests::zookeeper;

/// One lock.
const LOCK: &str = "[recipes.orders]\nmodule = \"lock\"\nmount = \"/locks/orders\"\n";

/// The same with a module of that file.
fn orders_of(module: &Path) -> String {
    let module = module.display().to_string();
    format!("[recipes.orders]\nmodule = {module:?}\nmount = \"/locks/orders\"\n")
}

/// An app that holds the lock `orders`.
async fn holding(client: &Client) -> Result<Events> {
    let mut app = client.stream("/v1/recipes/orders/join", &json!({ "call": "acquire" })).await?;
    app.until("held").await?;
    Ok(app)
}

/// An app that has joined `orders` and called nothing, and the id of its participant.
async fn idle(client: &Client) -> Result<(Events, String)> {
    let mut app = client.stream("/v1/recipes/orders/join", &Value::Null).await?;
    let id = app.until("joined").await?["participant"].as_str().unwrap().to_owned();
    Ok((app, id))
}

#[tokio::test]
async fn an_app_in_five_lines_of_shell_holds_a_lock_until_it_ends() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let socket = serving.socket().display().to_string();
    let join = |name: &str| {
        Program::new("curl").args([
            "--silent",
            "--no-buffer",
            "--unix-socket",
            &socket,
            "http://wok/v1/recipes/orders/join",
            "--json",
            &json!({ "call": "acquire", "app": name }).to_string(),
        ])
    };
    let first = join("first").start()?;
    let held = first.wait_for_text("\"event\":\"held\"").await?;
    let held: Value = serde_json::from_str(&held.text)?;
    assert_eq!(held["recipe"], "orders");
    assert!(held["fence"].as_u64() > Some(0), "{held}");
    let second = join("second").start()?;
    second.wait_for_text("\"event\":\"waiting\"").await?;
    // The first one's end, in a way that it cannot answer, gives the lock to the second.
    first.signal(Signal::KILL)?;
    let next = second.wait_for_text("\"event\":\"held\"").await?;
    let next: Value = serde_json::from_str(&next.text)?;
    assert!(next["fence"].as_u64() > held["fence"].as_u64(), "{held} {next}");
    second.signal(Signal::TERM)?;
    second.exit().await?;
    let admin = Admin::connect(server.address()).await?;
    let directory = format!("{}/locks/orders", serving.root);
    admin.wait_children(&directory, "nobody to be left", <[_]>::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn who_takes_part_is_seen_with_whom_they_wait_behind() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    assert_eq!(client.get("/v1/participants").await?.body, json!({ "participants": [] }));
    let mut everybody = client.follow("GET", "/v1/events", &Value::Null).await?;
    let acquire = |app: &str| json!({ "call": "acquire", "app": app, "owner": format!("{app}!") });
    let mut first = client.stream("/v1/recipes/orders/join", &acquire("first")).await?;
    let held = first.until("held").await?;
    let mut second = client.stream("/v1/recipes/orders/join", &acquire("second")).await?;
    let waiting = second.until("waiting").await?;
    let participants = wok_tests::patience::eventually("the second to be seen", async || {
        let list = client.get("/v1/participants").await?.body["participants"].clone();
        let is_seen = |it: &Value| it["waiting"]["behind"]["owner"] == "first!";
        Ok(list.as_array().unwrap().iter().any(is_seen).then_some(list))
    })
    .await?;
    let of = |app: &str| {
        let all = participants.as_array().unwrap().iter();
        all.clone().find(|it| it["app"] == app).unwrap().clone()
    };
    let (one, two) = (of("first"), of("second"));
    assert_eq!(one["held"]["path"], held["path"]);
    assert_eq!(one["held"]["fence"], held["fence"]);
    assert!(one["held"]["deadline-boottime-ms"].as_u64() > Some(0), "{one}");
    assert_eq!((&one["state"], &two["state"]), (&json!("held"), &json!("waiting")));
    assert_eq!(two["waiting"]["path"], waiting["path"]);
    assert_eq!(two["waiting"]["behind"]["path"], held["path"]);
    assert_eq!(two["operation"], "acquire");
    assert_eq!(one["by"], "app");
    assert_eq!(one["pid"], std::process::id());
    // Somebody else follows the first, from where it stands on, and keeps nothing alive.
    let path = format!("/v1/participants/{}/events", one["participant"].as_str().unwrap());
    let mut beside = client.follow("GET", &path, &Value::Null).await?;
    assert_eq!(beside.until("held").await?["fence"], held["fence"]);
    drop(first);
    let ended = beside.until("ended").await?;
    assert_eq!(ended["how"], "left", "{ended}");
    assert_eq!(beside.next().await?, None);
    second.until("held").await?;
    // Who follows all of them has been told as well. The server tells the second that the znode is gone
    // before it answers the first, so either of the two may be the quicker.
    let mut wanted = vec![("held", &one), ("ended", &one), ("held", &two)];
    while !wanted.is_empty() {
        let line = everybody.next().await?.unwrap();
        let is_told = |(event, of): &(&str, &Value)| {
            line["event"] == **event && line["participant"] == of["participant"]
        };
        wanted.retain(|it| !is_told(it));
    }
    Ok(())
}

/// A member of a double barrier stands in no line, and has nobody before it.
#[tokio::test]
async fn who_waits_for_others_without_a_line_is_seen_to_wait() -> Result<()> {
    let server = zookeeper::shared().await;
    let recipes = "[recipes.start]\nmodule = \"double-barrier\"\nmount = \"/start\"\n\
                   config = { size = 2 }\n";
    let serving = serve(server.address(), "", recipes).await?;
    let client = serving.client();
    let enter = json!({ "call": "enter" });
    let mut first = client.stream("/v1/recipes/start/join", &enter).await?;
    let id = first.until("joined").await?["participant"].as_str().unwrap().to_owned();
    let path = format!("/v1/participants/{id}");
    let seen = wok_tests::patience::eventually("the first to wait for the second", async || {
        let seen = client.get(&path).await?.body;
        Ok((seen["state"] == "waiting").then_some(seen))
    })
    .await?;
    assert_eq!((&seen["waiting"], &seen["operation"]), (&Value::Null, &json!("enter")), "{seen}");
    let mut second = client.stream("/v1/recipes/start/join", &enter).await?;
    let others = second.until("held").await?["path"].clone();
    let own = first.until("held").await?["path"].clone();
    assert_eq!(client.get(&path).await?.body["state"], "held");
    // The lowest keeps its znode until the others have gone, and everyone else is outside again while it
    // waits for the lowest.
    let state = if own.as_str() < others.as_str() { "held" } else { "waiting" };
    let leave = format!("{path}/leave");
    let leaving = client.post(&leave, &Value::Null);
    let finish = async {
        wok_tests::patience::eventually("the first to wait for the second's end", async || {
            let seen = client.get(&path).await?.body;
            Ok((seen["state"] == state && seen["operation"] == "leave").then_some(()))
        })
        .await?;
        drop(second);
        anyhow::Ok(())
    };
    let (left, finished) = tokio::join!(leaving, finish);
    finished?;
    assert_eq!(left?.status, 200);
    assert_eq!(client.get(&path).await?.body["state"], "joined");
    Ok(())
}

#[tokio::test]
async fn a_caller_that_hangs_up_is_gone_whatever_it_had_sent() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let listed = async |count: usize| {
        wok_tests::patience::eventually("the participants to be so many", async || {
            let list = client.get("/v1/participants").await?.body["participants"].clone();
            Ok((list.as_array().unwrap().len() == count).then_some(()))
        })
        .await
    };
    for ahead in ["\r\n", "GET /healthz HTTP/1.1\r\nHost: wok\r\n\r\n"] {
        for path in ["join?alive=30s", "call/acquire"] {
            // Behind it the call waits without end; its process, which is this one, lives on.
            let mut holder =
                client.stream("/v1/recipes/orders/join", &json!({ "call": "acquire" })).await?;
            holder.until("held").await?;
            let body = if path.starts_with("join") { r#"{"call":"acquire"}"# } else { "{}" };
            let head = format!("POST /v1/recipes/orders/{path} HTTP/1.1\r\nHost: wok\r\n");
            let mut caller = UnixStream::connect(serving.socket())?;
            write!(caller, "{head}Content-Length: {}\r\n\r\n{body}{ahead}", body.len())?;
            listed(2).await?;
            drop(caller);
            listed(1).await?;
            drop(holder);
            listed(0).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_a_call_does_to_its_participant_is_told_as_its_end() -> Result<()> {
    let server = zookeeper::shared().await;
    let (_directory, module) = guests::guest_file("hostile")?;
    let serving = serve(server.address(), "", &orders_of(&module)).await?;
    let client = serving.client();
    let trap = json!({ "call": "trap-while-holding", "detached": true, "lease": "30s" });
    let idle = json!({ "detached": true, "lease": "30s" });
    let joined = client.post("/v1/recipes/orders/join", &idle).await?;
    let id = joined.body["participant"].as_str().unwrap().to_owned();
    for (path, body) in [
        ("/v1/recipes/orders/join".to_owned(), trap),
        ("/v1/recipes/orders/call/trap-while-holding".to_owned(), Value::Null),
        (format!("/v1/participants/{id}/trap-while-holding"), Value::Null),
    ] {
        let answer = client.post(&path, &body).await?;
        assert_eq!((answer.status, &answer.body["error"]), (410, &json!("ended")), "{answer:?}");
        let why = (&answer.body["reason"], &answer.body["cause"]);
        assert_eq!(why, (&json!("fault"), &json!("trapped")), "{path}: {answer:?}");
    }
    let trapped = client.post("/v1/recipes/orders/call/trap", &Value::Null).await?;
    let told = (trapped.status, &trapped.body["error"]);
    assert_eq!(told, (500, &json!("module-failed")), "{trapped:?}");
    Ok(())
}

#[tokio::test]
async fn a_participant_without_a_stream_lives_by_its_lease() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let join = json!({ "call": "acquire", "detached": true, "lease": "5s", "app": "script" });
    let joined = client.post("/v1/recipes/orders/join", &join).await?;
    assert_eq!(joined.status, 201, "{joined:?}");
    let id = joined.body["participant"].as_str().unwrap().to_owned();
    assert!(joined.body["held"]["fence"].as_u64() > Some(0), "{joined:?}");
    // A second one is told when its time passes that it has nothing, and nothing of it is left.
    let patient = json!({ "call": "acquire", "detached": true, "lease": "5s", "timeout": "100ms" });
    let late = client.post("/v1/recipes/orders/join", &patient).await?;
    assert_eq!((late.status, &late.body["error"]), (504, &json!("timed-out")), "{late:?}");
    let list = client.get("/v1/participants").await?.body;
    assert_eq!(list["participants"].as_array().unwrap().len(), 1, "{list}");
    let renewed = client.ask("PUT", &format!("/v1/participants/{id}/lease"), &Value::Null).await?;
    assert_eq!((renewed.status, &renewed.body["lease"]), (200, &json!("5s")), "{renewed:?}");
    // It releases by a call, and takes the lock again.
    let operation = |name: &str| format!("/v1/participants/{id}/{name}");
    assert_eq!(client.post(&operation("release"), &Value::Null).await?.status, 200);
    let again = client.post(&operation("acquire"), &json!({})).await?;
    assert_eq!(again.status, 200, "{again:?}");
    // Nobody renews it any more.
    let path = format!("/v1/participants/{id}/events");
    let mut events = client.follow("GET", &path, &Value::Null).await?;
    assert_eq!(events.until("ended").await?["how"], "left");
    let renewed = client.ask("PUT", &format!("/v1/participants/{id}/lease"), &Value::Null).await?;
    assert_eq!(renewed.status, 404, "{renewed:?}");
    // One that ends in order is gone when the answer comes.
    let joined = client.post("/v1/recipes/orders/join", &join).await?;
    let id = joined.body["participant"].as_str().unwrap();
    let ended = client.ask("DELETE", &format!("/v1/participants/{id}"), &Value::Null).await?;
    assert_eq!(ended.status, 204, "{ended:?}");
    let admin = Admin::connect(server.address()).await?;
    let directory = format!("{}/locks/orders", serving.root);
    assert_eq!(admin.children(&directory).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_open_keeps_its_participant_longer_than_the_lease() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let _holder = holding(&client).await?;
    let join = json!({ "detached": true, "lease": "5s" });
    let joined = client.post("/v1/recipes/orders/join", &join).await?;
    let id = joined.body["participant"].as_str().unwrap().to_owned();
    // Longer than two leases, in which nobody renews.
    let path = format!("/v1/participants/{id}/acquire?timeout=11s");
    let late = client.post(&path, &json!({})).await?;
    assert_eq!((late.status, &late.body["error"]), (504, &json!("timed-out")), "{late:?}");
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_open_keeps_nothing_that_is_held_longer_than_the_lease() -> Result<()> {
    let server = zookeeper::shared().await;
    let (_directory, module) = guests::guest_file("hostile")?;
    let serving = serve(server.address(), "", &orders_of(&module)).await?;
    let client = serving.client();
    let join = json!({ "call": "hold", "detached": true, "lease": "5s" });
    let joined = client.post("/v1/recipes/orders/join", &join).await?;
    let id = joined.body["participant"].as_str().unwrap().to_owned();
    let path = format!("/v1/participants/{id}/wait-for-ever");
    let ended = client.post(&path, &Value::Null).await?;
    assert_eq!((ended.status, &ended.body["error"]), (410, &json!("ended")), "{ended:?}");
    let message = ended.body["message"].as_str().unwrap();
    assert!(message.contains("lease"), "{message}");
    Ok(())
}

#[tokio::test]
async fn who_posts_to_what_is_no_operation_is_told_its_methods() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let (_idle, id) = idle(&client).await?;
    for (part, status, told) in [
        ("lease", 405, "which are PUT:"),
        ("events", 405, "which are GET, HEAD:"),
        ("operation", 405, "which are DELETE:"),
        ("dependent", 405, "which are DELETE:"),
        ("releese", 404, "did you mean release?"),
    ] {
        let answer = client.post(&format!("/v1/participants/{id}/{part}"), &Value::Null).await?;
        assert_eq!(answer.status, status, "{part}: {answer:?}");
        let message = answer.body["message"].as_str().unwrap();
        assert!(message.contains(told), "{part}: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_call_that_ends_with_its_participant_is_told_why() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let _holder = holding(&client).await?;
    let (mut idle, id) = idle(&client).await?;
    let path = format!("/v1/participants/{id}/acquire");
    let body = json!({});
    let waiting = client.post(&path, &body);
    let meanwhile = async {
        idle.until("waiting").await?;
        drop(idle);
        anyhow::Ok(())
    };
    let (told, done) = tokio::join!(waiting, meanwhile);
    done?;
    let told = told?;
    assert_eq!((told.status, &told.body["error"]), (410, &json!("ended")), "{told:?}");
    let message = told.body["message"].as_str().unwrap();
    assert!(message.contains("its app has closed the connection"), "{message}");
    Ok(())
}

#[tokio::test]
async fn one_operation_at_a_time_can_be_cancelled() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let _holder = holding(&client).await?;
    let (mut idle, id) = idle(&client).await?;
    let mut everybody = client.follow("GET", "/v1/events", &Value::Null).await?;
    let path = format!("/v1/participants/{id}/acquire");
    let body = json!({});
    let waiting = client.post(&path, &body);
    let meanwhile = async {
        idle.until("waiting").await?;
        let busy = client.post(&path, &json!({})).await?;
        assert_eq!((busy.status, &busy.body["error"]), (423, &json!("busy")), "{busy:?}");
        let cancel = format!("/v1/participants/{id}/operation");
        let cancelled = client.ask("DELETE", &cancel, &Value::Null).await?;
        assert_eq!(cancelled.status, 204, "{cancelled:?}");
        anyhow::Ok(())
    };
    let (waited, done) = tokio::join!(waiting, meanwhile);
    done?;
    let waited = waited?;
    assert_eq!((waited.status, &waited.body["error"]), (504, &json!("timed-out")), "{waited:?}");
    let seen = client.get(&format!("/v1/participants/{id}")).await?.body;
    assert_eq!((&seen["state"], &seen["waiting"]), (&json!("joined"), &Value::Null), "{seen}");
    // Who was told that it waits is told that it does not.
    everybody.until("waiting").await?;
    assert_eq!(everybody.until("idle").await?["participant"], id.as_str());
    // It can be called again, and gives up by itself this time.
    let late = client.post(&format!("{path}?timeout=100ms"), &json!({})).await?;
    assert_eq!(late.status, 504, "{late:?}");
    // Who never held is told of no loss, and of nothing that it has given back.
    let ended = client.ask("DELETE", &format!("/v1/participants/{id}"), &Value::Null).await?;
    assert_eq!(ended.status, 204, "{ended:?}");
    let mut told = Vec::new();
    while let Some(line) = idle.next().await? {
        told.push(line["event"].as_str().unwrap().to_owned());
    }
    assert_eq!(told.last().map(String::as_str), Some("ended"), "{told:?}");
    let of_a_claim = ["held", "released", "leaving", "lost"];
    assert!(!told.iter().any(|it| of_a_claim.contains(&it.as_str())), "{told:?}");
    let of_the_line = |it: &&str| ["waiting", "idle"].contains(it);
    let told: Vec<&str> = told.iter().map(String::as_str).filter(of_the_line).collect();
    // The second call may have had no time to stand in line.
    assert!(matches!(told.as_slice(), ["idle"] | ["idle", "waiting", "idle"]), "{told:?}");
    let admin = Admin::connect(server.address()).await?;
    let directory = format!("{}/locks/orders", serving.root);
    assert_eq!(admin.children(&directory).await?.len(), 1, "only the holder stands in line");
    Ok(())
}

#[tokio::test]
async fn a_recipe_is_called_without_joining_it_first() -> Result<()> {
    let server = zookeeper::shared().await;
    let recipes = "[recipes.jobs]\nmodule = \"queue\"\nmount = \"/jobs\"\n";
    let serving = serve(server.address(), "", recipes).await?;
    let client = serving.client();
    let put = client.post("/v1/recipes/jobs/call/put", &json!({ "data": "hello" })).await?;
    assert_eq!(put.status, 200, "{put:?}");
    let size = client.post("/v1/recipes/jobs/call/length", &Value::Null).await?;
    assert_eq!(size.status, 200, "{size:?}");
    assert_eq!(client.get("/v1/participants").await?.body, json!({ "participants": [] }));
    let recipe = client.get("/v1/recipes/jobs").await?.body;
    let operations: Vec<&str> = (recipe["operations"].as_array().unwrap().iter())
        .map(|it| it["operation"].as_str().unwrap())
        .collect();
    assert!(operations.contains(&"put"), "{operations:?}");
    let host = client.get("/v1/host").await?.body;
    assert_eq!(host["sessions"].as_array().unwrap().len(), 1, "{host}");
    let mut log = client.follow("GET", "/v1/logs?lines=1000", &Value::Null).await?;
    let mut lines = Vec::new();
    while let Some(line) = log.next().await? {
        lines.push(line["message"].as_str().unwrap_or_default().to_owned());
    }
    assert!(lines.iter().any(|line| line == "the API is served"), "{lines:?}");
    Ok(())
}
