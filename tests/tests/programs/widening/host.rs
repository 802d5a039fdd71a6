//! A host whose recipes have such long mounts that a session is full soon.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tokio::task::JoinSet;
use wok::base::{Base, BaseOptions, Sessions};
use wok::epochs::{Epoch, Epochs, Joined};
use wok::guest::{Arguments, CompileCache, Limits, Mount};
use wok::modules::ModuleSource;
use wok::participant::{Call, Ending, Follower, Join, Notice, Participant};
use wok::session::{ConnectOptions, SeatLimits, Session};
use wok_tests::patience::within;
use wok_tests::proxy::Proxy;
use wok_tests::scratch;
use wok_tests::zookeeper::{self, Server};

/// Participants that fit on a session where a mount is as long as here: of 80 KiB each takes its
/// mount and 64 bytes.
pub(crate) const PER_SESSION: usize = 20;

/// So long that there is room for the name of a contender below it, within what a path may have.
const MOUNT_BYTES: usize = 4_000;

/// The recipes. All of them are locks.
const RECIPES: [&str; 3] = ["lock", "other", "third"];

/// A host whose recipes can be joined.
pub(crate) struct Crowd {
    pub(crate) epochs: Epochs,
    pub(crate) proxy: Proxy,
    base: String,
    acquire: Arguments,
}

/// Who waits for a lock or holds it, or has only joined.
pub(crate) struct Waiter {
    pub(crate) follower: Follower,
    participant: Arc<Participant>,
    epoch: Epoch,
    /// The acquire, if there is one; answers the fence.
    acquiring: JoinSet<Result<u64>>,
}

impl Crowd {
    /// With one session open, through a proxy.
    pub(crate) async fn new(server: &Server, sessions: Sessions) -> Result<Self> {
        let proxy = Proxy::start(server.address())?;
        let address = proxy.address().to_owned();
        Crowd::at(&address, proxy, sessions).await
    }

    /// With one session open, past the proxy.
    pub(crate) async fn direct(server: &Server, sessions: Sessions) -> Result<Self> {
        let proxy = Proxy::start(server.address())?;
        Crowd::at(server.address(), proxy, sessions).await
    }

    async fn at(address: &str, proxy: Proxy, sessions: Sessions) -> Result<Self> {
        let host = Base::new(BaseOptions {
            participants: 200,
            memory: Limits::default().memory,
            cache: CompileCache::In(compiled()),
            connect: ConnectOptions::new(address, Duration::from_secs(10)),
            sessions,
        })?;
        let module = host.load(&ModuleSource::Stock("lock".to_owned()), None)?;
        let base = zookeeper::unique_path();
        let mut epochs = Epochs::new(host);
        for recipe in RECIPES {
            epochs.load(Join {
                recipe: recipe.to_owned(),
                module: module.clone(),
                mount: Mount::new(&long(&base, recipe))?,
                config: module.configuration(None)?,
                limits: Limits::default(),
                seat: SeatLimits::default(),
                owner: String::new(),
                witness: None,
            });
        }
        epochs.open().await?;
        Ok(Crowd { epochs, proxy, base, acquire: module.arguments("acquire", &json!({}))? })
    }

    /// A recipe's mount.
    pub(crate) fn mount(&self, recipe: &str) -> String {
        long(&self.base, recipe)
    }

    /// Joins, and does nothing.
    pub(crate) async fn join(&self, recipe: &str) -> Result<Waiter> {
        let joined = within("a seat", self.epochs.join(recipe)).await??;
        let Joined { participant, follower, epoch } = joined;
        let (participant, acquiring) = (Arc::new(participant), JoinSet::new());
        Ok(Waiter { follower, participant, epoch, acquiring })
    }

    /// Joins the lock and acquires it. Completes when its znode is there.
    pub(crate) async fn wait_in_line(&self) -> Result<Waiter> {
        let mut waiter = self.join("lock").await?;
        let participant = Arc::clone(&waiter.participant);
        let call = Call { arguments: self.acquire.clone(), deadline: None, withdrawn: None };
        waiter.acquiring.spawn(async move {
            let answer = participant.call(call).await?;
            Ok(answer.claim.context("it holds nothing")?.fence)
        });
        loop {
            match within("a place in the line", waiter.follower.next()).await? {
                Some(Notice::Waiting { .. }) => return Ok(waiter),
                Some(Notice::Ended(ending)) => bail!("it ended: {ending:?}"),
                Some(_) => {}
                None => bail!("it ended"),
            }
        }
    }

    /// Ends the sessions and the participants on them.
    pub(crate) async fn close(self) -> Result<()> {
        within("the sessions to close", self.epochs.close()).await?;
        within("all participants to end", self.epochs.base().shut_down()).await
    }
}

impl Waiter {
    /// The id of its session.
    pub(crate) fn session(&self) -> i64 {
        self.epoch.session.id()
    }

    pub(crate) fn joined_session(&self) -> &Session {
        &self.epoch.session
    }

    /// Completes when so many participants are on its session: one that has said that it has ended
    /// keeps its seat for a moment.
    pub(crate) async fn until_there_are(&self, participants: usize) -> Result<()> {
        let mut seated = self.epoch.session.participants();
        within("a seat to be free", seated.wait_for(|seated| *seated == participants)).await??;
        Ok(())
    }

    pub(crate) fn holds(&self) -> bool {
        self.participant.holds()
    }

    /// What its acquire answered.
    pub(crate) async fn fence(&mut self) -> Result<u64> {
        self.acquiring.join_next().await.context("it did not acquire")??
    }

    /// How it ended, when it has.
    pub(crate) async fn ended(&mut self) -> Result<Ending> {
        loop {
            match within("a participant to end", self.follower.next()).await? {
                Some(Notice::Ended(ending)) => return Ok(ending),
                Some(_) => {}
                None => bail!("its end was not told"),
            }
        }
    }

    /// Has it leave. Completes when nothing is left of it.
    pub(crate) async fn leave(mut self) -> Result<()> {
        self.participant.leave();
        match self.ended().await? {
            Ending::Left => Ok(()),
            other => bail!("it should have left: {other:?}"),
        }
    }
}

/// A path of that many bytes.
fn long(base: &str, name: &str) -> String {
    let path = format!("{base}/{name}-");
    let rest = "n".repeat(MOUNT_BYTES - path.len());
    path + &rest
}

fn compiled() -> PathBuf {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    DIRECTORY.get_or_init(|| scratch::dir().unwrap()).path().to_owned()
}
