//! Puts items into a queue, or takes them: `jobs put RECIPE ITEM...` or `jobs take RECIPE [COUNT]`
//!
//! `take` ends with 0 after that many items, or goes on without COUNT. It ends with 76 when an item that
//! it worked on has been lost meanwhile.

#![allow(clippy::indexing_slicing, reason = "JSON answers null for a key that is not there")]

use std::io::{BufRead, BufReader, Read, Write, copy, sink};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::{env, process, thread};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["put", recipe, items @ ..] => put(recipe, items),
        ["take", recipe] => take(recipe, usize::MAX),
        ["take", recipe, count] => take(recipe, count.parse()?),
        _ => bail!("usage: jobs put RECIPE ITEM... | jobs take RECIPE [COUNT]"),
    }
}

fn put(recipe: &str, items: &[&str]) -> Result<()> {
    for item in items {
        call(&format!("recipes/{recipe}/call/put"), &json!({ "data": item }))?;
        say(&format!("put {item}"))?;
    }
    Ok(())
}

fn take(recipe: &str, count: usize) -> Result<()> {
    // The stream keeps the participant, so it has to be read, whatever it says.
    let mut stream = post(&format!("recipes/{recipe}/join"), &json!({}))?;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let joined: Value = serde_json::from_str(&line)?;
    let participant = joined["participant"].as_str().context("no participant")?;
    thread::spawn(move || copy(&mut stream, &mut sink()));
    for _ in 0..count {
        let item = call(&format!("participants/{participant}/take"), &json!({}))?;
        let (data, fence) = (item["data"].as_str().context("not text")?, &item["fence"]);
        // The item comes back to somebody else if this process dies here. So the work may be done
        // twice, and whatever is written to should refuse a fence that is lower than the highest it
        // has seen.
        say(&format!("took {data} with fence {fence}"))?;
        call(&format!("participants/{participant}/ack"), &json!({}))?;
        say(&format!("done {data}"))?;
    }
    Ok(())
}

fn call(path: &str, arguments: &Value) -> Result<Value> {
    let mut answer = String::new();
    post(path, arguments)?.read_to_string(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Posts on a connection of its own, and reads the head of the answer. The answer to HTTP/1.0 is not cut
/// into chunks: behind its head there is only JSON.
fn post(path: &str, body: &Value) -> Result<BufReader<UnixStream>> {
    let mut stream = UnixStream::connect(socket()).context("connect to wok")?;
    let body = body.to_string();
    let head = format!("POST /v1/{path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes())?;
    let mut answer = BufReader::new(stream);
    let (mut status, mut line) = (String::new(), String::new());
    answer.read_line(&mut status)?;
    while line != "\r\n" {
        line.clear();
        ensure!(answer.read_line(&mut line)? > 0, "{path}: the answer broke off");
    }
    let status = status.split(' ').nth(1).unwrap_or_default();
    if status == "200" {
        return Ok(answer);
    }
    let mut error = String::new();
    answer.read_to_string(&mut error)?;
    // 409 is the queue's own answer, 410 that this participant has ended.
    if ["409", "410"].contains(&status) {
        say(&format!("lost: {}", error.trim_end()))?;
        process::exit(76);
    }
    bail!("{path}: {error}")
}

fn socket() -> PathBuf {
    if let Some(socket) = env::var_os("WOK_SOCKET") {
        return socket.into();
    }
    let uid = rustix::process::geteuid();
    let runtime = match env::var_os("XDG_RUNTIME_DIR") {
        _ if uid.is_root() => "/run/wok".into(),
        Some(runtime) => runtime.into(),
        None => PathBuf::from(format!("/tmp/wok-{}", uid.as_raw())),
    };
    runtime.join("wok.sock")
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
