//! A queue: items that one puts in and takes out again, one by one and 64 at a time; four producers
//! beside four consumers; and items that are claimed first and acknowledged then. Each item has to come
//! out once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use wok::participant::Participant;

use super::{Contest, Crowd, Member, Peers, Who};
use crate::ground::Ground;
use crate::native;
use crate::report::Row;
use crate::stock::{Recipe, answer};

/// What `put-all` and `take-many` take at most.
const BATCH: usize = 64;

/// Bytes of an item.
const SIZE: usize = 100;

/// A queue, as a member of a contest has it.
trait Queue: Send + Sync + 'static {
    fn put(&self, items: Vec<String>) -> impl Future<Output = Result<()>> + Send;

    /// Takes at least one item, and so many at most.
    fn take(&self, most: usize) -> impl Future<Output = Result<Vec<String>>> + Send;
}

struct Stock {
    participant: Arc<Participant>,
    recipe: Recipe,
    acknowledges: bool,
}

impl Stock {
    async fn call(&self, operation: &str, arguments: &Value) -> Result<Value> {
        answer(&self.participant, &self.recipe.operation_with(operation, arguments)?).await
    }
}

impl Queue for Stock {
    async fn put(&self, items: Vec<String>) -> Result<()> {
        match items.as_slice() {
            [item] => self.call("put", &json!({ "data": item })).await,
            items => self.call("put-all", &json!({ "items": items })).await,
        }
        .map(drop)
    }

    async fn take(&self, most: usize) -> Result<Vec<String>> {
        let taken = match most {
            1 => json!([self.call("take", &Value::Null).await?]),
            most => self.call("take-many", &json!({ "max": most })).await?,
        };
        if self.acknowledges {
            self.call("ack", &Value::Null).await?;
        }
        let items = taken.as_array().context("no list of items")?.iter();
        let data = |item: &Value| item.get("data").and_then(Value::as_str).map(str::to_owned);
        items.map(|item| data(item).context("an item without data")).collect()
    }
}

#[derive(Clone)]
struct ByHand {
    queue: native::Queue,
    acknowledges: bool,
}

impl Queue for ByHand {
    async fn put(&self, items: Vec<String>) -> Result<()> {
        self.queue.put(&items).await
    }

    async fn take(&self, most: usize) -> Result<Vec<String>> {
        let taken = if self.acknowledges {
            let claimed = self.queue.claim().await?;
            let data = claimed.data.clone();
            self.queue.ack(claimed).await?;
            vec![data]
        } else {
            self.queue.take(most).await?
        };
        Ok(taken.into_iter().map(String::from_utf8).collect::<Result<_, _>>()?)
    }
}

/// What all members do.
#[derive(Clone, Copy)]
enum Roles {
    /// Each puts items in and takes as many out.
    Both,
    /// Every other one puts in, and the others take out.
    HalfEach,
}

/// A member of a contest.
struct Side<Q> {
    number: usize,
    puts: bool,
    takes: bool,
    batch: usize,
    queue: Q,
    /// What all members have taken.
    taken: Arc<Mutex<BTreeSet<String>>>,
}

impl<Q: Queue> Member for Side<Q> {
    async fn cycle(&self, number: usize) -> Result<()> {
        if self.puts {
            let item = |place| format!("{:.<SIZE$}", format!("{}-{number}-{place}", self.number));
            self.queue.put((0..self.batch).map(item).collect()).await?;
        }
        let mut missing = if self.takes { self.batch } else { 0 };
        while missing > 0 {
            for item in self.queue.take(missing).await? {
                missing = missing.checked_sub(1).context("more items than were asked for")?;
                let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
                ensure!(taken.insert(item.clone()), "taken twice: {item}");
            }
        }
        Ok(())
    }
}

/// The members, each with its queue.
fn sides<Q>(scene: &Scene, queues: impl Iterator<Item = Q>) -> Vec<Arc<Side<Q>>> {
    let taken = Arc::<Mutex<BTreeSet<String>>>::default();
    let side = |(number, queue): (usize, Q)| {
        let (puts, takes) = match scene.roles {
            Roles::Both => (true, true),
            Roles::HalfEach => (number.is_multiple_of(2), !number.is_multiple_of(2)),
        };
        let (batch, taken) = (scene.batch, Arc::clone(&taken));
        Arc::new(Side { number, puts, takes, batch, queue, taken })
    };
    queues.enumerate().map(side).collect()
}

/// What is played.
struct Scene {
    name: &'static str,
    delivery: &'static str,
    roles: Roles,
    members: usize,
    batch: usize,
    cycles: usize,
    peers: &'static [Who],
    unit: &'static str,
    least: Option<f64>,
}

const SCENES: [Scene; 4] = [
    Scene {
        name: "queue",
        delivery: "at-most-once",
        roles: Roles::Both,
        members: 1,
        batch: 1,
        cycles: 500,
        peers: &[Who::Curator, Who::Kazoo],
        unit: "items one by one",
        least: None,
    },
    Scene {
        name: "queue-in-batches",
        delivery: "at-most-once",
        roles: Roles::Both,
        members: 1,
        batch: BATCH,
        cycles: 40,
        peers: &[Who::Curator, Who::Kazoo],
        unit: "items by 64",
        least: None,
    },
    Scene {
        name: "queue-of-eight",
        delivery: "at-most-once",
        roles: Roles::HalfEach,
        members: 8,
        batch: BATCH,
        cycles: 20,
        peers: &[Who::Curator, Who::Kazoo],
        unit: "items of 4 for 4",
        least: Some(5_000.0),
    },
    Scene {
        name: "queue-acknowledged",
        delivery: "at-least-once",
        roles: Roles::Both,
        members: 1,
        batch: 1,
        cycles: 300,
        // Curator's `SimpleDistributedQueue` removes an item when it is taken.
        peers: &[Who::Kazoo],
        unit: "items, acknowledged",
        least: None,
    },
];

pub(super) fn bench(ground: &Ground, peers: &mut Peers) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for scene in &SCENES {
        rows.extend(play(scene, ground, peers)?);
    }
    Ok(rows)
}

fn play(scene: &Scene, ground: &Ground, peers: &mut Peers) -> Result<Vec<Row>> {
    let config = json!({ "delivery": scene.delivery });
    let crowd = Crowd::join(ground, "queue", scene.name, config, scene.members)?;
    let acknowledges = scene.delivery == "at-least-once";
    let by_hand = ground.native.block_on(async {
        let client = native::connect(ground.server.address()).await?;
        native::Queue::new(client, &format!("/recipes-native-{}", scene.name)).await
    })?;
    let by_hand = ByHand { queue: by_hand, acknowledges };
    let stock = |participant| Stock { participant, recipe: crowd.recipe.clone(), acknowledges };
    let producers = scene.members.div_ceil(2);
    let contest = Contest {
        recipe: scene.name,
        setting: scene.batch.to_string(),
        wok: sides(scene, crowd.participants().map(stock)),
        native: sides(scene, std::iter::repeat_n(by_hand, scene.members)),
        peers: scene.peers,
        cycles: scene.cycles,
        unit: scene.unit,
        count: producers * scene.cycles * scene.batch,
        least: scene.least,
    };
    let rows = contest.play(ground, peers)?;
    crowd.leave(ground);
    Ok(rows)
}
