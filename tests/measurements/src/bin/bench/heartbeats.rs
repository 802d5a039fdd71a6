//! What it costs the ensemble that a host may believe in its session: transactions per second.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wok::session::{ConnectOptions, ContenderName, SeatLimits, UuidForm, open};
use wok_tests::admin::Admin;
use wok_tests::zookeeper::{Options, Server};

use crate::ground::Ground;
use crate::report::{Bound, Row};

/// Session timeouts: the shortest that a server grants by default, wok's own, and a long one.
const TIMEOUTS: [Duration; 3] =
    [Duration::from_secs(4), Duration::from_secs(10), Duration::from_secs(30)];

/// A server's usual tick, which grants all of these.
const TICK: Duration = Duration::from_secs(2);

/// How long is counted at least: four heartbeats of the longest timeout.
const WINDOW: Duration = Duration::from_secs(12);

/// How often the server is asked which transaction is its newest. The question is not a transaction.
const LOOK: Duration = Duration::from_millis(20);

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    ground.wok.block_on(async {
        let server = Server::start(Options::default().tick(TICK)).await?;
        // No container, which the server would remove by a transaction of its own.
        Admin::connect(server.address()).await?.create("/heartbeats", b"").await?;
        let mut rows = Vec::new();
        for timeout in TIMEOUTS {
            let session = open(&ConnectOptions::new(server.address(), timeout)).await?;
            let seat = session.join("/heartbeats", SeatLimits::default())?;
            let without = rate(&server, timeout).await?;
            let name = ContenderName {
                before: "_c_".into(),
                uuid: UuidForm::Hyphenated,
                after: "-lock-".into(),
            };
            let (path, _) = seat.contend("/heartbeats", name, Vec::new()).await?;
            seat.claim(&path).await?;
            // By then the servers' tick is learned, which takes two transactions of its own.
            // tidy: what is not measured.
            tokio::time::sleep(timeout).await;
            let with = rate(&server, timeout).await?;
            drop(seat);
            session.close().await;
            let what =
                |what: &str| format!("{} s: transactions of a host {what}", timeout.as_secs());
            let most = 10.0 / timeout.as_secs_f64();
            rows.push(Row::new(what("with a claim"), "1/s", vec![with]).bound(Bound::AtMost(most)));
            rows.push(
                Row::new(what("with an empty ledger"), "1/s", vec![without])
                    .bound(Bound::AtMost(0.0)),
            );
        }
        Ok(rows)
    })
}

/// Transactions per second that the server carries out: from one that the server is seen to carry
/// out to another, so that what is counted are the times between them and not one more.
async fn rate(server: &Server, timeout: Duration) -> Result<f64> {
    // A host that beats does so ten times in a session timeout: one that sends nothing for as long never
    // beats.
    let Some((first, start)) = next(server, zxid(server).await?, timeout.max(WINDOW)).await? else {
        return Ok(0.0);
    };
    let (mut newest, mut end) = (first, start);
    while end - start < WINDOW {
        let next = next(server, newest, timeout).await?;
        (newest, end) = next.context("the transactions have stopped")?;
    }
    Ok((newest - first) as f64 / (end - start).as_secs_f64())
}

/// The newest transaction and when it was seen, once there is a newer one than `known`.
async fn next(server: &Server, known: i64, limit: Duration) -> Result<Option<(i64, Instant)>> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        let newest = zxid(server).await?;
        if newest > known {
            return Ok(Some((newest, Instant::now())));
        }
        // tidy: the server is asked again.
        tokio::time::sleep(LOOK).await;
    }
    Ok(None)
}

/// The newest transaction.
async fn zxid(server: &Server) -> Result<i64> {
    let said = server.four_letter("srvr").await?;
    let number = said.lines().find_map(|line| line.strip_prefix("Zxid: 0x"));
    Ok(i64::from_str_radix(number.context("`srvr` tells no zxid")?.trim(), 16)?)
}
