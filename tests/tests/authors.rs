//! `wok new`, `wok build` and `wok inspect` as a recipe's author uses them: outside the repository,
//! with what each prints as the next command typed to the letter.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use wok_tests::admin::Admin;
use wok_tests::authors::{Done, Workshop};
use wok_tests::process::{Program, Running};

/// The recipe's directory: always the same, so that cargo compiles what the recipes share once.
const RECIPE: &str = "my-recipe";

/// Where the commands that are told expect a server.
const TOLD: &str = "127.0.0.1:2181";

/// Where they mount a recipe.
const MOUNT: &str = "/try";

async fn serve() -> Result<(Running, String)> {
    let server = Program::wok()?
        .args(["--output", "json", "zookeeper", "--listen", "127.0.0.1:0"])
        .start()?;
    let line = server.wait_for_text("listening").await?;
    let told: Value = serde_json::from_str(&line.text)?;
    let address = told["address"].as_str().context("no address")?.to_owned();
    Ok((server, address))
}

/// The last of the commands that a report tells to type next.
fn next(report: &Value) -> Result<String> {
    let next = report["next"].as_array().and_then(|next| next.last()).and_then(Value::as_str);
    Ok(next.with_context(|| format!("no next command: {report}"))?.to_owned())
}

/// Stock recipes of each kind: values, terms, claims in line, items and what several decide. Not all of
/// them: each fork is compiled anew, and the build script of the host has compiled every recipe.
const FORKED: [&str; 5] = ["configuration", "leader-election", "lock", "queue", "two-phase-commit"];

/// The options of `wok new` for these and for every template there is.
fn origins() -> Vec<String> {
    let stock = FORKED.iter().map(|name| format!("--from {name}"));
    let templates = wok::scaffold::template_names().map(|name| format!("--template {name}"));
    stock.chain(templates).collect()
}

#[tokio::test]
async fn a_new_recipe_of_each_kind_builds_and_works_by_typing_what_is_told_next() -> Result<()> {
    let shop = Workshop::open()?;
    let (_server, address) = serve().await?;
    let directory = shop.path().join(RECIPE);
    let mut fences = Vec::new();
    for origin in origins() {
        let made = shop.report(&format!("wok --output json new {RECIPE} {origin}"))?;
        let lock = fs::read_to_string(directory.join("Cargo.lock"))?;

        let build = next(&made)?;
        assert_eq!(build, format!("wok build {RECIPE}"));
        let built = shop.report(&format!("{build} --output json"))?;
        let now = fs::read_to_string(directory.join("Cargo.lock"))?;
        assert_eq!(now, lock, "{origin}: cargo resolved anew");

        let module = format!("{RECIPE}/{RECIPE}.wasm");
        assert_eq!(built["next"][0], format!("wok inspect {module}"));
        assert_eq!(built["next"][1], format!("wok test {module}"));
        let told = shop.report(&format!("wok inspect {module} --output json"))?;
        assert_eq!(told["sha256"], built["sha256"], "{origin}");
        assert_eq!(told["size"], fs::metadata(directory.join(format!("{RECIPE}.wasm")))?.len());
        assert_eq!(told["documentation"]["state"], "matches", "{origin}");
        assert_eq!(told["judge"]["name"], "my-recipe's own", "{origin}");
        assert_eq!(told["workload"]["from"], "file", "{origin}");
        if let Some(stock) = origin.strip_prefix("--from ") {
            let stock = shop.report(&format!("wok inspect {stock} --output json"))?;
            for same in ["interface", "operations", "types", "config-schema", "imports"] {
                assert_eq!(told[same], stock[same], "{origin}");
            }
            assert_eq!(told["judge"]["invariants"], stock["judge"]["invariants"], "{origin}");
            assert_eq!(stock["workload"]["from"], "component", "{origin}");
        }

        let proposed = told["next"].as_array().context("what to type next")?;
        let mut proposed = proposed.iter().filter_map(Value::as_str);
        let is_use =
            |command: &&str| command.starts_with("wok hold ") || command.starts_with("wok call ");
        let used = proposed.find(is_use).with_context(|| format!("no use of it: {told}"))?;
        let used = used.replace(TOLD, &address);
        assert!(used.contains(&address) && used.contains(MOUNT), "{used}");
        let ended = shop.run(&used)?;
        assert_eq!(ended.code, Some(0), "{used}: {ended:?}");
        if used.starts_with("wok hold ") {
            fences.push(ended.stdout.trim().parse::<u64>()?);
        }
        // What one recipe keeps at the mount that is told to all is nothing to the next. A session of
        // its own, because nothing beats for one while a command is waited for.
        Admin::connect(&address).await?.delete_tree(MOUNT).await?;
        if origins().last() != Some(&origin) {
            fs::remove_dir_all(&directory)?;
        }
    }
    assert!(fences.is_sorted_by(|one, other| one < other), "{fences:?}");
    a_mistake_is_shown_as_cargo_shows_it(&shop, &directory)?;
    its_judge_is_its_authors_to_change(&shop, &directory)?;
    its_own_tests_run(&shop, &directory)
}

