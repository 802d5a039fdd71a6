//! Hostile components beside a hundred that work.
//!
//! The working ones make one host call after another, each an operation of one `exists`, on a
//! session that answers at once, from a task of its own: what is measured is the host alone, the
//! wait for a turn after the answer included. The hostile ones spin, flood,
//! hoard memory and recurse, all at a time, and are started again when they end. Rounds with and
//! without them alternate, so that whatever else the machine does falls on both.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;
use wok::base::{Base, BaseOptions, Sessions};
use wok::guest::{Arguments, CompileCache, Limits, Module, Mount};
use wok::modules::ModuleSource;
use wok::participant::{Call, CallError, Ending, Follower, Join, Notice, Participant};
use wok::session::{ConnectOptions, SeatLimits, Session, SessionState};
use wok::tasks::Tasks;
use wok_tests::bare_session::{self, Heartbeats};
use wok_tests::guests::guest_file;

use crate::{Length, Options, figure, say};

const WORKERS: usize = 100;

/// Between two calls of a worker: together they keep a fifth of two processors busy, so that it is
/// waiting that shows, and not a lack of processors that was there before.
const PAUSE: Duration = Duration::from_millis(5);

/// The session's; a short one, for which late heartbeats are worst.
const TIMEOUT: Duration = Duration::from_secs(3);

/// How much longer the slowest hundredth of the calls may take beside hostile components.
const MOST: f64 = 2.0;

/// An operation of the hostile guest, and its arguments.
type Attack = (&'static str, fn() -> Value);

/// What the hostile ones do.
const ATTACKS: [Attack; 6] = [
    ("spin", || json!({})),
    ("call-flood", || json!({"call": "id", "count": 100_000_000})),
    ("memory-bomb", || json!({})),
    ("yield-loop", || json!({})),
    ("log-flood", || json!({"count": 1_000_000, "bytes": 1000})),
    ("recurse", || json!({})),
];

/// Between the end of an attack and the next: the daemon's first pause before it starts a failed
/// recipe again, the later ones being longer.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// After which the caller of an attack withdraws: a component that floods within its rate may do so
/// for ever.
const WITHDRAWN_AFTER: Duration = Duration::from_millis(500);

/// Plays the part.
pub(crate) fn play(options: &Options) -> Result<()> {
    let is_chosen = |attack: &Attack| options.only.as_deref().is_none_or(|only| only == attack.0);
    let attacks: Vec<Attack> = ATTACKS.into_iter().filter(is_chosen).collect();
    ensure!(!attacks.is_empty(), "no attack {:?}", options.only);
    let (rounds, window) = match options.length {
        Length::Full => (10, Duration::from_secs(4)),
        Length::Short => (2, Duration::from_secs(1)),
    };
    // As the daemon's.
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let scene = Scene::new(attacks)?;
        let figures = scene.play(rounds, window).await?;
        scene.end().await?;
        figures.judge(options.length)
    })
}

/// A host, a session at work and an idle one, all on one runtime.
struct Scene {
    host: Arc<Base>,
    hostile: Module,
    attacks: Vec<Attack>,
    session: Arc<Session>,
    idle: Arc<Session>,
    /// Those of the idle session: one at work hears enough of the server without asking.
    heartbeats: Heartbeats,
    meter: Arc<Meter>,
    tasks: Tasks,
    stop: CancellationToken,
}

/// The latencies of the workers' calls while it is on.
#[derive(Debug, Default)]
struct Meter {
    is_on: AtomicBool,
    latencies: Mutex<Vec<Duration>>,
    failure: Mutex<Option<String>>,
}

/// What the rounds come to.
#[derive(Debug, Default)]
struct Figures {
    /// The slowest hundredth begins here, by round.
    without: Vec<Duration>,
    with: Vec<Duration>,
    calls: usize,
    /// How often each attack ended.
    ends: Vec<(&'static str, u64)>,
    heartbeats: u64,
    longest_gap: Duration,
}

impl Scene {
    fn new(attacks: Vec<Attack>) -> Result<Self> {
        let (session, _) = bare_session::open(TIMEOUT);
        let (idle, heartbeats) = bare_session::open(TIMEOUT);
        let host = Base::new(BaseOptions {
            participants: u32::try_from(WORKERS + 2 * ATTACKS.len())?,
            memory: Limits::default().memory,
            cache: CompileCache::Off,
            // Nothing connects: the sessions are others.
            connect: ConnectOptions::new("127.0.0.1:1", TIMEOUT),
            sessions: Sessions::at_most(1),
        })?;
        let (_directory, file) = guest_file("hostile")?;
        let hostile = host.load(&ModuleSource::File(file), None)?;
        Ok(Scene {
            host: Arc::new(host),
            hostile,
            attacks,
            session,
            idle,
            heartbeats,
            meter: Arc::default(),
            tasks: Tasks::on(Handle::current()),
            stop: CancellationToken::new(),
        })
    }

