//! The library in this process, on a real server: what is held, lost, given back and left behind.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod recipes;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::FutureExt;
use serde_json::json;
use wok::config::Limits;
use wok::host::{Error, HeldEnd, OpenError};
use wok::participant::{Loss, Notice};
use wok::{Call, Held, Host, Recipe};
use wok_tests::admin::{self, Admin};
use wok_tests::guide::play_example_program;
use wok_tests::patience::{eventually, within};
use wok_tests::process::{Line, Program, Signal};
use wok_tests::proxy::{Direction, Proxy};
use wok_tests::zookeeper;

/// Of sessions that are to be lost soon.
const SHORT: Duration = Duration::from_secs(4);

/// A lock and a counter.
async fn open(address: &str, path: &str) -> Result<Host> {
    let builder = Host::builder(address)
        .recipe("orders", Recipe::new("lock", format!("{path}/lock")))
        .recipe("visits", Recipe::new("counter", format!("{path}/counter")));
    Ok(builder.participants(8).session_timeout(SHORT).open().await?)
}

async fn acquire(host: &Host) -> Result<Held> {
    Ok(within("the lock", host.acquire("orders", "acquire")).await??)
}

fn impatient() -> Call {
    Call::new("acquire").timeout(Duration::from_millis(300))
}

#[tokio::test]
async fn a_lock_goes_from_one_host_to_the_next_with_a_higher_fence() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let admin = Admin::connect(server.address()).await?;
    let (one, two) = (open(server.address(), &path).await?, open(server.address(), &path).await?);
    let held = acquire(&one).await?;
    assert!(held.is_held() && held.remaining() > Duration::ZERO);
    let lock = format!("{path}/lock");
    assert!(held.path().starts_with(&format!("{lock}/")), "{}", held.path());
    let znode = admin.stat(held.path()).await?.context("the claim's znode")?;
    let fence = u64::try_from(znode.czxid)?;
    assert_eq!(held.fence(), fence);

    let waiting = two.acquire("orders", "acquire");
    let handing_over = async {
        admin.wait_children(&lock, "two in line", |names| names.len() == 2).await?;
        held.release().await;
        anyhow::Ok(())
    };
    let (next, released) = tokio::join!(within("the lock", waiting), handing_over);
    released?;
    let next = next??;
    assert!(next.fence() > fence);
    // Dropping it is enough.
    drop(next);
    admin.wait_children(&lock, "nobody in line", |names| names.is_empty()).await?;
    one.shut_down().await;
    two.shut_down().await;
    Ok(())
}

#[tokio::test]
async fn who_deletes_the_znode_takes_the_claim_away() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let admin = Admin::connect(server.address()).await?;
    let host = open(server.address(), &path).await?;
    let held = acquire(&host).await?;
    admin.delete(held.path()).await?;
    let end = within("the loss", held.lost()).await?;
    let HeldEnd::Lost(Loss::Znode { path: lost, .. }) = &end else { panic!("{end}") };
    assert_eq!(lost, held.path());
    assert!(!held.is_held() && held.remaining() == Duration::ZERO);
    // It is told as often as it is asked for.
    assert!(matches!(within("the loss", held.lost()).await?, HeldEnd::Lost(Loss::Znode { .. })));
    // The session is still there.
    assert!(acquire(&host).await?.is_held());
    Ok(())
}

#[tokio::test]
async fn a_loss_is_told_beside_somebody_who_asks_and_does_not_listen() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let admin = Admin::connect(server.address()).await?;
    let host = open(server.address(), &path).await?;
    let held = acquire(&host).await?;
    let mut first = Box::pin(held.lost());
    assert!((&mut first).now_or_never().is_none());
    admin.delete(held.path()).await?;
    let end = within("the loss", held.lost()).await?;
    assert!(matches!(end, HeldEnd::Lost(Loss::Znode { .. })), "{end}");
    assert!(matches!(within("the loss", first).await?, HeldEnd::Lost(Loss::Znode { .. })));
    Ok(())
}