/// The mistake of `docs/fork-a-recipe.md`, in a component that has lost its own judge.
#[tokio::test]
async fn a_broken_lock_is_judged_by_its_interface_and_where_nobody_knows_that_it_is_no_pass()
-> Result<()> {
    let shop = Workshop::open()?;
    shop.report(&format!("wok --output json new {RECIPE} --from lock"))?;
    let decide = shop.path().join(RECIPE).join("src/decide.rs");
    let right = fs::read_to_string(&decide)?;
    let wrong = right.replace("then: if ahead == 1 {", "then: if ahead >= 1 {");
    assert_ne!(wrong, right);
    fs::write(&decide, wrong)?;
    shop.report(&format!("wok build {RECIPE} --output json"))?;
    let built = fs::read(shop.path().join(RECIPE).join(format!("{RECIPE}.wasm")))?;
    // The names in the file have the same length, so that the component stays whole.
    let bare = replaced(&built, "wok:judge", "not:judge")?;
    fs::write(shop.path().join("fork.wasm"), replaced(&bare, "wok:lock/", "own:fork/")?)?;
    fs::write(shop.path().join("unknown.wasm"), replaced(&bare, "/lock@", "/lick@")?)?;
    // Nobody is asked to give way: that is what every recipe owes, and all judges look at it.
    let round = "[[roles]]\nname = \"user\"\nround = [\n\
        { call = { operation = \"acquire\", deadline-ms = [10, 2500], deadline-percent = 50 } },\n\
        { work = { ms = [0, 250] } }, { call = { operation = \"release\" } },\n\
        { call = { operation = \"try-acquire\" } }, { call = { operation = \"contenders\" } }, \
        \"leave\",\n]\n";
    fs::write(shop.path().join("use.toml"), round)?;

    let known = shop.run("wok test fork.wasm --workload use.toml --seeds 1000")?;
    assert_eq!(known.code, Some(1), "{known:?}");
    assert!(known.stdout.contains("fork.wasm: BROKEN by seed"), "{}", known.stdout);
    assert!(known.stdout.contains("judged by stock lock, "), "{}", known.stdout);

    let unknown = shop.run("wok test unknown.wasm --workload use.toml --seeds 100")?;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let first = unknown.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("NOT JUDGED: no judge knows wok:lock/lick@"), "{}", unknown.stdout);
    assert!(!unknown.stdout.contains("every invariant held"), "{}", unknown.stdout);
    Ok(())
}

fn replaced(component: &[u8], name: &str, by: &str) -> Result<Vec<u8>> {
    assert_eq!(name.len(), by.len());
    let mut replaced = component.to_vec();
    let mut found = 0;
    for at in 0..=replaced.len().saturating_sub(name.len()) {
        if replaced[at..].starts_with(name.as_bytes()) {
            replaced[at..at + name.len()].copy_from_slice(by.as_bytes());
            found += 1;
        }
    }
    anyhow::ensure!(found > 0, "{name} is nowhere in the component");
    Ok(replaced)
}

fn its_judge_is_its_authors_to_change(shop: &Workshop, directory: &Path) -> Result<()> {
    let inspect = format!("wok inspect {RECIPE}/{RECIPE}.wasm --output json");
    let before = shop.report(&inspect)?;
    let file = directory.join("promise/judge/src/lib.rs");
    let text = fs::read_to_string(&file)?;
    fs::write(&file, text.replace("(\"T1\", \"", "(\"T1\", \"as its author says, "))?;
    shop.report(&format!("wok build {RECIPE} --output json"))?;
    let after = shop.report(&inspect)?;
    let meaning = after["judge"]["invariants"][0]["meaning"].as_str().context("a meaning")?;
    assert!(meaning.starts_with("as its author says, "), "{meaning}");
    assert_ne!(after["judge"]["sha256"], before["judge"]["sha256"]);
    assert_ne!(after["sha256"], before["sha256"]);
    Ok(fs::write(&file, text)?)
}

