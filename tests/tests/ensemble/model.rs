//! The simulation's servers beside Apache ZooKeeper's: what recipes in simulation are judged on.
//!
//! A script says what clients of three servers do, and what is done to the servers. Both ensembles
//! must answer alike, the simulated one for every seed.
//!
//! Where Apache ZooKeeper leaves it open what happens, the simulation takes its own choice, and no
//! script asks for it:
//! * A session that comes to a follower which is behind is welcome there before the follower has
//!   caught up. Apache's follower hears the leader's word on the session after the txns that were
//!   committed before, but carries those out on another thread, which may be late.
//! * What a leader had not yet told to a majority when it was lost may have happened or not: the
//!   seed decides. The same holds for a request whose connection breaks with no reply.
//! * The order of the events of one session's end: its znodes are a set.
//! * How far a follower is behind, which of them becomes the leader, and how long that takes.

mod leaders;
mod partitions;
mod sessions;
mod stale_reads;
mod watches;
mod writes;

use std::mem;

use anyhow::Result;
use tokio::runtime::Builder;
use wok_tests::admin::Admin;
use wok_tests::wire::{Real, Trio};
use wok_tests::zookeeper::Ensemble;

use crate::Silence;

/// Plays a script on both, whose servers never give each other up.
#[track_caller]
fn check(script: impl Fn(&mut Trio) -> Result<()>) {
    check_on(Silence::Borne, script);
}

/// Plays a script on both that cuts servers off from each other until they give each other up.
#[track_caller]
fn check_apart(script: impl Fn(&mut Trio) -> Result<()>) {
    check_on(Silence::Noticed, script);
}

#[track_caller]
fn check_on(silence: Silence, script: impl Fn(&mut Trio) -> Result<()>) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut is_first = true;
    let real = || {
        let mut ensemble = runtime.block_on(crate::ensemble(silence))?;
        if !mem::take(&mut is_first) {
            runtime.block_on(ensemble.mend())?;
            runtime.block_on(clear(&ensemble))?;
        }
        anyhow::Ok(Real::shared(ensemble))
    };
    if let Err(error) = Trio::check(real, script) {
        panic!("{error:#}");
    }
}

/// Removes what an earlier play has left: the simulated ensemble begins with nothing, too.
async fn clear(ensemble: &Ensemble) -> Result<()> {
    let admin = Admin::connect(&ensemble.connect_string()).await?;
    for name in admin.children("/").await?.iter().filter(|name| *name != "zookeeper") {
        admin.delete_tree(&format!("/{name}")).await?;
    }
    Ok(())
}
