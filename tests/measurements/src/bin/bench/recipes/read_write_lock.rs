//! Thirty-two in one line, nine readers for each writer.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use wok::guest::Arguments;
use wok::participant::Participant;

use super::{Contest, Crowd, Member, Peers, Who, hold_and_give_back};
use crate::ground::Ground;
use crate::native;
use crate::report::Row;

const MEMBERS: usize = 32;
const CYCLES: usize = 30;

/// One of so many cycles writes.
const WRITES: usize = 10;

struct Stock {
    number: usize,
    participant: Arc<Participant>,
    acquire_read: Arguments,
    acquire_write: Arguments,
    release: Arguments,
}

impl Member for Stock {
    async fn cycle(&self, number: usize) -> Result<()> {
        let acquire = match is_write(self.number, number) {
            true => &self.acquire_write,
            false => &self.acquire_read,
        };
        hold_and_give_back(&self.participant, acquire, &self.release).await
    }
}

struct ByHand {
    number: usize,
    lock: native::ReadWriteLock,
}

impl Member for ByHand {
    async fn cycle(&self, number: usize) -> Result<()> {
        let held = match is_write(self.number, number) {
            true => self.lock.acquire_write().await?,
            false => self.lock.acquire_read().await?,
        };
        self.lock.release(held).await
    }
}

/// Those of one time that write are few, whatever the time.
fn is_write(member: usize, cycle: usize) -> bool {
    (member + cycle).is_multiple_of(WRITES)
}

pub(super) fn bench(ground: &Ground, peers: &mut Peers) -> Result<Vec<Row>> {
    let crowd = Crowd::join(ground, "read-write-lock", "read-write-lock", json!({}), MEMBERS)?;
    let (acquire_read, acquire_write) =
        (crowd.operation("acquire-read")?, crowd.operation("acquire-write")?);
    let release = crowd.operation("release")?;
    let lock = ground.native.block_on(async {
        let client = native::connect(ground.server.address()).await?;
        native::ReadWriteLock::new(client, "/recipes-native-read-write-lock").await
    })?;
    let contest = Contest {
        recipe: "read-write-lock",
        setting: WRITES.to_string(),
        wok: crowd.each(|number, participant| {
            let (acquire_read, acquire_write) = (acquire_read.clone(), acquire_write.clone());
            Stock { number, participant, acquire_read, acquire_write, release: release.clone() }
        }),
        native: (0..MEMBERS)
            .map(|number| Arc::new(ByHand { number, lock: lock.clone() }))
            .collect(),
        peers: Who::PEERS,
        cycles: CYCLES,
        unit: "locks of 32, 1 of 10 to write",
        count: CYCLES * MEMBERS,
        least: None,
    };
    let rows = contest.play(ground, peers)?;
    crowd.leave(ground);
    Ok(rows)
}
