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

/// How long is counted: four heartbeats of the longest timeout.
const WINDOW: Duration = Duration::from_secs(12);

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
            let without = rate(&server).await?;
            let name = ContenderName {
                before: "_c_".into(),
                uuid: UuidForm::Hyphenated,
                after: "-lock-".into(),
            };
            let (path, _) = seat.contend("/heartbeats", name, Vec::new()).await?;
            seat.claim(&path).await?;
            let with = rate(&server).await?;
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

/// Transactions per second that the server carries out.
async fn rate(server: &Server) -> Result<f64> {
    let (before, start) = (zxid(server).await?, Instant::now());
    // tidy: the window that is measured.
    tokio::time::sleep(WINDOW).await;
    let after = zxid(server).await?;
    Ok((after - before) as f64 / start.elapsed().as_secs_f64())
}

/// The newest transaction.
async fn zxid(server: &Server) -> Result<i64> {
    let said = server.four_letter("srvr").await?;
    let number = said.lines().find_map(|line| line.strip_prefix("Zxid: 0x"));
    Ok(i64::from_str_radix(number.context("`srvr` tells no zxid")?.trim(), 16)?)
}
