//! `wok hold`, `wok lock` and `wok call`, and the example.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::guide::play_example;
use wok_tests::patience::eventually;
use wok_tests::process::{Ended, OrderFile, Program, Running, Signal};
use wok_tests::zookeeper;

/// `wok hold` of the locks of these names, a list in JSON, with a shell script as its command.
async fn hold(path: &str, names: &str, script: &str) -> Result<Running> {
    let server = zookeeper::shared().await;
    Program::wok()?
        .args(["hold", "multi-lock", "--mount", path, "--connect", server.address()])
        .args(["--session-timeout", "4s", "acquire", &format!("names={names}")])
        .args(["--", "sh", "-c", script])
        .start()
}

/// `wok lock` of one of them.
async fn plain(path: &str, name: &str, script: &str) -> Result<Running> {
    let server = zookeeper::shared().await;
    let lock = format!("{path}/{name}");
    Program::wok()?
        .args(["lock", "--connect", server.address(), "--session-timeout", "4s"])
        .args([lock.as_str(), "--", "sh", "-c", script])
        .start()
}

async fn call(path: &str, call: &[&str]) -> Result<Ended> {
    let server = zookeeper::shared().await;
    let options = ["call", "multi-lock", "--mount", path, "--connect", server.address()];
    Program::wok()?.args(options).args(["--output", "json"]).args(call).run().await
}

fn answer(told: &Ended) -> Result<Value> {
    assert_eq!(told.code(), Some(0), "{told:?}");
    serde_json::from_str(told.stdout.trim()).with_context(|| format!("{told:?}"))
}

/// A command that says when it begins, and goes on until it is asked to stop.
fn until_term(order: &OrderFile, name: &str) -> String {
    let begin = order.append(&format!("{name} begins"));
    format!("trap 'exit 0' TERM; {begin}; while :; do sleep 0.05; done")
}

/// Waits until it has a place in the line of that lock.
async fn stands_in_line(waiting: &Running, path: &str, name: &str) -> Result<()> {
    waiting.wait_for_text(&format!("standing in line as {path}/{name}/")).await.map(drop)
}

async fn stop(held: Running) -> Result<()> {
    held.signal(Signal::TERM)?;
    assert_eq!(held.ended().await?.code(), Some(0));
    Ok(())
}

/// How many stand in the lines of the locks `a`, `b` and `c`.
async fn in_line(path: &str) -> Result<[usize; 3]> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let mut counts = [0; 3];
    for (count, name) in counts.iter_mut().zip(["a", "b", "c"]) {
        *count = admin.children(&format!("{path}/{name}")).await?.len();
    }
    Ok(counts)
}

#[tokio::test]
async fn locks_that_are_named_in_any_order_go_from_one_to_the_next_all_at_once() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, r#"["b", "a"]"#, &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let second = hold(&path, r#"["c", "b"]"#, &until_term(&order, "second")).await?;
    stands_in_line(&second, &path, "b").await?;
    let third = hold(&path, r#"["a", "c"]"#, &until_term(&order, "third")).await?;
    stands_in_line(&third, &path, "a").await?;
    assert_eq!(order.labels()?, ["first begins"]);
    // Nobody has taken `c`, which both want: they have a place in the line of one lock each.
    assert_eq!(in_line(&path).await?, [2, 2, 0]);
    stop(first).await?;
    // The one that came to `c` first has both of its locks, and the other one waits for `c`.
    let begun = eventually("one of them", async || Ok(order.labels()?.into_iter().nth(1))).await?;
    let (now, next) = if begun == "second begins" { (second, third) } else { (third, second) };
    stands_in_line(&next, &path, "c").await?;
    assert_eq!(order.labels()?.len(), 2, "two who both want one lock hold it");
    stop(now).await?;
    for label in ["second begins", "third begins"] {
        order.wait_for(label).await?;
    }
    stop(next).await?;
    assert_eq!(in_line(&path).await?, [0, 0, 0]);
    Ok(())
}

#[tokio::test]
async fn a_plain_lock_stands_in_the_same_line() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, r#"["a", "b"]"#, &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let between = plain(&path, "b", &until_term(&order, "plain")).await?;
    stands_in_line(&between, &path, "b").await?;
    let last = hold(&path, r#"["b", "a"]"#, &until_term(&order, "last")).await?;
    stands_in_line(&last, &path, "a").await?;
    stop(first).await?;
    order.wait_for("plain begins").await?;
    stands_in_line(&last, &path, "b").await?;
    assert_eq!(order.labels()?, ["first begins", "plain begins"]);
    stop(between).await?;
    order.wait_for("last begins").await?;
    stop(last).await?;
    assert_eq!(in_line(&path).await?, [0, 0, 0]);
    Ok(())
}

