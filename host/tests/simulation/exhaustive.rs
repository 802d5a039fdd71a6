//! Two and three participants of every stock recipe, and each fault at each of their requests and waits.

use wok::modules::stock_names;
use wok::simulation::exhaustive::{exhaust, small};
use wok::simulation::subject::Subject;

use super::{number, stock};

/// How many participants there are.
const SIZES: [usize; 2] = [2, 3];

/// What each of them does, at most.
const STEPS: usize = 8;

/// Seeds that are looked at to find one in which somebody is answered.
const TRIES: u64 = 10;

#[test]
fn stock_recipes_survive_each_fault_at_each_request_of_a_few_participants() {
    let runs = number("WOK_EXHAUSTIVE_RUNS", 1);
    for name in stock_names() {
        let subject = stock(name);
        let plans = SIZES.map(|size| play(&subject, name, size, runs));
        assert_eq!(plans, [runs; 2], "{name}: plans in which anybody is answered");
    }
}

/// Plays plans of one size until so many of them have answered somebody, or no further seed is looked
/// at. Answers how many there were.
fn play(subject: &Subject, name: &str, size: usize, runs: u64) -> u64 {
    let (mut done, mut struck) = (0, 0);
    for seed in 1..=runs * TRIES {
        if done == runs {
            break;
        }
        let mut plan = small(subject, seed, size, STEPS);
        // A barrier of three keeps two waiting.
        let configs = plan.applications.iter_mut().filter_map(|it| it.config.as_mut());
        for wanted in configs.filter_map(|config| config.get_mut("size")) {
            *wanted = size.into();
        }
        let exhausted = exhaust(subject, plan, |_, _| {}).unwrap();
        if let Some(failure) = exhausted.failure {
            let violation = &failure.violations[0];
            let (id, sentence) = (&violation.invariant, &violation.sentence);
            panic!("{name}, {size} participants of seed {seed}: {id}: {sentence}");
        }
        struck += exhausted.struck;
        let mut operations = subject.operations();
        done += u64::from(operations.any(|it| exhausted.called.answered(it) > 0));
    }
    println!("figure: {name}: {size} participants, {done} plans, {struck} faults struck");
    done
}
