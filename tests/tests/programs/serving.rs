//! `wok zookeeper`, and the daemon with a server of its own: no other server is here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use wok_tests::admin::Admin;
use wok_tests::process::{Program, Running, Signal};
use wok_tests::scratch;
use zookeeper_client::{Acls, Client, CreateMode, Error};

/// A server on a free port, and its address.
async fn serve() -> Result<(Running, String)> {
    let server = Program::wok()?
        .args(["--output", "json", "zookeeper", "--listen", "127.0.0.1:0"])
        .start()?;
    let line = server.wait_for_text("listening").await?;
    let told: serde_json::Value = serde_json::from_str(&line.text)?;
    let address = told["address"].as_str().context("no address")?.to_owned();
    Ok((server, address))
}

#[tokio::test]
async fn a_server_of_our_own_serves_locks_and_other_clients_and_ends_in_order() -> Result<()> {
    let (server, address) = serve().await?;
    let admin = Admin::connect(&address).await?;
    let mut fences = Vec::new();
    for _ in 0..2 {
        let script = "echo $WOK_FENCE";
        let held = Program::wok()?
            .args(["lock", "--connect", &address, "/a/lock", "--", "sh", "-c", script])
            .run()
            .await?;
        assert_eq!(held.code(), Some(0), "{held:?}");
        fences.push(held.stdout.trim().parse::<u64>()?);
    }
    assert!(fences[0] < fences[1], "{fences:?}");
    assert_eq!(admin.children("/a/lock").await?, Vec::<String>::new());
    server.signal(Signal::TERM)?;
    assert_eq!(server.ended().await?.code(), Some(0));
    Ok(())
}

/// A server on a data directory and a free port: it, its address, and what it told before that.
async fn serve_on(directory: &Path) -> Result<(Running, String, Vec<Value>)> {
    let server = Program::wok()?
        .args(["--output", "json", "zookeeper", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory)
        .start()?;
    let listening = server.wait_for_text("listening").await?;
    // Lines of the log stand between the events.
    let told = server.lines().into_iter().filter_map(|line| serde_json::from_str(&line.text).ok());
    let told: Vec<Value> = told
        .filter(|line: &Value| line["event"] != "log")
        .take_while(|line| line["event"] != "listening")
        .collect();
    let listening: Value = serde_json::from_str(&listening.text)?;
    let address = listening["address"].as_str().context("no address")?.to_owned();
    Ok((server, address, told))
}

#[tokio::test]
async fn a_server_with_a_data_directory_tells_what_it_has_recovered_and_what_it_cut() -> Result<()>
{
    let scratch = scratch::dir()?;
    let data = scratch.path().join("data");
    let (server, address, told) = serve_on(&data).await?;
    let [fresh] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&fresh["event"], &fresh["snapshot"]), (&json!("recovered"), &Value::Null));
    assert_eq!((&fresh["sessions"], &fresh["last-zxid"]), (&json!(0), &json!(0)));
    let empty = fresh["nodes"].as_u64().context("no count of nodes")?;
    let admin = Admin::connect(&address).await?;
    for path in ["/a", "/b"] {
        admin.create(path, b"").await?;
    }
    // Killed, so that the session outlives the server.
    server.signal(Signal::KILL)?;
    server.ended().await?;

    // The session, and a create each; then the beginning of a txn that was never finished.
    let log = data.join("version-2/log.1");
    let bytes = fs::read(&log)?;
    let used = bytes.iter().rposition(|byte| *byte != 0).context("no txns")? + 1;
    fs::write(&log, [&bytes[..used], b"\0\0\0\0torn", &[0; 100]].concat())?;
    let (server, address, told) = serve_on(&data).await?;
    let [torn, recovered] = &told[..] else { panic!("{told:?}") };
    assert_eq!(torn["event"], "torn");
    assert_eq!(torn["file"], log.display().to_string());
    assert_eq!((&torn["offset"], &torn["bytes"]), (&json!(used), &json!(8)));
    assert_eq!(recovered["event"], "recovered");
    assert_eq!(recovered["directory"], data.display().to_string());
    assert_eq!(recovered["snapshot"], data.join("version-2/snapshot.0").display().to_string());
    assert_eq!(recovered["nodes"], empty + 2);
    assert_eq!((&recovered["sessions"], &recovered["replayed"]), (&json!(1), &json!(3)));
    assert_eq!(recovered["last-zxid"], 3);
    let admin = Admin::connect(&address).await?;
    assert!(admin.stat("/b").await?.is_some());
    // As when its terminal is closed.
    server.signal(Signal::HUP)?;
    assert_eq!(server.ended().await?.code(), Some(0));

    let people = Program::wok()?
        .args(["zookeeper", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data)
        .start()?;
    let line = people.wait_for_text("recovered").await?.text;
    assert!(line.contains(&format!("recovered {} nodes and ", empty + 2)), "{line}");
    Ok(())
}

