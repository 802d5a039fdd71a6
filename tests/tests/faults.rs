//! Each operation of the stock recipes while something breaks on three real servers;
//! `cargo xtask soak faults` plays all of it thirty times.

use anyhow::Result;
use wok_tests::faults::{Fault, Ground, play};

// On threads of their own: sessions go on while a module is compiled.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_breaks_nobody_waits_for_ever_and_nothing_is_left() -> Result<()> {
    let mut ground = Ground::start().await?;
    for fault in Fault::ALL {
        play(&mut ground, fault).await?;
    }
    Ok(())
}