    async fn play(&self, rounds: usize, window: Duration) -> Result<Figures> {
        for _ in 0..WORKERS {
            self.start_worker()?;
        }
        // The first calls of all are instantiations.
        self.measure(window).await?;
        let mut figures = Figures::default();
        for round in 0..rounds {
            // Each goes first in every other round.
            let (without, with) = if round % 2 == 0 {
                let without = self.measure(window).await?;
                (without, self.measure_beside_hostile(window, &mut figures.ends).await?)
            } else {
                let with = self.measure_beside_hostile(window, &mut figures.ends).await?;
                (self.measure(window).await?, with)
            };
            figures.calls += without.len() + with.len();
            let (without, with) = (p99(without)?, p99(with)?);
            say(&format!("round {round}: p99 {without:?} without, {with:?} with"));
            figures.without.push(without);
            figures.with.push(with);
        }
        (figures.heartbeats, figures.longest_gap) = self.heartbeats.so_far();
        for session in [&self.session, &self.idle] {
            let state = *session.state().borrow();
            ensure!(!matches!(state, SessionState::Lost(_)), "a session is {state:?}");
        }
        Ok(figures)
    }

    async fn measure(&self, window: Duration) -> Result<Vec<Duration>> {
        self.meter.latencies.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.meter.is_on.store(true, Ordering::Relaxed);
        // tidy: the window that is measured.
        tokio::time::sleep(window).await;
        self.meter.is_on.store(false, Ordering::Relaxed);
        if let Some(failure) =
            self.meter.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            bail!("a worker failed: {failure}");
        }
        let mut latencies = self.meter.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut latencies))
    }

    async fn measure_beside_hostile(
        &self,
        window: Duration,
        ends: &mut Vec<(&'static str, u64)>,
    ) -> Result<Vec<Duration>> {
        let stop = CancellationToken::new();
        let attackers = self.attacks.iter().map(|(operation, body)| {
            let arguments = self.hostile.arguments(operation, &body())?;
            anyhow::Ok(Attacker {
                host: Arc::clone(&self.host),
                session: Arc::clone(&self.session),
                module: self.hostile.clone(),
                arguments,
                stop: stop.clone(),
            })
        });
        let attackers = attackers.collect::<Result<Vec<_>>>()?;
        let tasks = Tasks::on(Handle::current());
        let counts = Arc::new(Mutex::new(vec![Ok(0_u64); attackers.len()]));
        for (index, attacker) in attackers.into_iter().enumerate() {
            let counts = Arc::clone(&counts);
            tasks.spawn("attacker", async move {
                let count = attacker.attack().await.map_err(|error| format!("{error:#}"));
                let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                counts.get_mut(index).into_iter().for_each(|it| it.clone_from(&count));
            });
        }
        let measured = self.measure(window).await;
        stop.cancel();
        tasks.join().await;
        let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        for ((operation, _), count) in self.attacks.iter().zip(counts.iter()) {
            let count = count.clone().map_err(anyhow::Error::msg)?;
            match ends.iter_mut().find(|(known, _)| known == operation) {
                Some((_, ends)) => *ends += count,
                None => ends.push((*operation, count)),
            }
        }
        measured
    }

    fn start_worker(&self) -> Result<()> {
        let exists = self.hostile.arguments("escape-exists", &json!({"path": "/"}))?;
        let (participant, _follower) =
            Participant::join(self.host.tasks(), &self.session, join(&self.hostile, "/work")?)?;
        let (meter, stop) = (Arc::clone(&self.meter), self.stop.clone());
        self.tasks.spawn("worker", async move {
            let work = async {
                loop {
                    let start = Instant::now();
                    let answer = participant.call(call(&exists, None)).await;
                    meter.note(start.elapsed());
                    if !answer.as_ref().is_ok_and(|answer| answer.value.is_ok()) {
                        meter.fail(format!("{answer:?}"));
                        return;
                    }
                    // tidy: a pause of a load, not of a judgement.
                    tokio::time::sleep(PAUSE).await;
                }
            };
            stop.run_until_cancelled(work).await;
        });
        Ok(())
    }

    async fn end(self) -> Result<()> {
        self.stop.cancel();
        self.tasks.join().await;
        self.host.shut_down().await;
        self.session.close().await;
        self.idle.close().await;
        Ok(())
    }
}

