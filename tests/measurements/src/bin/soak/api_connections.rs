//! Ten thousand connections to the local API that say nothing, or a byte in a second, and then so many more
//! that all places stay taken: beyond the limit each is refused, and the daemon keeps its session as if they
//! were not there.

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
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::Proxy;
use wok_tests::zookeeper;

use crate::{Length, Options, figure};

const CONNECTIONS: usize = 10_000;

/// What `connections` in `[api]` is by default.
const LIMIT: usize = 4_096;

/// How many more come in a second than there are places.
const BEYOND: usize = 500;

/// Of the daemon's session.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// What is sent byte by byte.
const REQUEST: &[u8] = b"GET /v1/recipes HTTP/1.1\r\nHost: wok\r\n";

const RECIPE: &str = "[recipes.orders]\nmodule = \"lock\"\nmount = \"/orders\"\n";

/// Those that are connected, and what has become of the others.
#[derive(Debug, Default)]
struct Crowd {
    open: Vec<UnixStream>,
    refused: usize,
    closed: usize,
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
    let mut crowd = Crowd::default();
    crowd.grow(&serving, CONNECTIONS).await?;
    crowd.settle().await?;
    let beyond = CONNECTIONS - LIMIT;
    // Some of the first may have been given up meanwhile, and have made place for others.
    ensure!(crowd.refused >= beyond * 9 / 10, "only {} were told why", crowd.refused);
    let mut taken = Vec::with_capacity(seconds);
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    for second in 0..seconds {
        ticks.tick().await;
        let byte = REQUEST.get(second % REQUEST.len()).context("a byte")?;
        for dripping in crowd.open.iter_mut().step_by(2) {
            // One that was given up meanwhile is closed.
            dripping.write_all(&[*byte]).await.ok();
        }
        crowd.look()?;
        let free = LIMIT.saturating_sub(crowd.open.len());
        crowd.grow(&serving, free + BEYOND).await?;
        taken.push(crowd.settle().await?);
    }
    // The daemon may give many of them up at the very moment of a look, but not at most looks.
    taken.sort_unstable();
    let usual = *taken.get(seconds / 2).context("a look")?;
    ensure!(usual >= LIMIT * 9 / 10, "only {usual} of {LIMIT} places were taken");
    let Crowd { refused, closed, .. } = crowd;
    let least = beyond * 9 / 10 + seconds * BEYOND / 2;
    ensure!(refused >= least, "only {refused} were told why, of {least} at least");
    while let Some(line) = holder.next().now_or_never() {
        let line = line?.context("the holder's stream is over")?;
        let event = line.get("event").context("an event")?;
        ensure!(event == "alive" || event == "answered", "the holder was told {line}");
    }
    let latest = latest_heartbeat(&proxy)?;
    ensure!(latest <= SESSION_TIMEOUT / 3, "a heartbeat came after {latest:?}");
    figure(&format!(
        "{CONNECTIONS} connections, and for {seconds} s as many as keep {usual} places taken: {refused} \
         refused, {closed} closed; the latest heartbeat came after {latest:.2?}, of a timeout of {SESSION_TIMEOUT:?}"
    ));
    Ok(())
}

/// Connects, and waits as long as the listener's queue is full. A crowd that asked again after pauses would
/// grow for so long that the daemon would have given up its first connections meanwhile.
async fn connect(serving: &Serving) -> Result<UnixStream> {
    let socket = serving.socket().to_owned();
    let connecting =
        tokio::task::spawn_blocking(|| std::os::unix::net::UnixStream::connect(socket));
    let connection = within("a connection", connecting).await???;
    connection.set_nonblocking(true)?;
    Ok(UnixStream::from_std(connection)?)
}

impl Crowd {
    async fn grow(&mut self, serving: &Serving, by: usize) -> Result<()> {
        self.open.reserve(by);
        for _ in 0..by {
            self.open.push(connect(serving).await?);
        }
        Ok(())
    }

    /// Counts those that are not open any more, and forgets them.
    fn look(&mut self) -> Result<()> {
        let mut answer = [0; 64];
        for connection in std::mem::take(&mut self.open) {
            match connection.try_read(&mut answer) {
                Ok(_) if answer.starts_with(b"HTTP/1.1 503") => self.refused += 1,
                Ok(_) => self.closed += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.open.push(connection),
                // What was sent last came to a connection that was closed.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => self.closed += 1,
                Err(error) => return Err(error.into()),
            }
            answer.fill(0);
        }
        Ok(())
    }

    /// Waits until all of them have been let in or refused; answers how many have a place.
    async fn settle(&mut self) -> Result<usize> {
        eventually("those without a place to be refused", async || {
            self.look()?;
            Ok((self.open.len() <= LIMIT).then_some(self.open.len()))
        })
        .await
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
