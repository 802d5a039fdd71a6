//! Plays about operations that neither wait nor hold.

use anyhow::{Context, Result};
use serde_json::Value;

use super::judging::{Found, Outcome, Part, Told};
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
    told: Option<Told>,
    found: Option<Found>,
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
        let (recipe, told, found) = (recipe.clone(), None, None);
        Asking { recipe, before, own, operation, arguments, told, found, after }
    }

    /// What another one has done before.
    pub(super) fn before(self, before: Vec<Operation>) -> Asking {
        Asking { before, ..self }
    }

    /// What the one that is struck has done behind that.
    pub(super) fn own(self, own: Vec<Operation>) -> Asking {
        Asking { own, ..self }
    }

    /// What the one that is struck is answered, if it is.
    pub(super) fn answers(self, part: Part, is: Value) -> Asking {
        Asking { told: Some(Told { part, is }), ..self }
    }

    /// What another one finds by that look: the first if the operation was not carried out, and the second
    /// if it was. Which of them it has to be, the one that is struck knows by its answer.
    pub(super) fn changes(
        self,
        look: Operation,
        part: Part,
        [without, with]: [Value; 2],
    ) -> Asking {
        Asking { found: Some(Found { look, part, without, with }), ..self }
    }

    /// What another one finds by that look in either case.
    pub(super) fn keeps(self, look: Operation, part: Part, found: Value) -> Asking {
        self.changes(look, part, [found.clone(), found])
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
        let outcome = Outcome::of(asked.ended().await?);
        struck.leaves().await?;
        other.leaves().await?;
        if let Some(told) = &self.told {
            told.judge(&outcome)?;
        }
        if let Some(found) = &self.found {
            // What a session that is over has claimed is not found before it is gone.
            stage.nothing_is_left().await?;
            let next = stage.other(&self.recipe).await?;
            let answer = next.has_done(&found.look).await.context("a look")?;
            found.judge(&outcome, &answer.value.unwrap_or_default())?;
            next.leaves().await?;
        }
        for operation in &self.after {
            let next = stage.other(&self.recipe).await?;
            let done = next.has_done(operation).await;
            done.with_context(|| format!("after {}", self.operation))?;
            next.leaves().await?;
        }
        stage.nothing_is_left().await
    }
}

/// Has them done one after another; answers what the last one answered. One that is refused is an error.
async fn all_done(by: &Member, operations: &[Operation]) -> Result<Option<Value>> {
    let mut last = None;
    for operation in operations {
        // Nothing is swallowed: `has_done` has failed where the answer is an error.
        last = by.has_done(operation).await?.value.ok();
    }
    Ok(last)
}
