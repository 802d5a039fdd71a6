//! The repository keeps its own style guide, and the checker is not blind.

use wok_tests::tidy::{CHECKS, File, repository};

#[test]
fn the_repository_is_tidy() {
    let files = repository().unwrap();
    assert!(files.iter().any(|file| file.path == "tests/tests/tidy.rs"), "no files were read");
    let findings = CHECKS.iter().flat_map(|check| {
        let found = (check.run)(&files);
        found.into_iter().map(|finding| format!("{finding} ({})\n", check.name))
    });
    let findings: String = findings.collect();
    assert!(findings.is_empty(), "\n{findings}");
}

/// The places that a check finds in files of those paths and texts.
#[track_caller]
fn check(name: &str, files: &[(&str, &str)], expected: &[&str]) {
    let files: Vec<_> = (files.iter())
        .map(|(path, text)| File { path: (*path).into(), text: (*text).into() })
        .collect();
    let check = CHECKS.iter().find(|check| check.name == name).expect("a check of that name");
    let found: Vec<_> = (check.run)(&files)
        .into_iter()
        .map(|finding| format!("{}:{}", finding.path, finding.line))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_mod_rs_is_found() {
    let files = [("host/src/api/mod.rs", ""), ("host/src/model.rs", "")];
    check("modules are name.rs, not mod.rs", &files, &["host/src/api/mod.rs:0"]);
}

#[test]
fn a_vague_name_is_found() {
    let files = [
        ("host/src/utils.rs", ""),
        ("host/src/common/a.rs", ""),
        ("host/src/prototypes.rs", ""),
        ("docs/common/a.md", ""),
    ];
    let expected = ["host/src/utils.rs:0", "host/src/common/a.rs:0"];
    check("no module is called utils and the like", &files, &expected);
}

#[test]
fn a_long_file_is_found() {
    let (long, short) = ("\n".repeat(601), "\n".repeat(600));
    let files = [("a.rs", &*long), ("b.rs", &*short), ("Cargo.lock", &*long)];
    check("no file is longer than 600 lines", &files, &["a.rs:601"]);
}

#[test]
fn a_file_that_no_mod_names_is_found() {
    let files = [
        ("tests/tests/recipes/main.rs", "mod queue;\n"),
        ("tests/tests/recipes/queue.rs", "mod lost;\n"),
        ("tests/tests/recipes/queue/lost.rs", ""),
        ("tests/tests/recipes/queue/fire.rs", ""),
        ("tests/tests/recipes/barrier.rs", ""),
        ("tests/tests/tidy.rs", ""),
        ("host/embedded/examples/serve.rs", ""),
        ("tests/Cargo.toml", "path = \"tests/guardian/guarded.rs\"\n"),
        ("tests/tests/guardian/guarded.rs", ""),
    ];
    let expected = ["tests/tests/recipes/queue/fire.rs:0", "tests/tests/recipes/barrier.rs:0"];
    check("every file is compiled", &files, &expected);
}

#[test]
fn a_recipe_without_a_part_is_found() {
    let files = [
        ("recipes-wasm/whole/README.md", ""),
        ("recipes-wasm/whole/src/lib.rs", ""),
        ("recipes-wasm/whole/src/decide.rs", ""),
        ("recipes-wasm/whole/wit/whole.wit", ""),
        ("recipes-wasm/whole/promise/workload.toml", ""),
        ("recipes-wasm/whole/promise/judge/src/lib.rs", ""),
        ("recipes-wasm/half/README.md", ""),
        ("recipes-wasm/half/src/lib.rs", ""),
        ("recipes-wasm/half/wit/notes.txt", ""),
        ("recipes-wasm/half/promise/workload.toml", ""),
    ];
    let expected = [
        "recipes-wasm/half/src/decide.rs:0",
        "recipes-wasm/half/promise/judge/src/lib.rs:0",
        "recipes-wasm/half/wit/*.wit:0",
    ];
    check("every recipe has its three parts", &files, &expected);
}

#[test]
fn a_second_contract_is_found() {
    let contract = "/// The contract.\npackage wok:recipe@0.1.0;\n";
    let files = [
        ("guest-sdk/wit/recipe.wit", contract),
        ("recipes-wasm/lock/wit/lock.wit", "package wok:lock@0.1.0;\n"),
        ("host/src/guest/recipe.wit", contract),
    ];
    check("the contract exists once", &files, &["host/src/guest/recipe.wit:0"]);
}

#[test]
fn a_client_outside_the_session_room_is_found() {
    let using = "// zookeeper_client::Client is not for us\nuse zookeeper_client::Client;\n";
    let files = [
        ("host/src/session.rs", using),
        ("host/src/session/client.rs", using),
        ("host/src/sessions.rs", using),
        ("host/src/daemon/run.rs", "use crate::my_zookeeper_client::Client;\n"),
        ("tests/src/admin.rs", using),
    ];
    check("only the session room knows the client", &files, &["host/src/sessions.rs:2"]);
}

#[test]
fn wasmtime_outside_the_guest_room_is_found() {
    let files = [
        ("host/src/guest/engine.rs", "let engine = wasmtime::Engine::default();\n"),
        ("host/src/cli/inspect.rs", "\nlet engine = wasmtime::Engine::default();\n"),
        ("host/src/cli/run.rs", "let text = \"wasmtime says no\";\n"),
    ];
    check("only the guest room knows wasmtime", &files, &["host/src/cli/inspect.rs:2"]);
}

#[test]
fn a_recipe_that_the_host_names_is_found() {
    let naming = "let stock = \"seat\";\nlet seats = \"seats\";\n";
    let files = [
        ("recipes-wasm/seat/src/lib.rs", "//! A seat.\n"),
        ("host/src/cli/hold.rs", naming),
        ("host/src/daemon.rs", naming),
        ("host/src/daemon/tests.rs", naming),
        ("host/src/modules.rs", "// wok:seat/seat is one\n#[cfg(test)]\nlet it = \"seat\";\n"),
        ("host/src/guest.rs", "let it = \"wok:seat/seat@0.1.0\";\n"),
        ("host/src/config.rs", "let help = \"module = \\\"seat\\\"\";\n"),
        ("host/src/host.rs", "// tidy: an example for people\nlet help = \"\\\"seat\\\"\";\n"),
    ];
    let expected = ["host/src/daemon.rs:1", "host/src/guest.rs:1", "host/src/config.rs:1"];
    check("no recipe is named outside `cli`", &files, &expected);
}

#[test]
fn a_room_that_knows_one_above_is_found() {
    let below = "use crate::clock::Clock;\n";
    let above = "// crate::daemon::run is above\nlet it = my_crate::daemon::run();\n\
        #[cfg(test)]\nuse crate::daemon::run;\n";
    let files = [
        ("host/src/lib.rs", "pub mod clock;\n\nmod guest;\n\n#[cfg(feature)]\npub mod daemon;\n"),
        ("host/src/guest/judge.rs", "use crate::{clock, guest};\nlet it = crate::daemon::run();\n"),
        ("host/src/guest.rs", below),
        ("host/src/daemon.rs", below),
        ("host/src/daemon/tests.rs", "use crate::daemon::run;\n"),
        ("host/src/clock.rs", above),
        ("host/src/main.rs", "use crate::daemon::run;\n"),
    ];
    let expected = ["host/src/guest/judge.rs:2"];
    check("no room of the host knows one above", &files, &expected);
}

#[test]
fn a_task_that_nobody_joins_is_found() {
    let starting = "tokio::spawn(work);\ntasks.spawn(\"work\", work);\n";
    let excused = "// tidy: awaited in the next line\nruntime.spawn_blocking(work);\n";
    let files = [
        ("host/src/tasks.rs", starting),
        ("host/src/daemon.rs", starting),
        ("host/src/session/diagnose.rs", excused),
        ("tests/src/proxy.rs", starting),
    ];
    check("tasks start in `tasks` only", &files, &["host/src/daemon.rs:1"]);
}

#[test]
fn another_clock_in_the_session_room_is_found() {
    let asking = "// Instant::now() would do\nlet now = Instant::now();\n";
    let files = [
        ("host/src/clock.rs", asking),
        ("host/src/session/contact.rs", asking),
        ("host/src/cli/test.rs", asking),
    ];
    let expected = ["host/src/session/contact.rs:2"];
    check("the session room asks only `clock` for the time", &files, &expected);
}

#[test]
fn an_excused_test_is_found() {
    let text = ["#[test]\n", "#[ign", "ore]\nfn a() {}\n#[should_", "panic(expected = \"b\")]\n"];
    let text = text.concat();
    let files = [("host/src/a.rs", &*text)];
    let expected = ["host/src/a.rs:2", "host/src/a.rs:4"];
    check("no test is switched off or hopes for a panic", &files, &expected);
}

#[test]
fn a_sleep_in_a_test_is_found() {
    let nap = ["tokio::time::sl", "eep(SECOND).await;\n"].concat();
    let unit = format!("{nap}#[cfg(test)]\n{nap}");
    let excused = format!("// tidy: the wait is the fault that was asked for\n{nap}");
    let unexcused = format!("// tidy: \n{nap}// not {nap}");
    let files = [
        ("host/src/clock.rs", &*unit),
        ("tests/src/a.rs", &*excused),
        ("tests/src/b.rs", &*unexcused),
        ("host/tests/c.rs", &*nap),
        ("host/src/d.rs", &*nap),
    ];
    let expected = ["host/src/clock.rs:3", "tests/src/b.rs:2", "host/tests/c.rs:1"];
    check("no test sleeps", &files, &expected);
}

#[test]
fn an_allow_without_a_reason_is_found() {
    let text = [
        "#[allow(clippy::panic, reason = \"a test\")]\n",
        "#[allow(\n    clippy::panic,\n    reason = \"a test\"\n)]\n",
        "#[all",
        "ow(clippy::panic)]\n#![all",
        "ow(unused)]\n",
    ];
    let text = text.concat();
    let files = [("a.rs", &*text)];
    check("every allow has a reason", &files, &["a.rs:6", "a.rs:7"]);
}

#[test]
fn blanks_and_machine_paths_are_found() {
    let home = ["see /ho", "me/ada/notes\n"].concat();
    let inner = ["see target/ro", "ot/.notes and $HOME/notes\n"].concat();
    let here = format!("{}\n", env!("CARGO_MANIFEST_DIR"));
    let files = [
        ("a.md", "one \ntwo\n"),
        ("a.rs", "one \n"),
        ("b.rs", &*home),
        ("c.md", &*inner),
        ("d.md", &*here),
    ];
    let expected = ["a.md:1", "b.rs:1", "d.md:1"];
    check("no blanks at line ends, no paths of a machine", &files, &expected);
}

#[test]
fn a_test_that_a_document_names_and_nobody_has_is_found() {
    let files = [
        ("tests/a.rs", "fn what_is_there_is_named() {}\n"),
        ("tests/mutants/forgets-it.patch", ""),
        ("README.md", "`what_is_there_is_named`; the mutants `forgets-it` and `keeps-it`\n`a_b`\n"),
        ("docs/a.md", "the mutant `forgets-it`\n`what_is_gone_is_named`, `some-setting`\n"),
    ];
    let expected = ["README.md:1", "docs/a.md:2"];
    check("documents name tests that exist", &files, &expected);
}

#[test]
fn a_file_or_an_item_that_a_document_names_and_nobody_has_is_found() {
    let files = [
        ("host/src/seat.rs", "impl Seat { fn take() {} }\n"),
        ("tests/tests/seat.rs", ""),
        (
            "README.md",
            "`host/src/seat.rs`, `host/src/`, `seat.rs`, `host/*.rs`, `/host/a`, `a/b`\n",
        ),
        (
            "docs/a.md",
            "`host/src/seats.rs`\n`Seat::take` in `host/src`\n`Seat::leave`\n`tests/a.rs`\n",
        ),
        ("tests/README.md", "`tests/seat.rs`, `wok:seat/seat`, `Seat::take()`\n`tests/gone.rs`\n"),
    ];
    let expected = ["docs/a.md:1", "docs/a.md:3", "docs/a.md:4", "tests/README.md:2"];
    check("documents name files and items that exist", &files, &expected);
}
