//! Plays about claims: who holds is struck, or who waits.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::party::{Operation, Recipe};
use super::stage::Stage;
use crate::patience::eventually;

/// One holds and is struck; another one waits.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) recipe: Recipe,
    /// How it comes to hold.
    pub(super) hold: Operation,
    /// What it does just then, if anything.
    pub(super) meanwhile: Option<Operation>,
    /// How the other one comes to hold.
    pub(super) next: Operation,
}

impl Holding {
    pub(super) async fn play(self, mut stage: Stage) -> Result<()> {
        let (struck, next) = (stage.struck(&self.recipe).await?, stage.other(&self.recipe).await?);
        struck.has_done(&self.hold).await?;
        struck.until_it_holds().await?;
        let waiting = next.begin(&self.next)?;
        next.until_it_stands_in_line().await?;
        stage.until_broken().await?;
        let meanwhile = self.meanwhile.map(|it| struck.begin(&it)).transpose()?;
        if stage.fault().ends_sessions() {
            next.until_it_holds_after(&struck).await.context("the next, while it is broken")?;
        }
        stage.until_mended().await?;
        if let Some(meanwhile) = meanwhile {
            meanwhile.ended().await?;
        }
        // Asked before and after the other one, so that it held when the other one was asked.
        let both_hold = next.holds() && struck.holds() && next.holds();
        ensure!(!both_hold, "two hold at the same time");
        struck.leaves().await?;
        next.until_it_holds_after(&struck).await.context("the next")?;
        waiting.done().await?;
        next.leaves().await?;
        stage.nothing_is_left().await
    }
}

/// One waits and is struck; another one holds.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) recipe: Recipe,
    /// How the other one comes to hold.
    pub(super) hold: Operation,
    /// How this one comes to hold.
    pub(super) next: Operation,
}

impl Waiting {
    pub(super) async fn play(self, mut stage: Stage) -> Result<()> {
        let (holder, struck) =
            (stage.other(&self.recipe).await?, stage.struck(&self.recipe).await?);
        holder.has_done(&self.hold).await?;
        holder.until_it_holds().await?;
        let waiting = struck.begin(&self.next)?;
        struck.until_it_stands_in_line().await?;
        stage.until_broken().await?;
        stage.until_mended().await?;
        ensure!(!struck.holds() && holder.holds(), "the wait is over, and {self:?} still held");
        // Behind the one that was struck, whether that one still stands there or not.
        let last = stage.other(&self.recipe).await?;
        let after = last.begin(&self.next)?;
        last.until_it_stands_in_line().await?;
        holder.leaves().await?;
        eventually("the turn of the one that was struck, or its end", async || {
            let is_over = struck.holds() || struck.has_ended();
            Ok(is_over.then_some(()))
        })
        .await?;
        struck.leaves().await?;
        waiting.ended().await?;
        last.until_it_holds_after(&struck).await.context("the last")?;
        after.done().await?;
        last.leaves().await?;
        stage.nothing_is_left().await
    }
}

/// One asks for what another one holds, to have it deleted when its time is over, and is struck.
#[derive(Clone, Debug)]
pub(super) struct Forcing {
    /// With `force-after-ms`; the holder gives nothing back by itself.
    pub(super) recipe: Recipe,
    /// How the other one comes to hold.
    pub(super) hold: Operation,
    /// How somebody comes to hold after it.
    pub(super) next: Operation,
}

impl Forcing {
    pub(super) const OPERATION: &str = "revoke";

    pub(super) async fn play(self, mut stage: Stage) -> Result<()> {
        let (holder, struck) =
            (stage.other(&self.recipe).await?, stage.struck(&self.recipe).await?);
        let held = holder.has_done(&self.hold).await?;
        let path = held.value.ok().and_then(|grant| grant.get("path").cloned());
        let path = path.context("the path of the grant")?;
        holder.until_it_holds().await?;
        stage.until_broken().await?;
        let revoking = struck.begin(&(Self::OPERATION, json!({ "path": path })))?;
        stage.until_mended().await?;
        let is_gone = revoking.ended().await?.is_some_and(|answer| answer.value.is_ok());
        struck.leaves().await?;
        let next = stage.other(&self.recipe).await?;
        let waiting = next.begin(&self.next)?;
        if is_gone {
            // Both may say for a moment that they hold: until the news has come, only the fence protects.
            eventually("the holder to be told", async || Ok((!holder.holds()).then_some(())))
                .await?;
        } else {
            // It may have been deleted all the same.
            holder.leaves().await?;
        }
        waiting.done().await.context("the next")?;
        next.leaves().await?;
        holder.leaves().await?;
        stage.nothing_is_left().await
    }
}

/// Operations without arguments.
pub(super) fn plain(name: &'static str) -> Operation {
    (name, Value::Null)
}
