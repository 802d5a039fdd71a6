//! A stock recipe, as a participant has it.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use wok::base::Base;
use wok::guest::{Arguments, Limits, Module, Mount};
use wok::modules::ModuleSource;
use wok::participant::{Answer, Call, Follower, Join, Participant};
use wok::session::{Failure, SeatLimits, Session};

/// A stock recipe at a mount.
#[derive(Clone)]
pub(crate) struct Recipe {
    module: Module,
    mount: Mount,
    config: Value,
}

impl Recipe {
    pub(crate) fn load(host: &Base, name: &str, mount: &str, config: Value) -> Result<Self> {
        let module = host.load(&ModuleSource::Stock(name.to_owned()), None)?;
        Ok(Recipe { module, mount: Mount::new(mount)?, config })
    }

    /// An operation without arguments.
    pub(crate) fn operation(&self, name: &str) -> Result<Arguments> {
        self.operation_with(name, &Value::Null)
    }

    /// An operation with these arguments.
    pub(crate) fn operation_with(&self, name: &str, arguments: &Value) -> Result<Arguments> {
        Ok(self.module.arguments(name, arguments)?)
    }

    /// Joins with the limits that users get.
    pub(crate) fn join(
        &self,
        host: &Base,
        session: &Arc<Session>,
    ) -> Result<(Participant, Follower), Failure> {
        self.join_within(Limits::default(), host, session)
    }

    /// Joins with other limits.
    pub(crate) fn join_within(
        &self,
        limits: Limits,
        host: &Base,
        session: &Arc<Session>,
    ) -> Result<(Participant, Follower), Failure> {
        let config = match self.module.configuration(Some(&self.config)) {
            Ok(config) => config,
            Err(errors) => return Err(Failure::Invalid(errors.to_string())),
        };
        let join = Join {
            recipe: self.module.name().to_owned(),
            module: self.module.clone(),
            mount: self.mount.clone(),
            config,
            limits,
            seat: SeatLimits::default(),
            owner: String::new(),
            witness: None,
        };
        Participant::join(host.tasks(), session, join)
    }
}

/// Calls what takes a claim.
pub(crate) async fn hold(participant: &Participant, operation: &Arguments) -> Result<()> {
    let answer = call(participant, operation).await?;
    ensure!(answer.claim.is_some(), "nothing is held: {:?}", answer.value);
    Ok(())
}

/// Calls what gives it back.
pub(crate) async fn give_back(participant: &Participant, operation: &Arguments) -> Result<()> {
    answer(participant, operation).await.context("it is not given back").map(drop)
}

/// Calls an operation, and gives what it answers.
pub(crate) async fn answer(participant: &Participant, operation: &Arguments) -> Result<Value> {
    let answer = call(participant, operation).await?;
    answer.value.map_err(|error| anyhow::anyhow!("the operation answered {error}"))
}

async fn call(participant: &Participant, arguments: &Arguments) -> Result<Answer> {
    let call = Call { arguments: arguments.clone(), deadline: None, withdrawn: None };
    Ok(participant.call(call).await?)
}
