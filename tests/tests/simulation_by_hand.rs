//! `wok test`, as somebody types it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use anyhow::Result;
use serde_json::Value;
use wok_tests::guests::guest_file;
use wok_tests::process::{Program, Signal, wok_binary};
use wok_tests::scratch;

#[tokio::test]
async fn a_seed_gives_the_same_history_in_two_processes() -> Result<()> {
    for module in ["lock", "leader-election"] {
        for seed in ["1", "2", "3"] {
            let mut digests = Vec::new();
            for _ in 0..2 {
                let ended = Program::wok()?
                    .args(["--output", "json", "test", module, "--seed", seed])
                    .run()
                    .await?;
                let told: Value = serde_json::from_str(&ended.stdout)?;
                assert_eq!(told["violations"], serde_json::json!([]), "{told}");
                assert_eq!(ended.code(), Some(code_of_what_held(&told)), "{ended:?}");
                assert_eq!(told["judge"]["name"], format!("stock {module}"));
                assert_eq!(told["judge"]["sha256"].as_str().unwrap().len(), 64);
                digests.push(told["history"].as_str().unwrap().to_owned());
            }
            assert_eq!(digests[0], digests[1], "{module}, seed {seed}");
        }
    }
    Ok(())
}

/// Where nothing broke: not every run calls everything.
fn code_of_what_held(told: &Value) -> i32 {
    let is_whole = told["not-called"].is_null() && told["only-failed"].is_null();
    assert_eq!(told["passed"], is_whole, "{told}");
    if is_whole { 0 } else { 2 }
}

#[tokio::test]
async fn seeds_that_pass_are_counted_and_their_faults_are_shown() -> Result<()> {
    let ended = Program::wok()?.args(["test", "lock", "--seeds", "20"]).run().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let judged = "judged by stock lock, sha256 ";
    for text in
        ["every invariant held in 2", "seeds/s", "lost-after", "get-children", "least:", judged]
    {
        assert!(ended.stdout.contains(text), "{text:?} in {}", ended.stdout);
    }
    Ok(())
}

#[tokio::test]
async fn a_judge_that_is_asked_for_or_stands_beside_the_module_is_none_other() -> Result<()> {
    let (directory, module) = guest_file("echo")?;
    let judge = directory.path().join("no.wasm");
    std::fs::write(&judge, "no judge at all")?;
    let (module, none) = (module.to_str().unwrap(), judge.to_str().unwrap());
    let asked = Program::wok()?.args(["test", module, "--judge", none]).run().await?;
    assert_eq!(asked.code(), Some(78), "{asked:?}");
    assert!(asked.stderr.contains("no.wasm is no judge: "), "{asked:?}");

    std::fs::rename(&judge, directory.path().join("echo.judge.wasm"))?;
    let beside = Program::wok()?.args(["test", module]).run().await?;
    assert_eq!(beside.code(), Some(78), "{beside:?}");
    assert!(beside.stderr.contains("echo.judge.wasm is no judge: "), "{beside:?}");
    Ok(())
}

#[tokio::test]
async fn a_run_is_drawn_and_written_down() -> Result<()> {
    let directory = scratch::dir()?;
    let (picture, history) = (directory.path().join("run.svg"), directory.path().join("run.jsonl"));
    let (drawn, written) = (picture.to_str().unwrap(), history.to_str().unwrap());
    let ended = Program::wok()?
        .args(["test", "lock", "--seed", "1", "--picture", drawn, "--history", written])
        .run()
        .await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let svg = std::fs::read_to_string(&picture)?;
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert!(svg.contains(">participant 0<") && svg.contains("#3aa655"), "nobody held");
    let lines = std::fs::read_to_string(&history)?;
    let entries: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(entries.last().unwrap()["what"], "final");
    assert!(entries.iter().any(|entry| entry["notice"]["notice"] == "held"), "nobody held");
    Ok(())
}

#[tokio::test]
async fn every_fault_strikes_every_wait_of_an_exhaustive_run() -> Result<()> {
    let arguments = ["--output", "json", "test", "lock", "--exhaustive", "--first-seed", "1"];
    let ended = Program::wok()?.args(arguments).run().await?;
    let told: Value = serde_json::from_str(&ended.stdout)?;
    assert_eq!(ended.code(), Some(code_of_what_held(&told)), "{ended:?}");
    for fault in ["lost-before", "lost-after", "expiry", "cancel"] {
        assert!(told["coverage"][fault]["wait"].as_u64() > Some(0), "{fault}: {told}");
    }
    Ok(())
}

