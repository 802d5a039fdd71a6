//! What a play is, and how all are played at once under one fault.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, watch};

use super::asking::Asking;
use super::claiming::{Holding, Waiting};
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
    name: String,
    run: Run,
}

impl Play {
    pub(super) fn new<F>(name: String, run: impl FnOnce(Stage) -> F + 'static) -> Play
    where
        F: Future<Output = Result<()>> + 'static,
    {
        Play { name, run: Box::new(|stage| run(stage).boxed_local()) }
    }

    pub(super) fn holding(
        recipe: &Recipe,
        hold: Operation,
        meanwhile: Option<Operation>,
        next: Operation,
    ) -> Play {
        let during = meanwhile.as_ref().map_or("", |(name, _)| *name);
        let name = format!("{}: {} is held, {during}", recipe.name, hold.0);
        let it = Holding { recipe: recipe.clone(), hold, meanwhile, next };
        Play::new(name, |stage| it.play(stage))
    }

    pub(super) fn waiting(recipe: &Recipe, hold: Operation, next: Operation) -> Play {
        let name = format!("{}: {} waits for {}", recipe.name, next.0, hold.0);
        let it = Waiting { recipe: recipe.clone(), hold, next };
        Play::new(name, |stage| it.play(stage))
    }

    pub(super) fn asking(
        recipe: &Recipe,
        before: Vec<Operation>,
        asks: Operation,
        after: Vec<Operation>,
    ) -> Play {
        let name = format!("{}: {}", recipe.name, asks.0);
        let it = Asking { recipe: recipe.clone(), before, asks, after };
        Play::new(name, |stage| it.play(stage))
    }
}

/// Plays all under one fault, at the same time. Answers how many plays there were.
///
/// # Errors
/// If something that is exclusive was not, somebody waited for ever, or something is left; the error
/// names all plays that failed.
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
    for Play { name, run } in repertoire::plays() {
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
