//! The baseline: the recipes against the client crate alone, as a good program would have them. The
//! lock is here.

mod double_barrier;
mod queue;
mod read_write_lock;
mod semaphore;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode, Error, EventType, OneshotWatcher};

use crate::ground::SESSION_TIMEOUT;

pub(crate) use double_barrier::DoubleBarrier;
pub(crate) use queue::Queue;
pub(crate) use read_write_lock::ReadWriteLock;
pub(crate) use semaphore::Semaphore;

/// What follows the id in a contender's name.
const LOCK: &str = "-lock-";

/// Of ZooKeeper's sequential names.
const COUNTER_DIGITS: usize = 10;

/// How many contenders are created at a time where many are.
const AT_A_TIME: usize = 500;

/// Opens a session on the runtime this is called in.
pub(crate) async fn connect(address: &str) -> Result<Client> {
    let connector = Client::connector().with_session_timeout(SESSION_TIMEOUT);
    connector.connect(address).await.with_context(|| format!("connect to {address}"))
}

/// A lock's directory.
#[derive(Clone)]
pub(crate) struct Lock {
    client: Client,
    directory: String,
}

/// The lock, held.
pub(crate) struct Held {
    path: String,
}

impl Lock {
    /// Creates the directory if it is not there. Not as a container: the server would remove it
    /// between two cycles now and then.
    pub(crate) async fn new(client: Client, directory: &str) -> Result<Self> {
        make(&client, directory).await?;
        Ok(Lock { client, directory: directory.to_owned() })
    }

    /// Takes the lock and gives it back at once, one request after another: create, list, delete.
    pub(crate) async fn cycle_alone(&self) -> Result<()> {
        let (path, name) = self.contend(LOCK).await?;
        let ahead = self.predecessor(&name, |_| true).await?;
        anyhow::ensure!(ahead.is_none(), "{path}: somebody is ahead");
        self.release(Held { path }).await
    }

    /// Has so many contenders stand in line that nobody waits for.
    pub(crate) async fn fill(&self, count: usize) -> Result<()> {
        for start in (0..count).step_by(AT_A_TIME) {
            let batch = start..count.min(start + AT_A_TIME);
            try_join_all(batch.map(|_| self.contend(LOCK))).await?;
        }
        Ok(())
    }

    /// Stands in line, looks who is ahead, and gives up, again and again.
    pub(crate) async fn look_and_go(&self, times: u32) -> Result<()> {
        for _ in 0..times {
            let (path, name) = self.contend(LOCK).await?;
            let ahead = self.predecessor(&name, |_| true).await?;
            anyhow::ensure!(ahead.is_some(), "{path}: nobody is ahead");
            self.release(Held { path }).await?;
        }
        Ok(())
    }

    /// Waits in line for the lock.
    pub(crate) async fn acquire(&self) -> Result<Held> {
        self.acquire_and_tell(()).await
    }

    /// The same, and drops something when it stands in line and watches, or holds at once.
    pub(crate) async fn acquire_and_tell<T>(&self, joining: T) -> Result<Held> {
        self.stand(LOCK, |_| true, joining).await
    }

    /// Waits until nobody is ahead of those who are in the way.
    async fn stand<T>(
        &self,
        kind: &str,
        is_in_the_way: impl Fn(&str) -> bool,
        joining: T,
    ) -> Result<Held> {
        let mut joining = Some(joining);
        let (path, name) = self.contend(kind).await?;
        while let Some(predecessor) = self.predecessor(&name, &is_in_the_way).await? {
            let path = format!("{}/{predecessor}", self.directory);
            if let Some(watch) = watch(&self.client, &path).await? {
                drop(joining.take());
                until_deleted(watch).await?;
            }
        }
        Ok(Held { path })
    }

    /// Gives it back.
    pub(crate) async fn release(&self, held: Held) -> Result<()> {
        Ok(self.client.delete(&held.path, None).await?)
    }

    /// Answers the path and the name of the new znode.
    async fn contend(&self, kind: &str) -> Result<(String, String)> {
        let stem = format!("_c_{}{kind}", Uuid::new_v4().hyphenated());
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let path = format!("{}/{stem}", self.directory);
        let (_, sequence) = self.client.create(&path, b"", &options).await?;
        Ok((format!("{path}{sequence}"), format!("{stem}{sequence}")))
    }

    /// The name of the next one ahead that is in the way.
    async fn predecessor(
        &self,
        own: &str,
        is_in_the_way: impl Fn(&str) -> bool,
    ) -> Result<Option<String>> {
        let names = self.client.list_children(&self.directory).await?;
        let own = counter(own);
        let ahead = names.into_iter().filter(|name| counter(name) < own && is_in_the_way(name));
        Ok(ahead.max_by_key(|name| counter(name)))
    }
}

/// Creates a znode that stays, unless it is there.
async fn make(client: &Client, path: &str) -> Result<()> {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    match client.create(path, b"", &options).await {
        Ok(_) | Err(Error::NodeExists) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("create {path}")),
    }
}

/// None if the znode is gone.
async fn watch(client: &Client, path: &str) -> Result<Option<OneshotWatcher>> {
    match client.get_and_watch_data(path).await {
        Ok((_, _, watch)) => Ok(Some(watch)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn until_deleted(watch: OneshotWatcher) -> Result<()> {
    let event = watch.changed().await.event_type;
    anyhow::ensure!(event == EventType::NodeDeleted, "a watch fired with {event}");
    Ok(())
}

fn counter(name: &str) -> Option<u32> {
    name.get(name.len().checked_sub(COUNTER_DIGITS)?..)?.parse().ok()
}
