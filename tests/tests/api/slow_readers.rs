//! Apps that do not read what they are told.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::Result;
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::api::{Client, serve};
use wok_tests::patience::eventually;
use wok_tests::process::Signal;
use wok_tests::zookeeper;

use super::LOCK;

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
    assert_eq!(states(&client).await?, ["next held"]);
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