/// Nobody listens for the loss here: who looks from time to time is told the same.
#[tokio::test]
async fn who_has_lost_one_of_several_znodes_holds_none_of_them() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let admin = Admin::connect(server.address()).await?;
    let both = Recipe::new("multi-lock", &path);
    let host = Host::builder(server.address()).participants(2).recipe("both", both).open().await?;
    let call = Call::new("acquire").arguments(json!({ "names": ["a", "b"] }));
    let held = within("both locks", host.acquire("both", call)).await??;
    let znodes = admin.tree(&path).await?;
    let other = znodes.iter().find(|it| it.stat.ephemeral_owner != 0 && it.path != held.path());
    let (own, other) = (held.path().to_owned(), other.context("the other lock's znode")?);
    assert!(held.is_held());
    admin.delete(&other.path).await?;
    let is_lost = async || Ok((!held.is_held()).then_some(()));
    eventually("the loss", is_lost).await?;
    assert_eq!(held.remaining(), Duration::ZERO);
    assert_eq!(held.participant().held(), None);
    assert!(admin.stat(&own).await?.is_some(), "it stands as long as somebody depends on it");
    let end = within("the loss", held.lost()).await?;
    assert!(matches!(end, HeldEnd::Lost(Loss::Znode { .. })), "{end}");
    drop(held);
    admin.wait_gone(&own).await
}

/// How the first holder is parted from ZooKeeper.
#[derive(Debug, Clone, Copy)]
enum Parted {
    /// Nothing passes any more.
    Stalled,
    /// Its session is closed by another client.
    Expired,
}

#[tokio::test]
async fn a_lost_session_is_told_before_the_next_holds_and_another_one_follows() -> Result<()> {
    for parted in [Parted::Stalled, Parted::Expired] {
        let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
        let (admin, lock) = (Admin::connect(server.address()).await?, format!("{path}/lock"));
        let proxy = Proxy::start(server.address())?;
        let (one, two) =
            (open(proxy.address(), &path).await?, open(server.address(), &path).await?);
        let held = acquire(&one).await?;
        let mut next = Box::pin(two.acquire("orders", "acquire"));
        let waits = tokio::select! {
            next = &mut next => panic!("{parted:?}: two hold: {next:?}"),
            waits = admin.wait_children(&lock, "two in line", |names| names.len() == 2) => waits,
        };
        waits?;
        match parted {
            Parted::Stalled => proxy.stall(Direction::Both),
            Parted::Expired => {
                let session = proxy.sessions().pop().context("a session")?;
                admin::expire(server.address(), &session).await?;
            }
        }
        let end = tokio::select! {
            biased;
            end = within("the loss", held.lost()) => end?,
            // A session that was closed by somebody else is over before anybody can be told.
            next = &mut next, if matches!(parted, Parted::Stalled) => {
                panic!("{parted:?}: two hold: {next:?}")
            }
        };
        let is_told = match &end {
            HeldEnd::Lost(Loss::Session(_)) => true,
            // A server that ends a session tells of its znodes first, and then hangs up.
            HeldEnd::Lost(Loss::Znode { .. }) => matches!(parted, Parted::Expired),
            _ => false,
        };
        assert!(is_told, "{parted:?}: {end}");
        assert!(!held.is_held());
        proxy.heal();
        proxy.release();
        let next = within("the lock", next).await??;
        drop(held);
        // The same host goes on, on another session.
        let again = one.acquire("orders", "acquire");
        next.release().await;
        let again = within("the lock once more", again).await??;
        assert!(again.is_held());
        again.release().await;
        one.shut_down().await;
        two.shut_down().await;
    }
    Ok(())
}

#[tokio::test]
async fn who_gives_up_leaves_nothing() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let (admin, lock) = (Admin::connect(server.address()).await?, format!("{path}/lock"));
    let (one, two) = (open(server.address(), &path).await?, open(server.address(), &path).await?);
    let held = acquire(&one).await?;
    // By its timeout: nothing is left when it says so.
    let late = within("the timeout", two.acquire("orders", impatient())).await?;
    assert!(matches!(late, Err(Error::TimedOut)), "{late:?}");
    assert_eq!(admin.children(&lock).await?.len(), 1);
    // By dropping the future.
    tokio::select! {
        next = two.acquire("orders", "acquire") => panic!("two hold: {next:?}"),
        waits = admin.wait_children(&lock, "two in line", |names| names.len() == 2) => drop(waits?),
    }
    admin.wait_children(&lock, "one in line", |names| names.len() == 1).await?;
    assert!(held.is_held());
    Ok(())
}

