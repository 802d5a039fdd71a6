//! The commands that ask the running daemon: real processes on a real server, while one of them is
//! stopped or killed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod listed;
mod waiting;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Handle;
use wok::client::{Client, Socket};
use wok::tasks::Tasks;
use wok_tests::admin::Admin;
use wok_tests::patience::eventually;
use wok_tests::process::{Line, OrderFile, Program, Running, Signal, Stream, is_there, wok_binary};
use wok_tests::{scratch, stubborn, zookeeper};

/// A daemon with one recipe, `orders`, which is a lock at `path`.
struct Daemon {
    _directory: TempDir,
    socket: PathBuf,
    running: Running,
    path: String,
}

impl Daemon {
    async fn start() -> Result<Daemon> {
        let daemon = Daemon::at(zookeeper::shared().await.address()).await?;
        daemon.until_ready().await?;
        Ok(daemon)
    }

    /// One of that server's, which serves its socket, but need not have a session.
    async fn at(server: &str) -> Result<Daemon> {
        Daemon::with(server, "").await
    }

    /// The same, with these recipes besides.
    async fn with(server: &str, recipes: &str) -> Result<Daemon> {
        let path = zookeeper::unique_path();
        let directory = scratch::dir()?;
        let (config, socket) = (directory.path().join("wok.toml"), directory.path().join("s"));
        let text = format!(
            r#"
[zookeeper]
connect = "{server}"
session-timeout = "4s"

[api]
socket = "{}"

[recipes.orders]
module = "lock"
mount = "{path}"

{recipes}"#,
            socket.display()
        );
        fs::write(&config, text)?;
        let running = Program::wok()?.args([Path::new("run"), &config]).start()?;
        running.wait_for_text("the API is served").await?;
        Ok(Daemon { _directory: directory, socket, running, path })
    }

    fn client(&self) -> Client {
        let socket = Socket::new(Some(self.socket.clone()));
        Client::new(socket, Tasks::on(Handle::current()))
    }

    async fn until_ready(&self) -> Result<()> {
        let client = self.client();
        eventually("the daemon to have a session", async || {
            Ok(client.get::<Value>("/readyz").await.ok().map(drop))
        })
        .await
    }

    /// `wok` with a command, and the daemon's socket.
    fn wok<const N: usize>(&self, arguments: [&str; N]) -> Result<Program> {
        Ok(Program::wok()?.args(arguments).args([Path::new("--socket"), &self.socket]))
    }

    /// `wok hold orders acquire` with a script.
    fn hold(&self, script: &str) -> Result<Program> {
        Ok(self.wok(["hold", "orders", "acquire"])?.args(["--", "sh", "-c", script]))
    }

    /// One that holds.
    async fn holding(&self, script: &str) -> Result<Running> {
        let holder = self.hold(script)?.start()?;
        holder.wait_for_text("holding").await?;
        Ok(holder)
    }

    /// A holder by a session of its own, so beside the daemon.
    async fn hold_beside(&self, script: &str) -> Result<Running> {
        let address = zookeeper::shared().await.address();
        let options = ["lock", "--connect", address, "--session-timeout", "4s", &self.path];
        Program::wok()?.args(options).args(["--", "sh", "-c", script]).start()
    }

    /// `wok events` of all, which has been seen to follow: it tells only what comes after it.
    async fn follow_all(&self) -> Result<Running> {
        let events = self.wok(["events", "--output", "json"])?.start()?;
        eventually("what is told to be followed", async || {
            self.hold("true")?.run().await?;
            Ok((!events.lines().is_empty()).then_some(()))
        })
        .await?;
        events.wait_for_text(r#""event":"ended""#).await?;
        Ok(events)
    }

    async fn contenders(&self) -> Result<Vec<String>> {
        let admin = Admin::connect(zookeeper::shared().await.address()).await?;
        admin.children(&self.path).await
    }
}

/// The claim that a holder says it is holding.
fn claim_in(line: &Line) -> Result<String> {
    let mut words = line.text.split_whitespace().skip_while(|word| *word != "holding");
    Ok(words.nth(1).context("a path after the word")?.to_owned())
}

/// A stubborn command that runs through the daemon, and one in line that looks whether it has ended.
struct Scene {
    daemon: Daemon,
    order: OrderFile,
    holder: Running,
    waiter: Running,
}

/// Who stands in line behind the holder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiter {
    /// Another participant of the daemon.
    OfTheDaemon,
    /// Somebody with a session of its own.
    Beside,
}

