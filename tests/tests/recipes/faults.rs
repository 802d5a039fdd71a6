//! Each operation of the stock recipes while something breaks on three real servers;
//! `cargo xtask soak faults` plays all of it thirty times.

use anyhow::{Result, ensure};
use wok_tests::faults::{Fault, Ground, play, struck};
use wok_tests::stock;

// On threads of their own: sessions go on while a module is compiled.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_breaks_nobody_waits_for_ever_and_nothing_is_left() -> Result<()> {
    let mut ground = Ground::start().await?;
    for fault in Fault::ALL {
        play(&mut ground, fault).await?;
    }
    Ok(())
}

#[test]
fn each_operation_of_each_stock_recipe_is_struck_in_a_play() -> Result<()> {
    let struck = struck();
    for (recipe, operation) in stock::operations()? {
        let is_struck = struck.contains(&(recipe, operation.as_str()));
        ensure!(is_struck, "{recipe} {operation} is in no play of tests/src/faults/repertoire.rs");
    }
    Ok(())
}
