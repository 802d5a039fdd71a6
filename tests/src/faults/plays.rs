//! What a play is, and how all are played at once under one fault.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, watch};

use super::asking::Asking;
use super::claiming::{Forcing, Holding, Waiting};
use super::ground::{Fault, Ground, Places};
use super::party::{Operation, Recipe, Side};
use super::repertoire;
use super::stage::{Act, Company, Stage};
use crate::patience::within;

/// Of those who are struck: short, so that a session that is lost is lost soon.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Of the others: longer than any election on a busy machine.
const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// More than all plays have on one host.
const PARTICIPANTS: u32 = 200;

type Run = Box<dyn FnOnce(Stage) -> LocalBoxFuture<'static, Result<()>>>;

/// A play and its name.
pub(super) struct Play {
    recipe: &'static str,
    /// The operation in the middle of which somebody is struck, unless that one does nothing just then.
    operation: Option<&'static str>,
    name: String,
    run: Run,
}

impl Play {
    /// In which somebody is struck in the middle of that operation.
    pub(super) fn new<F>(
        recipe: &'static str,
        operation: &'static str,
        run: impl FnOnce(Stage) -> F + 'static,
    ) -> Play
    where
        F: Future<Output = Result<()>> + 'static,
    {
        let run: Run = Box::new(|stage| run(stage).boxed_local());
        Play { recipe, operation: Some(operation), name: format!("{recipe}: {operation}"), run }
    }

    fn named(self, name: String) -> Play {
        Play { name, ..self }
    }

    pub(super) fn holding(
        recipe: &Recipe,
        hold: Operation,
        meanwhile: Option<Operation>,
        next: Operation,
    ) -> Play {
        let operation = meanwhile.as_ref().map(|(name, _)| *name);
        let name = format!("{}: {} is held, {}", recipe.name, hold.0, operation.unwrap_or(""));
        let it = Holding { recipe: recipe.clone(), hold, meanwhile, next };
        let run: Run = Box::new(|stage| it.play(stage).boxed_local());
        Play { recipe: recipe.name, operation, name, run }
    }

    pub(super) fn waiting(recipe: &Recipe, hold: Operation, next: Operation) -> Play {
        let name = format!("{}: {} waits for {}", recipe.name, next.0, hold.0);
        let it = Waiting { recipe: recipe.clone(), hold, next };
        let operation = it.next.0;
        Play::new(recipe.name, operation, |stage| it.play(stage)).named(name)
    }

    pub(super) fn forcing(recipe: &Recipe, hold: Operation, next: Operation) -> Play {
        let name = format!("{}: {} is held, and revoked with force", recipe.name, hold.0);
        let it = Forcing { recipe: recipe.clone(), hold, next };
        Play::new(recipe.name, Forcing::OPERATION, |stage| it.play(stage)).named(name)
    }
}

impl From<Asking> for Play {
    fn from(it: Asking) -> Play {
        let name = it.name();
        Play::new(it.recipe.name, it.operation, |stage| it.play(stage)).named(name)
    }
}

/// The operations in the middle of which somebody is struck, each behind its recipe.
pub fn struck() -> BTreeSet<(&'static str, &'static str)> {
    let plays = repertoire::plays().into_iter();
    plays.filter_map(|play| Some((play.recipe, play.operation?))).collect()
}

/// Plays all under one fault, at the same time. Answers how many plays there were.
///
/// # Errors
/// If something that is exclusive was not, what was acknowledged is not there once, somebody waited for
/// ever, or something is left; the error names all plays that failed.
///
/// # Cancellation
/// The servers stay as they are: use another ground.
pub async fn play(ground: &mut Ground, fault: Fault) -> Result<usize> {
    let places = ground.places(fault).await?;
    let company = Arc::new(Company {
        fault,
        struck: Side::new(places.of_the_struck(), TIMEOUT, PARTICIPANTS)?,
        others: Side::new(places.of_the_others(), LONG_TIMEOUT, PARTICIPANTS)?,
        eye: places.of_the_others(),
    });
    let (direct, act) = watch::channel(Act::Opening);
    let (ready, are_ready) = mpsc::unbounded_channel();
    let mut running = FuturesUnordered::new();
    for Play { name, run, .. } in repertoire::plays() {
        let stage = Stage::new(Arc::clone(&company), act.clone(), ready.clone());
        running.push(async move { (name, run(stage).await) });
    }
    let count = running.len();
    let playing = async {
        let mut failed = Vec::new();
        while let Some((name, outcome)) = running.next().await {
            failed.extend(outcome.err().map(|error| format!("{name}: {error:#}")));
        }
        failed
    };
    let directing = break_and_mend(ground, fault, &places, direct, Cues { are_ready, count });
    let (directed, failed) = tokio::join!(directing, playing);
    if !failed.is_empty() {
        bail!("{fault:?}: {} of {count} plays failed\n{}", failed.len(), failed.join("\n"));
    }
    directed.map(|()| count)
}

/// What the plays say.
struct Cues {
    are_ready: mpsc::UnboundedReceiver<()>,
    count: usize,
}

impl Cues {
    async fn all_are_ready(&mut self) -> Result<()> {
        for _ in 0..self.count {
            within("all to be ready", self.are_ready.recv()).await?.context("a play")?;
        }
        Ok(())
    }
}

/// Goes from act to act. If that fails, the plays end, too: `direct` is gone.
async fn break_and_mend(
    ground: &mut Ground,
    fault: Fault,
    places: &Places,
    direct: watch::Sender<Act>,
    mut cues: Cues,
) -> Result<()> {
    cues.all_are_ready().await?;
    direct.send(Act::Broken)?;
    ground.strike(fault, places)?;
    cues.all_are_ready().await?;
    ground.mend(places).await?;
    direct.send(Act::Mended)?;
    Ok(())
}
