//! A session without a server, for unit tests of this room and of those above it: a tree in memory. A test
//! says which replies are lost.
//!
//! It carries requests out in their order and knows no versions, no access lists and no bounds. A `multi`
//! that is refused half-way keeps what it had done. How servers behave is for the tests on real ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::contend::{ContenderName, UuidForm};
use super::core::{Core, child, parent};
use super::ensemble::{Connection, Ending, Ensemble};
use super::failure::{Failure, Refusal};
use super::janitor;
use super::request::{Acl, CreateMode, Reply, Request, Stat, Watching, Write, Written};
use super::seat::{Seat, SeatLimits};
use super::state::SessionLoss;
use super::watch::{Event, Watch};
use crate::clock::{Boottime, SystemClock};
use crate::tasks::Tasks;

const SESSION: i64 = 7;

const UP: Connection = Connection::Up { stood: None };

/// Where all participants of a test are mounted.
pub(crate) const MOUNT: &str = "/m";

/// Znodes by path.
pub(super) type Tree = BTreeMap<String, Stat>;

/// A path, and what its watch waits for.
type Watched = (String, oneshot::Sender<Event>);

/// A session with its janitor, and nothing else that sends anything.
#[derive(Debug)]
pub(crate) struct StandIn {
    pub(super) core: Arc<Core>,
    server: Server,
    tasks: Tasks,
}

impl StandIn {
    /// On the runtime that this is called in.
    pub(crate) fn open() -> Self {
        StandIn::open_for(Duration::ZERO)
    }

    /// As [`open`](StandIn::open), with a session that has been open for so long and has sent nothing.
    pub(super) fn open_for(silent: Duration) -> Self {
        let tasks = Tasks::on(Handle::current());
        let (janitor, jobs) = mpsc::unbounded_channel();
        let server = Server::default();
        server.state().znodes.insert(MOUNT.to_owned(), Stat::default());
        let ensemble = Box::new(server.clone());
        let clock = Arc::new(SystemClock);
        let opened = Boottime::now() - silent;
        let core = Arc::new(Core::new(ensemble, Acl::Open, clock, opened, janitor));
        tasks.spawn("janitor", janitor::run(Arc::clone(&core), jobs));
        StandIn { core, server, tasks }
    }

    pub(crate) fn seat(&self, limits: SeatLimits) -> Seat {
        Seat::new(Arc::clone(&self.core), MOUNT, limits).unwrap()
    }

    /// So many creates are carried out from now on, and their replies are lost.
    pub(super) fn lose_creates(&self, count: usize) {
        self.server.state().lost = count;
    }

    /// With so many creates from now on the connection is lost before they are carried out.
    pub(super) fn lose_before(&self, count: usize) {
        self.server.state().lost_before = count;
    }

    /// From now on no create is answered.
    pub(super) fn fall_silent(&self) {
        self.server.state().is_silent = true;
    }

    /// From now on no write is answered, and none shows.
    pub(crate) fn hold_writes_up(&self) {
        self.server.state().holds_up_writes = true;
    }

    /// The connection is lost.
    pub(super) fn disconnect(&self) {
        self.server.connection.send_replace(Connection::Down);
    }

    /// There is a connection again.
    pub(super) fn connect(&self) {
        self.server.connection.send_replace(UP);
    }

    /// The connection is lost and made again before anybody looks.
    pub(super) fn make_connection_again(&self) {
        self.disconnect();
        self.connect();
    }

    /// The tree as it is now.
    pub(super) fn snapshot(&self) -> Tree {
        self.server.state().znodes.clone()
    }

    /// The session goes on at a server that shows this tree until it has answered a `sync` or a write.
    pub(super) fn fall_behind(&self, shown: Tree) {
        self.server.state().shown = Some(shown);
    }

    /// The paths that are there below the mount.
    pub(super) fn tree(&self) -> Vec<String> {
        let below = format!("{MOUNT}/");
        self.server.state().znodes.keys().filter(|path| path.starts_with(&below)).cloned().collect()
    }

