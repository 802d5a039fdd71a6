//! Ten thousand participants that wait for one lock in one process, with the default config, beside
//! the same against the client crate alone.
//!
//! Each in a process of its own, as the [`waiters`](crate::waiters) are. One session has room for a
//! thousand of wok's participants, so the host opens ten. The client crate alone has one session,
//! which it could not keep after a reconnect: it watches more than fits into a frame. At most
//! [`AT_A_TIME`] of its waiters join at a time, as a server of a gigabyte does not survive it if
//! thousands of its long lists wait to be sent.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use wok::config::Config;
use wok::daemon::Prepared;
use wok::epochs::{Epochs, Joined};
use wok::guest::Arguments;
use wok::participant::{Call, Follower, Notice, Participant};
use wok_tests::patience::eventually;

use crate::ground::Ground;
use crate::measure::{cpu_time, proportional_bytes_of};
use crate::native;
use crate::report::{Bound, Row};

/// The option that makes this program the child.
pub(crate) const IN_CHILD: &str = "--crowd-in-child";

const ROUNDS: usize = 3;
const PARTICIPANTS: u32 = 10_000;
const AT_A_TIME: usize = 128;

/// Far longer than a crowd takes: what stops a hang.
const PATIENCE: Duration = Duration::from_secs(600);

/// Over which the processor time of a crowd that only waits is counted.
const WAITING: Duration = Duration::from_secs(5);

const MOUNT: &str = "/locks/orders";
const NATIVE_DIRECTORY: &str = "/native-crowd";

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let (mut wok, mut native) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Each goes first in every other round.
        for turn in 0..2 {
            match (round + turn) % 2 {
                0 => wok.push(in_child(ground, "wok")?),
                _ => native.push(in_child(ground, "native")?),
            }
        }
    }
    let samples = |rounds: &[Value], figure: &str| -> Result<Vec<f64>> {
        let figures = rounds.iter().map(|it| it.get(figure).and_then(Value::as_f64));
        figures.collect::<Option<Vec<f64>>>().with_context(|| format!("no {figure}"))
    };
    let row = |what: &str, unit, samples| Row::new(format!("10,000: {what}"), unit, samples);
    let (ours, theirs) = (samples(&wok, "seconds")?, samples(&native, "seconds")?);
    Ok(vec![
        row("memory of a waiter, wok", "KiB", samples(&wok, "kib-each")?)
            .bound(Bound::AtMost(42.0)),
        row("memory of a waiter, native", "KiB", samples(&native, "kib-each")?),
        Row::ratio("10,000: until all stand in line, wok to native", &ours, &theirs)
            .bound(Bound::AtMost(1.5)),
        row("until all stand in line, wok", "s", ours),
        row("until all stand in line, native", "s", theirs),
        row("processor time until then, wok", "s", samples(&wok, "cpu-seconds")?),
        row("processor time until then, native", "s", samples(&native, "cpu-seconds")?),
        row("processor time of a second of waiting, wok", "ms", samples(&wok, "waiting-ms")?),
        row("processor time of a second of waiting, native", "ms", samples(&native, "waiting-ms")?),
        row("sessions, wok", "", samples(&wok, "sessions")?),
    ])
}

fn in_child(ground: &Ground, who: &str) -> Result<Value> {
    let child = Command::new(std::env::current_exe()?)
        .args([IN_CHILD, who, ground.server.address()])
        .env("WOK_CACHE_DIR", ground.cache())
        .output()
        .context("start the child")?;
    if !child.status.success() {
        bail!("the child failed: {}", String::from_utf8_lossy(&child.stderr));
    }
    // The next crowd finds none of this one.
    let server = &ground.server;
    ground.native.block_on(eventually("the end of the crowd", async || {
        let left =
            server.counter("zk_watch_count").await? + server.counter("zk_ephemerals_count").await?;
        Ok((left == 0.0).then_some(()))
    }))?;
    Ok(serde_json::from_slice(&child.stdout)?)
}

