//! How much of a recipe's life a simulation lives through, and how fast.

use anyhow::{Result, bail};
use wok::guest::CompileCache;
use wok::modules::ModuleSource;
use wok::simulation::search::Search;
use wok::simulation::subject::Subject;

use crate::ground::Ground;
use crate::report::{Bound, Row};

const ROUNDS: u64 = 5;
/// Runs of a round, as a search counts them.
const SEEDS: u64 = 60;

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let source = ModuleSource::Stock("lock".to_owned());
    let cache = CompileCache::In(ground.cache().to_owned());
    let subject = Subject::new(&source.name(), &source.read(None)?, None, cache)?;
    let (mut seeds, mut speed_ups) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // One thread: what is promised is promised of a core.
        let search = Search { first: 1 + round * SEEDS, counting: SEEDS, threads: 1 };
        let findings = search.run(&subject, |_| {})?;
        if let Some(failing) = findings.failure {
            bail!("seed {} breaks an invariant: {:?}", failing.plan.seed, failing.violations);
        }
        seeds.push(findings.seeds_per_second());
        speed_ups.push(findings.speed_up());
    }
    Ok(vec![
        Row::new("runs of the lock in a second, on one core", "", seeds)
            .bound(Bound::AtLeast(30.0)),
        Row::new("simulated seconds of them in a second", "x", speed_ups)
            .bound(Bound::AtLeast(500.0)),
    ])
}
