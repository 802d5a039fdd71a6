//! Recipes with as many participants as a fleet has: wok, the client crate alone, Apache Curator and
//! kazoo in turns, each with all participants on one session.
//!
//! A cycle holds nothing for longer than it takes to give it back. Every participant goes through as
//! many cycles as every other.

mod configuration;
mod double_barrier;
mod queue;
mod read_write_lock;
mod semaphore;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use wok::guest::Arguments;
use wok::participant::{Follower, Participant};
use wok::session::Session;
use wok_tests::peers::Peer;

use crate::ground::Ground;
use crate::report::{Bound, Row};
use crate::stock::{self, Recipe};

/// The first one warms up, and is not counted.
const ROUNDS: usize = 6;

/// Somebody who goes through cycles.
trait Member: Send + Sync + 'static {
    /// Goes through the cycle of that number; the first is 0.
    fn cycle(&self, number: usize) -> impl Future<Output = Result<()>> + Send;
}

/// What is compared.
struct Contest<W, N> {
    /// The recipe, as the peers know it.
    recipe: &'static str,
    /// What else the peers are told of it.
    setting: String,
    wok: Vec<Arc<W>>,
    native: Vec<Arc<N>>,
    /// Who else has such a recipe.
    peers: &'static [Who],
    /// Of each participant, in a round.
    cycles: usize,
    /// What is counted: as many in a round.
    unit: &'static str,
    count: usize,
    /// At least so many in a second.
    least: Option<f64>,
}

/// The rows about those who gather and exclude each other.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let mut peers = Peers::start(ground)?;
    let mut rows = double_barrier::bench(ground, &mut peers)?;
    rows.extend(semaphore::bench(ground, &mut peers)?);
    rows.extend(read_write_lock::bench(ground, &mut peers)?);
    Ok(rows)
}

/// The rows about queues.
pub(crate) fn queues(ground: &Ground) -> Result<Vec<Row>> {
    queue::bench(ground, &mut Peers::start(ground)?)
}

/// The rows about observers of a configuration, which nobody else has.
pub(crate) fn observers(ground: &Ground) -> Result<Vec<Row>> {
    configuration::bench(ground)
}

/// Who takes turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Wok,
    Native,
    Curator,
    Kazoo,
}

impl Who {
    /// Those of other makers that have every recipe.
    const PEERS: &[Who] = &[Who::Curator, Who::Kazoo];

    const fn name(self) -> &'static str {
        match self {
            Who::Wok => "wok",
            Who::Native => "native",
            Who::Curator => "Curator",
            Who::Kazoo => "kazoo",
        }
    }
}

/// Programs of other makers.
struct Peers {
    curator: Peer,
    kazoo: Peer,
}

impl Peers {
    fn start(ground: &Ground) -> Result<Self> {
        let address = ground.server.address();
        let curator = ground.native.block_on(Peer::curator(address))?;
        let kazoo = ground.native.block_on(Peer::kazoo(address))?;
        Ok(Peers { curator, kazoo })
    }
}

/// Participants of a stock recipe on one session, and what they call.
struct Crowd {
    session: Arc<Session>,
    members: Vec<(Arc<Participant>, Follower)>,
    recipe: Recipe,
}

