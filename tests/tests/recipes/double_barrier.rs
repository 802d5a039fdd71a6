//! The stock double barrier on a real server: workers that are processes, and members that are
//! applications of one host, each on a session of its own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code, where a panic is a failed test, and what is printed is a figure"
)]

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use wok::base::{self, Base, BaseOptions, Sessions};
use wok::guest::{Limits, Module, Mount};
use wok::modules::ModuleSource;
use wok::participant::{Answer, Call, Follower, Join, Participant};
use wok::session::{ConnectOptions, SeatLimits};
use wok_tests::admin::Admin;
use wok_tests::guide::play_example;
use wok_tests::patience::{eventually, within};
use wok_tests::process::{OrderFile, Program, Running, Signal};
use wok_tests::proxy::{Match, Proxy};
use wok_tests::zookeeper;

/// As many workers as make a round of [`worker`]s.
const WORKERS: usize = 8;

/// A worker that writes down that it has started, goes on when all others of its round have, and writes
/// down that it has finished.
fn worker(address: &str, mount: &str, order: &OrderFile, round: &str) -> Result<Program> {
    let (start, end) =
        (order.append(&format!("{round} start")), order.append(&format!("{round} end")));
    let started = format!("$(grep -c '{round} start' '{}')", order.path().display());
    let script = format!("{start}; until [ {started} -ge {WORKERS} ]; do sleep 0.05; done; {end}");
    Ok(Program::wok()?
        .args(["hold", "double-barrier", "--mount", mount, "--connect", address])
        .args(["--session-timeout", "4s", "--config", &format!("size={WORKERS}"), "enter"])
        .args(["--", "sh", "-c", &script]))
}

/// Waits until a generation has so many members.
async fn wait_for_members(admin: &Admin, generation: &str, count: usize) -> Result<()> {
    eventually("the members", async || {
        if admin.stat(generation).await?.is_none() {
            return Ok(None);
        }
        Ok((admin.children(generation).await?.len() == count).then_some(()))
    })
    .await
}

#[tokio::test]
async fn eight_workers_start_together_when_all_are_there_and_one_that_was_killed_is_not()
-> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let (order, mount) = (OrderFile::new()?, zookeeper::unique_path());
    let first = format!("{mount}/gen-1");
    let start = |round: &str| worker(server.address(), &mount, &order, round)?.start();

    let mut workers: Vec<Running> = Vec::new();
    for _ in 1..WORKERS {
        workers.push(start("first")?);
    }
    wait_for_members(&admin, &first, WORKERS - 1).await?;
    workers.pop().context("a worker")?.signal(Signal::KILL)?;
    wait_for_members(&admin, &first, WORKERS - 2).await?;
    workers.push(start("first")?);
    wait_for_members(&admin, &first, WORKERS - 1).await?;
    assert_eq!(order.labels()?, Vec::<String>::new(), "somebody started without the others");
    workers.push(start("first")?);
    for worker in &workers {
        let ended = worker.ended().await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
    }
    let labels = order.labels()?;
    let firsts = labels.iter().take(WORKERS).filter(|label| *label == "first start").count();
    assert_eq!((firsts, labels.len()), (WORKERS, 2 * WORKERS), "{labels:?}");

    // It can be used again, and the round that is over is gone then.
    let again: Vec<Running> = (0..WORKERS).map(|_| start("second")).collect::<Result<_>>()?;
    for worker in &again {
        let ended = worker.ended().await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
    }
    assert_eq!(order.labels()?.len(), 4 * WORKERS);
    let mut left = admin.children(&mount).await?;
    left.sort();
    assert_eq!(left, ["gen-2", "newest"]);
    Ok(())
}

