//! Plays about operations that neither wait nor hold.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::party::{Operation, Recipe};
use super::stage::Stage;

/// Says in the place of an argument: the path of what the other one holds.
pub(super) const ITS_PATH: &str = "the path that the other one holds";

/// One asks for something and is struck.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) recipe: Recipe,
    /// What the other one has done before.
    pub(super) before: Vec<Operation>,
    pub(super) asks: Operation,
    /// What can be done afterwards, by another one each.
    pub(super) after: Vec<Operation>,
}

impl Asking {
    pub(super) async fn play(self, mut stage: Stage) -> Result<()> {
        let (other, struck) = (stage.other(&self.recipe).await?, stage.struck(&self.recipe).await?);
        let mut path = Value::Null;
        for operation in &self.before {
            let answer = other.has_done(operation).await?;
            path = answer.value.ok().and_then(|it| it.get("path").cloned()).unwrap_or(path);
        }
        let (name, mut arguments) = self.asks;
        if arguments == json!({ "path": ITS_PATH }) {
            arguments = json!({ "path": path });
        }
        stage.until_broken().await?;
        let asked = struck.begin(&(name, arguments))?;
        stage.until_mended().await?;
        asked.ended().await?;
        struck.leaves().await?;
        other.leaves().await?;
        for operation in &self.after {
            let next = stage.other(&self.recipe).await?;
            next.has_done(operation).await.with_context(|| format!("after {name}"))?;
            next.leaves().await?;
        }
        stage.nothing_is_left().await
    }
}
