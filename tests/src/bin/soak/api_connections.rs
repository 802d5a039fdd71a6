//! Ten thousand connections to the local API that say nothing, or a byte in a second: beyond the limit
//! each is refused, and the daemon keeps its session as if they were not there.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::FutureExt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use wok_tests::api::{Serving, serve};
use wok_tests::frames::Opcode;
use wok_tests::patience::eventually;
use wok_tests::proxy::Proxy;
use wok_tests::zookeeper;

use crate::{Length, Options, figure};

const CONNECTIONS: usize = 10_000;

/// What `connections` in `[api]` is by default.
const LIMIT: usize = 4_096;

/// Of the daemon's session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// What is sent byte by byte.
const REQUEST: &[u8] = b"GET /v1/recipes HTTP/1.1\r\nHost: wok\r\n";

const RECIPE: &str = "[recipes.orders]\nmodule = \"lock\"\nmount = \"/orders\"\n";

/// What has become of them.
#[derive(Debug, Default)]
struct Counts {
    refused: usize,
    closed: usize,
    open: usize,
}

pub(crate) fn play(options: &Options) -> Result<()> {
    let seconds = if options.length == Length::Full { 60 } else { 5 };
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(crowd(seconds))
}

async fn crowd(seconds: usize) -> Result<()> {
    let proxy = Proxy::start(zookeeper::shared().await.address())?;
    let serving = serve(proxy.address(), "", RECIPE).await?;
    let mut holder =
        serving.client().stream("/v1/recipes/orders/join", &json!({ "call": "acquire" })).await?;
    holder.until("held").await?;
    proxy.clear_log();
    let mut crowd = Vec::with_capacity(CONNECTIONS);
    while crowd.len() < CONNECTIONS {
        crowd.push(connect(&serving).await?);
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    for second in 0..seconds {
        ticks.tick().await;
        let byte = REQUEST.get(second % REQUEST.len()).context("a byte")?;
        for dripping in crowd.iter_mut().step_by(2) {
            // One that was refused is closed.
            dripping.write_all(&[*byte]).await.ok();
        }
    }
    let mut counts = Counts::default();
    for connection in &crowd {
        counts.note(connection)?;
    }
    let Counts { refused, closed, open } = counts;
    ensure!(open <= LIMIT, "{open} are open, more than {LIMIT}");
    let beyond = CONNECTIONS - LIMIT;
    ensure!(refused + closed >= beyond, "only {refused} were refused, and {closed} closed");
    // One that goes on to send may not get to read why it was closed: half of them do.
    ensure!(refused >= beyond / 2, "only {refused} were told why");
    while let Some(line) = holder.next().now_or_never() {
        let line = line?.context("the holder's stream is over")?;
        let event = line.get("event").context("an event")?;
        ensure!(event == "alive" || event == "answered", "the holder was told {line}");
    }
    let latest = latest_heartbeat(&proxy)?;
    ensure!(latest <= SESSION_TIMEOUT / 3, "a heartbeat came after {latest:?}");
    figure(&format!(
        "{CONNECTIONS} connections for {seconds} s: {refused} refused, {closed} closed, {open} open; \
         the latest heartbeat came after {latest:.2?}, of a timeout of {SESSION_TIMEOUT:?}"
    ));
    Ok(())
}

/// Connects; a listener's queue has room for some.
async fn connect(serving: &Serving) -> Result<UnixStream> {
    eventually("a connection", async || Ok(UnixStream::connect(serving.socket()).await.ok())).await
}

impl Counts {
    fn note(&mut self, connection: &UnixStream) -> Result<()> {
        let mut answer = [0; 64];
        match connection.try_read(&mut answer) {
            Ok(_) if answer.starts_with(b"HTTP/1.1 503") => self.refused += 1,
            Ok(_) => self.closed += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.open += 1,
            // What was sent last came to a connection that was closed.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.closed += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// The longest time between two heartbeats. Nothing else is asked meanwhile.
fn latest_heartbeat(proxy: &Proxy) -> Result<Duration> {
    let log = proxy.log();
    let beats: Vec<_> =
        log.iter().filter(|seen| seen.opcode == Opcode::Multi).map(|seen| seen.at).collect();
    let pairs = beats.iter().zip(beats.iter().skip(1));
    pairs.map(|(one, next)| next.duration_since(*one)).max().context("no heartbeats")
}