#[tokio::test]
async fn a_host_that_is_shut_down_leaves_nothing_and_waits_for_who_holds() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let (admin, lock) = (Admin::connect(server.address()).await?, format!("{path}/lock"));
    let host = open(server.address(), &path).await?;
    let held = acquire(&host).await?;
    let mut shutting_down = Box::pin(host.shut_down());
    let end = tokio::select! {
        () = &mut shutting_down => panic!("it does not wait for who holds"),
        end = within("the end", held.lost()) => end?,
    };
    assert!(matches!(end, HeldEnd::Released), "{end}");
    assert_eq!(admin.children(&lock).await?.len(), 1, "until it is dropped nobody else holds");
    drop(held);
    within("the host's end", shutting_down).await?;
    assert_eq!(admin.children(&lock).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_host_that_is_shut_down_does_not_wait_for_ever_for_who_holds() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let (admin, lock) = (Admin::connect(server.address()).await?, format!("{path}/lock"));
    let host = open(server.address(), &path).await?;
    let held = acquire(&host).await?;
    within("the host's end", host.shut_down()).await?;
    assert_eq!(admin.children(&lock).await?, Vec::<String>::new());
    assert!(!held.is_held());
    let late = within("the end", host.acquire("orders", "acquire")).await?;
    assert!(matches!(late, Err(Error::Ending)), "{late:?}");
    Ok(())
}

/// The host has given its session up, and the server has not: nobody may have the lock before who holds
/// it has stopped, or had the time for that.
#[tokio::test]
async fn a_session_that_the_host_gives_up_is_not_closed_under_who_holds() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let admin = Admin::connect(server.address()).await?;
    let proxy = Proxy::start(server.address())?;
    let host = open(proxy.address(), &path).await?;
    let held = acquire(&host).await?;
    // The server hears of this session all the time, and will not expire it.
    proxy.stall(Direction::Replies);
    let end = within("the loss", held.lost()).await?;
    assert!(matches!(end, HeldEnd::Lost(Loss::Session(_))), "{end}");
    proxy.heal();
    for _ in 0..20 {
        assert!(admin.stat(held.path()).await?.is_some(), "somebody else may hold it already");
    }
    let own = held.path().to_owned();
    drop(held);
    admin.wait_gone(&own).await
}

#[tokio::test]
async fn who_is_asked_to_give_way_at_once_is_answered() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let admin = Admin::connect(server.address()).await?;
    let open = async || -> Result<Host> {
        let lock = Recipe::new("lock", &*path).config(json!({ "revocable": true }));
        Ok(Host::builder(server.address()).recipe("orders", lock).participants(8).open().await?)
    };
    let (one, two) = (open().await?, open().await?);
    let held = acquire(&one).await?;
    let first = held.path().rsplit('/').next().context("a name")?.to_owned();
    let mut acquiring = Box::pin(two.acquire("orders", "acquire"));
    let names = tokio::select! {
        early = &mut acquiring => panic!("two hold: {early:?}"),
        names = admin.wait_children(&path, "two in line", |names| names.len() == 2) => names?,
    };
    let second = names.iter().find(|name| **name != first).context("the one in line")?;
    let revoke = Call::new("revoke").arguments(json!({ "path": format!("/{second}") }));
    assert_eq!(within("the request", one.call("orders", revoke)).await??, "asked");
    // It holds and gives way again before its caller looks.
    held.release().await;
    admin.wait_children(&path, "nobody in line", |names| names.is_empty()).await?;
    let answer = within("an answer", acquiring).await?;
    assert!(matches!(answer, Err(Error::Left)), "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn what_an_operation_answers_is_at_hand_while_it_is_held() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let host = Host::builder(server.address()).recipe("work", Recipe::new("queue", path));
    let host = host.session_timeout(SHORT).open().await?;
    let put = Call::new("put").arguments(json!({ "data": "a picture" }));
    within("the put", host.call("work", put)).await??;
    let held = within("the item", host.acquire("work", "take")).await??;
    assert_eq!(held.answer()["data"], "a picture");
    within("the end", held.finish("ack")).await??;
    let length = within("the length", host.call("work", "length")).await??;
    assert_eq!(length["items"], 0);
    Ok(())
}

