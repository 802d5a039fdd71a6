//! Puts items into a queue, or takes them: `jobs put RECIPE ITEM...` or `jobs take RECIPE [COUNT]`
//!
//! `take` ends with 0 after that many items, or goes on without COUNT. It joins again when its participant has
//! ended or wok is gone. It ends with 76 when an item that it worked on has been lost meanwhile.

#![allow(clippy::indexing_slicing, reason = "JSON answers null for a key that is not there")]

use std::io::{BufRead, BufReader, Read, Write, copy, sink};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
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
    let (mut joined, mut taken) = (None, 0);
    while taken < count {
        let (item, participant) = match next(recipe, &mut joined) {
            Ok(next) => next,
            Err(error) => {
                // Nothing is lost: what a participant has taken that has ended comes back. This one may not
                // have ended yet.
                writeln!(std::io::stderr(), "joining again: {error:#}")?;
                joined = None;
                #[allow(
                    clippy::disallowed_methods,
                    reason = "nothing tells when wok is there again"
                )]
                thread::sleep(Duration::from_secs(1));
                continue;
            }
        };
        let (data, fence) = (in_words(&item["data"]), &item["fence"]);
        // The item comes back to somebody else if this process dies here. So the work may be done
        // twice, and whatever is written to should refuse a fence that is lower than the highest it
        // has seen.
        say(&format!("took {data} with fence {fence}"))?;
        if let Err(error) = call(&format!("participants/{participant}/ack"), &json!({})) {
            say(&format!("lost: {error:#}"))?;
            process::exit(76);
        }
        say(&format!("done {data}"))?;
        taken += 1;
    }
    Ok(())
}

/// A participant, and the stream that keeps it.
struct Joined {
    participant: String,
    stream: UnixStream,
}

impl Drop for Joined {
    fn drop(&mut self) {
        // It fails where wok has hung up already.
        self.stream.shutdown(Shutdown::Both).ok();
    }
}

/// Takes an item, and joins first where there is no participant. Answers the item and who took it.
fn next(recipe: &str, joined: &mut Option<Joined>) -> Result<(Value, String)> {
    let joined = match joined {
        Some(joined) => joined,
        None => joined.insert(join(recipe)?),
    };
    let item = call(&format!("participants/{}/take", joined.participant), &json!({}))?;
    Ok((item, joined.participant.clone()))
}

fn join(recipe: &str) -> Result<Joined> {
    let mut stream = post(&format!("recipes/{recipe}/join"), &json!({}))?;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let told: Value = serde_json::from_str(&line)?;
    let participant = told["participant"].as_str().context("no participant")?.to_owned();
    let joined = Joined { participant, stream: stream.get_ref().try_clone()? };
    // The stream keeps the participant, so it has to be read, whatever it says.
    thread::spawn(move || copy(&mut stream, &mut sink()));
    Ok(joined)
}

fn call(path: &str, arguments: &Value) -> Result<Value> {
    let mut answer = String::new();
    post(path, arguments)?.read_to_string(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Posts on a connection of its own, and reads the head of the answer. The answer to HTTP/1.0 is not cut
/// into chunks: behind its head there is only JSON.
///
/// An error says that the participant has ended or is of no use, or that wok is gone or has no session.
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
    let told: Value = serde_json::from_reader(answer)?;
    let problem = format!("{path}: {}", told["message"].as_str().unwrap_or(&told.to_string()));
    match (status, told["error"].as_str()) {
        // The queue's own answer; this participant has ended; there is no session.
        ("409" | "410" | "503", _) => bail!(problem),
        // A daemon that was started again never knew this participant. Another 404 is `no-operation`: the
        // recipe is no queue, and never will be.
        (_, Some("not-found")) if path.starts_with("participants/") => bail!(problem),
        _ => {
            writeln!(std::io::stderr(), "{problem}")?;
            process::exit(1);
        }
    }
}

/// What is no text comes as `{"base64":"..."}`.
fn in_words(data: &Value) -> String {
    data.as_str().map_or_else(|| data.to_string(), str::to_owned)
}

fn socket() -> PathBuf {
    // A variable that is empty counts as one that is not set.
    let set = |name| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(socket) = set("WOK_SOCKET") {
        return socket;
    }
    let uid = rustix::process::geteuid();
    let runtime = match set("XDG_RUNTIME_DIR") {
        _ if uid.is_root() => "/run/wok".into(),
        Some(runtime) => runtime,
        None => env::temp_dir().join(format!("wok-{}", uid.as_raw())),
    };
    runtime.join("wok.sock")
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
