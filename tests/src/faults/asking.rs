//! Plays about operations that neither wait nor hold.

use anyhow::{Context, Result};
use serde_json::Value;

use super::party::{Member, Operation, Recipe};
use super::stage::Stage;

/// One asks for something and is struck.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) recipe: Recipe,
    before: Vec<Operation>,
    own: Vec<Operation>,
    pub(super) operation: &'static str,
    arguments: Arguments,
    after: Vec<Operation>,
}

/// What an operation is called with.
#[derive(Clone, Debug)]
enum Arguments {
    /// This.
    Given(Value),
    /// What is made of the last answer before it.
    Of(fn(&Value) -> Value),
}

impl Asking {
    pub(super) fn of(recipe: &Recipe, (operation, arguments): Operation) -> Asking {
        Asking::new(recipe, operation, Arguments::Given(arguments))
    }

    /// For something that another answer names: the last one that comes before.
    pub(super) fn about(
        recipe: &Recipe,
        operation: &'static str,
        arguments: fn(&Value) -> Value,
    ) -> Asking {
        Asking::new(recipe, operation, Arguments::Of(arguments))
    }

    fn new(recipe: &Recipe, operation: &'static str, arguments: Arguments) -> Asking {
        let (before, own, after) = (Vec::new(), Vec::new(), Vec::new());
        Asking { recipe: recipe.clone(), before, own, operation, arguments, after }
    }

    /// What another one has done before.
    pub(super) fn before(self, before: Vec<Operation>) -> Asking {
        Asking { before, ..self }
    }

    /// What the one that is struck has done behind that.
    pub(super) fn own(self, own: Vec<Operation>) -> Asking {
        Asking { own, ..self }
    }

    /// What can be done afterwards, by another one each.
    pub(super) fn after(self, after: Vec<Operation>) -> Asking {
        Asking { after, ..self }
    }

    /// Several plays may be about one operation.
    pub(super) fn name(&self) -> String {
        let Asking { recipe: Recipe { name, config }, own, operation, .. } = self;
        let own: Vec<&str> = own.iter().map(|(operation, _)| *operation).collect();
        format!("{name} with {config}: {operation} behind {own:?}")
    }

    pub(super) async fn play(self, mut stage: Stage) -> Result<()> {
        let other = stage.other(&self.recipe).await?;
        let answer = all_done(&other, &self.before).await?;
        // Behind that: its server knows of all that was done before its session was opened.
        let struck = stage.struck(&self.recipe).await?;
        let answer = all_done(&struck, &self.own).await?.or(answer).unwrap_or_default();
        let arguments = match self.arguments {
            Arguments::Given(arguments) => arguments,
            Arguments::Of(make) => make(&answer),
        };
        stage.until_broken().await?;
        let asked = struck.begin(&(self.operation, arguments))?;
        stage.until_mended().await?;
        asked.ended().await?;
        struck.leaves().await?;
        other.leaves().await?;
        for operation in &self.after {
            let next = stage.other(&self.recipe).await?;
            let done = next.has_done(operation).await;
            done.with_context(|| format!("after {}", self.operation))?;
            next.leaves().await?;
        }
        stage.nothing_is_left().await
    }
}

/// Has them done one after another; answers what the last one was answered.
async fn all_done(by: &Member, operations: &[Operation]) -> Result<Option<Value>> {
    let mut last = None;
    for operation in operations {
        last = by.has_done(operation).await?.value.ok();
    }
    Ok(last)
}
