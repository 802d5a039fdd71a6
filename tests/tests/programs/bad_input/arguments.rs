//! Command lines.

use std::fs;

use anyhow::Result;
use serde_json::Value;
use wok_tests::guests::guest_file;
use wok_tests::process::{Ended, Program};
use wok_tests::{scratch, zookeeper};

/// Nobody listens there, so whatever is told was told before anything connected.
const NOWHERE: &str = "127.0.0.1:1";

async fn wok(arguments: &[&str]) -> Result<Ended> {
    Program::wok()?.args(arguments).run().await
}

/// `wok hold lock` at an address that leads nowhere.
fn hold<'a>(options: &[&'a str], call: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["hold", "lock", "--connect", NOWHERE, "--mount", "/locks/a"];
    arguments.extend(options);
    arguments.extend(call);
    arguments.extend(["--", "true"]);
    arguments
}

/// The command line is refused as wrong usage, in these words, for people and for programs.
async fn check(arguments: &[&str], told: &[&str]) -> Result<()> {
    check_code(arguments, 64, "usage", told).await
}

async fn check_code(arguments: &[&str], code: i32, kind: &str, told: &[&str]) -> Result<()> {
    let ended = wok(arguments).await?;
    assert_eq!(ended.code(), Some(code), "{arguments:?}: {ended:?}");
    assert_eq!(ended.stdout, "", "{arguments:?}");
    let mut for_programs = vec!["--output", "json"];
    for_programs.extend(arguments);
    let json = wok(&for_programs).await?;
    assert_eq!(json.code(), Some(code), "{arguments:?}: {json:?}");
    let error: Value = serde_json::from_str(json.stderr.trim())
        .map_err(|error| anyhow::anyhow!("{arguments:?}: {error} in {:?}", json.stderr))?;
    assert_eq!(error["error"], kind, "{arguments:?}");
    let message = error["message"].as_str().unwrap_or_default();
    for text in told {
        assert!(ended.stderr.contains(text), "{arguments:?}: {text:?} in {}", ended.stderr);
        assert!(message.contains(text), "{arguments:?}: {text:?} in {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_variable_that_is_empty_is_taken_for_one_that_is_not_set() -> Result<()> {
    let lock = Program::wok()?.args(["lock", "/a", "--", "true"]).env("WOK_CONNECT", "");
    let ended = lock.run().await?;
    assert_eq!(ended.code(), Some(64), "{ended:?}");
    assert!(ended.stderr.contains("named in WOK_CONNECT"), "{}", ended.stderr);
    // A daemon may listen at this user's default socket; either way the command line is well.
    let ended = Program::wok()?.arg("ps").env("WOK_SOCKET", "").run().await?;
    assert_ne!(ended.code(), Some(64), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_variable_that_is_wrong_is_named_by_those_that_use_it_alone() -> Result<()> {
    let of = |arguments: &[&str]| -> Result<Program> {
        Ok(Program::wok()?.args(arguments).env("WOK_CONNECT", "zk1:none"))
    };
    for used in [
        &["lock", "/a", "--", "true"][..],
        &["call", "lock", "--mount", "/a", "contenders"],
        &["hold", "lock", "--mount", "/a", "acquire", "--", "true"],
    ] {
        let ended = of(used)?.run().await?;
        assert_eq!(ended.code(), Some(64), "{used:?}: {ended:?}");
        assert!(ended.stderr.contains("WOK_CONNECT \"zk1:none\""), "{used:?}: {ended:?}");
        assert!(!ended.stderr.contains("--connect"), "{used:?}: {ended:?}");
    }
    let directory = scratch::dir()?;
    let socket = directory.path().join("nobody").display().to_string();
    for unused in [
        &["call", "orders", "contenders", "--socket", &socket][..],
        &["hold", "orders", "acquire", "--socket", &socket, "--", "true"],
    ] {
        let ended = of(unused)?.run().await?;
        assert_eq!(ended.code(), Some(69), "{unused:?}: {ended:?}");
        assert!(ended.stderr.contains("no daemon listens"), "{unused:?}: {ended:?}");
    }
    Ok(())
}

/// A full disk is no reader that has gone.
#[tokio::test]
async fn an_answer_that_cannot_be_written_is_not_lost_without_a_word() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let call = |operation: &[&str]| -> Result<Program> {
        let queue = ["call", "queue", "--connect", server.address(), "--mount", &path];
        let queue = Program::wok()?.args(queue).args(["--config", "delivery=at-most-once"]);
        Ok(queue.args(operation))
    };
    let put = call(&["put", "data=precious"])?.run().await?;
    assert_eq!(put.code(), Some(0), "{put:?}");
    let take = call(&["take"])?.by_way_of("sh", ["-c", "exec \"$@\" > /dev/full", "sh"]);
    let taken = take.run().await?;
    assert_eq!(taken.code(), Some(74), "{taken:?}");
    for told in ["precious", "cannot write to standard output: No space left on device"] {
        assert!(taken.stderr.contains(told), "{told:?} is not in {}", taken.stderr);
    }
    for asked in [&["--help"][..], &["--version"], &["man"], &["completions", "bash"]] {
        let full = Program::wok()?.args(asked);
        let full = full.by_way_of("sh", ["-c", "exec \"$@\" > /dev/full", "sh"]).run().await?;
        assert_eq!(full.code(), Some(74), "{asked:?}: {full:?}");
        assert!(full.stderr.contains("cannot write to standard output"), "{asked:?}: {full:?}");
        // Who reads no further has what they wanted.
        let gone = Program::wok()?.args(asked);
        let gone = gone.by_way_of("sh", ["-c", "\"$@\" | true", "sh"]).run().await?;
        assert_eq!((gone.code(), &*gone.stderr), (Some(0), ""), "{asked:?}");
    }
    Ok(())
}

#[tokio::test]
async fn wrong_usage_is_told_with_the_remedy_and_exits_with_64() -> Result<()> {
    check(&["lokc"], &["lokc", "lock"]).await?;
    check(&["lock", "/a", "--", "true"], &["--connect", "WOK_CONNECT"]).await?;
    let without_dashes = ["lock", "--connect", NOWHERE, "/a", "true"];
    check(&without_dashes, &["unexpected argument 'true'", "the command stands behind `--`"])
        .await?;
    check(&["lock", "--connect", NOWHERE, "/a"], &["COMMAND"]).await?;
    for hosts in ["", "zk1:none", "zk1:99999", "zk1,,zk2", "zk1/chroot"] {
        check(&["lock", "--connect", hosts, "/a", "--", "true"], &["--connect"]).await?;
    }
    for hosts in ["embedded", "embeded"] {
        check(&["lock", "--connect", hosts, "/a", "--", "true"], &["--connect", "wok zookeeper"])
            .await?;
    }
    for mount in ["a", "", "/a/", "/a//b", "/a/../b", "/\u{1f600}", "/\u{7f}"] {
        check(&["lock", "--connect", NOWHERE, mount, "--", "true"], &["mount"]).await?;
    }
    // As in a config: not the whole ensemble, and no path that is too long for a mount.
    let long = format!("/{}", "a".repeat(512));
    for (mount, told) in [("/", "the whole ensemble"), (&*long, "513 bytes")] {
        check(&["lock", "--connect", NOWHERE, mount, "--", "true"], &["mount", told]).await?;
        let call = ["call", "lock", "--connect", NOWHERE, "--mount", mount, "contenders"];
        check(&call, &["mount", told]).await?;
    }
    check(&hold(&[], &["aquire"]), &["no operation aquire; did you mean acquire?"]).await?;
    check(&hold(&[], &["acquire", "weight=1"]), &["lock acquire", "weight"]).await?;
    check(&hold(&[], &["acquire", "weight"]), &["write name=value, or one JSON object"]).await?;
    check(&hold(&[], &["acquire", "{"]), &["no JSON object"]).await?;
    check(&hold(&[], &["acquire", "a=1", "a=2"]), &["argument a is given twice"]).await?;
    for twice in ["{\"a\": 1, \"a\": 2}", "b={\"a\": 1, \"a\": 2}"] {
        check(&hold(&[], &["acquire", twice]), &["the key \"a\" is given twice"]).await?;
    }
    check(&["events", ""], &["[PARTICIPANT]"]).await?;
    check(&hold(&[], &["revoke", "{\"path\": 42}"]), &["expected a string"]).await?;
    check(&["zookeeper", "--tick-time", "1ms"], &["--tick-time", "50ms or more"]).await?;
    check(&hold(&["--config", "format"], &["acquire"]), &["config \"format\"", "name=value"])
        .await?;
    check(&hold(&["--wait", "soon"], &["acquire"]), &["--wait", "soon"]).await?;
    for owner in ["", "two\nlines", &"x".repeat(201)] {
        check(&hold(&["--owner", owner], &["acquire"]), &["one line of 1 to 200 bytes"]).await?;
    }
    check(&hold(&["--wait", "0s"], &["acquire"]), &["--wait", "try-acquire"]).await?;
    check(&hold(&["--session-timeout", "1ms"], &["acquire"]), &["--session-timeout", "choose"])
        .await?;
    check(&hold(&["--stop-signal", "KILL"], &["acquire"]), &["--stop-signal", "at the deadline"])
        .await?;
    let identities = ["--acl creator", "--digest-file", "--tls-cert-file"];
    check(&hold(&["--acl", "creator"], &["acquire"]), &identities).await
}

#[tokio::test]
async fn a_stop_timeout_that_does_not_fit_is_refused_before_anything_connects() -> Result<()> {
    for stop in ["8s", "0s", "1h"] {
        check(&hold(&["--stop-timeout", stop], &["acquire"]), &["--stop-timeout"]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_config_that_the_module_refuses_exits_with_78_and_names_the_field() -> Result<()> {
    for (config, told) in [
        ("format=7", "config.format: expected a string"),
        ("format=kazo", "config.format"),
        ("fromat=kazoo", "config.fromat: unknown field; did you mean format?"),
    ] {
        let arguments = hold(&["--config", config], &["acquire"]);
        check_code(&arguments, 78, "config", &["--config of the module lock", told]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn files_with_secrets_that_cannot_be_used_are_named_and_not_repeated() -> Result<()> {
    let directory = scratch::dir()?;
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("no-colon"), "geheim\n")?;
    fs::write(path("binary"), [b'u', b':', 0xff])?;
    for option in ["--digest-file", "--sasl-file"] {
        for name in ["missing", "no-colon", "binary"] {
            let file = path(name);
            check(&hold(&[option, &file], &["acquire"]), &[option, &file]).await?;
        }
        let ended = wok(&hold(&[option, &path("no-colon")], &["acquire"])).await?;
        assert!(!ended.stderr.contains("geheim"), "{}", ended.stderr);
    }
    let missing = path("missing");
    check(&hold(&["--tls-ca-file", &missing], &["acquire"]), &["--tls-ca-file", &missing]).await?;
    let no_pem = path("no-colon");
    check(
        &hold(&["--tls-ca-file", &no_pem], &["acquire"]),
        &["--tls-ca-file", &no_pem, "no PEM block of kind `CERTIFICATE`"],
    )
    .await
}

#[tokio::test]
async fn an_ensemble_that_nobody_answers_for_exits_with_69() -> Result<()> {
    let arguments = ["lock", "--connect", NOWHERE, "--connect-timeout", "0s", "/a", "--", "true"];
    check_code(&arguments, 69, "unreachable", &["cannot reach ZooKeeper at 127.0.0.1:1"]).await
}

#[tokio::test]
async fn a_path_outside_the_mount_is_refused_and_nothing_is_created() -> Result<()> {
    let server = zookeeper::shared().await;
    let (_directory, file) = guest_file("hostile")?;
    let base = zookeeper::unique_path();
    let admin = wok_tests::admin::Admin::connect(server.address()).await?;
    admin.create(&format!("{base}/mount"), b"").await?;
    let before = admin.tree(&base).await?;
    let ended = Program::wok()?
        .args(["hold", "--connect", server.address(), "--mount", &format!("{base}/mount")])
        .arg(file)
        .args(["escape-create", "path=/../outside", "--", "true"])
        .run()
        .await?;
    assert_eq!(ended.code(), Some(70), "{ended:?}");
    assert!(ended.stderr.contains("/../outside"), "{}", ended.stderr);
    assert!(ended.stderr.contains("the path has a component `..`"), "{}", ended.stderr);
    assert_eq!(admin.tree(&base).await?, before);
    Ok(())
}

#[tokio::test]
async fn every_command_helps_with_an_example() -> Result<()> {
    let help = wok(&["--help"]).await?;
    assert_eq!(help.code(), Some(0), "{help:?}");
    for command in ["lock", "elect", "hold", "call", "run", "validate", "inspect"] {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{}", help.stdout);
        let help = wok(&[command, "--help"]).await?;
        assert_eq!(help.code(), Some(0), "{help:?}");
        assert!(help.stdout.contains("Examples:"), "{}", help.stdout);
        assert!(help.stdout.contains(&format!("\n  wok {command} ")), "{}", help.stdout);
        assert_eq!(help.stderr, "");
    }
    let words = help.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in ["WOK_FENCE", "76 the claim was lost", "78 configuration"] {
        assert!(words.contains(text), "{text:?} is not in {}", help.stdout);
    }
    Ok(())
}
