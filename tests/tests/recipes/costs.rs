//! What each operation of each stock recipe costs when nothing is in its way: its requests, and which of
//! them wait for the reply of another. Counted by a proxy, and held against `costs/table.rs`.

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod table;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use table::{ANSWERS, Call, Cost, Who};
use wok::participant::{Follower, Participant};
use wok::session::{Request, SeatLimits};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Seen};
use wok_tests::scene::Scene;
use wok_tests::stock::{self, Stock};
use wok_tests::zookeeper;

/// A recipe with the participant whose operation is counted, and another one.
struct Counting {
    scene: Scene,
    counted: (Participant, Follower),
    other: (Participant, Follower),
    /// What each of them was answered last, if that was something.
    own_answer: Value,
    its_answer: Value,
    /// The operations whose claims are watched when they have been answered.
    watches_behind: BTreeSet<&'static str>,
}

impl Counting {
    async fn open(cost: &Cost) -> Result<Self> {
        let scene = Scene::open(cost.recipe).await?;
        let scene = match &cost.config {
            Value::Null => scene,
            config => scene.configured(config.clone()),
        };
        let (counted, other) = (scene.stock.join()?, scene.stock.join()?);
        let (own_answer, its_answer) = (Value::Null, Value::Null);
        let rows = table::all().into_iter().filter(|row| row.recipe == cost.recipe);
        let watches_behind = rows.filter(|row| row.behind.contains(&Opcode::GetData));
        let watches_behind = watches_behind.map(|row| row.operation).collect();
        Ok(Counting { scene, counted, other, own_answer, its_answer, watches_behind })
    }

    async fn until_sent(&self, count: usize) -> Result<()> {
        self.scene.until_sent(count).await.with_context(|| self.story())
    }

    /// What was sent, about what, for a failure.
    fn story(&self) -> String {
        let requests = self.scene.proxy.requests(&self.scene.about());
        let tell = |seen: &Seen| {
            let path = seen.path.as_deref().unwrap_or_default();
            format!("{:?} {}", seen.opcode, path.trim_start_matches(&self.scene.path))
        };
        format!("sent: {}", requests.iter().map(tell).collect::<Vec<_>>().join(", "))
    }

    async fn call(&mut self, call: &Call) -> Result<()> {
        let Call { who, operation, arguments } = call;
        let participant = match who {
            Who::Counted => &self.counted.0,
            Who::Other => &self.other.0,
        };
        let arguments = self.resolved(arguments);
        let answer = self.scene.value(participant, operation, arguments).await?;
        if !answer.is_null() {
            match who {
                Who::Counted => self.own_answer = answer,
                Who::Other => self.its_answer = answer,
            }
        }
        if self.watches_behind.contains(operation) {
            self.scene.until_watched().await?;
        }
        Ok(())
    }

    fn resolved(&self, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        for value in arguments.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
            if let Some((_, who, field)) = ANSWERS.iter().find(|(stands, ..)| *value == *stands) {
                let answer = match who {
                    Who::Counted => &self.own_answer,
                    Who::Other => &self.its_answer,
                };
                *value = answer.pointer(field).cloned().unwrap_or_default();
            }
        }
        arguments
    }

    /// Calls the operation, and lets the replies of one round trip after another through: those of a trip
    /// only when all its requests have been sent without them. A request that waits for a reply that the
    /// table does not know of is not sent, nor is one that the table has and the recipe has not. The client
    /// then gives the silent connection up and sends again what was not answered: that is seen by the
    /// connection, where the number of requests may be what the table says.
    async fn count(&mut self, cost: &Cost) -> Result<()> {
        for call in &cost.before {
            self.call(call).await?;
        }
        self.until_answered().await?;
        self.scene.proxy.clear_log();
        let arguments = self.resolved(&cost.arguments);
        let calling = self.scene.stock.call_with(&self.counted.0, cost.operation, &arguments);
        let stall = || drop(self.scene.proxy.inject(self.scene.about(), Action::StallReplies));
        let letting_through = async {
            let mut sent = 0;
            for trip in &cost.trips {
                sent += trip.len();
                self.until_sent(sent).await?;
                // The first request of the next trip finds the door closed again.
                stall();
                self.scene.proxy.release();
            }
            self.scene.proxy.heal();
            anyhow::Ok(())
        };
        stall();
        let (answer, ()) = tokio::try_join!(calling, letting_through)?;
        ensure!(answer.value.is_ok(), "answered {:?}", answer.value);
        let waited_for = cost.trips.concat();
        let count = waited_for.len() + cost.behind.len();
        self.until_sent(count).await?;
        self.until_answered().await?;
        ensure!(connections(&self.scene) == 1, "a reply was waited for in vain; {}", self.story());
        let mut sent = self.scene.sent();
        let more = sent.split_off(count.min(sent.len()));
        let looks = more.iter().all(|opcode| cost.changes_a_claim && *opcode == Opcode::GetData);
        let behind = sent.split_off(waited_for.len().min(sent.len()));
        ensure!(
            sent == waited_for && in_order(behind) == in_order(cost.behind.to_vec()) && looks,
            "{}; expected: {waited_for:?}, and behind them {:?}",
            self.story(),
            cost.behind
        );
        Ok(())
    }

    /// Waits until everything that has been sent is answered, and what the answers led to as well.
    async fn until_answered(&self) -> Result<()> {
        for _ in 0..2 {
            let look = Request::Sync("/".to_owned());
            let seat = self.counted.0.session().join("/", SeatLimits::default())?;
            within("a round trip", seat.submit(look)).await??;
        }
        Ok(())
    }
}

