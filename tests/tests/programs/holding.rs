//! `wok lock`, `wok elect` and `wok hold` as their users run them: real processes on a real server,
//! judged by the order in which they write to one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod survivors;

use anyhow::{Context, Result};
use wok_tests::admin::{self, Admin};
use wok_tests::process::{OrderFile, Program, Running, Signal, is_there, wok_binary};
use wok_tests::proxy::{Direction, Proxy};
use wok_tests::stubborn;
use wok_tests::zookeeper::{self, Server};

/// `wok lock` with a shell script as its command.
fn lock(address: &str, path: &str, script: &str) -> Result<Program> {
    Ok(Program::wok()?
        .args(["lock", "--connect", address, "--session-timeout", "4s", path, "--", "sh", "-c"])
        .arg(script))
}

/// `wok lock` with a stubborn command.
fn stubborn_lock(address: &str, path: &str, order: &OrderFile, name: &str) -> Result<Program> {
    let (script, (variable, value)) = stubborn::script(order, name);
    Ok(lock(address, path, &script)?.env(variable, value))
}

/// A holder whose command is stubborn, and a waiter behind it.
struct Scene {
    order: OrderFile,
    holder: Running,
    waiter: Running,
}

async fn scene(holder_address: &str, server: &Server) -> Result<Scene> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let holder = stubborn_lock(holder_address, &path, &order, "holder")?.start()?;
    holder.wait_for_text("holding").await?;
    stubborn::wait_for_both(&order, "holder").await?;
    let next = stubborn::next(&order, "holder");
    let waiter = lock(server.address(), &path, &next)?.start()?;
    waiter.wait_for_text("standing in line").await?;
    Ok(Scene { order, holder, waiter })
}

impl Scene {
    /// The waiter got the lock with a higher fence, and found nothing of the holder's alive.
    async fn handed_over_cleanly(&self) -> Result<()> {
        assert_eq!(self.waiter.ended().await?.code(), Some(0));
        stubborn::handed_over_cleanly(&self.order, "holder")
    }
}

#[tokio::test]
async fn a_command_gets_the_fence_and_its_exit_code_is_passed_on() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let script = "echo \"$WOK_FENCE $WOK_CLAIM_PATH\"; exit 7";
    let ended = lock(server.address(), &path, script)?.run().await?;
    assert_eq!(ended.code(), Some(7), "{ended:?}");
    let (fence, claim) = ended.stdout.trim().split_once(' ').context("two words")?;
    assert!(fence.parse::<i64>()? > 0);
    assert!(claim.starts_with(&format!("{path}/_c_")), "{claim}");
    // Released, not left to expire.
    assert_eq!(admin.children(&path).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn two_hundred_holds_of_two_loops_never_overlap_and_their_fences_grow() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let script = format!("{}; {}", order.append("enter $WOK_FENCE"), order.append("leave"));
    let looped = async || -> Result<()> {
        for _ in 0..100 {
            let ended = lock(server.address(), &path, &script)?.run().await?;
            assert_eq!(ended.code(), Some(0), "{ended:?}");
        }
        Ok(())
    };
    tokio::try_join!(looped(), looped())?;
    let labels = order.labels()?;
    assert_eq!(labels.len(), 400);
    let mut last = 0;
    for hold in labels.chunks(2) {
        let [enter, leave] = hold else { panic!("an odd line in {labels:?}") };
        let fence = enter.strip_prefix("enter ").with_context(|| format!("overlap: {hold:?}"))?;
        let fence: i64 = fence.parse()?;
        assert!(fence > last, "fence {fence} after {last}");
        assert_eq!(leave, "leave", "overlap: {hold:?}");
        last = fence;
    }
    Ok(())
}

#[tokio::test]
async fn killing_wok_kills_its_command_before_the_next_in_line_starts() -> Result<()> {
    let server = zookeeper::shared().await;
    let scene = scene(server.address(), server).await?;
    scene.holder.signal(Signal::KILL)?;
    scene.handed_over_cleanly().await
}

