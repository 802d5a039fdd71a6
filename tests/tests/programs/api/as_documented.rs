//! What is refused, and each event that a stream can tell, before a validator that is not ours.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::api::{Answer, Client, Events};
use wok_tests::guests;
use wok_tests::openapi::{Exchange, exchange_problems};
use wok_tests::patience::eventually;
use wok_tests::proxy::{Direction, Proxy};
use wok_tests::zookeeper;

use super::LOCK;
use super::ways::{Way, exchange, serve_over_tcp};

const JOIN: &str = "/v1/recipes/orders/join";

/// Each status of the API but 431, of which there is no body to look at.
const STATUSES: [u16; 16] =
    [200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 410, 413, 423, 500, 503, 504];

/// All that was asked and told.
struct Record<'a> {
    client: &'a Client,
    exchanges: Vec<Exchange>,
    statuses: BTreeSet<u16>,
    events: BTreeSet<String>,
}

/// A stream, and what it was asked for with.
struct Heard {
    events: Events,
    method: &'static str,
    path: String,
}

impl Record<'_> {
    fn note(&mut self, method: &str, path: &str, status: u16, body: &Value) {
        let path = path.split('?').next().unwrap_or(path);
        let exchange = Exchange::new(method, path, status);
        self.exchanges.push(match status {
            204 => exchange,
            _ => exchange.answered(body.clone()),
        });
        self.statuses.insert(status);
    }

    /// Asks, and is answered with that status.
    async fn ask(&mut self, method: &str, path: &str, body: Value, status: u16) -> Result<Value> {
        let answer = self.client.ask(method, path, &body).await?;
        self.answered(method, path, status, answer)
    }

    fn answered(&mut self, method: &str, path: &str, status: u16, answer: Answer) -> Result<Value> {
        ensure!(answer.status == status, "{method} {path}: {answer:?}");
        self.note(method, path, status, &answer.body);
        Ok(answer.body)
    }

    /// Sends a request's bytes, and is answered with that status.
    fn send(&mut self, way: Way<'_>, asked: (&str, &str), rest: &str, status: u16) -> Result<()> {
        let (method, path) = asked;
        let head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let (told, body) = exchange(&mut way.connect()?, &format!("{head}{rest}"))?;
        ensure!(told == status, "{method} {path}: {told} {body}");
        self.note(method, path, status, &body);
        Ok(())
    }

    async fn follow(&self, method: &'static str, path: &str, body: Value) -> Result<Heard> {
        let events = self.client.follow(method, path, &body).await?;
        let path = path.split('?').next().unwrap_or(path).to_owned();
        Ok(Heard { events, method, path })
    }

    /// Hears lines until one that tells of that event.
    async fn hear(&mut self, heard: &mut Heard, event: &str) -> Result<Value> {
        loop {
            let line =
                heard.events.next().await?.with_context(|| format!("over before {event}"))?;
            self.note(heard.method, &heard.path, 200, &line);
            let told = line["event"].as_str().context("an event")?;
            self.events.insert(told.to_owned());
            if told == event {
                return Ok(line);
            }
        }
    }

    /// Joins the lock, and holds it by a call that has been answered; the two are told in any order.
    async fn hold(&mut self, options: &str) -> Result<(Heard, String)> {
        let mut app = self.follow("POST", &format!("{JOIN}{options}"), acquire()).await?;
        let path = participant(&self.hear(&mut app, "joined").await?)?;
        let (client, seen) = (self.client, &path);
        eventually("the lock to be held", async || {
            let seen = client.get(seen).await?.body;
            let is_done = seen["state"] == "held" && seen["operation"].is_null();
            Ok(is_done.then_some(()))
        })
        .await?;
        self.hear(&mut app, "held").await?;
        Ok((app, path))
    }
}

fn acquire() -> Value {
    json!({ "call": "acquire" })
}

