//! Permits, by the protocol of Curator's `InterProcessSemaphoreV2`: a lock in front, so that one alone
//! watches the leases.

use anyhow::Result;
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode};

use super::{Lock, make};

/// A semaphore's directories.
#[derive(Clone)]
pub(crate) struct Semaphore {
    client: Client,
    queue: Lock,
    leases: String,
    permits: usize,
}

/// A permit, held.
pub(crate) struct Lease {
    path: String,
}

impl Semaphore {
    pub(crate) async fn new(client: Client, directory: &str, permits: usize) -> Result<Self> {
        make(&client, directory).await?;
        let leases = format!("{directory}/leases");
        make(&client, &leases).await?;
        let queue = Lock::new(client.clone(), &format!("{directory}/locks")).await?;
        Ok(Semaphore { client, queue, leases, permits })
    }

    pub(crate) async fn acquire(&self) -> Result<Lease> {
        let place = self.queue.acquire().await?;
        let path = format!("{}/lease-{}", self.leases, Uuid::new_v4().hyphenated());
        let options = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        self.client.create(&path, b"", &options).await?;
        loop {
            let (names, change) = self.client.list_and_watch_children(&self.leases).await?;
            if names.len() <= self.permits {
                break;
            }
            change.changed().await;
            // Most likely a permit is free, and nothing has to be watched any more.
            if self.client.list_children(&self.leases).await?.len() <= self.permits {
                break;
            }
        }
        self.queue.release(place).await?;
        Ok(Lease { path })
    }

    pub(crate) async fn release(&self, lease: Lease) -> Result<()> {
        Ok(self.client.delete(&lease.path, None).await?)
    }
}