/// Here, because by now its dependencies are compiled.
fn a_mistake_is_shown_as_cargo_shows_it(shop: &Workshop, directory: &Path) -> Result<()> {
    let file = directory.join("src/decide.rs");
    let right = fs::read_to_string(&file)?;
    fs::write(&file, format!("{right}\nfn unused() {{}}\n"))?;
    let warned = shop.run(&format!("wok build {RECIPE}"))?;
    assert_eq!(warned.code, Some(0), "{warned:?}");
    assert!(warned.stderr.contains("warning: function `unused` is never used"), "{warned:?}");
    assert!(warned.stderr.contains("Compiling my-recipe"), "{warned:?}");

    fs::write(&file, format!("{right}\nfn wrong() -> u32 {{ \"text\" }}\n"))?;
    let refused = shop.run(&format!("wok build {RECIPE}"))?;
    assert_eq!(refused.code, Some(78), "{refused:?}");
    for told in ["error[E0308]: mismatched types", "--> src/decide.rs:"] {
        assert_eq!(refused.stderr.matches(told).count(), 1, "{told:?} in {}", refused.stderr);
    }

    let lib = directory.join("src/lib.rs");
    let text = fs::read_to_string(&lib)?;
    fs::write(&file, right)?;
    fs::write(
        &lib,
        format!(
            "{text}\n#[link(wasm_import_module = \"env\")]\nunsafe extern \"C\" {{ fn escape(); }}\n\
             /// Reaches out.\n#[unsafe(no_mangle)]\npub extern \"C\" fn reach() {{ unsafe {{ escape() }} }}\n"
        ),
    )?;
    let refused = shop.run(&format!("wok build {RECIPE}"))?;
    assert_eq!(refused.code, Some(78), "{refused:?}");
    assert!(refused.stderr.contains("env"), "{refused:?}");
    fs::write(&lib, text)?;
    Ok(())
}

/// On the machine itself, as `cargo test` does it for any crate.
fn its_own_tests_run(shop: &Workshop, directory: &Path) -> Result<()> {
    let line = format!("cd {} && cargo test --offline --quiet", directory.display());
    for (which, passed) in [("", 3), (" -p my-recipe-judge", 3)] {
        let tested = shop.run(&format!("{line}{which}"))?;
        assert_eq!(tested.code, Some(0), "{tested:?}");
        let passed = format!("test result: ok. {passed} passed");
        assert!(tested.stdout.contains(&passed), "{tested:?}");
    }
    Ok(())
}

#[track_caller]
fn check_refused(done: &Done, code: i32, told: &[&str]) {
    assert_eq!(done.code, Some(code), "{done:?}");
    for text in told {
        assert!(done.stderr.contains(text), "{text:?} is not in {}", done.stderr);
    }
    assert_eq!(done.stdout, "", "{done:?}");
}

#[test]
fn nothing_is_written_over_and_what_is_asked_wrongly_is_told() -> Result<()> {
    let shop = Workshop::open()?;
    fs::create_dir(shop.path().join("full"))?;
    fs::write(shop.path().join("full/notes"), "mine")?;
    check_refused(&shop.run("wok new full")?, 64, &["full is not empty", "--refresh-sdk"]);
    check_refused(&shop.run("wok new full/notes")?, 78, &["full/notes"]);
    assert_eq!(fs::read_to_string(shop.path().join("full/notes"))?, "mine");
    let known: Vec<&str> = wok::scaffold::stock_names().collect();
    check_refused(&shop.run("wok new a --from locc")?, 64, &["\"locc\"", &known.join(", ")]);
    check_refused(&shop.run("wok new a --template maximal")?, 64, &["minimal"]);
    check_refused(&shop.run("wok new 'my lock'")?, 64, &["\"my lock\"", "letters, digits"]);
    check_refused(&shop.run("wok new a --from lock --refresh-sdk")?, 64, &["cannot be used with"]);
    assert!(!shop.path().join("a").exists());
    Ok(())
}

