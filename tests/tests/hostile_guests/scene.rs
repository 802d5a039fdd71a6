//! One host, one session, one neighbour that works, and components that do not.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wok::base::{Base, BaseOptions, Sessions};
use wok::guest::{Arguments, CompileCache, Limits, Module, Mount};
use wok::modules::ModuleSource;
use wok::participant::{Answer, Call, CallError, Ending, Follower, Join, Notice, Participant};
use wok::session::{ConnectOptions, SeatLimits, Session, SessionState};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::guests::guest_file;
use wok_tests::patience::within;
use wok_tests::proxy::{Proxy, Seen};
use wok_tests::{scratch, zookeeper};

/// What a test may change of what a component gets.
#[derive(Clone, Default)]
pub(crate) struct Room {
    pub(crate) limits: Limits,
    pub(crate) seat: SeatLimits,
    /// Of the module.
    pub(crate) config: Option<Value>,
}

/// A host with a session of its own, through a proxy that counts its connections.
pub(crate) struct Scene {
    pub(crate) admin: Admin,
    pub(crate) proxy: Proxy,
    /// The directory of this test, in which everything else is.
    pub(crate) base: String,
    /// What the hostile component sees as `/`.
    pub(crate) mount: String,
    host: Base,
    session: Arc<Session>,
    hostile: Module,
    lock: Module,
    neighbour: Neighbour,
}

/// A participant with a lock of its own, which it takes and gives back again and again.
struct Neighbour {
    participant: Participant,
    follower: Mutex<Follower>,
    acquire: Arguments,
    release: Arguments,
}

/// A participant of the hostile guest, or one that is about to suffer from it.
pub(crate) struct Guest {
    pub(crate) participant: Participant,
    pub(crate) follower: Follower,
    module: Module,
}

impl Scene {
    pub(crate) async fn new() -> Result<Self> {
        let server = zookeeper::shared().await;
        let admin = Admin::connect(server.address()).await?;
        let proxy = Proxy::start(server.address())?;
        let base = zookeeper::unique_path();
        let mount = format!("{base}/mount");
        admin.create(&mount, b"the mount").await?;
        let host = Base::new(BaseOptions {
            participants: 8,
            memory: Limits::default().memory,
            cache: CompileCache::In(compiled()),
            connect: ConnectOptions::new(proxy.address(), Duration::from_secs(10)),
            sessions: Sessions::at_most(1),
        })?;
        let (_directory, file) = guest_file("hostile")?;
        let hostile = host.load(&ModuleSource::File(file), None)?;
        let lock = host.load(&ModuleSource::Stock("lock".to_owned()), None)?;
        let session = host.open_session().await?;
        let join = join(&lock, &format!("{base}/neighbour"), Room::default())?;
        let (participant, follower) = Participant::join(host.tasks(), &session, join)?;
        let neighbour = Neighbour {
            participant,
            follower: Mutex::new(follower),
            acquire: lock.arguments("acquire", &json!({}))?,
            release: lock.arguments("release", &json!({}))?,
        };
        Ok(Scene { admin, proxy, base, mount, host, session, hostile, lock, neighbour })
    }

    /// A participant of the hostile guest.
    pub(crate) fn hostile(&self) -> Result<Guest> {
        self.hostile_in(Room::default())
    }

    /// The same with other limits.
    pub(crate) fn hostile_in(&self, room: Room) -> Result<Guest> {
        self.guest(&self.hostile, room)
    }

    /// A participant of the stock lock on the mount of the hostile guest, whose contenders are
    /// named as the lock's.
    pub(crate) fn next_in_line(&self) -> Result<Guest> {
        self.guest(&self.lock, Room::default())
    }

    fn guest(&self, module: &Module, room: Room) -> Result<Guest> {
        let join = join(module, &self.mount, room)?;
        let (participant, follower) = Participant::join(self.host.tasks(), &self.session, join)?;
        Ok(Guest { participant, follower, module: module.clone() })
    }

    /// Awaits an attack while the neighbour works, and then judges that nobody else was harmed.
    /// Answers how often the neighbour had its lock meanwhile, too.
    pub(crate) async fn beside<T>(
        &self,
        attack: impl Future<Output = Result<T>>,
    ) -> Result<(T, usize)> {
        let ended = CancellationToken::new();
        let attacking = async {
            let outcome = within("the attack to end", attack).await?;
            ended.cancel();
            outcome
        };
        let working = async {
            let mut holds = 0;
            loop {
                // One hold begins after the end: the attack may have left something behind.
                let is_last = ended.is_cancelled();
                self.neighbour.hold().await?;
                if is_last {
                    return Ok(holds);
                }
                holds += 1;
            }
        };
        let outcome = tokio::try_join!(attacking, working)?;
        self.is_unharmed().await?;
        Ok(outcome)
    }

    /// The session is the first one and on its first connection, and the neighbour has heard of no
    /// loss.
    async fn is_unharmed(&self) -> Result<()> {
        // Nothing is asked for on the one by which the servers' tick is learned.
        let elsewhere = |seen: &Seen| {
            seen.connection != 1 && !matches!(seen.opcode, Opcode::Ping | Opcode::CloseSession)
        };
        let elsewhere: Vec<_> = self.proxy.log().into_iter().filter(elsewhere).collect();
        ensure!(elsewhere.is_empty(), "the connection was lost: {elsewhere:?} came on others");
        self.is_alive().await
    }

    /// The session is the first one, whatever happened to its connection.
    pub(crate) async fn is_alive(&self) -> Result<()> {
        let state = *self.session.state().borrow();
        ensure!(!matches!(state, SessionState::Lost(_)), "{state:?}");
        Ok(())
    }

