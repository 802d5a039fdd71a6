//! The published queue: sequential znodes, of which the lowest is taken first. Many requests are on
//! their way at a time where more than one item is put or taken.

use anyhow::Result;
use futures_util::future::{try_join, try_join_all};
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::make;

/// A queue's directories.
#[derive(Clone)]
pub(crate) struct Queue {
    client: Client,
    items: String,
    claims: String,
}

/// An item that its consumer has claimed.
pub(crate) struct Claimed {
    name: String,
    pub(crate) data: Vec<u8>,
}

impl Queue {
    pub(crate) async fn new(client: Client, directory: &str) -> Result<Self> {
        let (items, claims) = (format!("{directory}/items"), format!("{directory}/claims"));
        for path in [directory, &items, &claims] {
            make(&client, path).await?;
        }
        Ok(Queue { client, items, claims })
    }

    /// Puts all in, in their order.
    pub(crate) async fn put(&self, items: &[String]) -> Result<()> {
        let options = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
        let prefix = format!("{}/qn-", self.items);
        let puts = items.iter().map(|item| self.client.create(&prefix, item.as_bytes(), &options));
        try_join_all(puts).await?;
        Ok(())
    }

    /// Takes up to `most` of the oldest items. While the queue is empty it waits.
    pub(crate) async fn take(&self, most: usize) -> Result<Vec<Vec<u8>>> {
        loop {
            for names in self.names().await?.chunks(most) {
                let taken = try_join_all(names.iter().map(|name| self.remove(name))).await?;
                let taken: Vec<_> = taken.into_iter().flatten().collect();
                if !taken.is_empty() {
                    return Ok(taken);
                }
            }
        }
    }

    /// Claims the oldest item that nobody has claimed. While there is no such item it asks again.
    pub(crate) async fn claim(&self) -> Result<Claimed> {
        loop {
            let claims = async { Ok(self.client.list_children(&self.claims).await?) };
            let (names, claimed) = try_join(self.names(), claims).await?;
            for name in names.into_iter().filter(|name| !claimed.contains(name)) {
                if let Some(data) = self.claim_one(&name).await? {
                    return Ok(Claimed { name, data });
                }
            }
        }
    }

    /// Removes what was claimed.
    pub(crate) async fn ack(&self, claimed: Claimed) -> Result<()> {
        let mut writer = self.client.new_multi_writer();
        writer.add_delete(&format!("{}/{}", self.items, claimed.name), None)?;
        writer.add_delete(&format!("{}/{}", self.claims, claimed.name), None)?;
        writer.commit().await?;
        Ok(())
    }

    /// Oldest first, and one at least.
    async fn names(&self) -> Result<Vec<String>> {
        let mut names = self.client.list_children(&self.items).await?;
        while names.is_empty() {
            let (now, change) = self.client.list_and_watch_children(&self.items).await?;
            names = now;
            if names.is_empty() {
                change.changed().await;
            }
        }
        names.sort();
        Ok(names)
    }

    /// None if another consumer was faster.
    async fn remove(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = format!("{}/{name}", self.items);
        let removed = async {
            let (data, _) = self.client.get_data(&path).await?;
            self.client.delete(&path, None).await?;
            Ok(data)
        };
        unless_gone(removed.await)
    }

    /// None if another consumer was faster.
    async fn claim_one(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let (item, claim) = (format!("{}/{name}", self.items), format!("{}/{name}", self.claims));
        let options = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        let claimed = self.client.create(&claim, b"", &options);
        // The read goes behind the create on the connection, without waiting for its answer.
        match try_join(claimed, self.client.get_data(&item)).await {
            Ok((_, (data, _))) => Ok(Some(data)),
            Err(Error::NodeExists) => Ok(None),
            Err(error) => unless_gone(Err(error)),
        }
    }
}

fn unless_gone(data: Result<Vec<u8>, Error>) -> Result<Option<Vec<u8>>> {
    match data {
        Ok(data) => Ok(Some(data)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
