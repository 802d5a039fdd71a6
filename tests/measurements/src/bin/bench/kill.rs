//! From the death of a holder's `wok` to the start of the next one's command.
//!
//! The server tells that the holder is gone when its session has expired: at the end of the tick
//! in which its timeout passed. What is wok's of the figure comes after that.

use std::time::{Duration, Instant};

use anyhow::Result;
use wok_tests::patience::eventually;
use wok_tests::process::{Program, Running, Signal};
use wok_tests::zookeeper::{Options, Server};

use crate::ground::Ground;
use crate::report::{Bound, Row};

const ROUNDS: usize = 5;

const TIMEOUT: Duration = Duration::from_secs(4);
const TICK: Duration = Duration::from_millis(500);

/// What may be added to the server's part.
const MARGIN: Duration = Duration::from_millis(250);

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let taken = ground.native.block_on(async {
        let server = Server::start(Options::default().tick(TICK)).await?;
        let mut taken = Vec::new();
        for round in 0..ROUNDS {
            taken.push(hand_over(&server, &format!("/kill-{round}")).await?.as_secs_f64());
        }
        anyhow::Ok(taken)
    })?;
    let most = (TIMEOUT + TICK + MARGIN).as_secs_f64();
    Ok(vec![
        Row::new("from kill -9 of the holder to the next command, the slowest", "s", taken)
            .slowest()
            .bound(Bound::AtMost(most)),
    ])
}

async fn hand_over(server: &Server, path: &str) -> Result<Duration> {
    let holder = start(server, path)?;
    holder.wait_for_text("started").await?;
    let waiter = start(server, path)?;
    waiter.wait_for_text("standing in line").await?;
    let watches = format!("a watch on {path}");
    eventually(&watches, async || {
        Ok((server.counter("zk_watch_count").await? >= 1.0).then_some(()))
    })
    .await?;
    let killed = Instant::now();
    holder.signal(Signal::KILL)?;
    let started = waiter.wait_for_text("started").await?.at;
    Ok(started - killed)
}

fn start(server: &Server, path: &str) -> Result<Running> {
    Program::wok()?
        .args(["lock", "--connect", server.address(), "--session-timeout", "4s", path])
        .args(["--", "sh", "-c", "echo started; exec sleep 3600"])
        .start()
}
