//! A recipe that is not wok's, with a workload of its own.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use wok::guest::CompileCache;
use wok::simulation::called::Called;
use wok::simulation::history::{Outcome, What};
use wok::simulation::search::Search;
use wok::simulation::subject::{Given, Origin, Subject};
use wok::simulation::verdict::{Verdict, VerdictError};
use wok::simulation::workload;

/// The component of `tests/guests/shelf`.
fn shelf() -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/shelf");
    // The one that `build.rs` uses: std is compiled there already.
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests");
    let built = wok_build::Builder::new(target_dir).guest(directory).build();
    built.unwrap_or_else(|error| panic!("{error}")).remove(0).wasm
}

fn subject(given: Given) -> Subject {
    Subject::with("shelf", &shelf(), None, CompileCache::Off, given).unwrap()
}

/// What a run has to do with two roles, arguments and an answer that is passed on.
#[test]
fn a_strangers_recipe_is_used_as_its_own_workload_says() {
    let subject = subject(Given::Own);
    assert_eq!(*subject.origin(), Origin::Component);
    assert!(!subject.is_judged());
    assert_eq!(subject.left_out(), Vec::<&str>::new());
    let mut put: BTreeMap<String, u64> = BTreeMap::new();
    let mut taken = 0;
    for seed in 1..=20 {
        let verdict = Verdict::of(&subject, workload::plan(&subject, seed)).unwrap();
        assert_eq!(verdict.violations, [], "seed {seed}");
        let mut open = BTreeMap::new();
        put.clear();
        for entry in verdict.history {
            match entry.what {
                What::Invoked { call, operation, arguments, .. } => {
                    if operation == "take" {
                        let path = arguments["path"].as_str().unwrap();
                        // Exactly what putting it there was answered.
                        assert_eq!(put.get(path), arguments["weight"].as_u64().as_ref());
                        taken += 1;
                    }
                    if operation == "put" {
                        let label = arguments["label"].as_str().unwrap();
                        assert!(label.starts_with("of ") && !label.contains('$'), "{label}");
                        assert!((1..=9).contains(&arguments["weight"].as_u64().unwrap()));
                    }
                    open.insert(call, operation);
                }
                What::Returned { call, outcome: Outcome::Ok { value, .. }, .. }
                    if open[&call] == "put" =>
                {
                    let path = value["path"].as_str().unwrap().to_owned();
                    put.insert(path, value["weight"].as_u64().unwrap());
                }
                _ => {}
            }
        }
    }
    assert!(taken > 50, "only {taken} were taken");
}

#[test]
fn a_search_of_it_counts_and_calls_everything() {
    let subject = subject(Given::Own);
    let search = Search { first: 1, counting: 30, threads: 2 };
    let findings = search.run(&subject, |_| {}).unwrap();
    assert!(findings.failure.is_none(), "{:?}", findings.failure.map(|it| it.violations));
    assert!(findings.counted >= 30, "{} of {}", findings.counted, findings.runs);
    for operation in subject.operations() {
        assert!(findings.called.made(operation) > 0, "{operation} was never called");
        assert!(!findings.called.only_failed(operation), "{operation} was answered errors only");
    }
}

#[test]
fn without_a_workload_every_operation_is_called_with_arguments_of_its_types() {
    let shelf = shelf();
    let section = b"wok:workload";
    let at = shelf.windows(section.len()).position(|it| it == section).unwrap();
    let mut bare = shelf.clone();
    // Nobody looks for that name.
    bare[at] = b'x';
    let subject = Subject::new("shelf", &bare, None, CompileCache::Off).unwrap();
    assert_eq!(*subject.origin(), Origin::Nowhere);
    let mut called = Called::default();
    for seed in 1..=10 {
        let verdict = Verdict::of(&subject, workload::plan(&subject, seed)).unwrap();
        assert_eq!(verdict.violations, [], "seed {seed}");
        called.add(Called::of(&verdict.history));
    }
    for operation in subject.operations() {
        assert!(called.made(operation) > 0, "{operation} was never called");
    }
    assert!(!called.only_failed("put"), "nothing was put there");
}

/// Who does what is the scenario's, and what is done to them another thing in every seed.
#[test]
fn the_seeds_of_a_scenario_differ_by_their_faults_alone() {
    let text = r#"
        seed = 1
        hosts = 1
        servers = 1
        [[applications]]
        host = 0
        steps = [
            { call = { operation = "put", arguments = { label = "a", weight = 2 }, bind = "it" } },
            { rest = { ms = 500 } },
            { call = { operation = "weigh", arguments = { path = "$it.path" } } },
        ]
        [[faults]]
        fault = "pause"
        when = { at = { ms = 20 } }
        ms = 100
    "#;
    let given = |text: &str| {
        let plan = Box::new(toml::from_str(text).unwrap());
        Given::Scenario { name: "s.toml".to_owned(), plan }
    };
    let subject = subject(given(text));
    let (one, other) = (workload::plan(&subject, 1), workload::plan(&subject, 2));
    assert_eq!(one.applications, other.applications);
    assert_ne!(one.faults, other.faults);
    assert_eq!(one.faults.first(), other.faults.first());
    let search = Search { first: 1, counting: 10, threads: 1 };
    let findings = search.run(&subject, |_| {}).unwrap();
    assert!(findings.failure.is_none() && findings.counted >= 10, "{}", findings.counted);

    let unbound = text.replace("bind = \"it\"", "bind = \"that\"");
    let refused = Subject::with("shelf", &shelf(), None, CompileCache::Off, given(&unbound));
    let error = refused.unwrap_err().to_string();
    let expected = "s.toml: applications[0].steps[2]: $it: no call before has bind = \"it\"";
    assert_eq!(error, expected);
}

/// An answer that is none where another operation wants a number is told, not passed over.
#[test]
fn an_answer_that_does_not_fit_is_told_with_its_place() {
    let text = r#"
        seed = 1
        [[applications]]
        host = 0
        steps = [
            { call = { operation = "put", arguments = { label = "a", weight = 2 }, bind = "it" } },
            { call = { operation = "weigh", arguments = { path = "$it.weight" } } },
        ]
    "#;
    let plan: Box<wok::simulation::plan::Plan> = Box::new(toml::from_str(text).unwrap());
    let given = Given::Scenario { name: "s.toml".to_owned(), plan: plan.clone() };
    let error = Verdict::of(&subject(given), *plan).unwrap_err();
    let VerdictError::Plan(error) = error else { panic!("{error}") };
    assert_eq!(error.place, "applications[0].steps[1]");
    assert!(matches!(Value::from(error.problem), Value::String(text) if text.contains("path")));
}
