//! A report that one process of a fleet writes at a time, until that process ends or is cut off: then
//! another one goes on. The README beside this file tries it.

#![allow(clippy::print_stdout, reason = "the pages are what it is for")]

use std::time::Duration;

use anyhow::{Context, Result};
use wok::host::Error;
use wok::{Held, Host, Recipe};

#[tokio::main]
async fn main() -> Result<()> {
    let servers = std::env::args().nth(1).context("usage: one-at-a-time <servers>")?;
    let lock = Recipe::new("lock", "/locks/report");
    let host = Host::builder(servers).recipe("report", lock).open().await?;
    loop {
        let held = match host.acquire("report", "acquire").await {
            // The session has gone while this one stood in line: another one follows.
            Err(Error::Lost(_)) => continue,
            held => held?,
        };
        tokio::select! {
            // Another one may write soon: stop at once, and stand in line again.
            end = held.lost() => println!("stopped in the middle: {end}"),
            () = write_report(&held) => {}
            told = tokio::signal::ctrl_c() => {
                told?;
                held.release().await;
                host.shut_down().await;
                return Ok(());
            }
        }
    }
}

async fn write_report(held: &Held) {
    for page in 1.. {
        // Whatever is written to should refuse a fence that is lower than the highest it has seen.
        println!("page {page} with fence {}", held.fence());
        // Stands for the work on a page.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