impl Scene {
    async fn set(waiter: Waiter) -> Result<Scene> {
        let (daemon, order) = (Daemon::start().await?, OrderFile::new()?);
        let (script, (variable, value)) = stubborn::script(&order, "holder");
        let holder = daemon.hold(&script)?.env(variable, value).start()?;
        holder.wait_for_text("holding").await?;
        stubborn::wait_for_both(&order, "holder").await?;
        let next = stubborn::next(&order, "holder");
        let waiter = match waiter {
            Waiter::OfTheDaemon => daemon.hold(&next)?.start()?,
            Waiter::Beside => daemon.hold_beside(&next).await?,
        };
        waiter.wait_for_text("standing in line").await?;
        Ok(Scene { daemon, order, holder, waiter })
    }

    async fn handed_over_cleanly(&self) -> Result<()> {
        let ended = self.waiter.ended().await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        stubborn::handed_over_cleanly(&self.order, "holder")
    }

    /// The holder's wok says that the claim is lost, once.
    async fn holder_has_lost(&self) -> Result<()> {
        let ended = self.holder.ended().await?;
        assert_eq!(ended.code(), Some(76), "{ended:?}");
        assert_eq!(ended.stderr.matches("wok: lost").count(), 1, "{}", ended.stderr);
        Ok(())
    }
}

