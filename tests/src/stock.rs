//! A stock recipe in the test's own process, for what only a participant's owner can do: to call one
//! operation after another of the participant that holds.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use serde_json::Value;
use wok::base::{self, Base, BaseOptions, Sessions};
use wok::guest::{Arguments, Engine, EngineOptions, Limits, Module, Mount, Pace};
use wok::modules::{ModuleSource, stock_names};
use wok::participant::{Answer, Call, CallError, Follower, Join, Notice, Participant};
use wok::session::{ConnectOptions, SeatLimits, Session};

use crate::patience::within;

/// No test that uses this waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Participants of one host at a time, as many as a test needs.
const PARTICIPANTS: u32 = 32;

/// What each of them may have, in bytes.
const MEMORY: u64 = 16 << 20;

/// Every operation of every stock recipe, behind the recipe's name. The components are compiled, and
/// nothing connects.
///
/// # Errors
/// If a component is no recipe for this host.
pub fn operations() -> Result<Vec<(&'static str, String)>> {
    let engine = Engine::new(&EngineOptions {
        participants: PARTICIPANTS,
        memory: MEMORY,
        table_elements: Limits::default().table_elements,
        cache: base::user_cache(),
        pace: Pace::Clock,
    })?;
    let mut operations = Vec::new();
    for recipe in stock_names() {
        let module = base::load(&engine, &ModuleSource::Stock(recipe.to_owned()), None)?;
        let names = module.interface().operations.iter().map(|operation| &operation.name);
        operations.extend(names.map(|name| (recipe, name.clone())));
    }
    Ok(operations)
}

/// A stock recipe at a path, on a host and a session of its own.
#[derive(Debug)]
pub struct Stock {
    host: Base,
    session: Arc<Session>,
    module: Module,
    path: String,
    config: Option<Value>,
}

impl Stock {
    /// Opens a session at that address and loads the recipe.
    ///
    /// # Errors
    /// If the server does not answer, or there is no such recipe.
    pub async fn open(address: &str, recipe: &str, path: &str) -> Result<Stock> {
        let host = Base::new(BaseOptions {
            participants: PARTICIPANTS,
            memory: MEMORY,
            cache: base::user_cache(),
            connect: ConnectOptions::new(address, TIMEOUT),
            sessions: Sessions::at_most(1),
        })?;
        let session = host.open_session().await?;
        let module = host.load(&ModuleSource::Stock(recipe.to_owned()), None)?;
        Ok(Stock { host, session, module, path: path.to_owned(), config: None })
    }

    /// The same with settings of the module.
    #[must_use]
    pub fn configured(self, config: Value) -> Stock {
        Stock { config: Some(config), ..self }
    }

    /// Joins as another participant.
    ///
    /// # Errors
    /// If the settings are wrong, or the session has no room.
    pub fn join(&self) -> Result<(Participant, Follower)> {
        let config = self.module.configuration(self.config.as_ref());
        let join = Join {
            recipe: self.module.name().to_owned(),
            module: self.module.clone(),
            mount: Mount::new(&self.path)?,
            config: config.map_err(|errors| anyhow!("{errors}"))?,
            limits: Limits::default(),
            seat: SeatLimits::default(),
            owner: "a test".to_owned(),
            witness: None,
        };
        Ok(Participant::join(self.host.tasks(), &self.session, join)?)
    }

    /// Calls an operation without arguments, and waits for its answer.
    ///
    /// # Errors
    /// If there is none.
    pub async fn call(&self, participant: &Participant, operation: &str) -> Result<Answer> {
        self.call_with(participant, operation, &Value::Null).await
    }

    /// Calls an operation with arguments, and waits for its answer.
    ///
    /// # Errors
    /// If there is none, or the operation takes other arguments.
    pub async fn call_with(
        &self,
        participant: &Participant,
        operation: &str,
        arguments: &Value,
    ) -> Result<Answer> {
        let arguments = self.arguments(operation, arguments)?;
        let call = Call { arguments, deadline: None, withdrawn: None };
        match within(operation, participant.call(call)).await? {
            Err(CallError::Ended) => bail!("{operation}: {}", ending(participant).await?),
            answer => Ok(answer?),
        }
    }

    /// What a call of an operation is made of, for a caller that withdraws.
    ///
    /// # Errors
    /// If the operation takes other arguments.
    pub fn arguments(&self, operation: &str, arguments: &Value) -> Result<Arguments> {
        Ok(self.module.arguments(operation, arguments)?)
    }
}

/// How a participant has ended, which the error of its call does not say.
async fn ending(participant: &Participant) -> Result<String> {
    let mut follower = participant.presence().follow();
    while let Some(notice) = within("the end to be told", follower.next()).await? {
        if let Notice::Ended(ending) = notice {
            return Ok(format!("the participant has ended: {ending}"));
        }
    }
    bail!("the participant has ended, and tells no end")
}
