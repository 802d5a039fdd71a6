//! Rounds: a host holds, another waits, a link is cut.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::ground::{Cut, Ground};
use super::host::{Host, Kind};
use crate::patience::eventually;
use crate::process::OrderFile;
use crate::zookeeper;

/// A line of a command: for which recipe, with which fence, who.
fn read(label: &str) -> Result<(&str, i64, &str)> {
    let words: Vec<&str> = label.split(' ').collect();
    let [recipe, fence, name] = words[..] else { anyhow::bail!("the line {label:?}") };
    Ok((recipe, fence.parse()?, name))
}

/// Waits until somebody holds for each of so many recipes, and writes so after that many lines.
async fn somebody_holds(order: &OrderFile, after: usize, count: usize) -> Result<()> {
    eventually("a holder of each recipe, after the cut", async || {
        let mut held = BTreeSet::new();
        for label in order.labels()?.iter().skip(after) {
            held.insert(read(label)?.0.to_owned());
        }
        Ok((held.len() == count).then_some(()))
    })
    .await
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
fn judge(order: &OrderFile) -> Result<Option<Duration>> {
    let mut newest: BTreeMap<String, (i64, Duration)> = BTreeMap::new();
    let mut shortest: Option<Duration> = None;
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

/// The holder's command ended, and a next one began.
#[derive(Debug)]
pub struct HandOver {
    /// The time between the last line of the one and the first of the next.
    pub gap: Duration,
    /// What the first holder has printed.
    pub holder_said: Vec<String>,
}

/// Plays one round. Answers how the claim was handed over, if it was.
///
/// # Errors
/// If two holders wrote at once, nobody held afterwards, or a holder that is to keep its claim lost it.
///
/// # Cancellation
/// The links stay as they are: use another ground.
pub async fn round(
    ground: &Ground,
    cut: Cut,
    kind: Kind,
    timeout: Duration,
) -> Result<Option<HandOver>> {
    let (path, order) = (zookeeper::unique_path(), OrderFile::new()?);
    let places = ground.places(cut).await?;
    let mut holder = kind.start(ground.holder(&places), timeout, &path, &order, "A")?;
    let held = commands_run(&order, "A", holder.commands).await;
    held.with_context(|| format!("{cut:?}, {kind:?}, {timeout:?}: {:?}", said(&holder)))?;
    let mut waiter = kind.start(ground.waiter(&places), timeout, &path, &order, "B")?;
    eventually("the next in line", async || Ok(waiter.is_in_line().await?.then_some(())))
        .await
        .with_context(|| format!("A: {:?}\nB: {:?}", said(&holder), said(&waiter)))?;
    ground.cut(cut, &places, timeout).await?;
    if cut.is_lasting() {
        // Twice what is patience elsewhere: servers notice after ten seconds, hold an election, and
        // then begin to count a session of thirty.
        if commands_run(&order, "B", waiter.commands).await.is_err() {
            let waiting = commands_run(&order, "B", waiter.commands).await;
            waiting.with_context(|| format!("{cut:?}: {:?}", said(&waiter)))?;
        }
        gone(&holder).await?;
    } else {
        let before = order.labels()?.len();
        somebody_holds(&order, before, holder.commands)
            .await
            .with_context(|| format!("{cut:?}: {:?}\n{:?}", said(&holder), said(&waiter)))?;
    }
    let gap = judge(&order).with_context(|| format!("{cut:?}, {kind:?}, {timeout:?}"));
    if cut.is_survived() {
        let said = said(&holder);
        let is_kept = matches!(gap, Ok(None)) && !said.iter().any(|line| tells_of_loss(line));
        ensure!(is_kept, "{cut:?}, {kind:?}, {timeout:?}: the claim was lost; {gap:?}; {said:?}");
    }
    let holder_said = said(&holder);
    ground.mend(cut, &places).await?;
    for host in [&mut holder, &mut waiter] {
        host.running.kill_tree();
        host.running.tree_gone().await?;
    }
    Ok(gap?.map(|gap| HandOver { gap, holder_said }))
}

/// What a host has printed so far.
fn said(host: &Host) -> Vec<String> {
    host.running.lines().into_iter().map(|line| line.text).collect()
}

/// The holder has said that its claims are lost, which it does when its commands are no more.
async fn gone(holder: &Host) -> Result<()> {
    let told = holder.running.wait_for_line("a loss", |line| tells_of_loss(&line.text));
    told.await.map(drop)
}

/// Whether a line tells that a claim is lost. The client crate tells of lost connections as well, also
/// of those that only ask for the servers' tick.
fn tells_of_loss(line: &str) -> bool {
    line.contains("lost") && !line.contains("zookeeper_client::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_is_no_loss() {
        for line in ["lost: the session ended", "WARN wok::holding::told: lost recipe=\"a\""] {
            assert!(tells_of_loss(line), "{line}");
        }
        let connection = "INFO serve{session=0x1}: zookeeper_client::session: enter state \
                          Disconnected due to connection to server has lost";
        assert!(!tells_of_loss(connection));
    }
}