#[test]
fn the_sdk_of_a_recipe_is_renewed_and_nothing_else_of_it() -> Result<()> {
    let shop = Workshop::open()?;
    shop.report("wok --output json new a")?;
    let fresh = shop.report("wok --output json new a --refresh-sdk")?;
    assert_eq!(fresh["changed"], serde_json::json!([]));

    let own = shop.path().join("a/src/lib.rs");
    let of_sdk = shop.path().join("a/wok-sdk/src/lib.rs");
    fs::write(&own, "// mine")?;
    fs::write(&of_sdk, "// mine")?;
    let refused = shop.run("wok new a --refresh-sdk")?;
    check_refused(&refused, 64, &["wok-sdk/src/lib.rs", "changed by hand"]);
    fs::remove_file(&of_sdk)?;
    let renewed = shop.run("wok new a --refresh-sdk")?;
    assert_eq!(renewed.code, Some(0), "{renewed:?}");
    for told in ["added    wok-sdk/src/lib.rs", "the contract is 0.1.0", "next: wok build a"] {
        assert!(renewed.stdout.contains(told), "{renewed:?}");
    }
    assert_eq!(fs::read_to_string(&own)?, "// mine");

    check_refused(&shop.run("wok new b --refresh-sdk")?, 78, &["SHA256SUMS is not there"]);
    Ok(())
}

#[test]
fn what_is_no_recipe_is_told_before_anything_is_compiled() -> Result<()> {
    let shop = Workshop::open()?;
    let work = shop.path();
    check_refused(
        &shop.run("wok build nowhere")?,
        78,
        &["nowhere", "no such directory", "`wok new`"],
    );
    check_refused(&shop.run("wok build")?, 78, &["Cargo.toml", "`wok new`"]);
    let with_change = |name: &str, change: &dyn Fn(&Path) -> Result<()>| -> Result<Done> {
        shop.report(&format!("wok --output json new {name}"))?;
        change(&work.join(name))?;
        shop.run(&format!("wok build {name}"))
    };
    let edit = |path: &Path, from: &str, to: &str| -> Result<()> {
        let text = fs::read_to_string(path)?;
        assert!(text.contains(from), "{text}");
        Ok(fs::write(path, text.replace(from, to))?)
    };

    let done = with_change("a", &|it| edit(&it.join("Cargo.toml"), "\"cdylib\"", "\"rlib\""))?;
    check_refused(&done, 78, &["work/a: ", "crate-type = [\"cdylib\"]"]);
    let done = with_change("b", &|it| Ok(fs::remove_dir_all(it.join("wit"))?))?;
    check_refused(&done, 78, &["work/b: ", "no directory `wit`"]);
    let done = with_change("c", &|it| edit(&it.join("Cargo.toml"), "[lib]", "[lib"))?;
    check_refused(&done, 78, &["work/c/Cargo.toml", "unclosed table"]);
    let done = with_change("d", &|it| edit(&it.join("wit/d.wit"), "-> result<", "-> resold<"))?;
    check_refused(&done, 78, &["wit/d.wit:19:", "resold"]);
    let done =
        with_change("e", &|it| edit(&it.join("wit/e.wit"), "@0.1.0.{error}", "@0.9.0.{error}"))?;
    check_refused(&done, 78, &["wit/e.wit:", "0.9.0"]);
    assert!(!shop.path().join("../target").exists(), "something was compiled");
    Ok(())
}

#[test]
fn without_a_compiler_both_ways_to_one_are_told() -> Result<()> {
    let shop = Workshop::open()?;
    shop.report("wok --output json new a")?;
    // A compiler without the target, whose toolchain has no linker for it either.
    let bare = shop.path().join("bare");
    fs::create_dir(&bare)?;
    let rustc = bare.join("rustc");
    fs::write(
        &rustc,
        "#!/bin/sh\ncase \"$1\" in -vV) echo 'host: none' ;; *) dirname \"$0\" ;; esac\n",
    )?;
    fs::set_permissions(&rustc, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let remedies = ["rustup target add wasm32-unknown-unknown", "rustc-web rust-web-src"];
    check_refused(&shop.run_with("wok build a", &[("RUSTC", &rustc)])?, 78, &remedies);
    let gone = bare.join("cargo");
    check_refused(&shop.run_with("wok build a", &[("CARGO", &gone)])?, 78, &["install Rust"]);
    let forced = "WOK_GUEST_TOOLCHAIN=gcc wok build a";
    check_refused(&shop.run(forced)?, 78, &["use `target` or `debian`"]);
    Ok(())
}