#[tokio::test]
async fn a_log_that_was_cut_is_refused_and_nobody_is_told_that_nothing_is_lost() -> Result<()> {
    let scratch = scratch::dir()?;
    let data = scratch.path().join("data");
    let (server, address, _) = serve_on(&data).await?;
    let admin = Admin::connect(&address).await?;
    for path in ["/a", "/b"] {
        admin.create(path, b"").await?;
    }
    server.signal(Signal::KILL)?;
    server.ended().await?;
    let log = data.join("version-2/log.1");
    let bytes = fs::read(&log)?;
    let used = bytes.iter().rposition(|byte| *byte != 0).context("no txns")? + 1;
    for (length, says) in [(0, "no log begins like that"), (7, "cut"), (used - 9, "truncate -s")] {
        fs::write(&log, &bytes[..length])?;
        let ended = Program::wok()?
            .args(["zookeeper", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data)
            .run()
            .await?;
        assert_eq!(ended.code(), Some(78), "{ended:?}");
        let said = &ended.stderr;
        assert!(said.contains(&log.display().to_string()) && said.contains(says), "{said}");
        assert!(said.contains("put back a copy") && !said.contains("nobody was told"), "{said}");
        assert_eq!(fs::read(&log)?, &bytes[..length]);
    }
    fs::write(&log, bytes)?;
    let (_server, address, _) = serve_on(&data).await?;
    assert!(Admin::connect(&address).await?.stat("/b").await?.is_some());
    Ok(())
}

/// Whether a server lets a node have a time to live.
async fn takes_ttl(address: &str, path: &str) -> Result<bool> {
    let client = Client::connect(address).await?;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    match client.create(path, b"", &options.with_ttl(Duration::from_secs(3_600))).await {
        Ok(_) => Ok(true),
        Err(Error::Unimplemented) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn nodes_with_a_time_to_live_are_refused_by_default_and_told_of_where_there_are_any()
-> Result<()> {
    let scratch = scratch::dir()?;
    let data = scratch.path().join("data");
    let (server, address, _) = serve_on(&data).await?;
    assert!(!takes_ttl(&address, "/t").await?);
    server.signal(Signal::TERM)?;
    let ended = server.ended().await?;
    assert!(!ended.stderr.contains("time to live"), "{}", ended.stderr);

    let server = Program::wok()?
        .args(["--output", "json", "zookeeper", "--listen", "127.0.0.1:0", "--extended-types"])
        .arg("--data-dir")
        .arg(&data)
        .start()?;
    let listening: Value = serde_json::from_str(&server.wait_for_text("listening").await?.text)?;
    let address = listening["address"].as_str().context("no address")?;
    assert!(takes_ttl(address, "/t").await?);
    server.signal(Signal::TERM)?;
    let ended = server.ended().await?;
    assert!(ended.stderr.contains("`extendedTypesEnabled=true`"), "{}", ended.stderr);

    let (_server, address, told) = serve_on(&data).await?;
    let ttl = told.iter().find(|line| line["event"] == "nodes-with-ttl").context("not told")?;
    assert_eq!(ttl["nodes"], 1);
    assert!(!takes_ttl(&address, "/u").await?);
    assert!(Admin::connect(&address).await?.stat("/t").await?.is_some(), "what there is stays");
    Ok(())
}

/// What Apache's word `srvr` says first.
async fn version(arguments: &[&str]) -> Result<String> {
    let server = Program::wok()?
        .args(["--output", "json", "zookeeper", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .start()?;
    let listening: Value = serde_json::from_str(&server.wait_for_text("listening").await?.text)?;
    let address = listening["address"].as_str().context("no address")?;
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"srvr").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn it_is_like_3_8_unless_it_is_to_be_like_3_9() -> Result<()> {
    for (arguments, expected) in [(&[][..], "3.8."), (&["--like", "3.9"], "3.9.")] {
        let told = version(arguments).await?;
        assert!(told.starts_with(&format!("Zookeeper version: {expected}")), "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn an_address_that_is_taken_is_refused_with_the_remedy() -> Result<()> {
    let (_server, address) = serve().await?;
    let ended = Program::wok()?.args(["zookeeper", "--listen", &address]).run().await?;
    assert_eq!(ended.code(), Some(69), "{ended:?}");
    assert!(ended.stderr.contains(&format!("listen on {address}")), "{}", ended.stderr);
    assert!(ended.stderr.contains("give another address with --listen"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn a_command_is_not_given_a_server_of_its_own() -> Result<()> {
    let ended =
        Program::wok()?.args(["lock", "--connect", "embedded", "/a", "--", "true"]).run().await?;
    assert_eq!(ended.code(), Some(64), "{ended:?}");
    assert!(ended.stderr.contains("wok zookeeper"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn a_daemon_with_an_embedded_server_leads_on_it_and_tells_where_it_is() -> Result<()> {
    let (_directory, config) = election("volunteer")?;
    let daemon = Program::wok()?.arg("run").arg(&config).start()?;
    let told = daemon.wait_for_text("127.0.0.1:").await?.text;
    let at = told.find("127.0.0.1:").context("no address")?;
    let address: String =
        told[at..].chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ':')).collect();
    daemon.wait_for_text("leading").await?;
    let admin = Admin::connect(&address).await?;
    assert_eq!(admin.children("/election").await?.len(), 1);
    daemon.signal(Signal::TERM)?;
    assert_eq!(daemon.ended().await?.code(), Some(0));
    Ok(())
}

/// A config with a server of its own and an election, of which the daemon calls an operation.
fn election(call: &str) -> Result<(tempfile::TempDir, PathBuf)> {
    let directory = scratch::dir()?;
    let config = directory.path().join("wok.toml");
    let text = format!(
        "[zookeeper]\nconnect = \"embedded\"\nsession-timeout = \"5s\"\n\n\
         [recipes.scheduler]\nmodule = \"leader-election\"\nmount = \"/election\"\n\
         run = {{ call = \"{call}\" }}\n\
         while-held = {{ exec = [\"sh\", \"-c\", \"echo leading; exec sleep 3600\"] }}\n"
    );
    fs::write(&config, text)?;
    Ok((directory, config))
}

#[tokio::test]
async fn a_daemon_that_reports_for_programs_logs_for_them_too() -> Result<()> {
    let (_directory, config) = election("volunteer")?;
    let daemon = Program::wok()?.args(["--output", "json", "run"]).arg(&config).start()?;
    daemon.wait_for_text("leading").await?;
    daemon.signal(Signal::TERM)?;
    let ended = daemon.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let lines: Vec<Value> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect::<Result<_>>()?;
    assert!(lines.iter().all(|line| line["event"].is_string() && line["at"].is_string()));
    let logged = |what: &str| lines.iter().find(|line| line["message"] == what).context("a line");
    let held = logged("held")?;
    assert_eq!((&held["event"], &held["level"]), (&json!("log"), &json!("info")));
    assert!(held["fence"].is_u64(), "{held}");
    let told = logged("the module tells")?;
    assert_eq!(told["name"], "elected");
    assert_eq!(told["detail"]["fence"], held["fence"], "{told}");
    Ok(())
}

#[tokio::test]
async fn a_daemon_logs_in_words_and_not_as_its_code_has_them() -> Result<()> {
    let (_directory, config) = election("volunteer")?;
    let daemon = Program::wok()?.arg("run").arg(&config).start()?;
    daemon.wait_for_text("leading").await?;
    daemon.signal(Signal::HUP)?;
    daemon.wait_for_text("there is no reload").await?;
    daemon.signal(Signal::TERM)?;
    let ended = daemon.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.contains("standing in line"), "{}", ended.stderr);
    assert!(ended.stderr.contains("the module tells"), "{}", ended.stderr);
    for debug in ["Waiting {", "Emitted {", "Held {", "Some("] {
        assert!(!ended.stderr.contains(debug), "{debug:?} is in {}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_command_that_never_runs_because_nothing_is_ever_held_is_told() -> Result<()> {
    let (_directory, config) = election("leader")?;
    let daemon = Program::wok()?.arg("run").arg(&config).start()?;
    let line = daemon.wait_for_text("the command of `while-held` does not run").await?.text;
    for told in ["ERROR", "leader", "wok inspect"] {
        assert!(line.contains(told), "{told:?} is not in {line}");
    }
    daemon.signal(Signal::TERM)?;
    let ended = daemon.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert_eq!(ended.stderr.matches("does not run").count(), 1, "{}", ended.stderr);
    Ok(())
}
