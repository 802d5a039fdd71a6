//! Rounds: a host holds, another waits, a link is cut.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use wok_tests::patience::eventually;
use wok_tests::process::OrderFile;
use wok_tests::zookeeper;

use crate::ground::{Cut, Ground};
use crate::host::{Host, Kind};

/// The session timeouts that are played: two ticks, five, and fifteen.
const TIMEOUTS: [u64; 3] = [4, 10, 30];

/// How long the next holder waited after the last line of the one before it.
type Gap = Duration;

/// A line of a command: for which recipe, with which fence, who.
fn read(label: &str) -> Result<(&str, i64, &str)> {
    let words: Vec<&str> = label.split(' ').collect();
    let [recipe, fence, name] = words[..] else { anyhow::bail!("the line {label:?}") };
    Ok((recipe, fence.parse()?, name))
}

async fn commands_run(order: &OrderFile, name: &str, count: usize) -> Result<()> {
    eventually(&format!("the commands of {name}"), async || {
        let mut running = BTreeSet::new();
        for label in order.labels()? {
            let (recipe, _, who) = read(&label)?;
            if who == name {
                running.insert(recipe.to_owned());
            }
        }
        Ok((running.len() == count).then_some(()))
    })
    .await
}

/// Once a holder has written, nobody with a lower fence writes: a link that flaps may take a claim to
/// and fro. Answers the shortest time between the last line of one holder and the first of the next.
fn judge(order: &OrderFile) -> Result<Option<Gap>> {
    let mut newest: BTreeMap<String, (i64, Duration)> = BTreeMap::new();
    let mut shortest: Option<Gap> = None;
    for entry in order.entries()? {
        let (recipe, fence, who) = read(&entry.label)?;
        if let Some((before, last)) = newest.insert(recipe.to_owned(), (fence, entry.at)) {
            ensure!(
                before <= fence,
                "two holders of {recipe}: {who} wrote with fence {fence}, {:?} after a line with \
                 {before}",
                entry.at.saturating_sub(last)
            );
            if before < fence {
                let gap = entry.at.saturating_sub(last);
                shortest = Some(shortest.map_or(gap, |shortest| shortest.min(gap)));
            }
        }
    }
    Ok(shortest)
}

/// One round. Answers by how much the holder's command ended before the next began.
async fn round(ground: &Ground, cut: Cut, kind: Kind, timeout: Duration) -> Result<Option<Gap>> {
    let (path, order) = (zookeeper::unique_path(), OrderFile::new()?);
    let places = ground.places(cut).await?;
    let mut holder = kind.start(ground.holder(&places), timeout, &path, &order, "A")?;
    commands_run(&order, "A", holder.commands).await?;
    let mut waiter = kind.start(ground.waiter(&places), timeout, &path, &order, "B")?;
    eventually("the next in line", async || {
        let waiting = said(&waiter).iter().filter(|line| line.contains("standing in line")).count();
        Ok((waiting >= waiter.commands).then_some(()))
    })
    .await
    .with_context(|| format!("{:?}", said(&waiter)))?;
    ground.cut(cut, &places).await?;
    if cut.is_lasting() {
        // Twice what is patience elsewhere: servers notice after ten seconds, hold an election, and
        // then begin to count a session of thirty.
        if commands_run(&order, "B", waiter.commands).await.is_err() {
            let waiting = commands_run(&order, "B", waiter.commands).await;
            waiting.with_context(|| format!("{cut:?}: {:?}", said(&waiter)))?;
        }
        gone(&holder).await?;
    }
    let gap = judge(&order).with_context(|| format!("{cut:?}, {kind:?}, {timeout:?}"));
    ground.mend(cut, &places).await?;
    for host in [&mut holder, &mut waiter] {
        host.running.kill_tree();
        host.running.tree_gone().await?;
    }
    gap
}

/// What a host has printed so far.
fn said(host: &Host) -> Vec<String> {
    host.running.lines().into_iter().map(|line| line.text).collect()
}

/// The holder has said that its claims are lost, which it does when its commands are no more.
async fn gone(holder: &Host) -> Result<()> {
    holder.running.wait_for_text("lost").await.map(drop)
}

#[tokio::test]
async fn a_host_cut_off_with_a_follower_or_the_leader_stops_before_the_next_begins() -> Result<()> {
    if asked_for().is_some() {
        // Those of the soak play it.
        return Ok(());
    }
    let ground = Ground::new().await?;
    for cut in [Cut::WithFollower, Cut::WithLeader] {
        let gap = round(&ground, cut, Kind::Lock, Duration::from_secs(TIMEOUTS[0])).await?;
        ensure!(gap.is_some(), "{cut:?}: nobody held after the cut");
    }
    Ok(())
}

/// How many rounds a soak asks for.
pub(crate) fn asked_for() -> Option<usize> {
    std::env::var("WOK_PARTITION_ROUNDS").ok()?.parse().ok()
}

/// What the soak is to play: only cuts whose name has this in it, if it is set.
fn is_wanted(cut: Cut) -> bool {
    let only = std::env::var("WOK_PARTITION_ONLY").unwrap_or_default();
    format!("{cut:?}").contains(&only)
}

/// Plays all rounds of a lane, one after another, on servers of its own.
async fn lane(rounds: usize, kind: Kind, timeout: u64) -> Result<()> {
    let ground = Ground::new().await?;
    for cut in Cut::ALL.into_iter().filter(|cut| is_wanted(*cut)) {
        let (mut handed_over, mut shortest) = (0, None::<Gap>);
        for _ in 0..rounds {
            if let Some(gap) = round(&ground, cut, kind, Duration::from_secs(timeout)).await? {
                handed_over += 1;
                shortest = Some(shortest.map_or(gap, |shortest| shortest.min(gap)));
            }
        }
        eprintln!(
            "figure: {cut:?}, {kind:?}, {timeout} s: {rounds} rounds, {handed_over} handed over, \
             the next began {shortest:?} after the last line at the soonest"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rounds_of_every_cut() -> Result<()> {
    let Some(rounds) = asked_for() else { return Ok(()) };
    let lanes = [Kind::Lock, Kind::Daemon]
        .into_iter()
        .flat_map(|kind| TIMEOUTS.into_iter().map(move |timeout| lane(rounds, kind, timeout)));
    futures_util::future::try_join_all(lanes).await.map(drop)
}