#[tokio::test]
async fn a_command_runs_under_a_claim_of_the_daemon_and_its_exit_code_is_passed_on() -> Result<()> {
    let daemon = Daemon::start().await?;
    let ended = daemon.hold("echo \"$WOK_FENCE $WOK_CLAIM_PATH\"; exit 7")?.run().await?;
    assert_eq!(ended.code(), Some(7), "{ended:?}");
    let (fence, claim) = ended.stdout.trim().split_once(' ').context("fence and path")?;
    assert!(fence.parse::<u64>()? > 0);
    assert!(claim.starts_with(&daemon.path), "{claim}");
    assert!(ended.stderr.contains(&format!("holding {claim} with fence {fence}")), "{ended:?}");
    // Released when the command ends, and not some time afterwards.
    assert_eq!(daemon.contenders().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn programs_read_the_same_events_as_from_a_session_of_ones_own() -> Result<()> {
    let daemon = Daemon::start().await?;
    let ended = daemon
        .wok(["hold", "--output", "json", "orders", "acquire"])?
        .args(["--", "true"])
        .run()
        .await?;
    let events: Vec<Value> =
        ended.stderr.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let names: Vec<_> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(names, ["waiting", "held"], "{}", ended.stderr);
    assert!(events[1]["fence"].as_i64().is_some_and(|fence| fence > 0));
    assert!(events.iter().all(|it| it["recipe"] == "orders"), "{}", ended.stderr);
    assert!(events.iter().all(|it| it["participant"].is_string()), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn programs_are_told_that_a_claim_is_over_when_the_daemon_stops() -> Result<()> {
    let daemon = Daemon::start().await?;
    let holder = daemon
        .wok(["hold", "--output", "json", "orders", "acquire"])?
        .args(["--", "sh", "-c", "read line"])
        .start()?;
    let held: Value = serde_json::from_str(&holder.wait_for_text(r#""held""#).await?.text)?;
    daemon.running.signal(Signal::TERM)?;
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    let lines = ended.stderr.lines().map(serde_json::from_str);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>()?;
    let lost: Vec<_> = lines.iter().filter(|line| line["event"] == "lost").collect();
    let [lost] = lost.as_slice() else { panic!("{}", ended.stderr) };
    assert_eq!((&lost["reason"], &lost["cause"]), (&json!("released"), &json!("daemon")), "{lost}");
    assert_eq!(lost["participant"], held["participant"], "{lost}");
    assert_eq!(lost["recipe"], "orders", "{lost}");
    assert_eq!(daemon.running.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_call_answers_and_fails_with_the_codes_of_a_session_of_ones_own() -> Result<()> {
    let daemon = Daemon::start().await?;
    let asked = daemon.wok(["call", "orders", "contenders"])?.run().await?;
    assert_eq!((asked.code(), asked.stdout.trim()), (Some(0), "[]"), "{asked:?}");
    let tried = daemon.wok(["call", "orders", "try-acquire"])?.run().await?;
    assert!(tried.stderr.contains("`wok hold` runs a command"), "{tried:?}");
    assert_eq!(daemon.contenders().await?, Vec::<String>::new());
    for (arguments, code, told) in [
        (["call", "orders", "release"], 70, "the lock is not held"),
        (["call", "orders", "aquire"], 64, "aquire"),
        (["call", "ordres", "acquire"], 64, "the nearest name is orders"),
    ] {
        let ended = daemon.wok(arguments)?.run().await?;
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    Ok(())
}

/// Only the daemon knows what an operation of its recipe takes.
#[tokio::test]
async fn where_a_text_is_taken_it_is_the_text_that_was_typed_as_with_a_session_of_ones_own()
-> Result<()> {
    let server = zookeeper::shared().await.address();
    let mount = zookeeper::unique_path();
    let recipe = format!("[recipes.mail]\nmodule = \"configuration\"\nmount = \"{mount}\"\n");
    let daemon = Daemon::with(server, &recipe).await?;
    daemon.until_ready().await?;
    let admin = Admin::connect(server).await?;
    let set = ["call", "mail", "set", "expected=any"];
    for text in ["7", "007", "1e3", "true", "[1, 2]", "99999999999999999999999"] {
        let arguments = [format!("key={text}"), format!("data={text}")];
        let ended = daemon.wok(set)?.args(&arguments).run().await?;
        assert_eq!(ended.code(), Some(0), "{text}: {ended:?}");
        let (data, _) = admin.get(&format!("{mount}/{text}")).await?.context("the key")?;
        assert_eq!(data, text.as_bytes());
    }
    // What is no text is what it was, and what nobody knows is told as it is without types.
    let version = r#"expected={"version":0}"#;
    let set = ["call", "mail", "set", version, "key=7", "data=\"8\""];
    let ended = daemon.wok(set)?.run().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let (data, _) = admin.get(&format!("{mount}/7")).await?.context("the key")?;
    assert_eq!(data, b"8");
    for (arguments, told) in [
        (["call", "mail", "put", "key=7"], "no operation put"),
        (["call", "mial", "set", "key=7"], "the nearest name is mail"),
    ] {
        let ended = daemon.wok(arguments)?.run().await?;
        assert_eq!(ended.code(), Some(64), "{ended:?}");
        assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_followed_holds_until_it_is_ended_or_the_daemon_is() -> Result<()> {
    let daemon = Daemon::start().await?;
    let arguments = ["call", "orders", "acquire", "--follow", "--output", "json", "--wait", "60s"];
    let released = daemon.wok(arguments)?.start()?;
    for event in [r#""answered""#, r#""held""#] {
        assert_eq!(released.wait_for_text(event).await?.stream, Stream::Stdout);
    }
    assert_eq!(daemon.contenders().await?.len(), 1);
    released.signal(Signal::INT)?;
    let ended = released.ended().await?;
    assert_eq!((ended.code(), ended.stderr.as_str()), (Some(128 + 2), ""), "{ended:?}");
    assert_eq!(daemon.contenders().await?, Vec::<String>::new());
    let lines = ended.stdout.lines().map(serde_json::from_str);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>()?;
    let mut events: Vec<_> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    events.sort_unstable();
    assert_eq!(events, ["answered", "held", "waiting"], "{}", ended.stdout);

    let ended_with_it = daemon.wok(arguments)?.start()?;
    ended_with_it.wait_for_text(r#""answered""#).await?;
    daemon.running.signal(Signal::TERM)?;
    let ended = ended_with_it.ended().await?;
    assert_eq!(ended.code(), Some(69), "{ended:?}");
    let last: Value = serde_json::from_str(ended.stdout.lines().last().context("a last line")?)?;
    assert_eq!((&last["event"], &last["how"]), (&json!("ended"), &json!("left")), "{last}");
    Ok(())
}

#[tokio::test]
async fn who_waits_in_vain_leaves_nothing_in_line() -> Result<()> {
    let daemon = Daemon::start().await?;
    let _holder = daemon.holding("read line").await?;
    for command in ["hold", "call"] {
        let mut waiter = daemon.wok([command, "orders", "acquire", "--wait", "300ms"])?;
        if command == "hold" {
            waiter = waiter.args(["--", "true"]);
        }
        let ended = waiter.run().await?;
        assert_eq!(ended.code(), Some(75), "{ended:?}");
        assert_eq!(daemon.contenders().await?.len(), 1);
    }
    let waiter = daemon.hold("true")?.start()?;
    waiter.wait_for_text("standing in line").await?;
    waiter.signal(Signal::TERM)?;
    assert_eq!(waiter.ended().await?.code(), Some(128 + 15));
    assert_eq!(daemon.contenders().await?.len(), 1);
    let asked = daemon.wok(["hold", "orders", "contenders"])?.args(["--", "true"]).run().await?;
    assert_eq!(asked.code(), Some(75), "{asked:?}");
    assert!(asked.stderr.contains("`wok call`"), "{asked:?}");
    Ok(())
}

#[tokio::test]
async fn the_log_is_shown_and_followed() -> Result<()> {
    let daemon = Daemon::start().await?;
    let all = daemon.wok(["logs"])?.run().await?;
    assert_eq!(all.code(), Some(0), "{all:?}");
    assert!(all.stdout.contains("INFO"), "{all:?}");
    let one = daemon.wok(["logs", "-n", "1", "--output", "json"])?.run().await?;
    let line: Value = serde_json::from_str(one.stdout.trim())?;
    assert_eq!(line["event"], "log");
    let follower = daemon.wok(["logs", "-f"])?.start()?;
    follower.wait_for_text("INFO").await?;
    daemon.running.signal(Signal::TERM)?;
    follower.wait_for_text("stopping").await?;
    let ended = follower.ended().await?;
    assert_eq!(ended.code(), Some(69), "{ended:?}");
    assert!(ended.stderr.contains("has been stopped"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn who_follows_all_is_told_the_ends_when_the_daemon_stops() -> Result<()> {
    let daemon = Daemon::start().await?;
    let events = daemon.follow_all().await?;
    let _holder = daemon.holding("read line").await?;
    daemon.running.signal(Signal::TERM)?;
    let told = events.ended().await?;
    assert_eq!(told.code(), Some(69), "{told:?}");
    assert!(told.stderr.contains("has been stopped"), "{}", told.stderr);
    let lines: Vec<Value> =
        told.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let joined = lines.iter().rfind(|line| line["event"] == "joined").context("the holder")?;
    let is_end =
        |line: &Value| line["event"] == "ended" && line["participant"] == joined["participant"];
    assert!(lines.iter().any(is_end), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn a_daemon_that_is_killed_takes_the_command_along() -> Result<()> {
    let scene = Scene::set(Waiter::Beside).await?;
    scene.daemon.running.signal(Signal::KILL)?;
    scene.holder_has_lost().await?;
    scene.handed_over_cleanly().await
}

#[tokio::test]
async fn a_daemon_that_is_stopped_has_the_command_killed_before_another_holds() -> Result<()> {
    let scene = Scene::set(Waiter::Beside).await?;
    scene.daemon.running.pause().await?;
    scene.handed_over_cleanly().await?;
    scene.holder_has_lost().await?;
    assert_eq!(scene.daemon.running.status(), None);
    Ok(())
}

#[tokio::test]
async fn a_daemon_that_is_asked_to_end_stops_the_command_first() -> Result<()> {
    let scene = Scene::set(Waiter::Beside).await?;
    scene.daemon.running.signal(Signal::TERM)?;
    scene.handed_over_cleanly().await?;
    let ended = scene.holder.ended().await?;
    assert_eq!(ended.code(), Some(76));
    // The daemon has said that it is given up, and is not asked once more when it is gone.
    assert!(!ended.stderr.contains("not known to be given up"), "{}", ended.stderr);
    assert_eq!(scene.daemon.running.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_claim_of_the_daemon_that_is_deleted_by_hand_ends_the_command_and_is_told_once()
-> Result<()> {
    let (daemon, order) = (Daemon::start().await?, OrderFile::new()?);
    let (script, (variable, value)) = stubborn::script(&order, "holder");
    let holder = daemon.hold(&script)?.env(variable, value).start()?;
    stubborn::wait_for_both(&order, "holder").await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let children = admin.children(&daemon.path).await?;
    let [claim] = children.as_slice() else { panic!("one claim in {children:?}") };
    admin.delete(&format!("{}/{claim}", daemon.path)).await?;
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert_eq!(ended.stderr.matches("wok: lost").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("deleted by another client"), "{}", ended.stderr);
    for pid in stubborn::pids(&order, "holder")? {
        assert!(!is_there(pid), "{pid} lives");
    }
    Ok(())
}

/// The command is being stopped, and would take its time: it is killed at once when the claim's znode goes.
#[tokio::test]
async fn a_claim_that_is_lost_while_its_command_is_stopped_has_the_command_killed() -> Result<()> {
    let (daemon, order) = (Daemon::start().await?, OrderFile::new()?);
    let script = format!(
        "trap '{}' TERM; {}; while :; do sleep 0.05; done",
        order.append("asked to stop").replace('\'', "'\\''"),
        order.append("begins")
    );
    let holder = daemon
        .wok(["hold", "orders", "acquire", "--stop-timeout", "3s"])?
        .args(["--", "sh", "-c", script.as_str()])
        .start()?;
    order.wait_for("begins").await?;
    daemon.running.signal(Signal::TERM)?;
    order.wait_for("asked to stop").await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let children = admin.children(&daemon.path).await?;
    let [claim] = children.as_slice() else { panic!("one claim in {children:?}") };
    admin.delete(&format!("{}/{claim}", daemon.path)).await?;
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    // Nobody orders a command killed that ends in its time.
    assert_eq!(ended.stderr.matches("wok: lost").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("deleted by another client"), "{}", ended.stderr);
    assert_eq!(daemon.running.ended().await?.code(), Some(0));
    Ok(())
}

/// The session timeout is the daemon's, and the time to stop a tenth of it.
#[tokio::test]
async fn a_command_has_a_tenth_of_the_daemons_session_timeout_to_stop() -> Result<()> {
    let (daemon, order) = (Daemon::start().await?, OrderFile::new()?);
    // Less than a tenth of the default session timeout, and more than one of the daemon's.
    let script = format!(
        "trap '{}; sleep 0.8; {}; exit 0' TERM; {}; while :; do sleep 0.05; done",
        order.append("asked to stop").replace('\'', "'\\''"),
        order.append("cleaned").replace('\'', "'\\''"),
        order.append("begins")
    );
    let holder = daemon.hold(&script)?.start()?;
    order.wait_for("begins").await?;
    holder.signal(Signal::TERM)?;
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(137), "{ended:?}");
    assert_eq!(order.labels()?, ["begins", "asked to stop"]);
    Ok(())
}

#[tokio::test]
async fn who_is_killed_gives_the_claim_up_when_its_command_is_gone() -> Result<()> {
    for waiter in [Waiter::OfTheDaemon, Waiter::Beside] {
        let scene = Scene::set(waiter).await?;
        scene.holder.signal(Signal::KILL)?;
        scene.handed_over_cleanly().await?;
    }
    Ok(())
}

#[tokio::test]
async fn who_is_stopped_loses_the_claim_when_its_command_is_gone() -> Result<()> {
    let scene = Scene::set(Waiter::OfTheDaemon).await?;
    scene.holder.pause().await?;
    scene.handed_over_cleanly().await?;
    assert_eq!(scene.holder.status(), None);
    scene.holder.signal(Signal::CONT)?;
    let ended = scene.holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn where_no_daemon_listens_it_is_said_what_to_type() -> Result<()> {
    let directory = scratch::dir()?;
    let socket = directory.path().join("none");
    for arguments in [
        &["ps"][..],
        &["events"],
        &["logs"],
        &["call", "orders", "contenders"],
        &["hold", "orders", "acquire"],
    ] {
        let mut program =
            Program::wok()?.args(arguments).args([Path::new("--socket"), socket.as_path()]);
        if arguments[0] == "hold" {
            program = program.args(["--", "true"]);
        }
        let ended = program.run().await?;
        assert_eq!(ended.code(), Some(69), "{ended:?}");
        for told in ["no daemon listens at", "`wok run`", "--socket"] {
            assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
        }
    }
    let stock = ["call", "lock", "contenders", "--socket"];
    let ended = Program::wok()?.args(stock).arg(&socket).run().await?;
    assert_eq!(ended.code(), Some(69), "{ended:?}");
    assert!(ended.stderr.contains("--mount /lock"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn what_is_followed_for_a_reader_ends_with_the_reader() -> Result<()> {
    let daemon = Daemon::start().await?;
    let _holder = daemon.holding("exec sleep 600").await?;
    let participants: Value = daemon.client().get("/v1/participants").await?;
    let id = participants["participants"][0]["participant"].as_str().context("the holder")?;
    // That it has joined and that it holds. Nothing more is told, so neither finds out by writing.
    for (followed, lines) in [(format!("events {id}"), 2), ("logs -f -n 1".to_owned(), 1)] {
        let script = format!("\"$WOK\" {followed} --socket \"$DAEMON\" | head -n {lines}");
        let piped = Program::shell(&script)
            .env("WOK", wok_binary()?)
            .env("DAEMON", &daemon.socket)
            .run()
            .await?;
        assert_eq!((piped.code(), piped.stdout.lines().count()), (Some(0), lines), "{piped:?}");
        assert_eq!(piped.stderr, "", "{followed}");
    }
    Ok(())
}

#[tokio::test]
async fn a_name_that_fits_into_no_request_is_told_as_such() -> Result<()> {
    let daemon = Daemon::start().await?;
    // The head of a request has 16 KiB, and an address in it 64 KiB by the library.
    for length in [20_000, 70_000] {
        let ended = daemon.wok(["call"])?.args([&*"x".repeat(length), "contenders"]).run().await?;
        assert_eq!(ended.code(), Some(64), "{ended:?}");
        assert!(ended.stderr.contains("a name is too long"), "{}", ended.stderr);
    }
    Ok(())
}
