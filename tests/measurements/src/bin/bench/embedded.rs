//! wok's own server beside Apache ZooKeeper: both on the same disk, both with the log forced to it
//! before a reply.

mod client;
mod served;

use std::time::{Duration, Instant};

use anyhow::Result;
use wok_tests::scratch;
use wok_tests::zookeeper::Server;

use self::client::Client;
use self::served::Served;
use crate::ground::{self, Ground};
use crate::measure::{median, p99, resident_bytes_of};
use crate::report::{Bound, Row};

const ROUNDS: usize = 5;

/// Creates and deletes of a round, and gets.
const WRITES: usize = 8_000;
const READS: usize = 40_000;
/// Creates of a round that wait for one another.
const SINGLE: usize = 300;
const IN_FLIGHT: usize = 128;

/// What the servers are filled with.
const ZNODES: usize = 100_000;
const SESSIONS: usize = 1_000;

const MIB: f64 = 1024.0 * 1024.0;

/// The rounds of one server.
#[derive(Default)]
struct Figures {
    /// Requests per second.
    writes: Vec<f64>,
    reads: Vec<f64>,
    /// Milliseconds of one create.
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Figures {
    fn add(&mut self, address: &str, round: usize) -> Result<()> {
        let mut client = Client::connect(address)?;
        let path = format!("/bench-{round}");
        client.create(&path, &[b'x'; 100])?;
        self.writes.push(rate(WRITES, || client.create_and_delete(&path, WRITES, IN_FLIGHT))?);
        self.reads.push(rate(READS, || client.get(&path, READS, IN_FLIGHT))?);
        let mut single = Vec::with_capacity(SINGLE);
        for number in 0..SINGLE {
            let start = Instant::now();
            client.create(&format!("{path}/{number}"), b"")?;
            single.push(start.elapsed().as_secs_f64() * 1e3);
        }
        self.p50.push(median(&single));
        self.p99.push(p99(&single));
        client.close()
    }
}

fn rate(count: usize, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let directory = scratch::dir()?;
    let ours = Served::start(&directory.path().join("speed"))?;
    let (mut wok, mut apache) = (Figures::default(), Figures::default());
    for round in 0..=ROUNDS {
        // Each goes first in every other round.
        let servers = [(&mut wok, ours.address()), (&mut apache, ground.server.address())];
        let in_turn: Vec<_> = match round % 2 {
            0 => servers.into_iter().collect(),
            _ => servers.into_iter().rev().collect(),
        };
        for (figures, address) in in_turn {
            figures.add(address, round)?;
        }
        if round == 0 {
            (wok, apache) = Default::default();
        }
    }
    let mut rows = vec![
        Row::ratio("create and delete, wok to Apache", &wok.writes, &apache.writes)
            .bound(Bound::AtLeast(3.0)),
        Row::new(format!("create and delete, {IN_FLIGHT} in flight, wok"), "1/s", wok.writes),
        Row::new("the same, Apache ZooKeeper", "1/s", apache.writes),
        Row::new(format!("get, {IN_FLIGHT} in flight, wok"), "1/s", wok.reads),
        Row::new("the same, Apache ZooKeeper", "1/s", apache.reads),
        Row::ratio("one create, wok to Apache", &wok.p50, &apache.p50).bound(Bound::AtMost(0.7)),
        Row::new("one create, wok, p50", "ms", wok.p50),
        Row::new("one create, Apache ZooKeeper, p50", "ms", apache.p50),
        Row::new("one create, wok, p99", "ms", wok.p99),
        Row::new("one create, Apache ZooKeeper, p99", "ms", apache.p99),
    ];
    ours.stop()?;
    rows.extend(sizes(ground)?);
    Ok(rows)
}

/// Memory, and the time to the first answer.
fn sizes(ground: &Ground) -> Result<Vec<Row>> {
    let directory = scratch::dir()?;
    let (mut starts, mut empty, mut full) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let server = Served::start(&directory.path().join(format!("size-{round}")))?;
        starts.push(server.started_in().as_secs_f64() * 1e3);
        empty.push(server.resident_bytes()? / MIB);
        if round == 0 {
            let mut client = Client::connect(server.address())?;
            client.fill("/full", ZNODES, &[b'x'; 100], IN_FLIGHT)?;
            let address = server.address();
            let sessions = (0..SESSIONS).map(|_| Client::connect(address));
            let sessions = sessions.collect::<Result<Vec<_>>>()?;
            full.push(server.resident_bytes()? / MIB);
            drop(sessions);
        }
        server.stop()?;
    }
    let apache = ground.native.block_on(async {
        let server = Server::start(ground::server_options()).await?;
        resident_bytes_of(&server.pid()?.to_string())
    })? / MIB;
    Ok(vec![
        Row::ratio("memory when empty, wok to Apache", &empty, &[apache; ROUNDS])
            .bound(Bound::AtMost(0.1)),
        Row::new("memory when empty, wok", "MiB", empty),
        Row::new("memory when empty, Apache ZooKeeper", "MiB", vec![apache]),
        Row::new(format!("memory with {ZNODES} znodes and {SESSIONS} sessions, wok"), "MiB", full)
            .bound(Bound::AtMost(100.0)),
        Row::new("from its start to serving, wok", "ms", starts).bound(Bound::AtMost(50.0)),
    ])
}

/// What a reply of these servers may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(60);