/// What the child does: prints the figures.
pub(crate) fn measure(who: &str, address: &str) -> Result<()> {
    let runtime = Runtime::new()?;
    let figures = runtime.block_on(async {
        let measured = async {
            match who {
                "wok" => wok(address).await,
                _ => native(address).await,
            }
        };
        tokio::time::timeout(PATIENCE, measured).await.context("the crowd takes too long")?
    })?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

/// What is measured while a crowd forms.
struct Figures {
    /// The process's proportional share, in bytes.
    memory: f64,
    cpu: Duration,
    start: Instant,
}

impl Figures {
    fn start() -> Result<Self> {
        Ok(Figures {
            memory: proportional_bytes_of("self")?,
            cpu: cpu_time(),
            start: Instant::now(),
        })
    }

    /// Waits until the server counts all the watches, and tells what it came to.
    async fn finish(self, address: &str, sessions: usize) -> Result<Value> {
        let watches = f64::from(PARTICIPANTS - 1);
        while counter(address, "zk_watch_count").await? < watches {
            // tidy: nothing announces it.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (seconds, cpu) = (self.start.elapsed().as_secs_f64(), cpu_time());
        let each = (proportional_bytes_of("self")? - self.memory) / f64::from(PARTICIPANTS);
        let (waiting, before) = (Instant::now(), cpu_time());
        // tidy: the window that is measured.
        tokio::time::sleep(WAITING).await;
        let waiting = (cpu_time() - before).as_secs_f64() / waiting.elapsed().as_secs_f64();
        Ok(json!({
            "seconds": seconds,
            "cpu-seconds": (cpu - self.cpu).as_secs_f64(),
            "kib-each": each / 1024.0,
            "waiting-ms": waiting * 1e3,
            "sessions": sessions,
        }))
    }
}

/// One of the server's own counters, as a process asks for it that did not start the server.
async fn counter(address: &str, name: &str) -> Result<f64> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"mntr").await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    let mut pairs = said.lines().filter_map(|line| line.split_once('\t'));
    let (_, value) = pairs.find(|(it, _)| *it == name).with_context(|| format!("no {name}"))?;
    Ok(value.trim().parse()?)
}

/// As a user has it: nothing but the servers and the recipe is configured.
async fn prepared(address: &str) -> Result<Epochs> {
    let text = format!(
        "[zookeeper]\nconnect = \"{address}\"\nacl = \"open\"\n\
         [recipes.orders]\nmodule = \"lock\"\nmount = \"{MOUNT}\"\n"
    );
    let loaded = Config::parse(&text, Path::new("wok.toml"))?;
    Ok(Prepared::new(&loaded).await?.into_epochs())
}

async fn wok(address: &str) -> Result<Value> {
    let epochs = prepared(address).await?;
    let module = epochs.recipes().next().context("one recipe")?.module.clone();
    let arguments = |operation: &str| module.arguments(operation, &Value::Null);
    let (acquire, release) = (arguments("acquire")?, arguments("release")?);
    epochs.open().await?;
    // The pages of this program itself, which the first one brings in, are no waiter's.
    let Joined { participant, mut follower, .. } = epochs.join("orders").await?;
    call(&participant, &acquire).await?;
    call(&participant, &release).await?;
    drop(participant);
    while follower.next().await.is_some() {}

    let figures = Figures::start()?;
    let (mut acquiring, mut followers) = (JoinSet::new(), Vec::new());
    let mut sessions = BTreeSet::new();
    for _ in 0..PARTICIPANTS {
        let Joined { participant, follower, epoch } = epochs.join("orders").await?;
        sessions.insert(epoch.session.id());
        let acquire = acquire.clone();
        acquiring.spawn(async move {
            call(&participant, &acquire).await?;
            anyhow::Ok(participant)
        });
        followers.push(follower);
    }
    try_join_all(followers.iter_mut().map(until_waiting)).await?;
    let figures = figures.finish(address, sessions.len()).await?;

    // All is well with those in line: the lock goes to the second.
    for _ in 0..2 {
        let holder = acquiring.join_next().await.context("nobody is in line")??;
        call(&holder?, &release).await?;
    }
    epochs.close().await;
    Ok(figures)
}

async fn call(participant: &Participant, arguments: &Arguments) -> Result<()> {
    let call = Call { arguments: arguments.clone(), deadline: None, withdrawn: None };
    let answer = participant.call(call).await?;
    ensure!(answer.value.is_ok(), "it answered {:?}", answer.value);
    Ok(())
}

async fn until_waiting(follower: &mut Follower) -> Result<()> {
    while let Some(notice) = follower.next().await {
        if matches!(notice, Notice::Waiting { .. }) {
            return Ok(());
        }
    }
    bail!("a participant ended before it stood in line")
}

async fn native(address: &str) -> Result<Value> {
    let client = native::connect(address).await?;
    let lock = native::Lock::new(client, NATIVE_DIRECTORY).await?;
    lock.cycle_alone().await?;
    let figures = Figures::start()?;
    let (mut acquiring, joining) = (JoinSet::new(), Arc::new(Semaphore::new(AT_A_TIME)));
    for _ in 0..PARTICIPANTS {
        let turn: OwnedSemaphorePermit = Arc::clone(&joining).acquire_owned().await?;
        let lock = lock.clone();
        acquiring.spawn(async move { lock.acquire_and_tell(turn).await });
    }
    let figures = figures.finish(address, 1).await?;
    for _ in 0..2 {
        let holder = acquiring.join_next().await.context("nobody is in line")??;
        lock.release(holder?).await?;
    }
    Ok(figures)
}
