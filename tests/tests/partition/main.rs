//! Partitions of three real servers, one round of the two plainest at two session timeouts;
//! `cargo xtask soak partitions` plays all of them. The simulation's servers beside the real ones where
//! links are cut, and a host without a network.

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

/// Plays rounds one after another, on servers of their own.
async fn play(timeout: u64, rounds: &[(Cut, Kind)]) -> Result<()> {
    let ground = Ground::new().await?;
    for (cut, kind) in rounds {
        let gap = round(&ground, *cut, *kind, Duration::from_secs(timeout)).await?;
        ensure!(gap.is_some(), "{cut:?}, {kind:?}, {timeout} s: nobody held after the cut");
    }
    Ok(())
}

#[tokio::test]
async fn a_host_cut_off_with_a_follower_or_the_leader_stops_before_the_next_begins() -> Result<()> {
    let short = [
        (Cut::WithFollower, Kind::Lock),
        (Cut::WithLeader, Kind::Lock),
        // Here it is apps that are told, and stop by themselves.
        (Cut::WithFollower, Kind::Apps),
    ];
    // Side by side, since they spend their time waiting: ten seconds are the default timeout.
    tokio::try_join!(
        play(4, &short),
        play(10, &[(Cut::WithFollower, Kind::Lock)]),
        play(10, &[(Cut::WithLeader, Kind::Lock)]),
    )?;
    Ok(())
}