    /// The neighbour has its lock once more.
    pub(crate) async fn neighbour_works(&self) -> Result<()> {
        self.neighbour.hold().await
    }

    /// Ends the session that all are on.
    pub(crate) async fn close_session(&self) {
        self.session.close().await;
    }

    /// The names below the hostile guest's mount.
    pub(crate) async fn left_behind(&self) -> Result<Vec<String>> {
        self.admin.children(&self.mount).await
    }
}

fn join(module: &Module, mount: &str, room: Room) -> Result<Join> {
    Ok(Join {
        recipe: module.name().to_owned(),
        module: module.clone(),
        mount: Mount::new(mount)?,
        config: module.configuration(room.config.as_ref())?,
        limits: room.limits,
        seat: room.seat,
        owner: "a test".to_owned(),
        witness: None,
    })
}

/// Every test has a host, and they compile the same two modules.
fn compiled() -> PathBuf {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    DIRECTORY.get_or_init(|| scratch::dir().unwrap()).path().to_owned()
}

fn call(arguments: &Arguments, deadline: Option<Instant>) -> Call {
    Call { arguments: arguments.clone(), deadline, withdrawn: None }
}

impl Neighbour {
    async fn hold(&self) -> Result<()> {
        let held = within("the neighbour's lock", self.participant.call(call(&self.acquire, None)));
        let held = held.await??;
        ensure!(held.value.is_ok() && held.claim.is_some(), "the neighbour's acquire: {held:?}");
        ensure!(self.participant.holds(), "the neighbour does not hold");
        let released = self.participant.call(call(&self.release, None));
        let released = within("the neighbour's release", released).await??;
        ensure!(released.value.is_ok() && released.claim.is_none(), "its release: {released:?}");
        self.hears_no_loss().await
    }

    /// What it has been told since it was last asked: nothing of a loss.
    async fn hears_no_loss(&self) -> Result<()> {
        let mut follower = self.follower.lock().await;
        // The release it has just been told of is the last notice there is.
        loop {
            match follower.next().await {
                Some(Notice::Released { .. }) => return Ok(()),
                Some(Notice::Waiting { .. } | Notice::Held { .. }) => {}
                Some(Notice::Suspended | Notice::Resumed) => {}
                other => bail!("the neighbour was told {other:?}"),
            }
        }
    }
}

async fn to_the_end(follower: &mut Follower) -> Result<Vec<Notice>> {
    let mut notices = Vec::new();
    let told = async {
        while let Some(notice) = follower.next().await {
            notices.push(notice);
        }
    };
    within("the participant to end", told).await?;
    Ok(notices)
}

impl Guest {
    /// Calls an operation.
    pub(crate) async fn call(
        &self,
        operation: &str,
        body: Value,
    ) -> Result<Result<Answer, CallError>> {
        self.call_for(operation, body, None).await
    }

    /// The same, with a caller that waits this long.
    pub(crate) async fn call_for(
        &self,
        operation: &str,
        body: Value,
        wait: Option<Duration>,
    ) -> Result<Result<Answer, CallError>> {
        let arguments = self.arguments(operation, &body)?;
        let deadline = wait.map(|wait| Instant::now() + wait);
        Ok(self.participant.call(call(&arguments, deadline)).await)
    }

    /// What an operation is called with.
    pub(crate) fn arguments(&self, operation: &str, body: &Value) -> Result<Arguments> {
        Ok(self.module.arguments(operation, body)?)
    }

    /// What an operation that ends well answers; an error of its own, too.
    pub(crate) async fn answer(&self, operation: &str, body: Value) -> Result<Value, Value> {
        let answer = self.call(operation, body).await.unwrap().unwrap();
        answer.value
    }

    /// The fault that the operation ends the participant with, once nothing is left of it.
    pub(crate) async fn fault(mut self, operation: &str, body: Value) -> Result<String> {
        let answer = self.call(operation, body).await?;
        ensure!(answer == Err(CallError::Ended), "{operation} answered {answer:?}");
        match self.ending().await? {
            Ending::Failed(fault) => Ok(fault.to_string()),
            other => bail!("{operation} ended as {other:?}"),
        }
    }

    /// Waits for the end, and answers how it was.
    pub(crate) async fn ending(&mut self) -> Result<Ending> {
        match self.notices().await?.pop() {
            Some(Notice::Ended(ending)) => Ok(ending),
            other => bail!("the last notice is {other:?}"),
        }
    }

    /// All that it is told until the end.
    pub(crate) async fn notices(&mut self) -> Result<Vec<Notice>> {
        to_the_end(&mut self.follower).await
    }

    /// Calls an operation that ends its participant; answers what that has told as well. It is heard as it
    /// is told: who listens later is not told of a claim that is lost by then.
    pub(crate) async fn call_to_the_end(
        &mut self,
        operation: &str,
    ) -> Result<(Result<Answer, CallError>, Vec<Notice>)> {
        let arguments = self.arguments(operation, &json!({}))?;
        let answer = self.participant.call(call(&arguments, None));
        let (answer, notices) = tokio::join!(answer, to_the_end(&mut self.follower));
        Ok((answer, notices?))
    }

    /// Waits for a notice.
    pub(crate) async fn told(&mut self, wanted: impl Fn(&Notice) -> bool) -> Result<Notice> {
        let told = async {
            loop {
                let notice = self.follower.next().await.context("the participant ended")?;
                if wanted(&notice) {
                    return anyhow::Ok(notice);
                }
            }
        };
        within("a notice", told).await?
    }

    /// Asks it to end, and waits until nothing is left of it.
    pub(crate) async fn leave(mut self) -> Result<()> {
        self.participant.leave();
        let ending = self.ending().await?;
        ensure!(matches!(ending, Ending::Left), "{ending:?}");
        Ok(())
    }
}
