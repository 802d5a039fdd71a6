//! Apps that do not read what they are told.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use wok_tests::admin::Admin;
use wok_tests::api::{Client, Events, serve};
use wok_tests::guests;
use wok_tests::patience::{eventually, within};
use wok_tests::process::Signal;
use wok_tests::zookeeper;

use super::{LOCK, orders_of};

/// An app that sends its request and does not read.
fn mute(client: &Client, path: &str, body: &Value) -> Result<UnixStream> {
    let mut stream = UnixStream::connect(client.socket())?;
    let body = body.to_string();
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: wok\r\nContent-Length: {length}\r\n\r\n{body}")?;
    Ok(stream)
}

async fn states(client: &Client) -> Result<Vec<String>> {
    let list = client.get("/v1/participants").await?.body["participants"].clone();
    let state =
        |it: &Value| format!("{} {}", it["app"].as_str().unwrap(), it["state"].as_str().unwrap());
    Ok(list.as_array().unwrap().iter().map(state).collect())
}

/// Waits until one participant is left, which may hold a moment before the other is struck out.
async fn alone(client: &Client, state: &str) -> Result<()> {
    eventually("nothing of the other to be left", async || {
        Ok((states(client).await? == [state]).then_some(()))
    })
    .await
}

#[tokio::test]
async fn an_app_that_never_reads_ends_and_holds_nobody_up() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let join = json!({ "call": "acquire", "app": "mute" });
    // A line every 100 ms fills all that lies between within a while.
    let mut app = mute(&client, "/v1/recipes/orders/join?alive=100ms", &join)?;
    eventually("it to hold", async || {
        Ok(states(&client).await?.contains(&"mute held".to_owned()).then_some(()))
    })
    .await?;
    let mut next = client
        .stream("/v1/recipes/orders/join", &json!({ "call": "acquire", "app": "next" }))
        .await?;
    next.until("waiting").await?;
    // The claim itself is another's before long, and nothing of the mute one is left.
    next.until("held").await?;
    alone(&client, "next held").await?;
    let mut read = Vec::new();
    // What it was told before stays to be read, and then the connection is over.
    app.read_to_end(&mut read).or_else(broken_is_well)?;
    assert!(String::from_utf8_lossy(&read).contains("\"event\":\"held\""));
    Ok(())
}

fn broken_is_well(error: std::io::Error) -> std::io::Result<usize> {
    match error.kind() {
        std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe => Ok(0),
        _ => Err(error),
    }
}

/// How long a reader takes for a byte that is as slow as one can be that still reads.
const A_BYTE: Duration = Duration::from_secs(1);

/// A reader of a byte a second, until it is told to hurry.
struct SlowReader {
    hurry: Sender<()>,
    slowly: Arc<AtomicUsize>,
    reading: JoinHandle<std::io::Result<Vec<u8>>>,
}

impl SlowReader {
    fn start(mut stream: UnixStream) -> Self {
        let (hurry, told) = mpsc::channel::<()>();
        let slowly = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&slowly);
        let reading = tokio::task::spawn_blocking(move || {
            let (mut read, mut byte) = (Vec::new(), [0]);
            while told.recv_timeout(A_BYTE) == Err(RecvTimeoutError::Timeout) {
                if stream.read(&mut byte)? == 1 {
                    read.push(byte[0]);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            stream.read_to_end(&mut read).or_else(broken_is_well)?;
            Ok(read)
        });
        SlowReader { hurry, slowly, reading }
    }

    /// All that it reads, once it has read a part of it slowly.
    async fn read_on(self) -> Result<String> {
        eventually("a byte to be read slowly", async || {
            Ok((self.slowly.load(Ordering::Relaxed) > 0).then_some(()))
        })
        .await?;
        drop(self.hurry);
        Ok(String::from_utf8(self.reading.await??)?)
    }
}

/// A line takes minutes then, so there is no room for the next one within a session timeout.
#[tokio::test]
async fn an_app_that_reads_a_byte_a_second_is_given_up_as_one_that_does_not_read() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let join = json!({ "call": "acquire", "app": "slow" });
    let app = mute(&client, "/v1/recipes/orders/join?alive=100ms", &join)?;
    let app = SlowReader::start(app);
    eventually("it to hold", async || {
        Ok(states(&client).await?.contains(&"slow held".to_owned()).then_some(()))
    })
    .await?;
    let mut next = client
        .stream("/v1/recipes/orders/join", &json!({ "call": "acquire", "app": "next" }))
        .await?;
    next.until("waiting").await?;
    next.until("held").await?;
    alone(&client, "next held").await?;
    let read = app.read_on().await?;
    assert!(read.contains("\"event\":\"held\""), "{read}");
    // It is told by the end of the stream, which breaks off: there was no room for another word.
    assert!(!read.contains("\"event\":\"ended\"") && !read.ends_with("\r\n0\r\n\r\n"), "{read}");
    Ok(())
}

