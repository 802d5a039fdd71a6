//! Partitions of three real servers, one round of the two plainest; `cargo xtask soak partitions`
//! plays all of them. The simulation's servers beside the real ones where links are cut, and a host
//! without a network.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod links;
mod model;
mod unplugged;

use std::time::Duration;

use anyhow::{Result, ensure};
use wok_tests::partition::{Cut, Ground, Kind, round};

#[tokio::test]
async fn a_host_cut_off_with_a_follower_or_the_leader_stops_before_the_next_begins() -> Result<()> {
    let ground = Ground::new().await?;
    let hosts = [
        (Cut::WithFollower, Kind::Lock),
        (Cut::WithLeader, Kind::Lock),
        // Here it is apps that are told, and stop by themselves.
        (Cut::WithFollower, Kind::Apps),
    ];
    for (cut, kind) in hosts {
        let gap = round(&ground, cut, kind, Duration::from_secs(4)).await?;
        ensure!(gap.is_some(), "{cut:?}, {kind:?}: nobody held after the cut");
    }
    Ok(())
}
