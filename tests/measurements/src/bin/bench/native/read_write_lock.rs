//! Readers together or one writer, in the znodes of Curator's lock.

use anyhow::Result;
use zookeeper_client::Client;

use super::{Held, Lock};

const READ: &str = "-__READ__";
const WRITE: &str = "-__WRIT__";

/// A read-write lock's directory.
#[derive(Clone)]
pub(crate) struct ReadWriteLock(Lock);

impl ReadWriteLock {
    pub(crate) async fn new(client: Client, directory: &str) -> Result<Self> {
        Ok(ReadWriteLock(Lock::new(client, directory).await?))
    }

    /// Waits until no writer is ahead.
    pub(crate) async fn acquire_read(&self) -> Result<Held> {
        self.0.stand(READ, |name| name.contains(WRITE), ()).await
    }

    /// Waits until nobody is ahead.
    pub(crate) async fn acquire_write(&self) -> Result<Held> {
        self.0.stand(WRITE, |_| true, ()).await
    }

    pub(crate) async fn release(&self, held: Held) -> Result<()> {
        self.0.release(held).await
    }
}
