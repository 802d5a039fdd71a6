//! A thousand observers of one configuration on one session, while it changes: how long after the
//! answer of a change they are told of it, and what a change costs the server for each of them.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};
use wok::participant::{Follower, Notice, Participant};
use wok_tests::patience::within;

use crate::ground::Ground;
use crate::measure::{median, p99};
use crate::report::{Bound, Row};
use crate::stock::{Recipe, answer};

const OBSERVERS: u32 = 1_000;

/// The first one warms up, and is not counted.
const CHANGES: usize = 21;

/// Short enough that one session has room for all.
const MOUNT: &str = "/settings/mail";

/// The rows of this benchmark. Nobody else has such a recipe, so nothing stands beside it.
pub(super) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let host = ground.host(OBSERVERS + 1)?;
    let recipe = Recipe::load(&host, "configuration", MOUNT, json!({}))?;
    let (watched, written) = (ground.session(&host)?, ground.session(&host)?);
    let figures = ground.wok.block_on(async {
        let (operator, _operator_follower) = recipe.join(&host, &written)?;
        set(&operator, &recipe, 0).await?;
        let mut observers = Vec::new();
        for _ in 0..OBSERVERS {
            observers.push(recipe.join(&host, &watched)?);
        }
        let observe = recipe.operation("observe")?;
        let begun = observers.iter().map(|(observer, _)| answer(observer, &observe));
        within("all to observe", try_join_all(begun)).await??;
        let mut figures = Figures::default();
        for change in 0..CHANGES {
            let before = requests(ground).await?;
            let changed = async {
                let revision = set(&operator, &recipe, change + 1).await?;
                anyhow::Ok((revision, Instant::now()))
            };
            let told = join_all(observers.iter_mut().map(|(_, follower)| heard(follower)));
            let both = async { tokio::join!(changed, told) };
            let (changed, told) = within("all to be told", both).await?;
            let ((revision, answered), told) =
                (changed?, told.into_iter().collect::<Result<Vec<_>>>()?);
            ensure!(told.iter().all(|(it, _)| *it == revision), "another revision than {revision}");
            let reads = requests(ground).await? - before;
            if change > 0 {
                figures.take(answered, told.into_iter().map(|(_, at)| at), reads);
            }
        }
        anyhow::Ok(figures)
    })?;
    ground.wok.block_on(watched.close());
    ground.wok.block_on(written.close());
    Ok(figures.rows())
}

/// What was measured, a sample for each change.
#[derive(Default)]
struct Figures {
    p50: Vec<f64>,
    p99: Vec<f64>,
    reads: Vec<f64>,
}

impl Figures {
    fn take(&mut self, answered: Instant, told: impl Iterator<Item = Instant>, reads: f64) {
        let after = told.map(|at| at.saturating_duration_since(answered));
        let after: Vec<f64> = after.map(|it| it.as_secs_f64() * 1000.0).collect();
        self.p50.push(median(&after));
        self.p99.push(p99(&after));
        self.reads.push(reads / f64::from(OBSERVERS));
    }

    fn rows(self) -> Vec<Row> {
        let what = |what: &str| format!("configuration, 1,000 observers: {what}");
        vec![
            Row::new(what("told, p50"), "ms", self.p50),
            Row::new(what("told, p99"), "ms", self.p99),
            // The operator's own request and the heartbeats are counted among them.
            Row::new(what("reads each"), "", self.reads).slowest().bound(Bound::AtMost(1.01)),
        ]
    }
}

/// What all clients have asked the server for.
async fn requests(ground: &Ground) -> Result<f64> {
    ground.server.counter("zk_packets_received").await
}

/// Changes the one key, and answers the revision.
async fn set(operator: &Participant, recipe: &Recipe, value: usize) -> Result<u64> {
    let arguments = json!({ "key": "limit", "data": value.to_string(), "expected": "any" });
    let set = answer(operator, &recipe.operation_with("set", &arguments)?).await?;
    set.get("revision").and_then(Value::as_u64).context("a revision")
}

/// Waits until the observer is told, and answers of what and when.
async fn heard(follower: &mut Follower) -> Result<(u64, Instant)> {
    while let Some(notice) = follower.next().await {
        if let Notice::Emitted { event, detail } = notice
            && event == "changed"
        {
            let at = Instant::now();
            let revision = detail.iter().find(|(name, _)| name == "revision");
            let (_, revision) = revision.context("a revision")?;
            return Ok((revision.parse()?, at));
        }
    }
    anyhow::bail!("an observer has ended")
}