#[tokio::test]
async fn what_its_participant_releases_is_handed_on_when_the_holder_lets_go() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let (admin, lock) = (Admin::connect(server.address()).await?, format!("{path}/lock"));
    let host = open(server.address(), &path).await?;
    let held = acquire(&host).await?;
    let mut releasing = Box::pin(held.participant().call("release"));
    let end = tokio::select! {
        released = &mut releasing => panic!("it does not wait for who holds: {released:?}"),
        end = within("the end", held.lost()) => end?,
    };
    assert!(matches!(end, HeldEnd::Released), "{end}");
    assert_eq!(admin.children(&lock).await?.len(), 1, "until it is dropped nobody else holds");
    drop(releasing);
    drop(held);
    admin.wait_children(&lock, "nobody in line", |names| names.is_empty()).await?;
    Ok(())
}

#[tokio::test]
async fn an_operation_that_ends_what_is_held_waits_for_nobody() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let (admin, lock) = (Admin::connect(server.address()).await?, format!("{path}/lock"));
    let host = open(server.address(), &path).await?;
    let held = acquire(&host).await?;
    within("the release", held.finish("release")).await??;
    assert_eq!(admin.children(&lock).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_call_that_waits_for_a_session_because_those_that_are_open_are_full_says_so() -> Result<()>
{
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let proxy = Proxy::start(server.address())?;
    // A session has room for two of them.
    let limits = Limits { watched_paths: 32 << 10, ..Limits::default() };
    let builder = Host::builder(proxy.address())
        .recipe("orders", Recipe::new("lock", format!("{path}/lock")).limits(limits));
    let host = builder.participants(8).session_timeout(SHORT).open().await?;
    let seated = [host.join("orders").await?, host.join("orders").await?];
    proxy.stall(Direction::Both);
    let outcome = within("an answer", host.acquire("orders", impatient())).await?;
    assert!(matches!(outcome, Err(Error::NoRoom { open: 1, .. })), "{outcome:?}");
    proxy.heal();
    assert!(acquire(&host).await?.is_held());
    drop(seated);
    Ok(())
}

/// Who cannot reach ZooKeeper is told so, and not that the line is long.
#[tokio::test]
async fn a_call_without_a_session_says_so() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let proxy = Proxy::start(server.address())?;
    let host = open(proxy.address(), &path).await?;
    let held = acquire(&host).await?;
    proxy.stall(Direction::Both);
    proxy.refuse();
    assert!(matches!(within("the loss", held.lost()).await?, HeldEnd::Lost(Loss::Session(_))));
    let outcome = within("an answer", host.acquire("orders", impatient())).await?;
    assert!(matches!(outcome, Err(Error::NoSession { .. })), "{outcome:?}");
    proxy.heal();
    assert!(acquire(&host).await?.is_held());
    Ok(())
}

#[tokio::test]
async fn a_host_that_is_dropped_closes_its_session() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let (admin, lock) = (Admin::connect(server.address()).await?, format!("{path}/lock"));
    let host = open(server.address(), &path).await?;
    let held = acquire(&host).await?;
    drop(host);
    assert!(held.is_held(), "what was got from the host keeps it");
    drop(held);
    admin.wait_children(&lock, "nobody in line", |names| names.is_empty()).await?;
    Ok(())
}

#[tokio::test]
async fn operations_answer_and_what_is_refused_says_why() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let host = open(server.address(), &path).await?;
    let add = |number: i64| Call::new("add").arguments(json!({ "by": number }));
    assert_eq!(host.call("visits", add(2)).await?, json!(2));
    let visits = host.join("visits").await?;
    assert_eq!(visits.call(add(3)).await?, json!(5));
    visits.leave().await;
    let revoke = Call::new("revoke").arguments(json!({ "path": "/nobody" }));
    let refused = host.call("orders", revoke).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(_)) && !refused.is_outcome_unknown(), "{refused}");

    let told = |error: Error| error.to_string();
    let unknown = host.acquire("order", "acquire").await.map(drop).unwrap_err();
    assert!(matches!(unknown, Error::UnknownRecipe { .. }));
    assert!(told(unknown).contains("did you mean orders?"));
    let unknown = host.acquire("orders", "aquire").await.map(drop).unwrap_err();
    assert!(matches!(unknown, Error::Arguments(_)));
    assert!(told(unknown).contains("did you mean acquire?"));
    let wrong = host.call("visits", Call::new("add").arguments(json!({ "by": "x" }))).await;
    assert!(matches!(wrong, Err(Error::Arguments(_))), "{wrong:?}");
    let not_held = host.acquire("visits", "get").await.map(drop).unwrap_err();
    assert!(matches!(not_held, Error::NotHeld(_)), "{not_held}");
    Ok(())
}

