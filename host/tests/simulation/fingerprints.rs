//! The same seed gives the same history.

use wok::modules::stock_names;
use wok::simulation::history::FaultKind;
use wok::simulation::verdict::Verdict;
use wok::simulation::workload;

use super::stock;

/// Another process that runs a seed: `wok-tests` has that. Here: another engine and another runtime.
#[test]
fn a_seed_gives_the_same_history_again_whatever_kinds_of_faults_it_has() {
    for name in stock_names() {
        let (one, other) = (stock(name), stock(name));
        let mut unseen = FaultKind::ALL.to_vec();
        for seed in 1.. {
            if unseen.is_empty() {
                break;
            }
            let plan = workload::plan(&one, seed);
            let is_new = plan.faults.iter().any(|fault| unseen.contains(&fault.fault));
            if !is_new {
                continue;
            }
            unseen.retain(|kind| !plan.faults.iter().any(|fault| fault.fault == *kind));
            let first = Verdict::of(&one, plan.clone()).unwrap();
            let second = Verdict::of(&other, plan).unwrap();
            let mut pairs = first.history.iter().zip(&second.history).enumerate();
            let differs = pairs.find(|(_, (one, other))| one != other);
            assert_eq!(differs, None, "{name}, seed {seed}");
            assert_eq!(first.digest(), second.digest(), "{name}, seed {seed}");
        }
    }
}
