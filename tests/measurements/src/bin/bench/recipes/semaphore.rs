//! Eight permits, and sixty-four that wait for one.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use wok::guest::Arguments;
use wok::participant::Participant;

use super::{Contest, Crowd, Member, Peers, Who, hold_and_give_back};
use crate::ground::Ground;
use crate::native;
use crate::report::Row;

const PERMITS: usize = 8;
const MEMBERS: usize = PERMITS + 64;
const CYCLES: usize = 15;

struct Stock {
    participant: Arc<Participant>,
    acquire: Arguments,
    release: Arguments,
}

impl Member for Stock {
    async fn cycle(&self, _: usize) -> Result<()> {
        hold_and_give_back(&self.participant, &self.acquire, &self.release).await
    }
}

impl Member for native::Semaphore {
    async fn cycle(&self, _: usize) -> Result<()> {
        let lease = self.acquire().await?;
        self.release(lease).await
    }
}

pub(super) fn bench(ground: &Ground, peers: &mut Peers) -> Result<Vec<Row>> {
    let crowd =
        Crowd::join(ground, "semaphore", "semaphore", json!({ "permits": PERMITS }), MEMBERS)?;
    let (acquire, release) = (crowd.operation("acquire")?, crowd.operation("release")?);
    let by_hand = ground.native.block_on(async {
        let client = native::connect(ground.server.address()).await?;
        native::Semaphore::new(client, "/recipes-native-semaphore", PERMITS).await
    })?;
    let contest = Contest {
        recipe: "semaphore",
        setting: PERMITS.to_string(),
        wok: crowd.each(|_, participant| {
            let (acquire, release) = (acquire.clone(), release.clone());
            Stock { participant, acquire, release }
        }),
        native: (0..MEMBERS).map(|_| Arc::new(by_hand.clone())).collect(),
        peers: Who::PEERS,
        cycles: CYCLES,
        unit: "permits of 8 for 72",
        count: CYCLES * MEMBERS,
        least: None,
    };
    let rows = contest.play(ground, peers)?;
    crowd.leave(ground);
    Ok(rows)
}
