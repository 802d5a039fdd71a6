//! Producers and consumers that are killed, over an ensemble whose leader is killed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use rustix::process::{Pid, kill_process};
use wok_tests::admin::Admin;
use wok_tests::patience::eventually;
use wok_tests::process::{OrderFile, Program, Running, Signal, wok_binary};
use wok_tests::zookeeper::{Ensemble, unique_path};

/// How many of each take part.
const EACH: usize = 4;

/// How many are killed, one after another, unless `WOK_QUEUE_KILLS` says otherwise.
const KILLS: usize = 10;

/// How many items are put in between two who are killed.
const BETWEEN: usize = 3;

/// Puts numbered items in until there is a file `stop`, and writes down what was asked and acknowledged.
const PRODUCER: &str = r#"
number=0
until [ -e "$STOP" ]; do
    number=$((number + 1)) data=$NAME.$number
    eval "$ASKED"
    $CALL put data=$data > /dev/null 2>&1 && eval "$PUT"
done
"#;

/// Takes items until there is a file `stop`.
const CONSUMER: &str = r#"
until [ -e "$STOP" ]; do
    $HOLD --wait 1s take -- sh -c "$WORK" > /dev/null 2>&1
done
"#;

/// The work on one: to write down what it is, and that it is done.
const WORK: &str = r#"
data=$($CALL --output json peek item=$WOK_CLAIM_PATH | sed 's/.*"data":"\([^"]*\)".*/\1/')
eval "$TAKEN"
$CALL ack-item item=$WOK_CLAIM_PATH fence=$WOK_FENCE > /dev/null 2>&1 && eval "$DONE"
"#;

fn member(
    name: &str,
    script: &str,
    servers: &str,
    path: &str,
    order: &OrderFile,
) -> Result<Running> {
    let wok = wok_binary()?;
    let with = |command: &str| {
        let wok = wok.display();
        format!("{wok} {command} queue --mount {path} --connect {servers} --session-timeout 4s")
    };
    Program::shell(script)
        .env("NAME", name)
        .env("STOP", order.path().with_extension("stop"))
        .env("CALL", with("call"))
        .env("HOLD", with("hold"))
        .env("WORK", WORK)
        .env("ASKED", order.append("asked $data"))
        .env("PUT", order.append("put $data"))
        .env("TAKEN", order.append("taken $data"))
        .env("DONE", order.append("done $data"))
        .start()
}

/// Whether the process runs wok. One that has ended runs nothing.
fn is_wok(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "wok")
}

/// How often each item is in a line of that kind.
fn counted(order: &OrderFile, kind: &str) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for label in order.labels()? {
        if let Some(data) = label.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')) {
            *counts.entry(data.to_owned()).or_default() += 1;
        }
    }
    Ok(counts)
}

#[tokio::test]
async fn no_item_is_lost_or_done_twice_while_everybody_is_killed_in_turn() -> Result<()> {
    let kills = std::env::var("WOK_QUEUE_KILLS").map_or(Ok(KILLS), |text| text.parse())?;
    let mut ensemble = Ensemble::start(3).await?;
    let (servers, path, order) = (ensemble.connect_string(), unique_path(), OrderFile::new()?);
    let mut members = Vec::new();
    for number in 0..EACH {
        members.push(member(&format!("p{number}"), PRODUCER, &servers, &path, &order)?);
        members.push(member(&format!("c{number}"), CONSUMER, &servers, &path, &order)?);
    }
    let reaches = async |kind: &str, count: usize| {
        let what = format!("{count} items that are {kind}");
        eventually(&what, async || Ok((counted(&order, kind)?.len() >= count).then_some(()))).await
    };
    for kill in 1..=kills {
        reaches("put", kill * BETWEEN).await?;
        reaches("done", kill).await?;
        // A wok of the next one in turn: what writes its lines down is not to be killed half-way.
        let victim = &members[kill % members.len()];
        if let Some(pid) = victim.tree().into_iter().find(|pid| is_wok(*pid)) {
            let pid = Pid::from_raw(i32::try_from(pid)?).context("a process")?;
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        if kill == kills / 2 {
            ensemble.change_leader().await?;
        }
    }
    std::fs::write(order.path().with_extension("stop"), "")?;
    for member in &members {
        member.ended().await?;
    }
    ensemble.mend().await?;

    let admin = Admin::connect(&servers).await?;
    for directory in ["claims", "consumers", "markers"] {
        let directory = format!("{path}/{directory}");
        // Those of who was killed go with their sessions.
        admin.wait_children(&directory, "nobody to be left", <[String]>::is_empty).await?;
    }
    let mut left = BTreeSet::new();
    for item in admin.tree(&format!("{path}/items")).await? {
        left.insert(String::from_utf8(item.data)?);
    }
    let (asked, taken, done) =
        (counted(&order, "asked")?, counted(&order, "taken")?, counted(&order, "done")?);
    for data in counted(&order, "put")?.keys() {
        assert!(taken.contains_key(data) || left.contains(data), "{data} is lost");
    }
    for (data, times) in &done {
        assert_eq!((*times, left.contains(data)), (1, false), "{data} was done");
        assert!(asked.contains_key(data), "{data} was made up");
    }
    for (data, times) in &taken {
        // Twice only if somebody was killed or lost the connection at work on it.
        assert!(*times <= 1 + kills, "{data} was taken {times} times");
    }
    let again = taken.values().filter(|times| **times > 1).count();
    println!(
        "figure: {kills} killed, {} items put in, {} done, {} left, {again} taken again",
        asked.len(),
        done.len(),
        left.len()
    );
    Ok(())
}
