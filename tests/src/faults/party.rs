//! Participants of a play, on a host that is struck or on one that is not.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio::task::{AbortHandle, JoinSet};
use wok::base::{self, Base, BaseOptions, Sessions};
use wok::guest::{Limits, Module, Mount};
use wok::modules::ModuleSource;
use wok::participant::{Answer, Call, CallError, Ending, Follower, Join, Notice, Participant};
use wok::session::{ConnectOptions, SeatLimits};

use crate::patience::{eventually, within};

/// An operation and its arguments.
pub(super) type Operation = (&'static str, Value);

/// A recipe with settings.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) name: &'static str,
    pub(super) config: Value,
}

/// One of two hosts.
pub(super) struct Side {
    host: Base,
    /// Sessions are opened one after another: some need an answer soon.
    opening: Mutex<()>,
}

impl Side {
    pub(super) fn new(servers: String, timeout: Duration, participants: u32) -> Result<Side> {
        let host = Base::new(BaseOptions {
            participants,
            memory: Limits::default().memory,
            cache: base::user_cache(),
            connect: ConnectOptions::new(servers, timeout),
            sessions: Sessions::at_most(1),
        })?;
        Ok(Side { host, opening: Mutex::new(()) })
    }

    /// Another participant, on a session of its own.
    pub(super) async fn join(&self, recipe: &Recipe, path: &str) -> Result<Member> {
        let opening = self.opening.lock().await;
        let module = self.host.load(&ModuleSource::Stock(recipe.name.to_owned()), None)?;
        let config = module.configuration(Some(&recipe.config));
        let session = within("a session", self.host.open_session()).await??;
        drop(opening);
        let join = Join {
            recipe: recipe.name.to_owned(),
            module: module.clone(),
            mount: Mount::new(path)?,
            config: config.map_err(|errors| anyhow!("{errors}"))?,
            limits: Limits::default(),
            seat: SeatLimits::default(),
            owner: "a test".to_owned(),
            witness: None,
        };
        let (participant, follower) = Participant::join(self.host.tasks(), &session, join)?;
        let (mut listening, (tell, told)) = (JoinSet::new(), watch::channel(Told::default()));
        listening.spawn(listen(follower, tell));
        Ok(Member { module, participant: Arc::new(participant), told, _listening: listening })
    }
}

/// What a participant has told.
#[derive(Clone, Debug, Default)]
struct Told {
    stands_in_line: bool,
    ending: Option<Ending>,
}

async fn listen(mut follower: Follower, tell: watch::Sender<Told>) {
    while let Some(notice) = follower.next().await {
        tell.send_modify(|told| match notice {
            Notice::Waiting { .. } => told.stands_in_line = true,
            Notice::Ended(ending) => told.ending = Some(ending),
            _ => {}
        });
    }
}

/// A participant.
pub(super) struct Member {
    module: Module,
    participant: Arc<Participant>,
    told: watch::Receiver<Told>,
    _listening: JoinSet<()>,
}

impl Member {
    /// Begins an operation.
    pub(super) fn begin(&self, (operation, arguments): &Operation) -> Result<Begun> {
        let call = Call {
            arguments: self.module.arguments(operation, arguments)?,
            deadline: None,
            withdrawn: None,
        };
        let participant = Arc::clone(&self.participant);
        let mut running = JoinSet::new();
        let handle = running.spawn(async move { participant.call(call).await });
        Ok(Begun { operation, handle, running })
    }

    /// Has an operation done.
    ///
    /// # Errors
    /// If it is not done.
    pub(super) async fn has_done(&self, operation: &Operation) -> Result<Answer> {
        self.begin(operation)?.done().await
    }

    pub(super) fn holds(&self) -> bool {
        self.participant.holds()
    }

    pub(super) async fn until_it_holds(&self) -> Result<()> {
        eventually("a claim", async || {
            self.goes_on()?;
            Ok(self.holds().then_some(()))
        })
        .await
    }

    /// Waits until it holds, and `other` never does at the same time.
    pub(super) async fn until_it_holds_after(&self, other: &Member) -> Result<()> {
        eventually("a claim", async || {
            let (before, others, after) = (self.holds(), other.holds(), self.holds());
            anyhow::ensure!(!(before && others && after), "two hold at the same time");
            self.goes_on()?;
            Ok(after.then_some(()))
        })
        .await
    }

    /// Fails where it has ended: it will never hold then.
    fn goes_on(&self) -> Result<()> {
        match &self.told.borrow().ending {
            Some(ending) => anyhow::bail!("it ended first: {ending:?}"),
            None => Ok(()),
        }
    }

    pub(super) async fn until_it_stands_in_line(&self) -> Result<()> {
        let mut told = self.told.clone();
        let in_line = within("a place in line", told.wait_for(|told| told.stands_in_line)).await?;
        in_line.map(drop).context("it ended first")
    }

    /// Has it leave, and waits until nothing of it is left.
    pub(super) async fn leaves(&self) -> Result<()> {
        self.participant.leave();
        let mut told = self.told.clone();
        within("its end", told.wait_for(|told| told.ending.is_some())).await?.map(drop)?;
        Ok(())
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.told.borrow().ending.is_some()
    }
}

/// An operation that was begun.
pub(super) struct Begun {
    operation: &'static str,
    handle: AbortHandle,
    running: JoinSet<Result<Answer, CallError>>,
}

impl Begun {
    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits until it has ended, however. Answers what it returned, if it returned.
    ///
    /// # Errors
    /// If it goes on.
    pub(super) async fn ended(self) -> Result<Option<Answer>> {
        Ok(self.answered().await?.ok())
    }

    /// Waits until it has done what it is to do.
    ///
    /// # Errors
    /// If it has not.
    pub(super) async fn done(self) -> Result<Answer> {
        let operation = self.operation;
        let answer = self.answered().await?.context(operation)?;
        match &answer.value {
            Ok(_) => Ok(answer),
            Err(error) => Err(anyhow!("{operation}: {error}")),
        }
    }

    async fn answered(mut self) -> Result<Result<Answer, CallError>> {
        let what = format!("the end of {}", self.operation);
        Ok(within(&what, self.running.join_next()).await?.context("the call")??)
    }
}
