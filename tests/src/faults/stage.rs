//! The stage of a play: its path, the two hosts, and when something breaks and is mended.

use std::sync::Arc;

use anyhow::{Result, ensure};
use tokio::sync::{mpsc, watch};

use super::ground::Fault;
use super::party::{Member, Recipe, Side};
use crate::admin::Admin;
use crate::patience::eventually;
use crate::zookeeper;

/// How far it has come. Each play says when it is ready for the next act, and waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    /// Everybody takes their places.
    Opening,
    /// Something is broken.
    Broken,
    /// It is mended.
    Mended,
}

/// What all plays have in common.
pub(super) struct Company {
    pub(super) fault: Fault,
    pub(super) struck: Side,
    pub(super) others: Side,
    /// A server that nothing happens to.
    pub(super) eye: String,
}

/// The stage of one play.
pub(super) struct Stage {
    company: Arc<Company>,
    path: String,
    act: watch::Receiver<Act>,
    ready: mpsc::UnboundedSender<()>,
    /// For how many acts it has still to say that it is ready.
    left: usize,
}

impl Stage {
    pub(super) fn new(
        company: Arc<Company>,
        act: watch::Receiver<Act>,
        ready: mpsc::UnboundedSender<()>,
    ) -> Stage {
        Stage { company, path: zookeeper::unique_path(), act, ready, left: 2 }
    }

    pub(super) fn fault(&self) -> Fault {
        self.company.fault
    }

    /// A participant to which it happens.
    pub(super) async fn struck(&self, recipe: &Recipe) -> Result<Member> {
        self.company.struck.join(recipe, &self.path).await
    }

    /// One to which nothing happens.
    pub(super) async fn other(&self, recipe: &Recipe) -> Result<Member> {
        self.company.others.join(recipe, &self.path).await
    }

    /// Waits until something is broken. An operation that is begun right behind it is in the middle
    /// of that.
    pub(super) async fn until_broken(&mut self) -> Result<()> {
        self.until(Act::Broken).await
    }

    /// Waits until all is mended.
    pub(super) async fn until_mended(&mut self) -> Result<()> {
        self.until(Act::Mended).await
    }

    async fn until(&mut self, act: Act) -> Result<()> {
        self.say_ready();
        self.act.wait_for(|it| *it >= act).await?;
        Ok(())
    }

    fn say_ready(&mut self) {
        self.left = self.left.saturating_sub(1);
        // Nobody listens any more once the last act has begun.
        self.ready.send(()).ok();
    }

    /// Waits until a directory has so many children.
    pub(super) async fn until_children(&self, directory: &str, count: usize) -> Result<()> {
        let admin = Admin::connect(&self.company.eye).await?;
        let directory = format!("{}/{directory}", self.path);
        let directory = directory.trim_end_matches('/');
        eventually("the children", async || {
            if admin.stat(directory).await?.is_none() {
                return Ok(None);
            }
            Ok((admin.children(directory).await?.len() == count).then_some(()))
        })
        .await
    }

    /// Nothing ephemeral is left: what was there of a session that is gone goes with it.
    pub(super) async fn nothing_is_left(&self) -> Result<()> {
        let admin = Admin::connect(&self.company.eye).await?;
        let left = async || -> Result<Vec<String>> {
            let tree = admin.tree(&self.path).await?;
            let ephemeral = tree.into_iter().filter(|znode| znode.stat.ephemeral_owner != 0);
            Ok(ephemeral.map(|znode| znode.path).collect())
        };
        let gone = eventually("the ephemeral znodes to go", async || {
            Ok(left().await?.is_empty().then_some(()))
        });
        let outcome = gone.await;
        let left = left().await?;
        ensure!(left.is_empty(), "left: {left:?}");
        outcome
    }
}

impl Drop for Stage {
    /// The others do not wait for a play that has failed.
    fn drop(&mut self) {
        for _ in 0..self.left {
            self.say_ready();
        }
    }
}