/// How often a participant takes the lock and gives it back: far more notices than wait for a follower.
const ROUNDS: usize = 400;

/// Who follows another's participant keeps nothing, so it is not given up either.
#[tokio::test]
async fn a_follower_that_reads_a_byte_a_second_misses_old_states_and_no_loss() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let join = json!({ "detached": true, "lease": "10m" });
    let joined = client.post("/v1/recipes/orders/join", &join).await?;
    let id = joined.body["participant"].as_str().context("an id")?;
    let participant = format!("/v1/participants/{id}");
    let events = format!("{participant}/events?alive=100ms");
    let mut quick = client.follow("GET", &events, &Value::Null).await?;
    let mut late = client.follow("GET", &events, &Value::Null).await?;
    let mut slow = UnixStream::connect(client.socket())?;
    write!(slow, "GET {events} HTTP/1.1\r\nHost: wok\r\nConnection: close\r\n\r\n")?;
    let slow = SlowReader::start(slow);
    let call = async |operation: &str| -> Result<()> {
        let called = client.post(&format!("{participant}/{operation}"), &Value::Null).await?;
        assert_eq!(called.status, 200, "{operation}: {called:?}");
        Ok(())
    };
    for _ in 0..ROUNDS {
        call("acquire").await?;
        quick.until("held").await?;
        call("release").await?;
        quick.until("released").await?;
    }
    // One that reads all of a sudden is told how much it has missed.
    let mut released = 0;
    let dropped = loop {
        let line = late.next().await?.context("the stream is over")?;
        released += usize::from(line["event"] == "released");
        if let Some(dropped) = line["dropped"].as_u64() {
            break dropped;
        }
    };
    assert!(released < ROUNDS && dropped > 0, "{released} of {ROUNDS} told, {dropped} dropped");
    // A quick one has missed nothing, and all are told of the loss.
    assert_eq!(quick.until("alive").await?["dropped"], Value::Null);
    call("acquire").await?;
    let held = quick.until("held").await?;
    let path = held["path"].as_str().context("a path")?;
    Admin::connect(server.address()).await?.delete(path).await?;
    for follower in [&mut quick, &mut late] {
        follower.until("lost").await?;
        follower.until("ended").await?;
    }
    let read = slow.read_on().await?;
    let lines: Vec<Value> =
        read.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    let released = events.iter().filter(|event| **event == "released").count();
    assert!(released < ROUNDS, "{released} of {ROUNDS} told");
    assert!(events.ends_with(&["lost", "ended"]), "{events:?}");
    Ok(())
}

#[tokio::test]
async fn an_app_that_reads_a_little_at_a_time_is_told_of_its_loss() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let mut app = mute(&client, "/v1/recipes/orders/join", &json!({ "call": "acquire" }))?;
    eventually("it to hold", async || {
        let list = client.get("/v1/participants").await?.body["participants"].clone();
        Ok(list.as_array().unwrap().iter().any(|it| it["state"] == "held").then_some(()))
    })
    .await?;
    let list = client.get("/v1/participants").await?.body["participants"].clone();
    let path = list[0]["held"]["path"].as_str().unwrap().to_owned();
    Admin::connect(server.address()).await?.delete(&path).await?;
    let read = tokio::task::spawn_blocking(move || {
        let (mut read, mut byte) = (Vec::new(), [0]);
        while app.read(&mut byte)? == 1 {
            read.push(byte[0]);
            if read.ends_with(b"\"event\":\"ended\"") {
                break;
            }
        }
        std::io::Result::Ok(read)
    });
    let read = String::from_utf8(read.await??)?;
    let (held, lost) = (read.find("\"event\":\"held\""), read.find("\"event\":\"lost\""));
    assert!(held.is_some() && held < lost, "{read}");
    Ok(())
}

/// Reads the lines of an answer up to one that is wanted, which is the last of those answered.
async fn read_until(
    stream: UnixStream,
    mut is_wanted: impl FnMut(&Value) -> bool + Send + 'static,
) -> Result<Vec<Value>> {
    let reading = tokio::task::spawn_blocking(move || {
        let mut read = Vec::new();
        for line in BufReader::new(stream).lines() {
            let line = line?;
            // Others are the head's, or tell how long the next chunk is.
            if !line.starts_with('{') {
                continue;
            }
            let line: Value = serde_json::from_str(&line)?;
            let is_last = is_wanted(&line);
            read.push(line);
            if is_last {
                return Ok(read);
            }
        }
        bail!("it was over before: {read:#?}")
    });
    within("a line that is wanted", reading).await??
}

fn dropped(line: &Value) -> Option<u64> {
    line["dropped"].as_u64()
}

fn count(lines: &[Value], is_it: impl Fn(&Value) -> bool) -> u64 {
    lines.iter().filter(|line| is_it(line)).count() as u64
}

