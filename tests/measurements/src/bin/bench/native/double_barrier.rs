//! The published double barrier, in a directory for each round: the last to leave makes the next.

use anyhow::{Context, Result};
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::{make, until_deleted, watch};

const READY: &str = "ready";

/// A double barrier's directory.
#[derive(Clone)]
pub(crate) struct DoubleBarrier {
    client: Client,
    directory: String,
    size: usize,
}

impl DoubleBarrier {
    pub(crate) async fn new(client: Client, directory: &str, size: usize) -> Result<Self> {
        make(&client, directory).await?;
        make(&client, &format!("{directory}/0")).await?;
        Ok(DoubleBarrier { client, directory: directory.to_owned(), size })
    }

    /// Goes in together with all others, and out.
    pub(crate) async fn round(&self, number: usize, name: &str) -> Result<()> {
        let directory = format!("{}/{number}", self.directory);
        let next = format!("{}/{}", self.directory, number + 1);
        self.enter(&directory, name).await.with_context(|| format!("enter {directory}"))?;
        self.leave(&directory, name, &next).await.with_context(|| format!("leave {directory}"))
    }

    async fn enter(&self, directory: &str, name: &str) -> Result<()> {
        let ready = format!("{directory}/{READY}");
        let (_, is_ready) = self.client.check_and_watch_stat(&ready).await?;
        let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        self.client.create(&format!("{directory}/{name}"), b"", &ephemeral).await?;
        match self.client.list_children(directory).await?.len() == self.size {
            true => make(&self.client, &ready).await?,
            false => drop(is_ready.changed().await),
        }
        Ok(())
    }

    async fn leave(&self, directory: &str, own: &str, next: &str) -> Result<()> {
        let path = |name: &str| format!("{directory}/{name}");
        let mut is_there = true;
        loop {
            let mut members = match self.client.list_children(directory).await {
                Err(Error::NoNode) => return Ok(()),
                names => names?,
            };
            members.retain(|name| name != READY);
            members.sort();
            let waited_for = match members.as_slice() {
                [] => return Ok(()),
                [only] if only == own => return self.close(directory, own, next).await,
                [lowest, .., highest] if lowest == own => highest,
                [lowest, ..] => {
                    if std::mem::take(&mut is_there) {
                        self.client.delete(&path(own), None).await?;
                    }
                    lowest
                }
            };
            if let Some(watch) = watch(&self.client, &path(waited_for)).await? {
                until_deleted(watch).await?;
            }
        }
    }

    async fn close(&self, directory: &str, own: &str, next: &str) -> Result<()> {
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let mut writer = self.client.new_multi_writer();
        writer.add_delete(&format!("{directory}/{own}"), None)?;
        writer.add_delete(&format!("{directory}/{READY}"), None)?;
        writer.add_delete(directory, None)?;
        writer.add_create(next, b"", &persistent)?;
        writer.commit().await?;
        Ok(())
    }
}
