//! Many participants of one lock, on one session, each of which takes it again as soon as it has
//! given it back.
//!
//! wok has all connections of this process to the server send at once (`session/nodelay.rs`), those
//! of the client crate alone as well, which by itself lets a request wait for the one before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::ground::Ground;
use crate::lock::{Contender, Lock};
use crate::measure::cpu_time;
use crate::native;
use crate::report::{Bound, Row};

const ROUNDS: usize = 6;
const WINDOW: Duration = Duration::from_secs(3);

/// Over which the requests of idle sessions are counted.
const IDLE: Duration = Duration::from_secs(5);

/// What the rounds of one contender came to.
#[derive(Default)]
struct Figures {
    per_second: Vec<f64>,
    requests: Vec<f64>,
    cpu: Vec<f64>,
}

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for contenders in [16, 64] {
        rows.extend(bench_with(ground, contenders)?);
    }
    Ok(rows)
}

fn bench_with(ground: &Ground, contenders: u32) -> Result<Vec<Row>> {
    let host = ground.host(contenders)?;
    let session = ground.session(&host)?;
    let joined = {
        let _on_this_runtime = ground.wok.enter();
        let lock = Lock::load(&host, &format!("/contention-wok-{contenders}"))?;
        (0..contenders).map(|_| lock.join(&host, &session)).collect::<Result<Vec<_>, _>>()?
    };
    let participants: Vec<_> = joined.into_iter().map(|(it, _)| Arc::new(it)).collect();
    let lock = ground.native.block_on(async {
        let client = native::connect(ground.server.address()).await?;
        native::Lock::new(client, &format!("/contention-native-{contenders}")).await
    })?;

    let idle = idle_rate(ground)?;
    let (mut wok, mut native) = (Figures::default(), Figures::default());
    for round in 0..=ROUNDS {
        let mut wok_round = || {
            wok.add(ground, idle, |crowd| {
                participants.iter().cloned().for_each(|one| crowd.enter(&ground.wok, one));
                ground.wok.block_on(crowd.play())
            })
        };
        let mut native_round = || {
            native.add(ground, idle, |crowd| {
                (0..contenders).for_each(|_| crowd.enter(&ground.native, Arc::new(lock.clone())));
                ground.native.block_on(crowd.play())
            })
        };
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
    let row = |what: &str, unit, samples| Row::new(format!("{contenders}: {what}"), unit, samples);
    Ok(vec![
        Row::ratio(
            format!("{contenders}: hand-overs, wok to native"),
            &wok.per_second,
            &native.per_second,
        )
        .bound(Bound::AtLeast(1.0)),
        row("hand-overs, wok", "1/s", wok.per_second),
        row("hand-overs, native", "1/s", native.per_second),
        row("requests of a hand-over, wok", "", wok.requests).bound(Bound::AtMost(4.0)),
        row("requests of a hand-over, native", "", native.requests),
        row("processor time of 1,000 hand-overs, wok", "s", wok.cpu),
        row("processor time of 1,000 hand-overs, native", "s", native.cpu),
        row("requests of idle sessions, left out", "1/s", vec![idle]),
    ])
}

/// Requests per second that the server gets while nothing happens: heartbeats, pings, and the
/// asking itself.
fn idle_rate(ground: &Ground) -> Result<f64> {
    let before = ground.counter("zk_packets_received")?;
    // tidy: the window that is measured.
    ground.native.block_on(async { tokio::time::sleep(IDLE).await });
    let after = ground.counter("zk_packets_received")?;
    Ok((after - before) / IDLE.as_secs_f64())
}

impl Figures {
    fn add(
        &mut self,
        ground: &Ground,
        idle: f64,
        round: impl FnOnce(&mut Crowd) -> Result<u32>,
    ) -> Result<()> {
        let mut crowd = Crowd::default();
        let (cpu, packets) = (cpu_time(), ground.counter("zk_packets_received")?);
        let start = Instant::now();
        let hand_overs = f64::from(round(&mut crowd)?);
        let elapsed = start.elapsed().as_secs_f64();
        let packets = ground.counter("zk_packets_received")? - packets - idle * elapsed;
        self.per_second.push(hand_overs / elapsed);
        self.requests.push(packets / hand_overs);
        self.cpu.push((cpu_time() - cpu).as_secs_f64() / hand_overs * 1e3);
        Ok(())
    }
}

/// A party that can take the lock and give it back.
trait Take: Send + Sync + 'static {
    type Held: Send;
    fn take(&self) -> impl Future<Output = Result<Self::Held>> + Send;
    fn give_back(&self, held: Self::Held) -> impl Future<Output = Result<()>> + Send;
}

impl Take for Contender {
    type Held = ();
    async fn take(&self) -> Result<()> {
        self.acquire().await
    }
    async fn give_back(&self, (): ()) -> Result<()> {
        self.release().await
    }
}

impl Take for native::Lock {
    type Held = native::Held;
    async fn take(&self) -> Result<native::Held> {
        self.acquire().await
    }
    async fn give_back(&self, held: native::Held) -> Result<()> {
        self.release(held).await
    }
}

/// Those who take part in a round.
#[derive(Default)]
struct Crowd {
    is_over: Arc<AtomicBool>,
    is_held: Arc<AtomicBool>,
    tasks: JoinSet<Result<u32>>,
}

impl Crowd {
    fn enter(&mut self, runtime: &Runtime, one: Arc<impl Take>) {
        let (is_over, is_held) = (Arc::clone(&self.is_over), Arc::clone(&self.is_held));
        self.tasks.spawn_on(
            async move {
                let mut count = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let held = one.take().await?;
                    ensure!(!is_held.swap(true, Ordering::SeqCst), "two hold the lock");
                    is_held.store(false, Ordering::SeqCst);
                    one.give_back(held).await?;
                    count += 1;
                }
                Ok(count)
            },
            runtime.handle(),
        );
    }

    /// Lets them go on for a while; answers how often the lock went to somebody.
    async fn play(&mut self) -> Result<u32> {
        // tidy: the window that is measured.
        tokio::time::sleep(WINDOW).await;
        self.is_over.store(true, Ordering::Relaxed);
        let mut sum = 0;
        while let Some(count) = self.tasks.join_next().await {
            sum += count??;
        }
        Ok(sum)
    }
}