#[tokio::test]
async fn a_stopped_wok_has_its_command_killed_in_time_and_says_lost_when_it_goes_on() -> Result<()>
{
    let server = zookeeper::shared().await;
    let scene = scene(server.address(), server).await?;
    scene.holder.pause().await?;
    scene.handed_over_cleanly().await?;
    assert_eq!(scene.holder.status(), None);
    scene.holder.signal(Signal::CONT)?;
    let ended = scene.holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert_eq!(ended.stderr.matches("wok: lost").count(), 1, "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn a_claim_deleted_by_hand_ends_the_command_and_is_told_once() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let holder = stubborn_lock(server.address(), &path, &order, "holder")?.start()?;
    stubborn::wait_for_both(&order, "holder").await?;
    let children = admin.children(&path).await?;
    let [claim] = children.as_slice() else { panic!("one claim in {children:?}") };
    admin.delete(&format!("{path}/{claim}")).await?;
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert_eq!(ended.stderr.matches("wok: lost").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("deleted by another client"), "{}", ended.stderr);
    for pid in stubborn::pids(&order, "holder")? {
        assert!(!is_there(pid), "{pid} lives");
    }
    Ok(())
}

#[tokio::test]
async fn a_session_expired_from_elsewhere_ends_the_command_and_is_told_once() -> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let holder = stubborn_lock(proxy.address(), &path, &order, "holder")?.start()?;
    stubborn::wait_for_both(&order, "holder").await?;
    let sessions = proxy.sessions();
    let [session] = sessions.as_slice() else { panic!("one session in {sessions:?}") };
    admin::expire(server.address(), session).await?;
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert_eq!(ended.stderr.matches("wok: lost").count(), 1, "{}", ended.stderr);
    for pid in stubborn::pids(&order, "holder")? {
        assert!(!is_there(pid), "{pid} lives");
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_that_falls_silent_ends_the_command_before_the_next_in_line_starts()
-> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let scene = scene(proxy.address(), server).await?;
    proxy.stall(Direction::Both);
    scene.handed_over_cleanly().await?;
    let ended = scene.holder.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    // The loss has been told, and says it all.
    assert!(!ended.stderr.contains("goes with the session"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn what_happens_while_the_command_runs_is_told() -> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let path = zookeeper::unique_path();
    let mut holder = Program::wok()?
        .args(["lock", "--connect", proxy.address(), "--session-timeout", "10s", &path])
        .args(["--", "sh", "-c", "echo ready; read line"])
        .start()?;
    holder.wait_for_text("ready").await?;
    proxy.stall(Direction::Both);
    holder.wait_for_text("in doubt; what is held stands until its loss is told").await?;
    proxy.release();
    holder.wait_for_text("in contact with ZooKeeper again").await?;
    holder.write("go\n")?;
    assert_eq!(holder.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_waiter_gives_up_after_its_wait_and_leaves_nothing_in_line() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let holder = lock(server.address(), &path, "read line")?.start()?;
    holder.wait_for_text("holding").await?;
    let waiter = Program::wok()?
        .args(["lock", "--connect", server.address(), "--wait", "300ms", &path, "--", "true"])
        .run()
        .await?;
    assert_eq!(waiter.code(), Some(75), "{waiter:?}");
    assert_eq!(admin.children(&path).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_waiter_asked_to_end_leaves_the_line_at_once() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let holder = lock(server.address(), &path, "read line")?.start()?;
    holder.wait_for_text("holding").await?;
    let waiter = lock(server.address(), &path, "true")?.start()?;
    waiter.wait_for_text("standing in line").await?;
    waiter.signal(Signal::TERM)?;
    let ended = waiter.ended().await?;
    assert_eq!(ended.code(), Some(128 + 15), "{ended:?}");
    assert_eq!(admin.children(&path).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn term_stops_the_command_in_order_and_releases_before_wok_ends() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let cleanup = order.append("cleaned up");
    let script = format!(
        "trap '{}; exit 3' TERM; echo ready; while :; do sleep 0.05; done",
        cleanup.replace('\'', "'\\''")
    );
    let holder = lock(server.address(), &path, &script)?.start()?;
    holder.wait_for_text("ready").await?;
    holder.signal(Signal::TERM)?;
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(3), "{ended:?}");
    assert_eq!(order.labels()?, ["cleaned up"]);
    assert_eq!(admin.children(&path).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn other_signals_are_passed_on_to_the_command() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let script =
        "trap 'echo hup' HUP; trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done";
    let holder = lock(server.address(), &path, script)?.start()?;
    holder.wait_for_text("ready").await?;
    holder.signal(Signal::HUP)?;
    holder.wait_for_text("hup").await?;
    holder.signal(Signal::USR1)?;
    assert_eq!(holder.ended().await?.code(), Some(9));
    Ok(())
}

#[tokio::test]
async fn signals_that_were_ignored_at_the_start_stay_ignored() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let script = "echo ready; while :; do sleep 0.05; done";
    let background = ["-c", "trap '' HUP INT QUIT; exec \"$@\"", "sh"];
    let holder = lock(server.address(), &path, script)?.by_way_of("sh", background).start()?;
    holder.wait_for_text("ready").await?;
    let waiter = lock(server.address(), &path, "true")?.by_way_of("sh", background).start()?;
    waiter.wait_for_text("standing in line").await?;
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT] {
        holder.signal(signal)?;
        waiter.signal(signal)?;
    }
    holder.signal(Signal::TERM)?;
    // By `TERM`, and by nothing before that.
    assert_eq!(holder.ended().await?.code(), Some(128 + 15));
    assert_eq!(waiter.ended().await?.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_command_that_cannot_be_started_has_a_shells_exit_code() -> Result<()> {
    let server = zookeeper::shared().await;
    for (command, code) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
        let path = zookeeper::unique_path();
        let ended = Program::wok()?
            .args(["lock", "--connect", server.address(), &path, "--", command])
            .run()
            .await?;
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        assert!(ended.stderr.contains(command), "{}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_guardian_that_cannot_start_is_no_command_that_was_killed() -> Result<()> {
    let server = zookeeper::shared().await;
    // The kernel keeps a timer's signal among the pending ones, so there can be no timer.
    let ended = Program::new("prlimit")
        .arg("--sigpending=0")
        .arg(wok_binary()?)
        .args(["lock", "--connect", server.address(), &zookeeper::unique_path()])
        .args(["--", "echo", "it ran"])
        .run()
        .await?;
    assert_eq!((ended.code(), ended.stdout.as_str()), (Some(126), ""), "{ended:?}");
    assert!(ended.stderr.contains("ulimit -i"), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot run echo"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn an_elected_process_runs_its_command_and_the_next_is_elected_when_it_dies() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let elect = |name: &str| -> Result<Running> {
        let script =
            format!("{}; exec sleep 60", order.append(&format!("{name} leads $WOK_FENCE")));
        Program::wok()?
            .args(["elect", "--connect", server.address(), "--session-timeout", "4s", &path])
            .args(["--", "sh", "-c", &script])
            .start()
    };
    let leads = async |name: &str| -> Result<i64> {
        wok_tests::patience::eventually("to lead", async || {
            let labels = order.labels()?;
            let prefix = format!("{name} leads ");
            Ok(labels.iter().find_map(|label| label.strip_prefix(&prefix)?.parse().ok()))
        })
        .await
    };
    let first = elect("first")?;
    // Not what wok says of itself: its command may still be on its way to its first line.
    let earlier = leads("first").await?;
    let second = elect("second")?;
    second.wait_for_text("standing in line").await?;
    first.signal(Signal::KILL)?;
    assert!(leads("second").await? > earlier);
    Ok(())
}

#[tokio::test]
async fn a_claim_of_several_znodes_is_held_while_one_of_them_is() -> Result<()> {
    let server = zookeeper::shared().await;
    let (_directory, module) = wok_tests::guests::guest_file("hostile")?;
    let ended = Program::wok()?
        .args(["hold".as_ref(), module.as_os_str()])
        .args(["--mount", &zookeeper::unique_path(), "--connect", server.address()])
        .args(["hold-the-first-of-two", "--", "sh", "-c", "echo $WOK_CLAIM_PATH"])
        .run()
        .await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("/_c_"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_claim_of_several_znodes_is_told_once_and_lost_with_any_of_them() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (_directory, module) = wok_tests::guests::guest_file("hostile")?;
    let mount = zookeeper::unique_path();
    let running = Program::wok()?
        .args(["hold".as_ref(), module.as_os_str()])
        .args(["--mount", &mount, "--connect", server.address()])
        .args(["hold-both", "--", "sh", "-c", "echo runs with $WOK_CLAIM_PATH; read line"])
        .start()?;
    let line = running.wait_for_text("runs with").await?.text;
    let mut names = admin.children(&mount).await?;
    names.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    let [first, second] = names.as_slice() else { panic!("{names:?}") };
    assert!(line.ends_with(first.as_str()), "{line} is not about {first}");
    admin.delete(&format!("{mount}/{second}")).await?;
    let ended = running.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert_eq!(ended.stderr.matches("wok: holding ").count(), 1, "{ended:?}");
    assert!(admin.children(&mount).await?.is_empty(), "the other one goes, too");
    Ok(())
}

#[tokio::test]
async fn a_general_hold_speaks_kazoos_format_when_configured() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let ended = Program::wok()?
        .args(["hold", "lock", "--mount", &path, "--connect", server.address()])
        .args(["--config", "format=kazoo", "acquire", "--", "sh", "-c", "echo $WOK_CLAIM_PATH"])
        .run()
        .await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let name = ended.stdout.trim().rsplit('/').next().context("a name")?.to_owned();
    let (uuid, counter) = name.split_once("__lock__").context("kazoo's infix")?;
    assert!(uuid.len() == 32 && uuid.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
    assert_eq!(counter.len(), 10, "{name}");
    Ok(())
}

#[tokio::test]
async fn json_output_is_one_object_per_line() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let ended = Program::wok()?
        .args(["lock", "--output", "json", "--connect", server.address(), &path, "--", "true"])
        .run()
        .await?;
    let events: Vec<serde_json::Value> =
        ended.stderr.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let names: Vec<_> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(names, ["waiting", "held"], "{}", ended.stderr);
    assert!(events[1]["fence"].as_i64().is_some_and(|fence| fence > 0));
    assert!(events[1]["at"].as_str().is_some_and(|at| at.ends_with('Z')));
    Ok(())
}
