//! The stock lock, as a participant has it.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use wok::base::Base;
use wok::guest::{Arguments, Limits};
use wok::participant::{Follower, Participant};
use wok::session::{Failure, Session};

use crate::stock::{self, Recipe};

/// The stock lock at a mount.
pub(crate) struct Lock {
    recipe: Recipe,
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
    pub(crate) fn load(host: &Base, mount: &str) -> Result<Self> {
        let recipe = Recipe::load(host, "lock", mount, json!({}))?;
        Ok(Lock {
            acquire: recipe.operation("acquire")?,
            release: recipe.operation("release")?,
            recipe,
        })
    }

    /// Joins with the limits that users get.
    pub(crate) fn join(
        &self,
        host: &Base,
        session: &Arc<Session>,
    ) -> Result<(Contender, Follower), Failure> {
        self.join_within(Limits::default(), host, session)
    }

    /// Joins with other limits.
    pub(crate) fn join_within(
        &self,
        limits: Limits,
        host: &Base,
        session: &Arc<Session>,
    ) -> Result<(Contender, Follower), Failure> {
        let (participant, follower) = self.recipe.join_within(limits, host, session)?;
        let (acquire, release) = (self.acquire.clone(), self.release.clone());
        Ok((Contender { participant, acquire, release }, follower))
    }
}

impl Contender {
    /// Waits in line for the lock.
    pub(crate) async fn acquire(&self) -> Result<()> {
        stock::hold(&self.participant, &self.acquire).await
    }

    /// Gives it back.
    pub(crate) async fn release(&self) -> Result<()> {
        stock::give_back(&self.participant, &self.release).await
    }
}
