//! `wok call`, what `wok inspect` proposes, and what modules warn of: on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok::modules::{ModuleSource, stock_names};
use wok_tests::admin::Admin;
use wok_tests::patience::eventually;
use wok_tests::process::{Ended, Line, Program, Running, Signal, Stream, wok_binary};
use wok_tests::{scratch, zookeeper};

/// A contender as kazoo names it; curator's naming is the default.
const KAZOO: &str = "550e8400e29b41d4a716446655440000__lock__0000000000";

async fn call(module: &str, path: &str, arguments: &[&str]) -> Result<Ended> {
    let server = zookeeper::shared().await;
    let options = ["call", module, "--mount", path, "--connect", server.address()];
    Program::wok()?.args(options).args(arguments).run().await
}

#[tokio::test]
async fn who_holds_a_lock_is_asked_by_one_command() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let nobody = call("lock", &path, &["contenders"]).await?;
    assert_eq!((nobody.code(), nobody.stdout.trim()), (Some(0), "[]"), "{nobody:?}");

    let holder = Program::wok()?
        .args(["lock", "--connect", server.address(), "--owner", "the nightly job"])
        .args([&path, "--", "sleep", "3600"])
        .start()?;
    holder.wait_for_text("holding").await?;
    let admin = Admin::connect(server.address()).await?;
    let claim = admin.children(&path).await?.pop().context("the claim")?;
    let claim = format!("{path}/{claim}");
    assert_eq!(admin.get(&claim).await?.context("the claim")?.0, b"the nightly job");
    // Who else writes there need not keep to one line without control characters.
    admin.set(&claim, "the \u{202e}nightly\x1b job".as_bytes()).await?;
    for output in ["text", "json"] {
        let asked = call("lock", &path, &["contenders", "--output", output]).await?;
        assert_eq!((asked.code(), asked.stderr.as_str()), (Some(0), ""), "{asked:?}");
        assert_eq!(asked.stdout.lines().count() == 1, output == "json", "{asked:?}");
        let answer: Value = serde_json::from_str(&asked.stdout)?;
        assert_eq!(answer.as_array().context("a list")?.len(), 1);
        assert_eq!(answer[0]["is-holder"], true);
        assert_eq!(answer[0]["owner"], "the \u{202e}nightly\x1b job");
    }
    let asked = call("lock", &path, &["contenders"]).await?;
    assert!(!asked.stdout.contains(['\u{202e}', '\x1b']), "{:?}", asked.stdout);
    Ok(())
}

#[tokio::test]
async fn what_an_acl_does_not_allow_is_told_with_its_znode() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    admin.create_unreadable(&path, b"").await?;
    // What creates a contender, what reads, and what writes in a multi.
    let refused = [
        (call("lock", &path, &["try-acquire"]).await?, "contend-and-list"),
        (call("counter", &path, &["add", "by=1"]).await?, "get-data"),
        (call("barrier", &path, &["lower"]).await?, "multi"),
    ];
    for (ended, asked) in refused {
        assert_eq!(ended.code(), Some(70), "{ended:?}");
        for told in [&format!("{asked} {path}: the ACL does not allow it"), "no-auth: the ACL"] {
            assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_call_answers_in_the_types_of_the_module_and_leaves_no_claim() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let tried = call("lock", &path, &["try-acquire"]).await?;
    assert_eq!(tried.code(), Some(0), "{tried:?}");
    let grant: Value = serde_json::from_str(&tried.stdout)?;
    assert!(grant["fence"].as_u64().is_some_and(|fence| fence > 0), "{grant}");
    assert!(tried.stderr.contains("`wok hold` runs a command"), "{}", tried.stderr);
    assert_eq!(admin.children(&path).await?, Vec::<String>::new());

    for (arguments, code, told) in [
        (&["release"][..], 70, "the lock is not held"),
        (&["aquire"][..], 64, "did you mean acquire?"),
        (&["contenders", "most=3"][..], 64, "most"),
        (&["contenders", "--connect-timeout", "soon"][..], 64, "--connect-timeout"),
    ] {
        let ended = call("lock", &path, arguments).await?;
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
    }
    Ok(())
}

/// A shell gives `wok` bytes that are no text, and a text that reads as JSON of another type.
#[tokio::test]
async fn bytes_come_from_standard_input_as_they_are() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let options = ["configuration", "--mount", &path, "--connect", server.address(), "set"];
    let set = format!("\"$WOK\" call {} key=k data=@- expected=any", options.join(" "));
    for (printed, bytes) in [
        ("\\377\\000\\n", &b"\xff\x00\n"[..]),
        ("12", b"12"),
        ("{\"a\":1}", b"{\"a\":1}"),
        ("", b""),
    ] {
        let line = format!("printf '{printed}' | {set}");
        let ended = Program::shell(&line).env("WOK", wok_binary()?).run().await?;
        assert_eq!(ended.code(), Some(0), "{line}: {ended:?}");
        let (data, _) = admin.get(&format!("{path}/k")).await?.context("the key")?;
        assert_eq!(data, bytes, "{line}");
    }
    Ok(())
}