/// More events than a participant's own stream keeps, and less than the stream of all does.
fn flood() -> Value {
    json!({ "count": 1_000, "bytes": 1 })
}

/// More than the stream of all keeps for a reader, with what fits between the daemon and that.
const FAR_TOO_MANY: u64 = 12_000;

/// All that somebody is told who reads, up to and with the line that is wanted.
async fn told_until(
    everybody: &mut Events,
    is_wanted: impl Fn(&Value) -> bool,
) -> Result<Vec<Value>> {
    let mut told = Vec::new();
    loop {
        let line = everybody.next().await?.context("it was over before")?;
        assert_eq!(line["dropped"], Value::Null, "this one reads: {line}");
        let is_last = is_wanted(&line);
        told.push(line);
        if is_last {
            return Ok(told);
        }
    }
}

#[tokio::test]
async fn who_follows_all_and_does_not_read_is_told_how_much_was_dropped() -> Result<()> {
    let server = zookeeper::shared().await;
    let (_directory, module) = guests::guest_file("hostile")?;
    let serving = serve(server.address(), "", &orders_of(&module)).await?;
    let client = serving.client();
    let mut everybody = client.follow("GET", "/v1/events", &Value::Null).await?;
    let mut slow = UnixStream::connect(client.socket())?;
    write!(slow, "GET /v1/events?alive=100ms HTTP/1.1\r\nHost: wok\r\n\r\n")?;
    // It is answered, so it follows.
    slow.read_exact(&mut [0; 12])?;
    let mut told = 0;
    while told < FAR_TOO_MANY {
        let answer = client.post("/v1/recipes/orders/call/emit-flood", &flood()).await?;
        assert_eq!(answer.status, 200, "{answer:?}");
        let lines = told_until(&mut everybody, |line| line["event"] == "ended").await?;
        told += count(&lines, |line| line["event"] != "alive");
    }
    let (mut read, mut missed) = (0, None);
    let lines = read_until(slow, move |line| {
        missed = dropped(line).or(missed);
        read += u64::from(line["event"] != "alive");
        missed.is_some_and(|missed| read + missed == told)
    });
    let lines = lines.await?;
    let said = lines.iter().position(|line| dropped(line).is_some()).context("a count")?;
    let behind = count(&lines[said..], |line| line["event"] != "alive");
    assert!(behind > 0, "it is said where the lines are missing: {said} of {}", lines.len());
    Ok(())
}

#[tokio::test]
async fn an_app_that_does_not_read_is_told_how_many_events_were_dropped() -> Result<()> {
    let server = zookeeper::shared().await;
    let (_directory, module) = guests::guest_file("hostile")?;
    let serving = serve(server.address(), "", &orders_of(&module)).await?;
    let client = serving.client();
    let mut everybody = client.follow("GET", "/v1/events", &Value::Null).await?;
    let join = json!({ "call": { "emit-flood": flood() } });
    let slow = mute(&client, "/v1/recipes/orders/join?alive=100ms", &join)?;
    let is_flood = |line: &Value| line["name"] == "flood";
    let mut told = told_until(&mut everybody, is_flood).await?;
    eventually("the flood to be over", async || {
        let list = client.get("/v1/participants").await?.body;
        Ok((list["participants"][0]["operation"] == Value::Null).then_some(()))
    })
    .await?;
    // From the answer on nothing is dropped any more.
    let mut is_answered = false;
    let read = read_until(slow, move |line| {
        is_answered |= line["event"] == "answered";
        is_answered && dropped(line).is_some()
    });
    let read = read.await?;
    let missed = read.last().and_then(dropped).context("a count")?;
    // What is told after all of it.
    let marker = json!({ "event": "marker" });
    let marked = client.post("/v1/recipes/orders/call/emit-as", &marker).await?;
    assert_eq!(marked.status, 200, "{marked:?}");
    told.extend(told_until(&mut everybody, |line| line["name"] == "marker").await?);
    let (read, told) = (count(&read, is_flood), count(&told, is_flood));
    assert!(missed > 0, "{told} were told");
    assert_eq!(read + missed, told, "{read} were read, and {missed} dropped");
    Ok(())
}

#[tokio::test]
async fn who_does_not_read_keeps_no_daemon_from_ending() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let mut mute = Vec::new();
    for path in ["/v1/events", "/v1/openapi.json", "/v1/logs?follow=true"] {
        let mut stream = UnixStream::connect(client.socket())?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: wok\r\n\r\n")?;
        // It is answered, and more than the head is not read.
        stream.read_exact(&mut [0; 12])?;
        mute.push(stream);
    }
    serving.daemon.signal(Signal::TERM)?;
    assert_eq!(serving.daemon.ended().await?.code(), Some(0));
    drop(mute);
    Ok(())
}
