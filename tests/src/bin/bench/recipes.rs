//! Recipes with as many participants as a fleet has: wok, the client crate alone, Apache Curator and
//! kazoo in turns, each with all participants on one session.
//!
//! A cycle holds nothing for longer than it takes to give it back. Every participant goes through as
//! many cycles as every other.

mod configuration;
mod double_barrier;
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
    /// Of each participant, in a round.
    cycles: usize,
    /// What is counted: as many in a round.
    unit: &'static str,
    count: usize,
    /// At least so many in a second.
    least: Option<f64>,
}

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let address = ground.server.address();
    let mut peers = Peers {
        curator: ground.native.block_on(Peer::curator(address))?,
        kazoo: ground.native.block_on(Peer::kazoo(address))?,
    };
    let mut rows = double_barrier::bench(ground, &mut peers)?;
    rows.extend(semaphore::bench(ground, &mut peers)?);
    rows.extend(read_write_lock::bench(ground, &mut peers)?);
    Ok(rows)
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
    const ALL: [Who; 4] = [Who::Wok, Who::Native, Who::Curator, Who::Kazoo];
}

/// Programs of other makers.
struct Peers {
    curator: Peer,
    kazoo: Peer,
}

/// Participants of a stock recipe on one session, and what they call.
struct Crowd {
    session: Arc<Session>,
    members: Vec<(Arc<Participant>, Follower)>,
    recipe: Recipe,
}

impl Crowd {
    fn join(ground: &Ground, recipe: &str, config: Value, count: usize) -> Result<Self> {
        let host = ground.host(u32::try_from(count)?)?;
        let session = ground.session(&host)?;
        let _on_this_runtime = ground.wok.enter();
        let recipe = Recipe::load(&host, recipe, &format!("/recipes-wok-{recipe}"), config)?;
        let members = (0..count)
            .map(|_| recipe.join(&host, &session).map(|(one, follower)| (Arc::new(one), follower)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Crowd { session, members, recipe })
    }

    /// An operation without arguments.
    fn operation(&self, name: &str) -> Result<Arguments> {
        self.recipe.operation(name)
    }

    /// The participants, each with its number.
    fn each<M>(&self, member: impl Fn(usize, Arc<Participant>) -> M) -> Vec<Arc<M>> {
        let members = self.members.iter().enumerate();
        members.map(|(number, (one, _))| Arc::new(member(number, Arc::clone(one)))).collect()
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
        let mut turns = Who::ALL.map(|who| (who, Vec::new()));
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
        Ok(self.rows(turns.map(|(_, per_second)| per_second)))
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

    fn rows(&self, [wok, native, curator, kazoo]: [Vec<f64>; 4]) -> Vec<Row> {
        let Contest { recipe, unit, .. } = self;
        let ratio = |whose: &str, to: &[f64], least| {
            let what = format!("{recipe}: {unit}, wok to {whose}");
            Row::ratio(what, &wok, to).bound(Bound::AtLeast(least))
        };
        let mut rows = vec![
            ratio("native", &native, 0.95),
            ratio("Curator", &curator, 1.0),
            ratio("kazoo", &kazoo, 1.0),
        ];
        let least = self.least.map_or(Bound::None, Bound::AtLeast);
        for (whose, per_second, bound) in [
            ("wok", wok, least),
            ("native", native, Bound::None),
            ("Curator", curator, Bound::None),
            ("kazoo", kazoo, Bound::None),
        ] {
            rows.push(
                Row::new(format!("{recipe}: {unit}, {whose}"), "1/s", per_second).bound(bound),
            );
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