fn participant(line: &Value) -> Result<String> {
    let id = line["participant"].as_str().context("an id")?;
    Ok(format!("/v1/participants/{id}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_and_what_is_told_is_as_the_document_says() -> Result<()> {
    let proxy = Proxy::start(zookeeper::shared().await.address())?;
    let (_modules, hostile) = guests::guest_file("hostile")?;
    let hostile = hostile.display().to_string();
    let recipes = format!(
        "{LOCK}\n[recipes.hostile]\nmodule = {hostile:?}\nmount = \"/hostile\"\n\n\
         [recipes.leader]\nmodule = \"leader-election\"\nmount = \"/leader\"\n"
    );
    let (serving, address, _token) = serve_over_tcp(proxy.address(), "", &recipes).await?;
    let client = serving.client();
    let document = client.get("/v1/openapi.json").await?.body;
    let (exchanges, statuses, events) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut record = Record { client: &client, exchanges, statuses, events };
    let mut everybody = record.follow("GET", "/v1/events?alive=100ms", Value::Null).await?;
    record.hear(&mut everybody, "alive").await?;

    refused_by_the_host(&mut record, serving.socket(), &address)?;
    refused_calls(&mut record).await?;
    ends_of_a_claim(&mut record).await?;
    doubts(&mut record, &proxy, &mut everybody).await?;

    assert_eq!(record.statuses, BTreeSet::from(STATUSES));
    let schema = &document["components"]["schemas"]["event"];
    let told = schema["discriminator"]["mapping"].as_object().context("the events")?;
    let told: BTreeSet<String> = told.keys().cloned().collect();
    assert_eq!(record.events, told);
    let problems = exchange_problems(&document, &record.exchanges)?;
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{problems:#?}");
    Ok(())
}

fn refused_by_the_host(record: &mut Record<'_>, socket: &Path, address: &str) -> Result<()> {
    let way = Way::Socket(socket);
    let recipes = ("GET", "/v1/recipes");
    let (local, remote) = (way.head(), Way::Tcp(address).head());
    record.send(Way::Tcp(address), recipes, &format!("Host: {address}\r\n\r\n"), 401)?;
    record.send(Way::Tcp(address), ("GET", "/v1/logs"), &format!("{remote}\r\n"), 403)?;
    record.send(way, recipes, &format!("{local}Origin: null\r\n\r\n"), 403)?;
    record.send(way, ("POST", "/v1/recipes"), &format!("{local}\r\n"), 405)?;
    let long = "x".repeat(2 << 20);
    let (join, lease) = (("POST", JOIN), ("PUT", "/v1/participants/0/lease"));
    for (asked, body, length, status) in [
        (join, long.as_str(), long.len(), 413),
        (join, "{", 1, 400),
        // The rest does not come.
        (join, "{", 2, 408),
        (lease, long.as_str(), long.len(), 413),
        (lease, "{", 1, 400),
    ] {
        let rest = format!("{local}Content-Length: {length}\r\n\r\n{body}");
        record.send(way, asked, &rest, status)?;
    }
    Ok(())
}

async fn refused_calls(record: &mut Record<'_>) -> Result<()> {
    record.ask("GET", "/v1/recipes/nothing", Value::Null, 404).await?;
    record.ask("POST", "/v1/recipes/nothing/join", Value::Null, 404).await?;
    for path in ["/v1/participants/0", "/v1/participants/0/events"] {
        record.ask("GET", path, Value::Null, 404).await?;
    }
    let hostile = |operation: &str| format!("/v1/recipes/hostile/call/{operation}");
    record.ask("POST", &hostile("trap"), Value::Null, 500).await?;
    let ended = record.ask("POST", &hostile("trap-while-holding"), Value::Null, 410).await?;
    ensure!(ended["reason"] == "fault", "{ended}");
    // Somebody holds, and another one waits.
    let _holder = record.hold("").await?;
    let join = json!({ "detached": true, "lease": "10m" });
    let second = participant(&record.ask("POST", JOIN, join, 201).await?)?;
    let call = format!("{second}/acquire");
    let client = record.client;
    let (nothing, body) = (Value::Null, json!({}));
    let waiting = client.post(&call, &body);
    let meanwhile = async {
        eventually("the call to wait", async || {
            Ok((client.get(&second).await?.body["state"] == "waiting").then_some(()))
        })
        .await?;
        record.ask("POST", &call, json!({}), 423).await?;
        record.ask("DELETE", &format!("{second}/operation"), nothing, 204).await?;
        anyhow::Ok(())
    };
    let (cancelled, done) = tokio::join!(waiting, meanwhile);
    done?;
    record.answered("POST", &call, 504, cancelled?)?;
    record.ask("POST", &format!("{second}/release"), Value::Null, 409).await?;
    record.ask("DELETE", &second, Value::Null, 204).await?;
    // The same on a stream.
    let mut refused = record.follow("POST", JOIN, json!({ "call": "release" })).await?;
    record.hear(&mut refused, "refused").await?;
    record.hear(&mut refused, "ended").await?;
    let late = json!({ "call": "acquire", "timeout": "100ms" });
    let mut late = record.follow("POST", JOIN, late).await?;
    record.hear(&mut late, "timed-out").await?;
    record.hear(&mut late, "ended").await?;
    // An election without a candidate.
    let (elect, volunteer) = ("/v1/recipes/leader/join", json!({ "call": "volunteer" }));
    let mut leader = record.follow("POST", elect, volunteer.clone()).await?;
    record.hear(&mut leader, "recipe-event").await?;
    let mut candidate = record.follow("POST", elect, volunteer).await?;
    let waiting = record.hear(&mut candidate, "waiting").await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    admin.delete(waiting["path"].as_str().context("a path")?).await?;
    drop(leader);
    record.hear(&mut candidate, "idle").await?;
    Ok(())
}

async fn ends_of_a_claim(record: &mut Record<'_>) -> Result<()> {
    // Somebody ends it, while something depends on its claim.
    let (mut app, path) = record.hold("?dependent=true").await?;
    let mut beside = record.follow("GET", &format!("{path}/events"), Value::Null).await?;
    record.hear(&mut beside, "held").await?;
    let (client, nothing) = (record.client, Value::Null);
    let end = client.ask("DELETE", &path, &nothing);
    let meanwhile = async {
        record.hear(&mut app, "leaving").await?;
        record.hear(&mut beside, "leaving").await?;
        record.ask("DELETE", &format!("{path}/dependent"), Value::Null, 204).await?;
        record.hear(&mut app, "ended").await?;
        record.hear(&mut beside, "ended").await?;
        anyhow::Ok(())
    };
    let (ended, done) = tokio::join!(end, meanwhile);
    done?;
    record.answered("DELETE", &path, 204, ended?)?;
    // It gives back what it holds, takes that again, and loses it.
    let (mut app, path) = record.hold("").await?;
    record.ask("POST", &format!("{path}/release"), Value::Null, 200).await?;
    record.hear(&mut app, "released").await?;
    record.ask("POST", &format!("{path}/acquire"), json!({}), 200).await?;
    let held = record.hear(&mut app, "held").await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    admin.delete(held["path"].as_str().context("a path")?).await?;
    record.hear(&mut app, "lost").await?;
    record.hear(&mut app, "ended").await?;
    Ok(())
}

async fn doubts(record: &mut Record<'_>, proxy: &Proxy, everybody: &mut Heard) -> Result<()> {
    let (mut app, _) = record.hold("?alive=100ms").await?;
    record.hear(&mut app, "alive").await?;
    proxy.stall(Direction::Both);
    record.hear(&mut app, "suspended").await?;
    proxy.release();
    record.hear(&mut app, "resumed").await?;
    proxy.stall(Direction::Both);
    record.hear(&mut app, "lost").await?;
    record.ask("GET", "/readyz", Value::Null, 503).await?;
    record.ask("POST", JOIN, acquire(), 503).await?;
    // All of this was told to those who follow everybody.
    for event in
        ["idle", "recipe-event", "leaving", "released", "lost", "suspended", "resumed", "lost"]
    {
        record.hear(everybody, event).await?;
    }
    Ok(())
}
