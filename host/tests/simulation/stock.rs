//! Every stock recipe keeps its promises, whatever is done to it.

use wok::modules::stock_names;
use wok::simulation::history::FaultKind;
use wok::simulation::search::{Findings, Search};
use wok::simulation::subject::Subject;
use wok::simulation::verdict::Verdict;
use wok::simulation::workload;

use super::{number, stock};

#[test]
fn stock_recipes_keep_their_promises_in_a_thousand_seeds_that_count() {
    let counting = number("WOK_SEEDS", 1_000);
    let first = number("WOK_FIRST_SEED", 1);
    for name in stock_names() {
        let subject = stock(name);
        let mut findings = search(&subject, name, first, counting);
        // What comes rarely in the middle of a rare call may take more seeds, but not twice as many.
        while never_struck(&findings).is_some() && findings.counted < counting * 2 {
            let more = search(&subject, name, first + findings.runs, counting.div_ceil(10));
            findings.runs += more.runs;
            findings.counted += more.counted;
            findings.grants += more.grants;
            findings.coverage.add(more.coverage);
        }
        let (fault, call, hits) = findings.coverage.least().unwrap();
        println!("{}", findings.coverage.table());
        println!(
            "figure: {name}: {} runs, {} counted, {} grants, least hit: {} in the middle of \
             {call}, {hits} times",
            findings.runs,
            findings.counted,
            findings.grants,
            fault.name()
        );
        assert_eq!(never_struck(&findings), None, "{name}");
        let is_held = !subject.claims() || findings.grants > counting;
        assert!(is_held, "{name}: only {} grants", findings.grants);
    }
}

/// Seeds from `first` on, none of which breaks an invariant.
fn search(subject: &Subject, name: &str, first: u64, counting: u64) -> Findings {
    let threads = std::thread::available_parallelism().unwrap().get();
    let mut told = 0;
    let findings = Search { first, counting, threads }.run(subject, |findings| {
        let tenths = findings.counted * 10 / counting;
        if tenths > told {
            told = tenths;
            println!("{name}: {} of {counting} counted", findings.counted);
        }
    });
    let findings = findings.unwrap();
    if let Some(failure) = findings.failure {
        let violation = &failure.violations[0];
        panic!(
            "{}: {}\nwok test {name} --seed {}",
            violation.invariant, violation.sentence, failure.plan.seed
        );
    }
    findings
}

/// A fault, and a call that it has never struck.
fn never_struck(findings: &Findings) -> Option<(FaultKind, &str)> {
    let (fault, call, hits) = findings.coverage.least()?;
    (hits == 0).then_some((fault, call))
}

/// Each was told to be broken once, for what the simulator, a judge or the host had wrong.
#[test]
fn seeds_that_were_wronged_hold() {
    let seeds = [
        ("lock", &[1_655, 1_997, 7_791, 8_323, 13_011, 32_132, 1_007_764][..]),
        ("leader-election", &[822, 936]),
        ("read-write-lock", &[15, 621, 1_538, 9_970, 49_528]),
        ("name-service", &[964]),
        ("priority-queue", &[945]),
    ];
    for (name, seeds) in seeds {
        let subject = stock(name);
        for seed in seeds {
            let verdict = Verdict::of(&subject, workload::plan(&subject, *seed)).unwrap();
            assert_eq!(verdict.violations, [], "{name}, seed {seed}");
        }
    }
}
