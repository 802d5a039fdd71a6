//! What is waited for, and for how long: a daemon that is stopped, or has no session that can be relied on.

use anyhow::Result;
use serde_json::Value;
use wok_tests::patience::eventually;
use wok_tests::process::{Program, Signal};
use wok_tests::zookeeper::{self, Options, Server};

use super::Daemon;

#[tokio::test]
async fn a_daemon_without_a_session_is_waited_for_and_that_is_said_once() -> Result<()> {
    let mut server = Server::start(Options::default()).await?;
    server.kill();
    let daemon = Daemon::at(server.address()).await?;
    for (patience, code, told) in [
        (&["--connect-timeout", "0s"][..], 69, "no session with ZooKeeper"),
        (&["--connect-timeout", "300ms"], 69, "tried for 300ms: wait longer"),
        (&["--connect-timeout", "1h", "--wait", "300ms"], 75, "no answer within --wait"),
    ] {
        let ended = daemon.wok(["call", "orders", "contenders"])?.args(patience).run().await?;
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
    }
    let patient = ["--connect-timeout", "1h"];
    let call = daemon.wok(["call", "orders", "contenders"])?.args(patient).start()?;
    let hold = daemon.wok(["hold", "orders", "acquire"])?.args(patient);
    let hold = hold.args(["--", "echo", "held at last"]).start()?;
    for waiting in [&call, &hold] {
        waiting.wait_for_text("no session with ZooKeeper; trying for 1h").await?;
    }
    let withdrawn = daemon.wok(["call", "orders", "contenders"])?.args(patient).start()?;
    withdrawn.wait_for_text("trying for").await?;
    withdrawn.signal(Signal::TERM)?;
    assert_eq!(withdrawn.ended().await?.code(), Some(128 + 15));
    server.restart().await?;
    for (waiting, said) in [(call, "]\n"), (hold, "held at last\n")] {
        let ended = waiting.ended().await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        assert!(ended.stdout.ends_with(said), "{ended:?}");
        assert_eq!(ended.stderr.matches("trying for").count(), 1, "{}", ended.stderr);
    }
    Ok(())
}

/// What begins while the session is in doubt is not lost with the session: nothing of it was sent.
#[tokio::test]
async fn a_call_that_begins_while_the_session_is_in_doubt_outlives_the_session() -> Result<()> {
    let mut server = Server::start(Options::default()).await?;
    let daemon = Daemon::at(server.address()).await?;
    daemon.until_ready().await?;
    // With a claim on it the session is given up at its deadline.
    let holder = daemon.holding("exec sleep 600").await?;
    let client = daemon.client();
    server.kill();
    eventually("a session that is not certain", async || {
        let host: Value = client.get("/v1/host").await?;
        Ok((host["sessions"][0]["state"] != "connected").then_some(()))
    })
    .await?;
    // What is refused meanwhile says that the log says why.
    daemon.running.wait_for_text("session in doubt").await?;
    let patient = ["--connect-timeout", "1h"];
    let call = daemon.wok(["call", "orders", "contenders"])?.args(patient).start()?;
    call.wait_for_text("trying for 1h").await?;
    assert_eq!(holder.ended().await?.code(), Some(76));
    server.restart().await?;
    let ended = call.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn who_waits_for_a_daemon_that_is_stopped_is_told_so() -> Result<()> {
    let daemon = Daemon::start().await?;
    let holder = daemon.hold_beside("echo held; exec sleep 600").await?;
    holder.wait_for_text("held").await?;
    let waiter = daemon.wok(["call", "orders", "acquire"])?.start()?;
    waiter.wait_for_text("standing in line").await?;
    daemon.running.pause().await?;
    // Who asks only now is not kept waiting: the operation may never be heard of.
    let asked = daemon.wok(["ps"])?.run().await?;
    assert_eq!(asked.code(), Some(69), "{asked:?}");
    for told in [&waiter.wait_for_text("has not answered for 10s").await?.text, &asked.stderr] {
        assert!(told.contains(&daemon.socket.display().to_string()), "{told}");
    }
    // While the daemon is stopped: it finds its session lost when it goes on, and then the waiter ends by itself.
    for started in [waiter, holder] {
        started.signal(Signal::TERM)?;
        started.ended().await?;
    }
    daemon.running.signal(Signal::CONT)?;
    Ok(())
}

#[tokio::test]
async fn a_wait_is_over_in_time_though_the_daemon_is_stopped() -> Result<()> {
    let daemon = Daemon::start().await?;
    let connect = ["--connect", zookeeper::shared().await.address()];
    let holder = Program::wok()?.arg("lock").args(connect).args([&daemon.path, "--", "cat"]);
    let holder = holder.start()?;
    holder.wait_for_text("holding").await?;
    let commands = [
        daemon.wok(["hold", "--wait", "5s"])?.args(["orders", "acquire", "--", "true"]),
        daemon.wok(["call", "--wait", "5s"])?.args(["orders", "acquire"]),
    ];
    let mut waiting = Vec::new();
    for command in commands {
        let waiter = command.start()?;
        waiter.wait_for_text("standing in line").await?;
        waiting.push(waiter);
    }
    daemon.running.pause().await?;
    for waiter in waiting {
        let ended = waiter.ended().await?;
        assert_eq!(ended.code(), Some(75), "{ended:?}");
    }
    daemon.running.signal(Signal::CONT)?;
    holder.signal(Signal::TERM)?;
    holder.ended().await?;
    Ok(())
}
