//! Memory of participants that wait for one lock on one session.
//!
//! Measured in a process of its own: memory that something else has freed would be used again and
//! not be counted. The compiled module comes from the cache, as at any start but the first. One
//! participant has come and gone before: the pages of this program itself, which the first one
//! brings in, are no waiter's.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use wok::base::Base;
use wok::participant::{Follower, Notice};
use wok::session::{Failure, Session};
use wok_tests::patience::{eventually, within};
use wok_tests::zookeeper::Server;

use crate::ground::{self, Ground};
use crate::lock::{Contender, Lock};
use crate::measure::proportional_bytes_of;
use crate::report::{Bound, Row};

/// The option that makes this program the child.
pub(crate) const IN_CHILD: &str = "--waiters-in-child";

const ROUNDS: usize = 3;
const PARTICIPANTS: u32 = 1_000;

/// More than the watch budget has room for, so that the budget refuses and not the pool.
const POOL: u32 = 2_000;

const MOUNT: &str = "/locks/orders";

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    // Fills the compile cache.
    Lock::load(&ground.host(1)?, MOUNT)?;
    let (mut each, mut joined) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let child = Command::new(std::env::current_exe()?)
            .arg(IN_CHILD)
            .arg(ground.cache())
            .output()
            .context("start the child")?;
        if !child.status.success() {
            bail!("the child failed: {}", String::from_utf8_lossy(&child.stderr));
        }
        let figures: Value = serde_json::from_slice(&child.stdout)?;
        let figure = |name: &str| figures.get(name).and_then(Value::as_f64).context("no figure");
        each.push(figure("bytes-each")? / 1024.0);
        joined.push(figure("joined")?);
    }
    Ok(vec![
        Row::new("memory of a waiter, of 1,000 on one session", "KiB", each)
            .bound(Bound::AtMost(40.0)),
        Row::new("participants of one session until one is refused", "", joined)
            .bound(Bound::AtLeast(PARTICIPANTS.into())),
    ])
}

/// What the child does: prints the figures.
pub(crate) fn measure(cache: &Path) -> Result<()> {
    let runtime = Runtime::new()?;
    let server = runtime.block_on(Server::start(ground::server_options()))?;
    let host = ground::host(&runtime, server.address(), cache, POOL)?;
    let lock = Lock::load(&host, MOUNT)?;
    let figures = runtime.block_on(async {
        let session = host.open_session().await?;
        come_and_go(&host, &lock, &session).await?;
        let line = Line::form(&server, &host, &lock, &session).await?;
        let bytes_each = line.bytes_each;
        let joined = line.overfill(&host, &lock, &session)?;
        line.hand_over().await?;
        anyhow::Ok(json!({ "bytes-each": bytes_each, "joined": joined }))
    })?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

async fn come_and_go(host: &Base, lock: &Lock, session: &Arc<Session>) -> Result<()> {
    let (contender, mut follower) = lock.join(host, session)?;
    within("the lock", contender.acquire()).await??;
    contender.release().await?;
    drop(contender);
    let ended = async { while follower.next().await.is_some() {} };
    within("a participant to end", ended).await
}

/// Participants that wait, behind one that holds.
struct Line {
    acquiring: JoinSet<Result<Contender>>,
    bytes_each: f64,
    _followers: Vec<Follower>,
}

impl Line {
    async fn form(
        server: &Server,
        host: &Base,
        lock: &Lock,
        session: &Arc<Session>,
    ) -> Result<Self> {
        let before = proportional_bytes_of("self")?;
        let mut acquiring = JoinSet::new();
        let mut followers = Vec::new();
        for _ in 0..PARTICIPANTS {
            let (contender, follower) = lock.join(host, session)?;
            acquiring.spawn(async move {
                contender.acquire().await?;
                Ok(contender)
            });
            followers.push(follower);
        }
        let standing = try_join_all(followers.iter_mut().map(until_waiting));
        within("all participants to stand in line", standing).await??;
        // Each watches its predecessor; the holder shares the watch of the one behind it.
        let watches = f64::from(PARTICIPANTS - 1);
        eventually("all watches to be set", async || {
            Ok((server.counter("zk_watch_count").await? >= watches).then_some(()))
        })
        .await?;
        let bytes_each = (proportional_bytes_of("self")? - before) / f64::from(PARTICIPANTS);
        Ok(Line { acquiring, bytes_each, _followers: followers })
    }

    /// Joins more, which do nothing, until one is refused; answers how many there were then.
    fn overfill(&self, host: &Base, lock: &Lock, session: &Arc<Session>) -> Result<usize> {
        let mut more = Vec::new();
        let refusal = loop {
            match lock.join(host, session) {
                Ok(joined) => more.push(joined),
                Err(refusal) => break refusal,
            }
        };
        match refusal {
            Failure::OverLimit(text) if text.contains(MOUNT) => {}
            other => bail!("one participant too many was refused with {other:?}"),
        }
        Ok(self.acquiring.len() + more.len())
    }

    /// All is well with those in line: the lock goes to the second.
    async fn hand_over(mut self) -> Result<()> {
        for _ in 0..2 {
            let next = within("the lock", self.acquiring.join_next()).await?;
            let holder = next.context("nobody is in line")???;
            holder.release().await?;
        }
        self.acquiring.shutdown().await;
        Ok(())
    }
}

async fn until_waiting(follower: &mut Follower) -> Result<()> {
    while let Some(notice) = follower.next().await {
        if matches!(notice, Notice::Waiting { .. }) {
            return Ok(());
        }
    }
    bail!("a participant ended before it stood in line")
}