/// How many connections the requests came by.
fn connections(scene: &Scene) -> usize {
    let seen = scene.proxy.requests(&scene.about());
    seen.iter().map(|seen| seen.connection).collect::<BTreeSet<_>>().len()
}

/// Any order, but the same for the same requests.
fn in_order(mut opcodes: Vec<Opcode>) -> Vec<Opcode> {
    opcodes.sort_by_key(|opcode| opcode.number());
    opcodes
}

#[tokio::test]
async fn every_operation_costs_what_the_table_says() -> Result<()> {
    let mut failed = Vec::new();
    for cost in table::all() {
        let counted = async { Counting::open(&cost).await?.count(&cost).await };
        if let Err(error) = counted.await {
            failed.push(format!("{} {}: {error:#}", cost.recipe, cost.operation));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// The holder has a session of its own. While no reply comes, all that the first round trip behind the event
/// takes is sent; if there were a second one, the reply to it would not come.
#[tokio::test]
async fn the_next_in_line_holds_one_round_trip_after_it_is_told() -> Result<()> {
    let server = zookeeper::shared().await;
    // A writer that goes may have become a reader, so the next writer lists the line once more, and holds by
    // what that shows. Others have heard all they need, and look whether their own znode still stands.
    for (recipe, operation, expected) in [
        ("lock", "acquire", Opcode::GetData),
        ("read-write-lock", "acquire-read", Opcode::GetData),
        ("read-write-lock", "acquire-write", Opcode::GetChildren2),
    ] {
        let scene = Scene::open(recipe).await?;
        let beside = Stock::open(server.address(), recipe, &scene.path).await?;
        let (holder, _its_follower) = beside.join()?;
        let first = if recipe == "lock" { "acquire" } else { "acquire-write" };
        ensure!(beside.call(&holder, first).await?.claim.is_some(), "{recipe}: no claim");
        let (next, _the_nexts) = scene.stock.join()?;
        let stall = || drop(scene.proxy.inject(scene.about(), Action::StallReplies));
        let handing_over = async {
            eventually("the one ahead to be watched", async || {
                let seen = scene.proxy.requests(&scene.about());
                let is_there = seen.len() == 3 && seen.iter().all(|seen| seen.answer.is_some());
                Ok(is_there.then_some(()))
            })
            .await?;
            scene.proxy.clear_log();
            stall();
            beside.call(&holder, "release").await?;
            scene.until_sent(1).await?;
            let trip = scene.sent();
            // The first request of another trip finds the door closed again.
            stall();
            scene.proxy.release();
            anyhow::Ok(trip)
        };
        let (held, trip) = tokio::try_join!(scene.stock.call(&next, operation), handing_over)?;
        ensure!(held.claim.is_some(), "{recipe} {operation}: {held:?}");
        ensure!(trip == [expected], "{recipe} {operation}: {trip:?} after the event");
        ensure!(connections(&scene) == 1, "{recipe} {operation}: a second round trip");
    }
    Ok(())
}

#[test]
fn the_table_has_every_operation_of_every_stock_recipe() -> Result<()> {
    let has: BTreeSet<_> = table::all().iter().map(|cost| (cost.recipe, cost.operation)).collect();
    for (recipe, operation) in stock::operations()? {
        let is_there = has.contains(&(recipe, operation.as_str()));
        ensure!(is_there, "{recipe} {operation} is not in the table");
    }
    Ok(())
}
