//! Each operation of the stock recipes while something breaks on three real servers.

use anyhow::Result;
use wok_tests::faults::{Fault, Ground, play as play_all};

use crate::{Length, Options, figure, say};

/// Plays all under each fault, again and again, on the same servers.
pub(crate) fn play(options: &Options) -> Result<()> {
    let rounds = if options.length == Length::Full { 30 } else { 1 };
    let is_wanted = |fault: &Fault| {
        options.only.as_ref().is_none_or(|only| format!("{fault:?}").contains(only))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut ground = Ground::start().await?;
        for fault in Fault::ALL.into_iter().filter(is_wanted) {
            let mut count = 0;
            for number in 1..=rounds {
                count += play_all(&mut ground, fault).await?;
                say(&format!("{fault:?}: round {number} of {rounds}"));
            }
            figure(&format!("{fault:?}: {rounds} rounds, {count} plays"));
        }
        Ok(())
    })
}