#[tokio::test]
async fn all_the_locks_of_a_holder_that_is_killed_come_back() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, r#"["a", "b", "c"]"#, &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let second = hold(&path, r#"["c", "a"]"#, &until_term(&order, "second")).await?;
    stands_in_line(&second, &path, "a").await?;
    let third = plain(&path, "b", &until_term(&order, "third")).await?;
    stands_in_line(&third, &path, "b").await?;
    first.signal(Signal::KILL)?;
    order.wait_for("second begins").await?;
    order.wait_for("third begins").await?;
    stop(second).await?;
    stop(third).await
}

#[tokio::test]
async fn a_wait_that_is_given_up_leaves_nothing_in_any_line() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, r#"["b"]"#, &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let waiting = hold(&path, r#"["a", "b", "c"]"#, "true").await?;
    stands_in_line(&waiting, &path, "b").await?;
    assert_eq!(in_line(&path).await?, [1, 2, 0]);
    waiting.signal(Signal::TERM)?;
    let ended = waiting.ended().await?;
    assert!(!ended.stderr.contains("holding"), "{ended:?}");
    assert_eq!(in_line(&path).await?, [0, 1, 0]);
    let late = call(&path, &["--wait", "500ms", "acquire", r#"names=["a", "b"]"#]).await?;
    assert_eq!(late.code(), Some(75), "{late:?}");
    assert_eq!(in_line(&path).await?, [0, 1, 0]);
    stop(first).await
}

#[tokio::test]
async fn an_attempt_takes_all_or_names_the_lock_that_it_did_not_get() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = plain(&path, "b", &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let busy = call(&path, &["try-acquire", r#"names=["c", "b", "a"]"#]).await?;
    assert_eq!(answer(&busy)?, json!({ "busy": "b" }));
    assert_eq!(in_line(&path).await?, [0, 1, 0]);
    let granted = answer(&call(&path, &["try-acquire", r#"names=["c", "a"]"#]).await?)?;
    let names = granted["granted"].as_array().context("grants")?.iter();
    let names: Vec<_> = names.map(|grant| grant["name"].clone()).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(in_line(&path).await?, [0, 1, 0]);
    stop(first).await
}

#[tokio::test]
async fn names_that_are_none_are_refused_with_the_reason() -> Result<()> {
    let path = zookeeper::unique_path();
    for (names, reason) in [
        ("[]", "no lock is named"),
        (r#"["a", "b", "a"]"#, "is there twice"),
        (r#"["a", "b/c"]"#, "one segment of a path"),
        (r#"["a", ".."]"#, "one segment of a path"),
        (r#"["a", ""]"#, "one segment of a path"),
    ] {
        for operation in ["acquire", "try-acquire"] {
            let refused = call(&path, &[operation, &format!("names={names}")]).await?;
            assert_eq!(refused.code(), Some(70), "{refused:?}");
            let told = [refused.stdout.as_str(), refused.stderr.as_str()].concat();
            let is_told = told.contains(reason) && told.contains("invalid");
            assert!(is_told, "{operation} {names}: {refused:?}");
        }
    }
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    assert!(admin.stat(&path).await?.is_none(), "the ensemble was asked for nothing");
    Ok(())
}

#[tokio::test]
async fn a_command_whose_second_lock_is_lost_is_ended_and_the_first_comes_back() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let first = hold(&path, r#"["a", "b"]"#, &until_term(&order, "first")).await?;
    order.wait_for("first begins").await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let directory = format!("{path}/b");
    let own = admin.children(&directory).await?.pop().context("its place")?;
    admin.delete(&format!("{directory}/{own}")).await?;
    assert_eq!(first.ended().await?.code(), Some(76));
    admin
        .wait_children(&format!("{path}/a"), "the first lock to come back", <[_]>::is_empty)
        .await?;
    Ok(())
}

#[tokio::test]
async fn both_formats_name_contenders_as_their_peers_do() -> Result<()> {
    let server = zookeeper::shared().await;
    for (format, before, after, hyphens) in
        [("curator", "_c_", "-lock-", 4), ("kazoo", "", "__lock__", 0)]
    {
        let path = zookeeper::unique_path();
        let ended = Program::wok()?
            .args(["hold", "multi-lock", "--mount", &path, "--connect", server.address()])
            .args(["--config", &format!("format={format}"), "acquire", r#"names=["a", "b"]"#])
            .args(["--", "sh", "-c", "echo $WOK_CLAIM_PATH"])
            .run()
            .await?;
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        let name = ended.stdout.trim().strip_prefix(&format!("{path}/a/")).context("a path")?;
        let uuid = name.strip_prefix(before).and_then(|name| name.split_once(after));
        let (uuid, counter) = uuid.with_context(|| name.to_owned())?;
        assert_eq!((uuid.matches('-').count(), uuid.len()), (hyphens, 32 + hyphens), "{name}");
        assert_eq!(counter.len(), 10, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn the_example_of_the_transfer_does_what_it_says() -> Result<()> {
    play_example("transfer", &["transfer", "move"]).await
}