#[tokio::test]
async fn a_worker_with_another_size_is_refused_as_long_as_others_wait() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let mount = zookeeper::unique_path();
    let enter = |size: &str| -> Result<Program> {
        Ok(Program::wok()?
            .args(["hold", "double-barrier", "--mount", &mount, "--connect", server.address()])
            .args(["--config", &format!("size={size}"), "enter", "--", "true"]))
    };
    let waiting = enter("3")?.start()?;
    wait_for_members(&admin, &format!("{mount}/gen-1"), 1).await?;
    let refused = enter("1")?.run().await?;
    assert_eq!(refused.code(), Some(70), "{refused:?}");
    for told in ["gen-1 is for 3 members", "`size` is 1 here"] {
        assert!(refused.stderr.contains(told), "{told:?} is not in {}", refused.stderr);
    }
    waiting.signal(Signal::TERM)?;
    assert_ne!(waiting.ended().await?.code(), Some(0));
    wait_for_members(&admin, &format!("{mount}/gen-1"), 0).await?;
    let alone = enter("1")?.run().await?;
    assert_eq!(alone.code(), Some(0), "nobody waits for three any more: {alone:?}");

    for size in ["0", "127"] {
        let ended = enter(size)?.run().await?;
        assert_ne!(ended.code(), Some(0), "{ended:?}");
        assert!(ended.stderr.contains("is not from 1 to 126"), "{}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_generation_with_foreign_data_is_named_to_those_who_wait_there() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let mount = zookeeper::unique_path();
    let waiting = Program::wok()?
        .args(["hold", "double-barrier", "--mount", &mount, "--connect", server.address()])
        .args(["--config", "size=3", "enter", "--", "true"])
        .start()?;
    let generation = format!("{mount}/gen-1");
    wait_for_members(&admin, &generation, 1).await?;
    admin.set(&generation, b"foreign").await?;
    let ended = waiting.ended().await?;
    assert_eq!(ended.code(), Some(70), "{ended:?}");
    let told = "the data of /gen-1 are none of a double barrier's: delete it";
    assert!(ended.stderr.contains(told), "{ended:?}");
    Ok(())
}

/// Members on one host, each with a session of its own through one proxy.
struct Members {
    proxy: Proxy,
    mount: String,
    module: Module,
    all: Vec<(Arc<Participant>, Follower)>,
    /// Its sessions end with it.
    _host: Base,
}

impl Members {
    async fn join(count: usize, size: usize) -> Result<Self> {
        let server = zookeeper::shared().await;
        let proxy = Proxy::start(server.address())?;
        let mount = zookeeper::unique_path();
        let host = Base::new(BaseOptions {
            participants: u32::try_from(count)?,
            memory: Limits::default().memory,
            cache: base::user_cache(),
            connect: ConnectOptions::new(proxy.address(), Duration::from_secs(30)),
            sessions: Sessions::at_most(1),
        })?;
        let module = host.load(&ModuleSource::Stock("double-barrier".to_owned()), None)?;
        let mut all = Vec::new();
        for _ in 0..count {
            let session = host.open_session().await?;
            let join = Join {
                recipe: module.name().to_owned(),
                module: module.clone(),
                mount: Mount::new(&mount)?,
                config: module.configuration(Some(&json!({ "size": size })))?,
                limits: Limits::default(),
                seat: SeatLimits::default(),
                owner: String::new(),
                witness: None,
            };
            let (participant, follower) = Participant::join(host.tasks(), &session, join)?;
            all.push((Arc::new(participant), follower));
        }
        Ok(Members { proxy, mount, module, all, _host: host })
    }

    fn call(
        &self,
        member: usize,
        operation: &str,
    ) -> Result<impl Future<Output = Result<Answer>> + use<>> {
        let arguments = self.module.arguments(operation, &Value::Null)?;
        let participant = Arc::clone(&self.all[member].0);
        let what = format!("the {operation} of member {member}");
        Ok(async move {
            let call = Call { arguments, deadline: None, withdrawn: None };
            let answer = within(&what, participant.call(call)).await??;
            ensure!(answer.value.is_ok(), "{what}: {:?}", answer.value);
            Ok(answer)
        })
    }

    async fn all_call(&self, operation: &str) -> Result<Vec<Answer>> {
        let calls: Vec<_> =
            (0..self.all.len()).map(|it| self.call(it, operation)).collect::<Result<_>>()?;
        try_join_all(calls).await
    }
}

#[tokio::test]
async fn nobody_leaves_before_all_have_finished_and_one_that_ends_keeps_nobody() -> Result<()> {
    let members = Members::join(4, 4).await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    for round in 1..=2 {
        let entered = members.all_call("enter").await?;
        assert!(entered.iter().all(|answer| answer.claim.is_some()), "{entered:?}");
        let generation = format!("{}/gen-{round}", members.mount);
        let (finished, last) = (0..3, 3);
        let mut leaving: FuturesUnordered<_> =
            finished.map(|it| members.call(it, "leave")).collect::<Result<_>>()?;
        // Their znodes go, but for that of the lowest and that of the one who has not finished.
        let outside = eventually("those who have finished to be outside", async || {
            Ok((admin.children(&generation).await?.len() <= 2).then_some(()))
        });
        tokio::select! {
            outside = outside => outside?,
            left = leaving.next() => panic!("left before all had finished: {left:?}"),
        }
        if round == 1 {
            members.call(last, "leave")?.await?;
        } else {
            members.all[last].0.leave();
        }
        while let Some(left) = within("those who wait to leave", leaving.next()).await? {
            left?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_members_round_costs_a_few_requests_however_many_make_it() -> Result<()> {
    const MEMBERS: usize = 8;
    const ROUNDS: usize = 10;
    let members = Members::join(MEMBERS, MEMBERS).await?;
    let round = async || -> Result<()> {
        members.all_call("enter").await?;
        members.all_call("leave").await?;
        Ok(())
    };
    // The first creates the directory.
    round().await?;
    members.proxy.clear_log();
    for _ in 0..ROUNDS {
        round().await?;
    }
    let requests = members.proxy.requests(&Match::any().under(&members.mount));
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    for request in &requests {
        *kinds.entry(format!("{:?}", request.opcode)).or_default() += 1;
    }
    let of_one = requests.len() as f64 / (MEMBERS * ROUNDS) as f64;
    println!("figure: requests of one member's round: {of_one:.2}, of {MEMBERS}: {kinds:?}");
    // Nine, as the recipe's page counts them, and what those who come or go at one time tell each other.
    assert!((8.0..10.0).contains(&of_one), "{of_one} requests of one member's round: {kinds:?}");
    Ok(())
}

#[tokio::test]
async fn the_load_test_does_what_its_page_says() -> Result<()> {
    play_example("load-test", &["worker", "fire"]).await
}