    /// How many watches stand on the znode.
    pub(super) fn watches(&self, path: &str) -> usize {
        self.server.state().watches.iter().filter(|(watched, _)| watched == path).count()
    }

    /// As another client would.
    pub(super) fn delete(&self, path: &str) {
        self.server.state().delete(path).unwrap();
    }

    /// The znode is deleted, and the events of that do not come.
    pub(super) fn delete_unheard(&self, path: &str) {
        self.server.state().znodes.remove(path).unwrap();
    }

    /// How often it was asked how short a session timeout it grants. It never tells.
    pub(super) fn asked_for_least(&self) -> usize {
        self.server.state().asked_for_least
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.core.lose(SessionLoss::Closed);
        self.tasks.cancel();
    }
}

#[derive(Debug, Clone)]
struct Server {
    state: Arc<Mutex<State>>,
    connection: watch::Sender<Connection>,
}

#[derive(Debug, Default)]
struct State {
    znodes: Tree,
    watches: Vec<Watched>,
    zxid: i64,
    lost: usize,
    lost_before: usize,
    is_silent: bool,
    /// What a server shows that is behind.
    shown: Option<Tree>,
    holds_up_writes: bool,
    asked_for_least: usize,
}

impl Default for Server {
    fn default() -> Self {
        Server { state: Arc::default(), connection: watch::Sender::new(UP) }
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn carry_out(&mut self, request: Request) -> Result<Reply, Failure> {
        if is_write(&request) || matches!(request, Request::Sync(_)) {
            self.catch_up();
        }
        Ok(match request {
            Request::Write(write) => Reply::Written(self.write(write)?),
            Request::Multi(writes) => {
                let written: Result<_, _> = writes.into_iter().map(|it| self.write(it)).collect();
                Reply::Multi(written?)
            }
            Request::Exists(path, watching) => {
                let found = self.shown().get(&path).copied();
                Reply::Exists(found, self.watch(&path, watching))
            }
            Request::GetData(path, watching) => {
                let stat = self.shown().get(&path).copied().ok_or(Refusal::NoNode)?;
                Reply::Data(Vec::new(), stat, self.watch(&path, watching))
            }
            Request::GetChildren(path, watching) => {
                let stat = self.shown().get(&path).copied().ok_or(Refusal::NoNode)?;
                let below = format!("{path}/");
                let names = self.shown().keys().filter_map(|it| it.strip_prefix(&below));
                let names = names.map(str::to_owned).collect();
                Reply::Children(names, stat, self.watch(&path, watching))
            }
            Request::Sync(_) => Reply::Synced,
        })
    }

    /// The tree as the server that is asked knows it.
    fn shown(&self) -> &Tree {
        self.shown.as_ref().unwrap_or(&self.znodes)
    }

    fn catch_up(&mut self) {
        let Some(shown) = self.shown.take() else { return };
        for path in shown.keys().filter(|path| !self.znodes.contains_key(*path)) {
            fire(&mut self.watches, path);
        }
    }

    fn write(&mut self, write: Write) -> Result<Written, Failure> {
        match write {
            Write::Create { path, mode, .. } => self.create(&path, mode),
            Write::Delete { path, .. } => {
                self.delete(&path)?;
                Ok(Written::Deleted)
            }
            Write::SetData { path, .. } => {
                let stat = self.znodes.get(&path).copied();
                Ok(Written::DataSet(stat.ok_or(Refusal::NoNode)?))
            }
            Write::Check { .. } => Ok(Written::Checked),
        }
    }

    fn create(&mut self, path: &str, mode: CreateMode) -> Result<Written, Failure> {
        if parent(path).is_some_and(|above| above != "/" && !self.znodes.contains_key(above)) {
            return Err(Refusal::NoNode.into());
        }
        self.zxid += 1;
        let path = match mode {
            CreateMode::PersistentSequential | CreateMode::EphemeralSequential => {
                format!("{path}{:010}", self.zxid)
            }
            CreateMode::Persistent | CreateMode::Ephemeral | CreateMode::Container => {
                path.to_owned()
            }
        };
        let ephemeral_owner = if mode.is_ephemeral() { SESSION } else { 0 };
        let stat = Stat { czxid: self.zxid, ephemeral_owner, ..Stat::default() };
        if self.znodes.contains_key(&path) {
            return Err(Refusal::NodeExists.into());
        }
        self.znodes.insert(path.clone(), stat);
        Ok(Written::Created(path, stat))
    }

    fn delete(&mut self, path: &str) -> Result<(), Failure> {
        self.znodes.remove(path).ok_or(Refusal::NoNode)?;
        fire(&mut self.watches, path);
        Ok(())
    }

    fn watch(&mut self, path: &str, watching: Watching) -> Option<Watch> {
        if watching == Watching::No {
            return None;
        }
        let (fire, fired) = oneshot::channel();
        self.watches.push((path.to_owned(), fire));
        let fired = async move {
            match fired.await {
                Ok(event) => event,
                Err(_gone) => std::future::pending().await,
            }
        };
        Some(Watch::new(fired.boxed()))
    }
}

fn fire(watches: &mut Vec<Watched>, path: &str) {
    for (watched, fire) in std::mem::take(watches) {
        if watched == path {
            // Who watched it may have gone.
            fire.send(Event::Deleted).ok();
        } else {
            watches.push((watched, fire));
        }
    }
}

fn is_write(request: &Request) -> bool {
    matches!(request, Request::Write(_) | Request::Multi(_))
}

fn creates(request: &Request) -> bool {
    match request {
        Request::Write(write) => matches!(write, Write::Create { .. }),
        Request::Multi(writes) => writes.iter().any(|it| matches!(it, Write::Create { .. })),
        _ => false,
    }
}

impl Ensemble for Server {
    fn id(&self) -> i64 {
        SESSION
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn submit(&self, request: Request, _: Acl) -> BoxFuture<'static, Result<Reply, Failure>> {
        let mut state = self.state();
        if state.holds_up_writes && is_write(&request) {
            return std::future::pending().boxed();
        }
        let is_create = creates(&request);
        if is_create && state.lost_before > 0 {
            state.lost_before -= 1;
            return ready(Err(Failure::OutcomeUnknown)).boxed();
        }
        let answer = state.carry_out(request);
        if is_create && state.is_silent {
            return std::future::pending().boxed();
        }
        if is_create && state.lost > 0 {
            state.lost -= 1;
            return ready(Err(Failure::OutcomeUnknown)).boxed();
        }
        ready(answer).boxed()
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    fn least_timeout(&self) -> BoxFuture<'static, Option<Duration>> {
        self.state().asked_for_least += 1;
        ready(None).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.connection.send_replace(Connection::Over(Ending::Closed));
        ready(()).boxed()
    }
}

/// Has the participant contend below a directory, and answers the path of its contender.
pub(super) async fn contend(seat: &Seat, directory: &str) -> Result<String, Failure> {
    seat.contend(directory, simple_name(), Vec::new()).await.map(|(path, _)| path)
}

/// As [`contend`], and has a list show the contender.
pub(super) async fn contend_and_list(seat: &Seat, directory: &str) -> Result<String, Failure> {
    let listed = seat.contend_and_list(directory, simple_name(), Vec::new()).await;
    listed.map(|((path, _), _)| path)
}

fn simple_name() -> ContenderName {
    ContenderName { before: String::new(), uuid: UuidForm::Simple, after: "-".to_owned() }
}

/// Has the participant hold a contender of its own, and answers its path.
pub(crate) async fn hold(seat: &Seat) -> String {
    let path = contend(seat, MOUNT).await.unwrap();
    seat.claim(&path).await.unwrap();
    path
}

/// Has the participant send a deletion of the claimed znode that nobody waits for, and that the server does
/// not carry out.
pub(crate) fn withdraw_deletion(stand_in: &StandIn, seat: &Seat, path: &str) {
    stand_in.hold_writes_up();
    let writes = vec![Write::Delete { path: path.to_owned(), version: None }];
    assert!(seat.multi(writes, &[]).now_or_never().is_none());
}

/// The path of that name below the mount.
pub(super) fn at(name: &str) -> String {
    child(MOUNT, name)
}