#[tokio::test]
async fn standard_input_is_read_once_and_never_where_it_is_a_commands() -> Result<()> {
    let path = zookeeper::unique_path();
    let twice = call("configuration", &path, &["set", "key=@-", "data=@-", "expected=any"]).await?;
    let given = call("configuration", &path, &["get", "{\"key\":\"k\"}", "key=@-"]).await?;
    let address = zookeeper::shared().await.address();
    let held = Program::wok()?
        .args(["hold", "queue", "--mount", &path, "--connect", address])
        .args(["put", "data=@-", "--", "true"])
        .run()
        .await?;
    for (ended, told) in [
        (twice, "key=@- and data=@- are to be read from standard input"),
        (given, "argument key is given twice"),
        (held, "standard input is the command's; only `wok call` reads"),
    ] {
        assert_eq!(ended.code(), Some(64), "{ended:?}");
        assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_standard_input_that_is_closed_is_no_empty_data() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let set = call("configuration", &path, &["set", "key=k", "data=precious", "expected=any"]);
    assert_eq!(set.await?.code(), Some(0));
    for closed in ["<&-", "< /dev/null"] {
        let connect = server.address();
        let line = format!(
            "\"$WOK\" call configuration --mount {path} --connect {connect} set key=k data=@- \
             expected=any {closed}"
        );
        let ended = Program::shell(&line).env("WOK", wok_binary()?).run().await?;
        assert_eq!(ended.code(), Some(64), "{line}: {ended:?}");
        assert!(ended.stderr.contains("write `data=` for empty data"), "{}", ended.stderr);
    }
    let (data, _) = admin.get(&format!("{path}/k")).await?.context("the key")?;
    assert_eq!(data, b"precious");
    let empty = call("configuration", &path, &["set", "key=k", "data=", "expected=any"]).await?;
    assert_eq!(empty.code(), Some(0), "{empty:?}");
    let (data, _) = admin.get(&format!("{path}/k")).await?.context("the key")?;
    assert_eq!(data, b"");
    Ok(())
}

/// A call that goes on, once it has answered.
async fn following(module: &str, path: &str, arguments: &[&str]) -> Result<Running> {
    let server = zookeeper::shared().await;
    let options = ["call", module, "--mount", path, "--connect", server.address(), "--follow"];
    let follower = Program::wok()?.args(options).args(arguments).start()?;
    // What is told in words is no JSON.
    let is_answer = |line: &Line| {
        line.stream == Stream::Stdout
            && match serde_json::from_str::<Value>(&line.text) {
                Ok(Value::Object(event)) => event["event"] == "answered",
                told => told.is_ok(),
            }
    };
    follower.wait_for_line("an answer", is_answer).await?;
    Ok(follower)
}

fn json_lines(text: &str) -> Result<Vec<Value>> {
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

#[tokio::test]
async fn what_a_participant_tells_is_followed_until_a_signal_comes() -> Result<()> {
    let path = zookeeper::unique_path();
    let set = ["set", "key=limit", "data=8", "expected=any"];
    assert_eq!(call("configuration", &path, &set).await?.code(), Some(0));
    for output in ["text", "json"] {
        let follower = following("configuration", &path, &["observe", "--output", output]).await?;
        assert_eq!(call("configuration", &path, &set).await?.code(), Some(0));
        let told = follower.wait_for_text("changed").await?;
        assert_eq!(told.stream, Stream::Stdout);
        follower.signal(Signal::INT)?;
        let ended = follower.ended().await?;
        assert_eq!((ended.code(), ended.stderr.as_str()), (Some(128 + 2), ""), "{ended:?}");
        if output == "text" {
            assert!(told.text.starts_with("changed {"), "{}", told.text);
            assert!(told.text.contains(r#""key":"limit""#), "{}", told.text);
            continue;
        }
        let lines = json_lines(&ended.stdout)?;
        let [answered, changed] = lines.as_slice() else { panic!("{}", ended.stdout) };
        assert_eq!(
            (&answered["event"], &answered["operation"]),
            (&json!("answered"), &json!("observe"))
        );
        assert!(answered["value"].is_number(), "{answered}");
        assert_eq!(
            (&changed["event"], &changed["name"]),
            (&json!("recipe-event"), &json!("changed"))
        );
        assert_eq!(changed["detail"]["key"], "limit", "{changed}");
        assert_eq!(changed["participant"], answered["participant"], "{changed}");
    }
    Ok(())
}

#[tokio::test]
async fn a_claim_is_held_while_its_call_is_followed_and_its_loss_ends_the_call() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let path = zookeeper::unique_path();
    let released = following("lock", &path, &["acquire", "--output", "json"]).await?;
    assert_eq!(admin.children(&path).await?.len(), 1);
    released.signal(Signal::TERM)?;
    let ended = released.ended().await?;
    assert_eq!((ended.code(), ended.stderr.as_str()), (Some(128 + 15), ""), "{ended:?}");
    assert_eq!(admin.children(&path).await?, Vec::<String>::new());

    let lost = following("lock", &path, &["acquire", "--output", "json"]).await?;
    let held = admin.children(&path).await?;
    let [held] = held.as_slice() else { panic!("{held:?}") };
    admin.delete(&format!("{path}/{held}")).await?;
    let ended = lost.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    let lines = json_lines(&ended.stdout)?;
    let mut events: Vec<_> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events.last(), Some(&"lost"), "{}", ended.stdout);
    events.sort_unstable();
    assert_eq!(events, ["answered", "held", "lost", "waiting"], "{}", ended.stdout);
    let lost = lines.last().context("the loss")?;
    assert_eq!(lost["reason"], "znode-deleted", "{lost}");
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_followed_ends_with_its_reader() -> Result<()> {
    let address = zookeeper::shared().await.address();
    let path = zookeeper::unique_path();
    let line = format!(
        "\"$WOK\" call configuration --mount {path} --connect {address} observe --follow | head -1"
    );
    let ended = Program::shell(&line).env("WOK", wok_binary()?).run().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    ended.stdout.trim().parse::<u64>().with_context(|| format!("{ended:?}"))?;
    Ok(())
}

#[tokio::test]
async fn a_call_whose_answer_nobody_reads_ends_by_a_signal() -> Result<()> {
    let address = zookeeper::shared().await.address();
    let path = zookeeper::unique_path();
    // A pipe that is full, and that never says that its reader has gone: the caller has that end, too.
    let line = format!(
        "mkfifo unread && exec 3<>unread && dd if=/dev/zero bs=4096 count=16 status=none >&3 && \
         exec \"$WOK\" call lock --mount {path} --connect {address} try-acquire >&3"
    );
    let directory = scratch::dir()?;
    let caller =
        Program::shell(&line).env("WOK", wok_binary()?).directory(directory.path()).start()?;
    // There is an answer. What is left is to close the session, which a signal cuts short, and to print.
    caller.wait_for_text("what it held is given up").await?;
    let status = eventually("the end of the call", async || {
        if caller.status().is_none() {
            // It may end between the look and the signal, which the next look sees.
            caller.signal(Signal::TERM).ok();
        }
        Ok(caller.status())
    })
    .await?;
    assert_eq!(status.code(), Some(143), "{status}");
    Ok(())
}

#[tokio::test]
async fn what_only_answers_is_told_to_be_called_where_a_claim_was_to_be_held() -> Result<()> {
    let server = zookeeper::shared().await;
    let ended = Program::wok()?
        .args(["hold", "lock", "--mount", &zookeeper::unique_path()])
        .args(["--connect", server.address(), "contenders", "--", "true"])
        .run()
        .await?;
    assert_eq!(ended.code(), Some(75), "{ended:?}");
    assert!(
        ended.stderr.contains("holds nothing: it answered [], and what it did stands"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("`wok call`"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn what_inspect_proposes_works_as_it_stands() -> Result<()> {
    let server = zookeeper::shared().await;
    for module in stock_names() {
        let mut played = 0;
        let told = Program::wok()?.args(["inspect", "--output", "json", module]).run().await?;
        let report: Value = serde_json::from_str(&told.stdout)?;
        for command in report["next"].as_array().context("next")? {
            let command = command.as_str().context("a command")?;
            let Some(arguments) = command.strip_prefix("wok ") else { panic!("{command}") };
            if !arguments.starts_with("hold") && !arguments.starts_with("call") {
                continue;
            }
            let here = arguments
                .replace("127.0.0.1:2181", server.address())
                .replace("/try", &zookeeper::unique_path());
            // A shell reads it, since a person types it into one.
            let line = ["exec \"$WOK\" ", &here].concat();
            let ended = Program::shell(&line).env("WOK", wok_binary()?).run().await?;
            assert_eq!(ended.code(), Some(0), "{command}: {ended:?}");
            assert_ne!(ended.stdout, "", "{command}");
            played += 1;
        }
        assert!(played > 0, "nothing is proposed for {module}");
    }
    Ok(())
}

/// Those that are larger than 100,000 bytes, and why.
const LARGER: [(&str, usize); 4] = [
    // Two ways of delivery, one by one and by batches, and dead letters; the first also has the layouts of
    // other clients, and refuses their mounts. The second also has a set, for items that cannot be buried,
    // which the first has for its layouts.
    ("queue", 120_000),
    ("priority-queue", 123_000),
    // Views at one moment, observers, and metadata that are checked.
    ("name-service", 106_000),
    // Both ways of the text, up to 24 transactions that go on side by side, and what is asked for again
    // behind a transaction where a server may be behind.
    ("two-phase-commit", 125_000),
];

#[test]
fn no_stock_component_is_larger_than_it_may_be() -> Result<()> {
    for module in stock_names() {
        let size = ModuleSource::Stock(module.to_owned()).read(None)?.len();
        let larger = LARGER.iter().find(|(name, _)| *name == module);
        let most = larger.map_or(100_000, |(_, most)| *most);
        assert!(size <= most, "{module}: {size} bytes");
    }
    Ok(())
}

#[tokio::test]
async fn contenders_of_another_naming_are_warned_of_once() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    for (command, config, is_warned) in [
        ("lock", None, true),
        ("elect", None, true),
        ("lock", Some("format=kazoo"), false),
        ("elect", Some("format=kazoo"), false),
    ] {
        let path = zookeeper::unique_path();
        admin.create(&path, b"").await?;
        let znode = format!("{path}/{KAZOO}");
        admin.create(&znode, b"somebody else's").await?;
        let contender = Program::wok()?
            .args([command, "--connect", server.address()])
            .args(config.into_iter().flat_map(|config| ["--config", config]))
            .args([&path, "--", "true"])
            .start()?;
        if !is_warned {
            // It stands in kazoo's line, as it should.
            contender.wait_for_text("standing in line").await?;
            admin.delete(&znode).await?;
        }
        let ended = contender.ended().await?;
        assert_eq!(ended.code(), Some(0), "{command} {config:?}: {ended:?}");
        let count = ended.stderr.matches(KAZOO).count();
        assert_eq!(count, usize::from(is_warned), "{command} {config:?}: {}", ended.stderr);
        if is_warned {
            let warning = ended.stderr.lines().find(|line| line.contains(KAZOO)).unwrap();
            assert!(warning.contains("WARN") && warning.contains("`format`"), "{warning}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_log_of_a_command_for_programs_is_json() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    admin.create(&path, b"").await?;
    admin.create(&format!("{path}/{KAZOO}"), b"").await?;
    let ended = Program::wok()?
        .args(["elect", "--output", "json", "--connect", server.address()])
        .args([&path, "--", "printenv", "WOK_FENCE"])
        .run()
        .await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let lines: Vec<Value> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect::<Result<_>>()?;
    let of = |event: &str| lines.iter().find(|line| line["event"] == event).unwrap();
    assert_eq!(of("log")["level"], "warn");
    let fence: u64 = ended.stdout.trim().parse()?;
    assert_eq!(of("held")["fence"], json!(fence));
    assert_eq!(of("recipe-event")["name"], "elected");
    assert_eq!(of("recipe-event")["detail"]["fence"], json!(fence));
    Ok(())
}

#[tokio::test]
async fn the_log_has_colours_in_a_terminal_unless_no_color_forbids_them() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    for (no_color, is_coloured) in [("", true), ("1", false)] {
        let path = zookeeper::unique_path();
        admin.create(&path, b"").await?;
        admin.create(&format!("{path}/{KAZOO}"), b"").await?;
        let wok = wok_tests::process::wok_binary()?;
        let line = format!("{} lock --connect {} {path} -- true", wok.display(), server.address());
        // A terminal of its own.
        let ended = Program::new("script")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .env("NO_COLOR", no_color)
            // That of who runs the tests may be a dumb one.
            .env("TERM", "xterm")
            .run()
            .await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        assert!(ended.stdout.contains(KAZOO), "{ended:?}");
        assert_eq!(ended.stdout.contains("\x1b["), is_coloured, "{:?}", ended.stdout);
    }
    Ok(())
}
