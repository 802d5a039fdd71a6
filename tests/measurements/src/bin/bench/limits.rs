//! What the limits that users get cost somebody who works as fast as he can: an acquire and its
//! release with nobody else about, again and again, beside the same with the limits lifted.
//!
//! The only benchmark that lifts a limit, to have a baseline. A limit of a rate shows only after
//! what it lets go at once, so a round takes its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use wok::guest::Limits;

use crate::ground::Ground;
use crate::lock::{Contender, Lock};
use crate::report::{Bound, Row};

const ROUNDS: usize = 5;
const WINDOW: Duration = Duration::from_secs(3);

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let host = ground.host(4)?;
    let session = ground.session(&host)?;
    let join = |mount: &str, limits: Limits| -> Result<_> {
        let _on_this_runtime = ground.wok.enter();
        let (contender, follower) =
            Lock::load(&host, mount)?.join_within(limits, &host, &session)?;
        Ok((Arc::new(contender), follower))
    };
    let (limited, _followed) = join("/limits-default", Limits::default())?;
    let lifted = Limits {
        calls_per_second: u32::MAX,
        written_per_second: u64::MAX,
        cpu_per_call: Duration::from_secs(60),
        ..Limits::default()
    };
    let (lifted, _also_followed) = join("/limits-lifted", lifted)?;
    let cycles = |contender: &Arc<Contender>| {
        // On the runtime's own threads, as a server's requests are.
        ground.wok.block_on(ground.wok.spawn(per_second(Arc::clone(contender))))?
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    cycles(&lifted)?;
    for round in 0..ROUNDS {
        // Each goes first in every other round.
        if round % 2 == 0 {
            with.push(cycles(&limited)?);
            without.push(cycles(&lifted)?);
        } else {
            without.push(cycles(&lifted)?);
            with.push(cycles(&limited)?);
        }
    }
    ground.wok.block_on(session.close());
    Ok(vec![
        Row::ratio("cycles, default limits to none", &with, &without).bound(Bound::AtLeast(0.97)),
        Row::new("cycles with the default limits", "1/s", with),
        Row::new("cycles with the limits lifted", "1/s", without),
    ])
}

/// Cycles in a second, over a window.
async fn per_second(contender: Arc<Contender>) -> Result<f64> {
    let start = Instant::now();
    let mut cycles = 0_u32;
    while start.elapsed() < WINDOW {
        contender.acquire().await?;
        contender.release().await?;
        cycles += 1;
    }
    Ok(f64::from(cycles) / start.elapsed().as_secs_f64())
}
