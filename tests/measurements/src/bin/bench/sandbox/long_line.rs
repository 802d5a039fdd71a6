//! One look at a line of ten thousand: what it takes, and what it leaves in the memory of who looks.
//!
//! A look is a `try-acquire` that finds somebody ahead: a contender is created, the line is listed, the
//! place in it is found, and the contender is deleted. The processor time is that of this process, which
//! reads the names from the connection.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use serde_json::json;
use wok::base::Base;
use wok::guest::Limits;
use wok::session::Session;

use crate::ground::Ground;
use crate::measure::cpu_time;
use crate::native;
use crate::report::{Bound, Row};
use crate::stock::{self, Recipe};

const ROUNDS: usize = 10;
const LOOKS: u32 = 20;
const CONTENDERS: usize = 10_000;

/// The unit in which a component's memory grows.
const PAGE_KIB: u32 = 64;

/// Far more than a look may take.
const MOST_PAGES: u32 = 256;

const LINE: &str = "/long-line";

/// The rows of this part of the benchmark.
pub(super) fn bench(ground: &Ground, host: &Base, session: &Arc<Session>) -> Result<Vec<Row>> {
    let load = |mount: &str| {
        let _on_this_runtime = ground.wok.enter();
        Recipe::load(host, "lock", mount, json!({}))
    };
    let (long, empty) = (load(LINE)?, load("/line-of-nobody")?);
    let line = ground.native.block_on(async {
        let client = native::connect(ground.server.address()).await?;
        let line = native::Lock::new(client, LINE).await?;
        line.fill(CONTENDERS).await?;
        anyhow::Ok(line)
    })?;
    let (mut wok, mut native) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Each goes first in every other round.
        for turn in 0..2 {
            let before = cpu_time();
            let to = match (round + turn) % 2 {
                0 => {
                    look(ground, host, session, &long, Limits::default(), LOOKS)?;
                    &mut wok
                }
                _ => {
                    ground.native.block_on(line.look_and_go(LOOKS))?;
                    &mut native
                }
            };
            to.push((cpu_time() - before).as_secs_f64() * 1e3 / f64::from(LOOKS));
        }
    }
    let pages = |recipe: &Recipe| least_pages(ground, host, session, recipe);
    let (behind_many, alone) = (pages(&long)?, pages(&empty)?);
    let more = f64::from(behind_many * PAGE_KIB) - f64::from(alone * PAGE_KIB);
    Ok(vec![
        Row::new("a look at a line of 10,000: processor time, wok", "ms", wok)
            .bound(Bound::AtMost(5.0)),
        Row::new("the same, native", "ms", native),
        Row::new("the component's memory for it, beyond no line", "KiB", vec![more])
            .bound(Bound::AtMost(0.0)),
    ])
}

/// Has a new participant look so many times.
fn look(
    ground: &Ground,
    host: &Base,
    session: &Arc<Session>,
    recipe: &Recipe,
    limits: Limits,
    times: u32,
) -> Result<()> {
    let operation = recipe.operation("try-acquire")?;
    let (participant, mut follower) = {
        let _on_this_runtime = ground.wok.enter();
        recipe.join_within(limits, host, session)?
    };
    ground.wok.block_on(async {
        let looked = async {
            for _ in 0..times {
                stock::answer(&participant, &operation).await?;
            }
            anyhow::Ok(())
        }
        .await;
        // The next one needs its room.
        drop(participant);
        while follower.next().await.is_some() {}
        looked
    })
}

/// The fewest pages of memory with which a look comes to its end.
fn least_pages(
    ground: &Ground,
    host: &Base,
    session: &Arc<Session>,
    recipe: &Recipe,
) -> Result<u32> {
    let within = |pages: u32| {
        let memory = u64::from(pages * PAGE_KIB) << 10;
        look(ground, host, session, recipe, Limits { memory, ..Limits::default() }, 1)
    };
    let mut before = None;
    for pages in 1..=MOST_PAGES {
        match within(pages) {
            Ok(()) => {
                ensure!(before.is_some(), "one page is enough for a lock: nothing is limited");
                return Ok(pages);
            }
            Err(error) => before = Some(error),
        }
    }
    bail!("{MOST_PAGES} pages are not enough for one look: {before:?}")
}
