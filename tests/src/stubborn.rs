//! Commands that do not end when they are asked to, and who looks whether they have ended in time.

use anyhow::{Context, Result, ensure};

use crate::patience::eventually;
use crate::process::OrderFile;

/// What a stubborn process does once it has said that it is there.
const STAY: &str = "trap '' TERM INT HUP; while :; do sleep 0.05; done";

/// A script that ignores TERM, as does a grandchild in a session of its own; each says when it starts,
/// and neither ends by itself. The variable beside it is to be in its environment.
pub fn script(order: &OrderFile, name: &str) -> (String, (&'static str, String)) {
    let child = order.append(&format!("{name} child $$ fence $WOK_FENCE"));
    let grandchild = order.append(&format!("{name} grandchild $$"));
    let script = format!("setsid sh -c \"$GRANDCHILD\" & {child}; {STAY}");
    (script, ("GRANDCHILD", format!("{grandchild}; {STAY}")))
}

/// The process ids that stubborn commands wrote down.
///
/// # Errors
/// If the file cannot be read.
pub fn pids(order: &OrderFile, name: &str) -> Result<Vec<u32>> {
    let prefix = [format!("{name} child "), format!("{name} grandchild ")];
    let entries = order.labels()?;
    let found = entries.iter().filter_map(|label| {
        let rest = prefix.iter().find_map(|prefix| label.strip_prefix(prefix.as_str()))?;
        rest.split(' ').next()?.parse().ok()
    });
    Ok(found.collect())
}

/// Waits until both processes are there.
///
/// # Errors
/// If they are not.
pub async fn wait_for_both(order: &OrderFile, name: &str) -> Result<()> {
    eventually("the command and its grandchild", async || {
        Ok((pids(order, name)?.len() == 2).then_some(()))
    })
    .await
}

/// What the next holder runs: the first thing that it does is to write down who of them is alive. A
/// process that is killed stays a zombie for as long as its parent is stopped, and does nothing any more.
pub fn next(order: &OrderFile, name: &str) -> String {
    let path = order.path().display();
    let alive = order.append(&format!("{name} is alive: $pid"));
    format!(
        "for pid in $(sed -n 's/.* {name} \\(child\\|grandchild\\) \\([0-9]*\\).*/\\2/p' '{path}'); \
         do case \"$(sed 's/.*) //' /proc/$pid/stat 2>/dev/null)\" in \
         ''|Z*|X*) ;; *) {alive} ;; esac; done; {}",
        order.append("next $WOK_FENCE")
    )
}

/// Judges what [`next`] has written down: nobody was alive, and the fence grew.
///
/// # Errors
/// If it was otherwise.
pub fn handed_over_cleanly(order: &OrderFile, name: &str) -> Result<()> {
    let labels = order.labels()?;
    let alive: Vec<_> = labels.iter().filter(|label| label.contains("is alive")).collect();
    ensure!(alive.is_empty(), "{alive:?} when the next holder began: {labels:?}");
    let fence = |prefix: &str| -> Result<i64> {
        let label = labels.iter().find(|label| label.starts_with(prefix));
        let fence = label.and_then(|label| label.rsplit(' ').next()).context("a fence")?;
        Ok(fence.parse()?)
    };
    ensure!(fence("next ")? > fence(&format!("{name} child "))?, "{labels:?}");
    Ok(())
}
