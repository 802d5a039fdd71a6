//! Thirty-two that go in and out together.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use wok::guest::Arguments;
use wok::participant::Participant;

use super::{Contest, Crowd, Member, Peers, Who, hold_and_give_back};
use crate::ground::Ground;
use crate::native;
use crate::report::Row;

const SIZE: usize = 32;
const CYCLES: usize = 60;

struct Stock {
    participant: Arc<Participant>,
    enter: Arguments,
    leave: Arguments,
}

impl Member for Stock {
    async fn cycle(&self, _: usize) -> Result<()> {
        hold_and_give_back(&self.participant, &self.enter, &self.leave).await
    }
}

struct ByHand {
    barrier: native::DoubleBarrier,
    name: String,
}

impl Member for ByHand {
    async fn cycle(&self, number: usize) -> Result<()> {
        self.barrier.round(number, &self.name).await
    }
}

pub(super) fn bench(ground: &Ground, peers: &mut Peers) -> Result<Vec<Row>> {
    let crowd =
        Crowd::join(ground, "double-barrier", "double-barrier", json!({ "size": SIZE }), SIZE)?;
    let (enter, leave) = (crowd.operation("enter")?, crowd.operation("leave")?);
    let barrier = ground.native.block_on(async {
        let client = native::connect(ground.server.address()).await?;
        native::DoubleBarrier::new(client, "/recipes-native-double-barrier", SIZE).await
    })?;
    let by_hand = |number| ByHand { barrier: barrier.clone(), name: format!("member-{number}") };
    let contest = Contest {
        recipe: "double-barrier",
        setting: String::new(),
        wok: crowd.each(|_, participant| {
            let (enter, leave) = (enter.clone(), leave.clone());
            Stock { participant, enter, leave }
        }),
        native: (0..SIZE).map(|number| Arc::new(by_hand(number))).collect(),
        peers: Who::PEERS,
        cycles: CYCLES,
        unit: "rounds of 32",
        count: CYCLES,
        least: Some(100.0),
    };
    let rows = contest.play(ground, peers)?;
    crowd.leave(ground);
    Ok(rows)
}