#[tokio::test]
async fn a_module_is_simulated_with_its_config() -> Result<()> {
    let directory = scratch::dir()?;
    let history = directory.path().join("run.jsonl");
    let written = history.to_str().unwrap();
    for config in ["format=kazoo", "{\"format\":\"kazoo\"}"] {
        let arguments = ["test", "lock", "--seed", "1", "--config", config, "--history", written];
        let ended = Program::wok()?.args(arguments).run().await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        assert!(std::fs::read_to_string(&history)?.contains("__lock__"), "{config}");
    }
    let ended = Program::wok()?.args(["test", "lock", "--config", "format=zk"]).run().await?;
    assert_eq!(ended.code(), Some(78), "{ended:?}");
    assert!(ended.stderr.contains("config.format"), "{}", ended.stderr);
    // The types take it, and the module does not.
    for more in [&["--seed", "1"][..], &["--seeds", "1"], &["--exhaustive"]] {
        let arguments = ["test", "semaphore", "--config", "permits=0"];
        let ended = Program::wok()?.args(arguments).args(more).run().await?;
        assert_eq!(ended.code(), Some(78), "{ended:?}");
        assert!(ended.stderr.contains("permits: 0 is not from 1"), "{}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_component_that_fails_by_itself_is_broken_even_if_that_cannot_be_written_down()
-> Result<()> {
    let (directory, _hostile) = guest_file("hostile")?;
    // All of its operations, with arguments at random.
    let arguments = ["test", "./hostile.wasm", "--history", "/dev/null/run.jsonl"];
    let ended = Program::wok()?.directory(directory.path()).args(arguments).run().await?;
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    for text in ["hostile.wasm: BROKEN by seed", "L1: the component of participant", "--scenario"] {
        assert!(ended.stdout.contains(text), "{text:?} in {}", ended.stdout);
    }
    assert!(ended.stderr.contains("cannot write /dev/null/run.jsonl"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn the_commands_that_run_a_failure_again_can_be_pasted_into_a_shell() -> Result<()> {
    let (directory, hostile) = guest_file("hostile")?;
    std::fs::rename(hostile, directory.path().join("it's hostile.wasm"))?;
    let test = ["test", "./it's hostile.wasm", "--seeds", "20"];
    let ended = Program::wok()?.directory(directory.path()).args(test).run().await?;
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let commands: Vec<&str> =
        ended.stdout.lines().filter_map(|line| line.strip_prefix("  wok test ")).collect();
    assert_eq!(commands.len(), 2, "{}", ended.stdout);
    for command in commands {
        let line = format!("\"$WOK\" test {command}");
        let again = Program::shell(&line)
            .directory(directory.path())
            .env("WOK", wok_binary()?)
            .run()
            .await?;
        assert_eq!(again.code(), Some(1), "{line}: {again:?}");
        assert!(again.stdout.contains("\nL1: "), "{line}: {}", again.stdout);
    }
    Ok(())
}

/// It would keep a run from ever coming to the next instant.
#[tokio::test]
async fn a_component_that_wakes_itself_without_end_is_ended_and_told() -> Result<()> {
    let (directory, _hostile) = guest_file("hostile")?;
    let workload = "[[roles]]\nname = \"user\"\nround = [{ call = { operation = \"wake-when\", \
        arguments = { after-ms = 0, then = \"again\" } } }]\n";
    std::fs::write(directory.path().join("restless.toml"), workload)?;
    let arguments = ["test", "./hostile.wasm", "--workload", "restless.toml", "--seed", "1"];
    let ended = Program::wok()?.directory(directory.path()).args(arguments).run().await?;
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let told = "wake trapped: it was woken 100 times while no time passed";
    assert!(ended.stdout.contains("L1: the component of participant"), "{}", ended.stdout);
    assert!(ended.stdout.contains(told), "{}", ended.stdout);
    Ok(())
}

#[tokio::test]
async fn a_search_in_which_no_seed_can_count_ends() -> Result<()> {
    let (_directory, echo) = guest_file("echo")?;
    let echo = echo.to_str().unwrap();
    // It makes no host calls, so that no fault can strike one.
    let arguments = ["test", echo, "--seeds", "3", "--config", "name=a"];
    let ended = Program::wok()?.args(arguments).run().await?;
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.stdout.contains("only 0 of 2"), "{}", ended.stdout);
    Ok(())
}

/// Called a hundred times, and not once done.
#[tokio::test]
async fn operations_that_are_all_refused_are_no_pass() -> Result<()> {
    let (directory, _shelf) = guest_file("shelf")?;
    let workload = "[[roles]]\nname = \"user\"\nround = [\
        { call = { operation = \"weigh\", arguments = { path = \"/none\" } } }, \
        { call = { operation = \"put\", arguments = { label = \"air\", weight = 0 } } }]\n";
    std::fs::write(directory.path().join("refused.toml"), workload)?;
    let test = |more: &[&str]| -> Result<Program> {
        let arguments = ["--output", "json", "test", "./shelf.wasm", "--workload", "refused.toml"];
        Ok(Program::wok()?.directory(directory.path()).args(arguments).args(more))
    };
    let ended = test(&["--seeds", "3"])?.run().await?;
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let told: Value = serde_json::from_str(ended.stdout.trim())?;
    let reason = told["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("only 0 of ") && reason.contains("0 succeeded"), "{told}");
    assert_eq!(told["only-failed"], serde_json::json!(["put", "weigh"]), "{told}");

    let ended = test(&["--seed", "1"])?.run().await?;
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let told: Value = serde_json::from_str(ended.stdout.trim())?;
    assert_eq!((&told["passed"], &told["succeeded"]), (&false.into(), &0.into()), "{told}");
    assert!(
        told["reason"].as_str().unwrap_or_default().contains("none of the operations"),
        "{told}"
    );
    Ok(())
}

#[tokio::test]
async fn a_scenario_is_run_and_one_that_cannot_be_is_refused_with_its_place() -> Result<()> {
    let directory = scratch::dir()?;
    let scenario = directory.path().join("two.toml");
    let text = "seed = 7\n\
        [[applications]]\nhost = 0\n\
        steps = [{ call = { operation = \"acquire\" } }, { work = { ms = 50 } }]\n\
        [[faults]]\nfault = \"pause\"\nwhen = { at = { ms = 30 } }\nhost = 0\nms = 9000\n";
    std::fs::write(&scenario, text)?;
    let path = scenario.to_str().unwrap();
    let ended = Program::wok()?.args(["test", "lock", "--scenario", path]).run().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("every invariant held"), "{}", ended.stdout);
    for (wrong, told) in [
        (text.replace("acquire", "aquire"), "applications[0].steps[0]: lock has no operation"),
        (text.replace("host = 0\nms", "host = 5\nms"), "faults[0]: host 5"),
        (text.replace("pause", "puase"), "puase"),
        (text.replace("seed", "sead"), "sead"),
        (text.replace("ms = 9000", ""), "faults[0].ms: 0: a pause lasts"),
        (format!("servers = 1\n{}", text.replace("pause", "lag")), "faults[0].fault: a lag"),
        (
            format!("servers = 1\n{}", text.replace("pause", "link-cut")),
            "faults[0].fault: a link-cut",
        ),
        (format!("{text}way = \"up\"\n"), "unknown variant `up`"),
        (format!("session-timeout-ms = 5\n{text}"), "session-timeout-ms: 5: from 1000"),
        (format!("servers = 101\n{text}"), "servers: 101: from 1 to 100"),
        (format!("hosts = 0\n{text}"), "hosts: 0: from 1 to 100"),
        (format!("hosts = 4000000000\n{text}"), "hosts: 4000000000: from 1 to 100"),
        (text.replace("at = { ms = 30 }", "request = { nth = 0 }"), "faults[0].when.nth: 0"),
        (
            text.replace("at = { ms = 30 }", "host-call = { name = \"contned\", nth = 1 }"),
            "faults[0].when.name: \"contned\" is no host call; there are check, claim",
        ),
    ] {
        std::fs::write(&scenario, wrong)?;
        let ended = Program::wok()?.args(["test", "lock", "--scenario", path]).run().await?;
        assert_eq!(ended.code(), Some(78), "{ended:?}");
        assert!(ended.stderr.contains(told), "{told:?} in {}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_scenario_has_the_config_of_its_applications() -> Result<()> {
    let (directory, _echo) = guest_file("echo")?;
    let scenario = |config: &str| {
        let steps = "steps = [{ call = { operation = \"configured\" } }]";
        let text = format!("seed = 1\n[[applications]]\nhost = 0\n{config}\n{steps}\n");
        std::fs::write(directory.path().join("one.toml"), text)
    };
    let test = ["test", "./echo.wasm", "--scenario", "one.toml"];
    scenario("config = { name = \"a\" }")?;
    let ended = Program::wok()?.directory(directory.path()).args(test).run().await?;
    // It ran; that nobody knows an echo's promises is another matter.
    assert_eq!(ended.code(), Some(2), "{ended:?}");
    scenario("")?;
    let ended = Program::wok()?.directory(directory.path()).args(test).run().await?;
    assert_eq!(ended.code(), Some(78), "{ended:?}");
    assert!(ended.stderr.contains("applications[0].config"), "{}", ended.stderr);
    Ok(())
}

/// A file that has no calls, one whose call comes when the run is over, and one that has no applications.
#[tokio::test]
async fn a_scenario_in_which_nobody_calls_anything_is_no_pass() -> Result<()> {
    let directory = scratch::dir()?;
    let scenario = directory.path().join("idle.toml");
    let late = "{ rest = { ms = 3600000 } }, { call = { operation = \"acquire\" } }";
    for applications in [
        String::new(),
        "[[applications]]\nhost = 0\nsteps = []\n".to_owned(),
        format!("[[applications]]\nhost = 0\nsteps = [{late}]\n"),
    ] {
        std::fs::write(&scenario, format!("seed = 1\n{applications}"))?;
        let arguments = ["--output", "json", "test", "lock", "--scenario"];
        let ended = Program::wok()?.args(arguments).args([&scenario]).run().await?;
        assert_eq!(ended.code(), Some(1), "{applications}: {ended:?}");
        let told: Value = serde_json::from_str(&ended.stdout)?;
        assert_eq!(told["passed"], false, "{told}");
        let reason = told["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("no operation was called"), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn a_run_that_judges_nothing_is_no_pass() -> Result<()> {
    let (_directory, echo) = guest_file("echo")?;
    let arguments = ["test", echo.to_str().unwrap(), "--exhaustive", "--config", "name=a"];
    let ended = Program::wok()?.args(arguments).run().await?;
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.stdout.contains("no fault struck anything in 0 runs"), "{}", ended.stdout);
    let ended = Program::wok()?.args(["test", "lock", "--seeds", "0"]).run().await?;
    assert_eq!(ended.code(), Some(64), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn what_was_not_judged_or_called_is_told_first_and_is_no_pass() -> Result<()> {
    let (directory, shelf) = guest_file("shelf")?;
    let shelf = shelf.to_str().unwrap();
    for mode in [&["--seeds", "20"][..], &["--exhaustive"], &["--seed", "1"]] {
        let ended = Program::wok()?.args(["test", shelf]).args(mode).run().await?;
        assert_eq!(ended.code(), Some(2), "{mode:?}: {ended:?}");
        let first = ended.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with("NOT JUDGED: no judge knows wok:shelf/shelf@0.1.0"), "{first}");
        assert!(!ended.stdout.contains("every invariant held"), "{}", ended.stdout);
    }
    let ended =
        Program::wok()?.args(["--output", "json", "test", shelf, "--seeds", "20"]).run().await?;
    let told: Value = serde_json::from_str(&ended.stdout)?;
    assert_eq!(told["passed"], false, "{told}");
    assert_eq!(told["not-judged"], "wok:shelf/shelf@0.1.0");

    // A judge knows the lock, and nobody gives it back.
    let workload = directory.path().join("hoarders.toml");
    let text = "[[roles]]\nname = \"hoarder\"\nround = [\n\
        { call = { operation = \"acquire\" } }, { work = { ms = [0, 90] } }, \"leave\",\n]\n";
    std::fs::write(&workload, text)?;
    let arguments = ["test", "lock", "--seeds", "20", "--workload", workload.to_str().unwrap()];
    let ended = Program::wok()?.args(arguments).run().await?;
    assert_eq!(ended.code(), Some(2), "{ended:?}");
    let never = "NEVER CALLED: try-acquire, release, contenders";
    assert!(ended.stdout.starts_with(never), "{}", ended.stdout);
    Ok(())
}

/// The workload calls everything in some seed, and hardly ever `revoke` and `contenders`.
#[tokio::test]
async fn what_one_run_does_not_call_is_told_first_and_is_no_pass() -> Result<()> {
    let directory = scratch::dir()?;
    let workload = directory.path().join("rare.toml");
    let text = "[[roles]]\nname = \"user\"\nround = [\n\
        { call = { operation = \"acquire\" } }, { call = { operation = \"try-acquire\" } },\n\
        { one-of = [{ weight = 1000000, steps = [{ call = { operation = \"release\" } }] },\n\
        { weight = 1, steps = [{ call = { operation = \"contenders\", bind = \"line\" } },\n\
        { call = { operation = \"revoke\", arguments = { path = \"$line.0.path\" } } }] }] },\n]\n";
    std::fs::write(&workload, text)?;
    let workload = workload.to_str().unwrap();
    let operations = "contenders, revoke";
    for (mode, remedy) in [
        (&["--seed", "1"][..], "--seeds runs many seeds"),
        (&["--exhaustive"], "--first-seed takes others, and --seeds runs many"),
    ] {
        let test = ["test", "lock", "--workload", workload];
        let ended = Program::wok()?.args(test).args(mode).run().await?;
        assert_eq!(ended.code(), Some(2), "{mode:?}: {ended:?}");
        let first = format!("NOT CALLED in this run: {operations}; {remedy}\n");
        assert!(ended.stdout.starts_with(&first), "{mode:?}: {}", ended.stdout);
        assert!(!ended.stdout.contains("every invariant held"), "{mode:?}: {}", ended.stdout);

        let ended = Program::wok()?.args(["--output", "json"]).args(test).args(mode).run().await?;
        let told: Value = serde_json::from_str(&ended.stdout)?;
        assert_eq!(told["passed"], false, "{told}");
        assert_eq!(told["not-called"], serde_json::json!(["contenders", "revoke"]), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn what_a_scenario_says_and_nobody_comes_to_do_is_no_pass() -> Result<()> {
    let directory = scratch::dir()?;
    let scenario = directory.path().join("one.toml");
    // Nobody stands in line when the line is looked at, so nobody is asked to give way.
    let text = "seed = 1\nservers = 1\nhosts = 1\nsession-timeout-ms = 4000\nfaults = []\n\
        [[applications]]\nhost = 0\nsteps = [\n\
        { call = { operation = \"contenders\", bind = \"line\" } },\n\
        { call = { operation = \"revoke\", arguments = { path = \"$line.0.path\" } } },\n\
        { call = { operation = \"acquire\" } }, { call = { operation = \"release\" } },\n]\n";
    std::fs::write(&scenario, text)?;
    let test = ["test", "lock", "--scenario", scenario.to_str().unwrap()];
    let ended = Program::wok()?.args(test).run().await?;
    assert_eq!(ended.code(), Some(2), "{ended:?}");
    let first = "NOT CALLED in this run: revoke; the scenario has them";
    assert!(ended.stdout.starts_with(first), "{}", ended.stdout);
    Ok(())
}

#[tokio::test]
async fn a_role_that_nobody_ever_plays_is_refused() -> Result<()> {
    let directory = scratch::dir()?;
    let workload = directory.path().join("roles.toml");
    let role = |name: &str, share: u32| {
        format!(
            "[[roles]]\nname = \"{name}\"\nshare = {share}\nround = [{{ call = {{ operation = \
             \"acquire\" }} }}, {{ call = {{ operation = \"release\" }} }}]\n"
        )
    };
    std::fs::write(&workload, format!("applications = 3\n{}{}", role("many", 3), role("late", 1)))?;
    let test = ["test", "lock", "--seeds", "5", "--workload", workload.to_str().unwrap()];
    let ended = Program::wok()?.args(test).run().await?;
    assert_eq!(ended.code(), Some(78), "{ended:?}");
    let told = "roles.toml:7:8: nobody ever is a late: the shares before it make 3";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn a_workload_beside_the_component_counts_and_a_wrong_one_is_refused_with_its_place()
-> Result<()> {
    let (directory, _shelf) = guest_file("shelf")?;
    let promise = directory.path().join("promise");
    std::fs::create_dir(&promise)?;
    let write = |operation: &str| {
        let round = format!("round = [{{ call = {{ operation = \"{operation}\" }} }}]");
        std::fs::write(promise.join("workload.toml"), format!("[[roles]]\nname = \"a\"\n{round}\n"))
    };
    let test = ["test", "./shelf.wasm", "--seeds", "5"];
    write("count")?;
    let ended = Program::wok()?.directory(directory.path()).args(test).run().await?;
    assert_eq!(ended.code(), Some(2), "{ended:?}");
    assert!(ended.stdout.contains("NEVER CALLED: put, weigh, take;"), "{}", ended.stdout);
    write("cuont")?;
    let ended = Program::wok()?.directory(directory.path()).args(test).run().await?;
    assert_eq!(ended.code(), Some(78), "{ended:?}");
    let told = "./promise/workload.toml:3:33: shelf has no operation cuont; did you mean count?";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn a_search_that_is_interrupted_says_what_it_has_seen() -> Result<()> {
    let running = Program::wok()?.args(["test", "lock", "--seeds", "1000000"]).start()?;
    // It says how far it is, and so has begun.
    running.wait_for_text("of 1000000 seeds").await?;
    running.signal(Signal::INT)?;
    let ended = running.ended().await?;
    assert_eq!(ended.code(), Some(130), "{ended:?}");
    assert!(ended.stdout.contains("of 1000000 seeds that count; every invariant held in"));
    Ok(())
}

/// The component that makes the host call is meant, not one that has waited on the host for longer.
#[tokio::test]
async fn a_fault_that_waits_for_a_host_call_strikes_who_makes_it() -> Result<()> {
    let directory = scratch::dir()?;
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let application = |host: u32, rest: u32, ask: &str| {
        format!(
            "[[applications]]\nhost = {host}\nsteps = [{{ rest = {{ ms = {rest} }} }}, \
             {{ call = {{ operation = \"{ask}\" }} }}, {{ work = {{ ms = 1500 }} }}, \"leave\"]\n"
        )
    };
    let text = [
        "seed = 1\n".to_owned(),
        application(0, 1, "acquire"),
        application(1, 300, "acquire"),
        application(1, 600, "try-acquire"),
        "[[faults]]\nfault = \"guest-kill\"\nhost = 1\n".to_owned(),
        "when = { host-call = { name = \"contend-and-list\", nth = 2 } }\n".to_owned(),
    ];
    std::fs::write(path("two.toml"), text.concat())?;
    let (scenario, history) = (path("two.toml"), path("run.jsonl"));
    let arguments = ["test", "lock", "--scenario", &scenario, "--history", &history];
    let ended = Program::wok()?.args(arguments).run().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let lines = std::fs::read_to_string(&history)?;
    let entries: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let fault = entries.iter().find(|entry| entry["what"] == "fault").unwrap();
    assert_eq!(fault["struck"], serde_json::json!(["contend-and-list"]), "{fault}");
    Ok(())
}

/// A server that was slow catches up at once, and an election that outlasts the time of faults is one
/// until it is over: what a stock recipe does then is not held against it.
#[tokio::test]
async fn long_faults_break_no_stock_recipe() -> Result<()> {
    let directory = scratch::dir()?;
    let scenario = directory.path().join("long.toml");
    let acquire = "{ call = { operation = \"acquire\", deadline-ms = 700 } }, \"leave\"";
    let late = format!(
        "{{ rest = {{ ms = 30500 }} }}, {acquire}, {{ rest = {{ ms = 6000 }} }}, {acquire}"
    );
    let application =
        |host: u32, steps: &str| format!("[[applications]]\nhost = {host}\nsteps = [{steps}]\n");
    let lag = (0..4).map(|host| application(host, &late)).collect::<String>()
        + "[[faults]]\nfault = \"lag\"\nwhen = { at = { ms = 1000 } }\nms = 30000\n";
    let held = "{ call = { operation = \"acquire\" } }, { work = { ms = 60000 } }, \"leave\"";
    let waits = "{ rest = { ms = 300 } }, \
                 { call = { operation = \"acquire\", deadline-ms = 46000 } }, \"leave\"";
    let election = application(0, held)
        + &application(1, waits)
        + "[[faults]]\nfault = \"leader-change\"\nwhen = { at = { ms = 35000 } }\nms = 30000\n";
    for text in [
        format!("seed = 1\nservers = 2\nhosts = 4\n{lag}"),
        format!("seed = 1\nsession-timeout-ms = 40000\n{election}"),
    ] {
        std::fs::write(&scenario, text)?;
        let path = scenario.to_str().unwrap();
        let ended = Program::wok()?.args(["test", "lock", "--scenario", path]).run().await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
    }
    Ok(())
}
