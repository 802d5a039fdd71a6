//! Plays about claims: who holds is struck, or who waits.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::party::{Operation, Recipe};
use super::stage::Stage;

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
        ensure!(!(next.holds() && struck.holds() && next.holds()), "two hold at the same time");
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
        crate::patience::eventually(
            "the turn of the one that was struck, or its end",
            async || {
                let is_over = struck.holds() || struck.has_ended();
                Ok(is_over.then_some(()))
            },
        )
        .await?;
        struck.leaves().await?;
        waiting.ended().await?;
        last.until_it_holds_after(&struck).await.context("the last")?;
        after.done().await?;
        last.leaves().await?;
        stage.nothing_is_left().await
    }
}

/// Operations without arguments.
pub(super) fn plain(name: &'static str) -> Operation {
    (name, Value::Null)
}
