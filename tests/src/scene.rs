//! A stock recipe at a fresh path, in the test's own process, with a session behind a proxy that
//! counts what is sent.

use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use wok::participant::Participant;

use crate::admin::Admin;
use crate::frames::Opcode;
use crate::patience::eventually;
use crate::proxy::{Match, Proxy};
use crate::stock::Stock;
use crate::zookeeper;

/// The recipe, and all that a test does to it and looks at.
#[derive(Debug)]
pub struct Scene {
    /// The recipe itself.
    pub stock: Stock,
    /// Where the recipe is mounted.
    pub path: String,
    /// All of the recipe's requests go through this one.
    pub proxy: Proxy,
    /// An eye whose requests do not.
    pub admin: Admin,
}

impl Scene {
    /// The recipe of that name, on the server that the tests of a binary share.
    ///
    /// # Errors
    /// If the server does not answer, or there is no such recipe.
    pub async fn open(recipe: &str) -> Result<Scene> {
        Scene::open_at(recipe, zookeeper::unique_path()).await
    }

    /// The same at a path that is there already.
    ///
    /// # Errors
    /// As for [`Scene::open`].
    pub async fn open_at(recipe: &str, path: String) -> Result<Scene> {
        let server = zookeeper::shared().await;
        let proxy = Proxy::start(server.address())?;
        let admin = Admin::connect(server.address()).await?;
        let stock = Stock::open(proxy.address(), recipe, &path).await?;
        Ok(Scene { stock, path, proxy, admin })
    }

    /// The same with settings of the module.
    #[must_use]
    pub fn configured(self, config: Value) -> Scene {
        Scene { stock: self.stock.configured(config), ..self }
    }

    /// The requests about the recipe's znodes.
    pub fn about(&self) -> Match {
        Match::any().under(&self.path)
    }

    /// What was sent about them, in its order.
    pub fn sent(&self) -> Vec<Opcode> {
        self.proxy.requests(&self.about()).iter().map(|seen| seen.opcode).collect()
    }

    /// Waits until so many requests were sent about them.
    ///
    /// # Errors
    /// If they are not.
    pub async fn until_sent(&self, count: usize) -> Result<()> {
        let what = format!("{count} requests to be sent");
        eventually(&what, async || Ok((self.sent().len() >= count).then_some(()))).await
    }

    /// Waits until the contender that was created last is watched. A claim that a list has shown is so only
    /// when it has been held for some milliseconds.
    ///
    /// # Errors
    /// If no contender was created, or if nobody comes to watch the newest.
    pub async fn until_watched(&self) -> Result<()> {
        let contenders = self.proxy.requests(&Match::opcode(Opcode::Create2).under(&self.path));
        let newest = contenders.last().and_then(|seen| seen.path.clone()).context("a contender")?;
        let reads = Match::opcode(Opcode::GetData)
            .and(move |seen| seen.path.as_deref().is_some_and(|path| path.starts_with(&newest)));
        eventually("its claim to be watched", async || {
            Ok((!self.proxy.requests(&reads).is_empty()).then_some(()))
        })
        .await
    }

    /// What an operation answers.
    ///
    /// # Errors
    /// If it fails, or there is no answer.
    pub async fn value(&self, who: &Participant, operation: &str, with: Value) -> Result<Value> {
        let answer = self.stock.call_with(who, operation, &with).await?;
        answer.value.map_err(|error| anyhow!("{operation}: {error}"))
    }
}