impl Crowd {
    /// Joins at a mount of its own, which the name tells from those of others.
    fn join(
        ground: &Ground,
        recipe: &str,
        name: &str,
        config: Value,
        count: usize,
    ) -> Result<Self> {
        let host = ground.host(u32::try_from(count)?)?;
        let session = ground.session(&host)?;
        let _on_this_runtime = ground.wok.enter();
        let recipe = Recipe::load(&host, recipe, &format!("/recipes-wok-{name}"), config)?;
        let members = (0..count)
            .map(|_| recipe.join(&host, &session).map(|(one, follower)| (Arc::new(one), follower)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Crowd { session, members, recipe })
    }

    /// An operation without arguments.
    fn operation(&self, name: &str) -> Result<Arguments> {
        self.recipe.operation(name)
    }

    fn participants(&self) -> impl Iterator<Item = Arc<Participant>> {
        self.members.iter().map(|(one, _)| Arc::clone(one))
    }

    /// The participants, each with its number.
    fn each<M>(&self, member: impl Fn(usize, Arc<Participant>) -> M) -> Vec<Arc<M>> {
        self.participants().enumerate().map(|(number, one)| Arc::new(member(number, one))).collect()
    }

    fn leave(self, ground: &Ground) {
        ground.wok.block_on(self.session.close());
    }
}

/// Calls what takes a claim, and then what gives it back.
async fn hold_and_give_back(
    participant: &Participant,
    hold: &Arguments,
    give_back: &Arguments,
) -> Result<()> {
    stock::hold(participant, hold).await?;
    stock::give_back(participant, give_back).await
}

impl<W: Member, N: Member> Contest<W, N> {
    fn play(&self, ground: &Ground, peers: &mut Peers) -> Result<Vec<Row>> {
        let all = [Who::Wok, Who::Native].iter().chain(self.peers);
        let mut turns: Vec<_> = all.map(|who| (*who, Vec::new())).collect();
        for round in 0..ROUNDS {
            for (who, per_second) in &mut turns {
                let first = round * self.cycles;
                let took = match who {
                    Who::Wok => cycles(&ground.wok, &self.wok, first, self.cycles)?,
                    Who::Native => cycles(&ground.native, &self.native, first, self.cycles)?,
                    Who::Curator => self.ask(ground, &mut peers.curator, *who, round)?,
                    Who::Kazoo => self.ask(ground, &mut peers.kazoo, *who, round)?,
                };
                if round > 0 {
                    per_second.push(count(self.count) / took.as_secs_f64());
                }
            }
            turns.rotate_left(1);
        }
        turns.sort_by_key(|(who, _)| *who);
        Ok(self.rows(turns))
    }

    /// Has a peer go through the same cycles.
    fn ask(&self, ground: &Ground, peer: &mut Peer, who: Who, round: usize) -> Result<Duration> {
        let Contest { recipe, setting, cycles, .. } = self;
        let members = self.wok.len();
        let path = format!("/recipes-{who:?}-{recipe}-{round}");
        let command = format!("bench {recipe} {path} {members} {cycles} {setting}");
        let answer = ground.native.block_on(peer.call(command.trim_end()))?;
        let seconds = answer.parse().with_context(|| format!("the answer {answer:?}"))?;
        Ok(Duration::from_secs_f64(seconds))
    }

    /// The rates of each, wok's first.
    fn rows(&self, rates: Vec<(Who, Vec<f64>)>) -> Vec<Row> {
        let Contest { recipe, unit, .. } = self;
        let mut rows = Vec::new();
        if let [(_, wok), others @ ..] = rates.as_slice() {
            for (who, rate) in others {
                let least = if *who == Who::Native { 0.95 } else { 1.0 };
                let what = format!("{recipe}: {unit}, wok to {}", who.name());
                rows.push(Row::ratio(what, wok, rate).bound(Bound::AtLeast(least)));
            }
        }
        for (who, rate) in rates {
            let bound = self.least.filter(|_| who == Who::Wok).map_or(Bound::None, Bound::AtLeast);
            let what = format!("{recipe}: {unit}, {}", who.name());
            rows.push(Row::new(what, "1/s", rate).bound(bound));
        }
        rows
    }
}

/// Has all go through their cycles; how long that takes.
fn cycles<M: Member>(
    runtime: &Runtime,
    members: &[Arc<M>],
    first: usize,
    cycles: usize,
) -> Result<Duration> {
    runtime.block_on(async {
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for member in members {
            let member = Arc::clone(member);
            tasks.spawn(async move {
                for number in first..first + cycles {
                    member.cycle(number).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(outcome) = tasks.join_next().await {
            outcome??;
        }
        Ok(started.elapsed())
    })
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn count(number: usize) -> f64 {
    number as f64
}