#[tokio::test]
async fn a_participant_tells_where_it_stands() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let host = open(server.address(), &path).await?;
    let held = acquire(&host).await?;
    let next = host.join("orders").await?;
    let mut told = next.follow();
    let waiting = async {
        let notice = within("a word", told.next()).await?;
        ensure!(matches!(notice, Some(Notice::Waiting { .. })), "{notice:?}");
        held.release().await;
        let notice = within("a word", told.next()).await?;
        ensure!(matches!(notice, Some(Notice::Held(_))), "{notice:?}");
        Ok(())
    };
    let (acquired, waited) = tokio::join!(next.acquire("acquire"), waiting);
    waited?;
    let acquired = acquired?;
    assert_eq!(acquired.participant().held().map(|held| held.fence), Some(acquired.fence()));
    Ok(())
}

#[tokio::test]
async fn what_a_host_cannot_be_opened_with_is_told() -> Result<()> {
    let server = zookeeper::shared().await;
    let open = |recipe: Recipe| {
        let builder = Host::builder(server.address()).participants(1).recipe("it", recipe);
        async { builder.open().await.map(drop).unwrap_err() }
    };
    let unknown = open(Recipe::new("lok", "/a")).await;
    assert!(matches!(unknown, OpenError::Module { .. }), "{unknown}");
    assert!(unknown.to_string().contains("did you mean lock?"), "{unknown}");
    let mount = open(Recipe::new("lock", "a")).await;
    assert!(matches!(mount, OpenError::Mount { .. }), "{mount}");
    let everything = open(Recipe::new("lock", "/")).await;
    assert!(matches!(everything, OpenError::Mount { .. }), "{everything}");
    let tiny = Limits { memory: 1, ..Limits::default() };
    let tiny = open(Recipe::new("lock", "/a").limits(tiny)).await;
    assert!(tiny.to_string().starts_with("limits of the recipe \"it\": memory is out"), "{tiny}");
    let config = open(Recipe::new("lock", "/a").config(json!({ "revokable": true }))).await;
    assert!(matches!(config, OpenError::Config { .. }), "{config}");
    assert!(config.to_string().contains("revocable"), "{config}");

    let lock = || Recipe::new("lock", "/a");
    let of = |address: &str| Host::builder(address).participants(1);
    for (builder, told) in [
        (of("zk1:2181/app"), "servers: \"zk1:2181/app\" has a chroot"),
        (
            of("zk1").session_timeout(Duration::from_millis(1)),
            "session timeout: 1ms is out of range",
        ),
        (of("zk1").sessions(0), "sessions: there can be none"),
        (of("zk1").participants(0), "participants: there can be none"),
        (of("zk1").recipe("a", lock()).recipe("a", lock()), "recipe \"a\": there are two"),
        (of("zk1").recipe("A", lock()), "name of the recipe \"A\": \"A\" is not a name"),
    ] {
        let error = builder.open().await.map(drop).unwrap_err();
        assert!(matches!(error, OpenError::Setting { .. }), "{error}");
        assert!(error.to_string().starts_with(told), "{error}");
    }

    let nobody = format!("127.0.0.1:{}", wok_tests::ports::free()?);
    let builder = Host::builder(nobody).participants(1);
    let unreachable = builder.connect_timeout(Duration::from_millis(300)).open().await;
    let unreachable = unreachable.map(drop).unwrap_err();
    assert!(matches!(unreachable, OpenError::Connect(_)), "{unreachable}");
    Ok(())
}

#[tokio::test]
async fn the_example_does_what_its_page_says() -> Result<()> {
    play_example_program("one-at-a-time", env!("CARGO_BIN_EXE_one-at-a-time")).await
}

