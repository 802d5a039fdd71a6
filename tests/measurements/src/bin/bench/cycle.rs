//! An acquire and its release right behind it, with nobody else about.

use std::time::Instant;

use anyhow::Result;

use crate::ground::Ground;
use crate::lock::{Contender, Lock};
use crate::measure::{cpu_time, median};
use crate::native;
use crate::report::{Bound, Row};

const ROUNDS: usize = 20;
const CYCLES: usize = 400;

/// What the rounds of one contender came to.
#[derive(Default)]
struct Figures {
    /// Microseconds, the median of each round.
    cycle: Vec<f64>,
    /// Seconds of processor time for 1,000 cycles.
    cpu: Vec<f64>,
    /// What the server received for one cycle.
    requests: Vec<f64>,
}

impl Figures {
    fn add(&mut self, ground: &Ground, round: impl FnOnce() -> Result<Vec<f64>>) -> Result<()> {
        let (cpu, packets) = (cpu_time(), ground.counter("zk_packets_received")?);
        let cycles = round()?;
        let packets = ground.counter("zk_packets_received")? - packets;
        let count = cycles.len() as f64;
        self.cpu.push((cpu_time() - cpu).as_secs_f64() / count * 1e3);
        self.requests.push(packets / count);
        self.cycle.push(median(&cycles));
        Ok(())
    }
}

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let host = ground.host(4)?;
    let session = ground.session(&host)?;
    let (contender, _follower) = {
        let _on_this_runtime = ground.wok.enter();
        Lock::load(&host, "/cycle-wok")?.join(&host, &session)?
    };
    let address = ground.server.address();
    let lock = ground.native.block_on(async {
        native::Lock::new(native::connect(address).await?, "/cycle-native").await
    })?;

    let contender = std::sync::Arc::new(contender);
    let (mut wok, mut native) = (Figures::default(), Figures::default());
    for round in 0..=ROUNDS {
        let mut wok_round = || {
            let contender = contender.clone();
            // On the runtime's own threads, as a server's requests are.
            wok.add(ground, || ground.wok.block_on(ground.wok.spawn(wok_cycles(contender)))?)
        };
        let mut native_round = || {
            let lock = lock.clone();
            native
                .add(ground, || ground.native.block_on(ground.native.spawn(native_cycles(lock)))?)
        };
        // Each goes first in every other round.
        if round % 2 == 0 {
            wok_round()?;
            native_round()?;
        } else {
            native_round()?;
            wok_round()?;
        }
        if round == 0 {
            (wok, native) = Default::default();
        }
    }
    ground.wok.block_on(session.close());
    Ok(vec![
        Row::ratio("cycle, wok to native", &wok.cycle, &native.cycle).bound(Bound::AtMost(0.87)),
        Row::new("cycle, wok", "us", wok.cycle),
        Row::new("cycle, native", "us", native.cycle),
        Row::new("processor time of 1,000 cycles, wok", "s", wok.cpu),
        Row::new("processor time of 1,000 cycles, native", "s", native.cpu),
        // The own znode is not watched for so short a time, or mostly not.
        Row::new("requests of a cycle, wok", "", wok.requests).bound(Bound::AtMost(3.1)),
        Row::new("requests of a cycle, native", "", native.requests),
    ])
}

async fn wok_cycles(contender: std::sync::Arc<Contender>) -> Result<Vec<f64>> {
    let mut cycles = Vec::with_capacity(CYCLES);
    for _ in 0..CYCLES {
        let start = Instant::now();
        contender.acquire().await?;
        contender.release().await?;
        cycles.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(cycles)
}

async fn native_cycles(lock: native::Lock) -> Result<Vec<f64>> {
    let mut cycles = Vec::with_capacity(CYCLES);
    for _ in 0..CYCLES {
        let start = Instant::now();
        lock.cycle_alone().await?;
        cycles.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(cycles)
}
