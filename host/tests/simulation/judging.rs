//! The judge of a promise: what it says counts, and what it does wrong is an error that names it.

use std::path::Path;
use std::sync::OnceLock;

use wok::guest::{CompileCache, Judge};
use wok::modules::{ModuleSource, stock_names};
use wok::simulation::judges;
use wok::simulation::subject::Subject;
use wok::simulation::verdict::{Verdict, VerdictError};
use wok::simulation::workload;
use wok_build::{Builder, Component};

use super::stock;

fn hostile_component() -> &'static Component {
    static BUILT: OnceLock<Component> = OnceLock::new();
    BUILT.get_or_init(|| {
        // The one that `host/build.rs` uses: std is compiled there already.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/hostile-judge");
        let built = Builder::new(target).judge(source).build();
        built.unwrap_or_else(|error| panic!("hostile-judge: {error}")).remove(0)
    })
}

fn hostile() -> Judge {
    Judge::load("hostile", &hostile_component().wasm, &CompileCache::Off).unwrap()
}

/// What it says of nothing, as its config has it.
fn said(config: &str) -> Result<Vec<judges::Violation>, String> {
    let judged = judges::judge(&[], Some(&hostile()), &format!("{config:?}"));
    judged.map_err(|error| error.to_string())
}

#[track_caller]
fn check(config: &str, expected: &str) {
    let error = said(config).expect_err(config);
    assert!(error.starts_with("the judge hostile failed in `"), "{error}");
    assert!(error.contains(expected), "{config}: {error}");
    assert!(error.ends_with("; nothing was judged"), "{error}");
}

#[test]
fn a_judge_that_does_not_come_to_an_end_is_an_error_of_the_judge() {
    check("loop", "its fuel is used up");
    check("recurse", "stack is used up");
    check("grow", "it wanted more than 134217728 bytes of memory");
    check("panic", "it panicked or aborted");
}

#[test]
fn a_judge_whose_answer_makes_no_sense_is_an_error_of_the_judge() {
    check("flood", "it answered more than");
    check("shout", "it answered more than");
    check("unknown", "\"M1\", which is none of its invariants");
    check("beyond", "beyond the 0 there are");
}

#[test]
fn a_judge_that_refuses_the_config_says_why() {
    assert_eq!(said("refuse").unwrap_err(), "the judge hostile refuses the config: no");
}

#[test]
fn what_a_judge_says_is_told_beside_what_every_recipe_owes() {
    assert_eq!(said("nothing").unwrap(), []);
    // Of a lock only its own judge knows who may delete another's contender.
    let subject = stock("counter").judged_by(hostile());
    let verdict = Verdict::of(&subject, workload::plan(&subject, 1)).unwrap();
    assert_eq!(verdict.violations, []);
    let said = judges::judge(&verdict.history, Some(&hostile()), "\"broken\"").unwrap();
    let [violation] = said.as_slice() else { panic!("{said:#?}") };
    assert_eq!(violation.invariant, "Z1");
    assert_eq!(violation.sentence, format!("{} entries", verdict.history.len()));
}

#[test]
fn a_run_whose_judge_fails_has_no_verdict() {
    let bytes = ModuleSource::Stock("lock".to_owned()).read(None).unwrap();
    // The judge is handed the recipe's config.
    let config = Some(serde_json::json!({ "format": "kazoo" }));
    let subject = Subject::new("lock", &bytes, config, CompileCache::Off).unwrap();
    let subject = subject.judged_by(hostile());
    let failed = Verdict::of(&subject, workload::plan(&subject, 1));
    let Err(VerdictError::Judge(error)) = failed else { panic!("{failed:?}") };
    assert!(error.to_string().contains("which is none of its invariants"), "{error}");
}

#[test]
fn a_component_is_judged_by_the_judge_that_it_carries_along() {
    let wasm = ModuleSource::Stock("lock".to_owned()).read(None).unwrap().into_owned();
    let mut lock = Component { name: "mine".to_owned(), package: "mine".to_owned(), wasm };
    lock.carry_judge(hostile_component());
    let subject = Subject::new("mine", &lock.wasm, None, CompileCache::Off).unwrap();
    let judge = subject.judge().unwrap();
    assert_eq!(judge.name(), "mine's own");
    assert_eq!(judge.digest(), hostile_component().sha256());
}

#[test]
fn what_is_no_judge_is_refused_with_its_name() {
    let recipe = ModuleSource::Stock("lock".to_owned()).read(None).unwrap();
    let judge = &hostile_component().wasm;
    let cut = &judge[..judge.len() / 2];
    let remedy = "`wok build --judge`";
    for (bytes, told) in [
        (&b"nothing of the kind"[..], &["not WebAssembly", remedy][..]),
        (&b"\0asm\x01\0\0\0"[..], &["a core module", remedy]),
        (&*recipe, &["it does not export wok:judge/judge", "stands before --judge", remedy]),
        (cut, &["was it copied as a whole?", "`wok build`"]),
    ] {
        let error = Judge::load("odd", bytes, &CompileCache::Off).unwrap_err().to_string();
        assert!(error.starts_with("odd is no judge: "), "{error}");
        for text in told {
            assert!(error.contains(text), "{text:?} in {error}");
        }
    }
}

#[test]
fn every_stock_recipe_has_a_judge_of_its_interface() {
    for name in stock_names() {
        let subject = stock(name);
        let judge = subject.judge().unwrap_or_else(|| panic!("{name} has no promise/judge"));
        assert_eq!(judge.name(), format!("stock {name}"));
        assert_eq!(judge.digest().len(), 64);
        assert!(!judge.invariants().is_empty() && !judge.names("Z1"), "{:?}", judge.invariants());
    }
}