/// Where the example's lock is.
const REPORT: &str = "/locks/report";

#[tokio::test]
async fn the_example_writes_one_at_a_time() -> Result<()> {
    let server = zookeeper::Server::start(zookeeper::Options::default()).await?;
    let start = || Program::new(env!("CARGO_BIN_EXE_one-at-a-time")).arg(server.address()).start();
    let fence_of = |text: &str| text.rsplit(' ').next().unwrap().parse::<i64>();
    let one = start()?;
    let first = fence_of(&one.wait_for_text("page 1 with fence").await?.text)?;
    let two = start()?;
    let admin = Admin::connect(server.address()).await?;
    admin.wait_children(REPORT, "two in line", |names| names.len() == 2).await?;
    one.signal(Signal::INT)?;
    assert_eq!(one.ended().await?.code(), Some(0));
    let second = fence_of(&two.wait_for_text("page 1 with fence").await?.text)?;
    assert!(second > first, "{second} after {first}");
    let three = start()?;
    admin.wait_children(REPORT, "two in line", |names| names.len() == 2).await?;
    two.signal(Signal::KILL)?;
    let third = fence_of(&three.wait_for_text("page 1 with fence").await?.text)?;
    assert!(third > second, "{third} after {second}");
    Ok(())
}

#[tokio::test]
async fn the_example_stops_writing_when_its_lock_is_lost_and_stands_in_line_again() -> Result<()> {
    let server = zookeeper::Server::start(zookeeper::Options::default()).await?;
    let proxy = Proxy::start(server.address())?;
    let admin = Admin::connect(server.address()).await?;
    let example = Program::new(env!("CARGO_BIN_EXE_one-at-a-time")).arg(proxy.address()).start()?;
    let stops = || {
        let lines = example.lines().into_iter();
        lines.filter(|line| line.text.starts_with("stopped in the middle: ")).count()
    };
    let fence_of = |text: &str| text.strip_prefix("page 1 with fence ")?.parse::<i64>().ok();
    // It begins with the first page whenever it holds, and has said before that it stopped.
    let begins = async |after: i64| -> Result<i64> {
        let is_later = |line: &Line| fence_of(&line.text).is_some_and(|fence| fence > after);
        let line = example.wait_for_line("a first page with a higher fence", is_later).await?;
        fence_of(&line.text).context("a fence")
    };
    let claim = async || -> Result<String> {
        let names = admin.children(REPORT).await?;
        ensure!(names.len() == 1, "one stands in line, and not {names:?}");
        Ok(format!("{REPORT}/{}", names[0]))
    };
    let first = begins(0).await?;
    admin.delete(&claim().await?).await?;
    let second = begins(first).await?;
    assert_eq!(stops(), 1);
    let owner = admin.stat(&claim().await?).await?.context("the claim")?.ephemeral_owner;
    let sessions = proxy.sessions();
    let session = sessions.iter().find(|it| it.id == owner).context("its session")?;
    // It must not be back before its session is over: it would be told of its znode's deletion first.
    proxy.refuse();
    admin::expire(server.address(), session).await?;
    proxy.welcome();
    begins(second).await?;
    assert_eq!(stops(), 2);
    example.signal(Signal::INT)?;
    assert_eq!(example.ended().await?.code(), Some(0));
    assert_eq!(admin.children(REPORT).await?, Vec::<String>::new());
    Ok(())
}

/// What only other features ask for.
const NOT_EMBEDDED: [&str; 6] =
    ["axum", "clap", "hyper", "wok-embedded", "wok-judge", "tracing-subscriber"];

#[test]
fn a_program_that_embeds_wok_compiles_neither_its_command_line_nor_its_simulator() -> Result<()> {
    let tree = |features: &str| -> Result<String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        cargo.args(["tree", "--offline", "--locked", "--package=wok", "--edges=normal"]);
        cargo.args(["--prefix=none", "--features", features]);
        let output = cargo.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    let names = |tree: &str| -> Vec<String> {
        tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let (embedded, whole) = (names(&tree("")?), names(&tree("command-line")?));
    for package in NOT_EMBEDDED {
        assert!(!embedded.iter().any(|name| name == package), "{package}");
        assert!(whole.iter().any(|name| name == package), "{package} is in no feature");
    }
    Ok(())
}
