//! The stock lock, as a participant has it.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::Value;
use wok::Host;
use wok::guest::{Arguments, Limits, Module, Mount};
use wok::modules::ModuleSource;
use wok::participant::{Answer, Call, Follower, Join, Participant};
use wok::session::{Failure, SeatLimits, Session};

/// The stock lock at a mount.
pub(crate) struct Lock {
    module: Module,
    mount: Mount,
    acquire: Arguments,
    release: Arguments,
}

/// One participant in it.
pub(crate) struct Contender {
    participant: Participant,
    acquire: Arguments,
    release: Arguments,
}

impl Lock {
    pub(crate) fn load(host: &Host, mount: &str) -> Result<Self> {
        let module = host.load(&ModuleSource::Stock("lock".to_owned()), None)?;
        let nothing = Value::Null;
        Ok(Lock {
            acquire: module.arguments("acquire", &nothing)?,
            release: module.arguments("release", &nothing)?,
            mount: Mount::new(mount)?,
            module,
        })
    }

    /// Joins with the limits that users get.
    pub(crate) fn join(
        &self,
        host: &Host,
        session: &Arc<Session>,
    ) -> Result<(Contender, Follower), Failure> {
        self.join_within(Limits::default(), host, session)
    }

    /// Joins with other limits.
    pub(crate) fn join_within(
        &self,
        limits: Limits,
        host: &Host,
        session: &Arc<Session>,
    ) -> Result<(Contender, Follower), Failure> {
        let config = match self.module.configuration(None) {
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
        let (participant, follower) = Participant::join(host.tasks(), session, join)?;
        let (acquire, release) = (self.acquire.clone(), self.release.clone());
        Ok((Contender { participant, acquire, release }, follower))
    }
}

impl Contender {
    /// Waits in line for the lock.
    pub(crate) async fn acquire(&self) -> Result<()> {
        let answer = self.call(&self.acquire).await?;
        ensure!(answer.claim.is_some(), "acquire answered {:?}", answer.value);
        Ok(())
    }

    /// Gives it back.
    pub(crate) async fn release(&self) -> Result<()> {
        let answer = self.call(&self.release).await?;
        ensure!(answer.value.is_ok(), "release answered {:?}", answer.value);
        Ok(())
    }

    async fn call(&self, arguments: &Arguments) -> Result<Answer> {
        let call = Call { arguments: arguments.clone(), deadline: None, withdrawn: None };
        Ok(self.participant.call(call).await?)
    }
}