impl Meter {
    fn note(&self, latency: Duration) {
        if self.is_on.load(Ordering::Relaxed) {
            self.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(latency);
        }
    }

    fn fail(&self, why: String) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

/// One hostile neighbour, started again when it ends.
struct Attacker {
    host: Arc<Base>,
    session: Arc<Session>,
    module: Module,
    arguments: Arguments,
    stop: CancellationToken,
}

impl Attacker {
    /// Attacks until it is stopped; answers how often it ended before.
    async fn attack(&self) -> Result<u64> {
        let mut ends = 0;
        while !self.stop.is_cancelled() {
            let joined = Participant::join(
                self.host.tasks(),
                &self.session,
                join(&self.module, "/hostile")?,
            )?;
            self.attack_once(joined).await?;
            ends += 1;
            // tidy: a pause of a load, not of a judgement.
            self.stop.run_until_cancelled(tokio::time::sleep(AGAIN_AFTER)).await;
        }
        Ok(ends)
    }

    async fn attack_once(&self, joined: (Participant, Follower)) -> Result<()> {
        let (participant, mut follower) = joined;
        let attack = call(&self.arguments, Some(WITHDRAWN_AFTER));
        let attacking = participant.call(attack);
        let answer = self.stop.run_until_cancelled(attacking).await;
        participant.leave();
        let mut last = None;
        while let Some(notice) = follower.next().await {
            last = Some(notice);
        }
        let last = last.context("it ended without a word")?;
        let is_expected = matches!(last, Notice::Ended(Ending::Left | Ending::Failed(_)));
        ensure!(is_expected, "{} ended as {last:?}", self.arguments.operation());
        let refused = matches!(answer, Some(Err(CallError::Busy)));
        ensure!(!refused, "{} was refused", self.arguments.operation());
        Ok(())
    }
}

fn call(arguments: &Arguments, wait: Option<Duration>) -> Call {
    Call {
        arguments: arguments.clone(),
        deadline: wait.map(|wait| tokio::time::Instant::now() + wait),
        withdrawn: None,
    }
}

fn join(module: &Module, mount: &str) -> Result<Join> {
    Ok(Join {
        recipe: module.name().to_owned(),
        module: module.clone(),
        mount: Mount::new(mount)?,
        config: module.configuration(None)?,
        limits: Limits::default(),
        seat: SeatLimits::default(),
        owner: String::new(),
        witness: None,
    })
}

/// What the slowest hundredth takes at least.
fn p99(mut latencies: Vec<Duration>) -> Result<Duration> {
    latencies.sort_unstable();
    let at = latencies.len() * 99 / 100;
    latencies.get(at).copied().context("no call was measured")
}

fn median(of: &[Duration]) -> Result<Duration> {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().context("no round was played")?;
    // Of an even number of rounds, between the two in the middle.
    let lower = match sorted.len() % 2 {
        0 => sorted.get(middle - 1).copied().unwrap_or(upper),
        _ => upper,
    };
    Ok((lower + upper) / 2)
}

impl Figures {
    /// Prints them, and fails where a bound is broken.
    fn judge(&self, length: Length) -> Result<()> {
        let (without, with) = (median(&self.without)?, median(&self.with)?);
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        let rounds = self.with.len();
        figure(&format!(
            "p99 of a host call of {WORKERS} participants, medians of {rounds} rounds: \
             {without:?} without and {with:?} with hostile neighbours, ratio {ratio:.2} \
             (at most {MOST}), {} calls",
            self.calls
        ));
        let ends = self.ends.iter().map(|(attack, count)| format!("{attack} {count}"));
        figure(&format!(
            "hostile ones ended and started again: {}",
            ends.collect::<Vec<_>>().join(", ")
        ));
        let most = TIMEOUT / 3;
        figure(&format!(
            "longest time between two heartbeats of a session of {TIMEOUT:?}: {:?} \
             (at most {most:?}), {} heartbeats",
            self.longest_gap, self.heartbeats
        ));
        ensure!(self.heartbeats > 0, "there was no heartbeat");
        ensure!(self.longest_gap <= most, "the heartbeats are late: {:?}", self.longest_gap);
        ensure!(
            ratio <= MOST || length == Length::Short,
            "the hostile neighbours cost the others {ratio:.2} times their p99"
        );
        Ok(())
    }
}
