//! A session behind a fault proxy, with an independent eye on the server.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use uuid::Uuid;
use wok::clock::{Boottime, Clock, SystemClock};
use wok::session::{
    ConnectOptions, ContenderName, CreateMode, Event, Failure, Reply, Request, Seat, SeatLimits,
    Session, SessionState, Stat, UuidForm, Watch, Watching, Write, Written, open_by,
};
use wok_tests::admin::Admin;
use wok_tests::patience::within;
use wok_tests::proxy::Proxy;
use wok_tests::zookeeper;

/// What most sessions here ask for, and get.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(4);

/// For tests that wait for no timeout: a slow machine must not lose their session.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(10);

/// The machine's clock, but for how far it is put forward.
#[derive(Debug, Default)]
pub(crate) struct PutForward(AtomicU64);

impl PutForward {
    pub(crate) fn by(&self, span: Duration) {
        let millis = u64::try_from(span.as_millis()).expect("a short time");
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for PutForward {
    fn now(&self) -> Boottime {
        SystemClock.now() + Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn wall_ms(&self) -> u64 {
        SystemClock.wall_ms()
    }

    fn uuid(&self) -> Uuid {
        SystemClock.uuid()
    }
}

/// A fresh path on the shared server, someone to look at it, and a session behind a proxy.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) path: String,
    pub(crate) admin: Admin,
    pub(crate) session: Session,
    pub(crate) options: ConnectOptions,
    pub(crate) proxy: Proxy,
}

impl Room {
    pub(crate) async fn open(timeout: Duration) -> Result<Room> {
        let admin = Admin::connect(zookeeper::shared().await.address()).await?;
        Room::beside(&admin, timeout).await
    }

    /// A room that shares its eye with others.
    pub(crate) async fn beside(admin: &Admin, timeout: Duration) -> Result<Room> {
        Room::by(admin, timeout, Arc::new(SystemClock)).await
    }

    /// A room whose session reads a clock that can be put forward.
    pub(crate) async fn by_a_clock(timeout: Duration) -> Result<(Room, Arc<PutForward>)> {
        let admin = Admin::connect(zookeeper::shared().await.address()).await?;
        let clock = Arc::<PutForward>::default();
        Ok((Room::by(&admin, timeout, Arc::clone(&clock) as Arc<dyn Clock>).await?, clock))
    }

    async fn by(admin: &Admin, timeout: Duration, clock: Arc<dyn Clock>) -> Result<Room> {
        let proxy = Proxy::start(zookeeper::shared().await.address())?;
        let options = ConnectOptions::new(proxy.address(), timeout);
        let session = open_by(&options, clock).await?;
        Ok(Room { path: zookeeper::unique_path(), admin: admin.clone(), session, options, proxy })
    }

    /// A participant's seat, mounted at the room's path.
    pub(crate) fn seat(&self) -> Seat {
        self.session.join(&self.path, SeatLimits::default()).expect("one participant has room")
    }

    /// Takes the connection away and lets none back in, until the proxy is healed.
    pub(crate) async fn disconnect(&self) -> Result<()> {
        self.proxy.refuse();
        self.proxy.cut_all(wok_tests::proxy::Cut::Reset);
        self.until("doubt", |state| state == SessionState::Suspended).await
    }

    pub(crate) async fn until(
        &self,
        what: &str,
        wanted: impl Fn(SessionState) -> bool,
    ) -> Result<()> {
        let mut state = self.session.state();
        let reached = within(what, state.wait_for(|state| wanted(*state))).await?;
        reached.map(drop).context("the session's state is not told any more")
    }
}

pub(crate) fn contender() -> ContenderName {
    ContenderName { before: "_c_".into(), uuid: UuidForm::Hyphenated, after: "-lock-".into() }
}

pub(crate) fn create(path: &str, mode: CreateMode) -> Request {
    Request::Write(Write::Create { path: path.into(), data: Vec::new(), mode })
}

pub(crate) fn delete(path: &str) -> Request {
    Request::Write(Write::Delete { path: path.into(), version: None })
}

pub(crate) fn set(path: &str, data: &[u8]) -> Request {
    Request::Write(Write::SetData { path: path.into(), data: data.into(), version: None })
}

pub(crate) async fn create_named(seat: &Seat, path: &str) -> Result<Stat> {
    match seat.submit(create(path, CreateMode::Ephemeral)).await? {
        Reply::Written(Written::Created(_, stat)) => Ok(stat),
        other => bail!("{other:?}"),
    }
}

/// Contends below `directory` and claims the znode; answers its path.
pub(crate) async fn hold(seat: &Seat, directory: &str) -> Result<String, Failure> {
    let (path, _) = seat.contend(directory, contender(), Vec::new()).await?;
    seat.claim(&path).await?;
    Ok(path)
}

/// How a participant joins a line and learns who is in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joining {
    /// It contends, and lists then.
    InTwoSteps,
    /// In one round trip.
    AtOnce,
}

/// Joins the line in `directory`; answers the own znode and the names of all.
pub(crate) async fn join_line(
    seat: &Seat,
    directory: &str,
    joining: Joining,
) -> Result<(String, Stat, Vec<String>), Failure> {
    let data = b"me".to_vec();
    match joining {
        Joining::InTwoSteps => {
            let (path, stat) = seat.contend(directory, contender(), data).await?;
            Ok((path, stat, list(seat, directory).await?))
        }
        Joining::AtOnce => {
            let ((path, stat), (names, parent)) =
                seat.contend_and_list(directory, contender(), data).await?;
            assert_eq!(usize::try_from(parent.num_children), Ok(names.len()));
            Ok((path, stat, names))
        }
    }
}

pub(crate) async fn list(seat: &Seat, directory: &str) -> Result<Vec<String>, Failure> {
    match seat.submit(Request::GetChildren(directory.into(), Watching::No)).await? {
        Reply::Children(names, ..) => Ok(names),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn watch_data(seat: &Seat, path: &str) -> Result<Watch, Failure> {
    match seat.submit(Request::GetData(path.into(), Watching::Yes)).await? {
        Reply::Data(_, _, Some(watch)) => Ok(watch),
        other => panic!("{other:?}"),
    }
}

/// A request that changes nothing: when it is answered, so is all that was sent before.
pub(crate) async fn round_trip(seat: &Seat) -> Result<(), Failure> {
    seat.submit(Request::Sync("/".into())).await.map(drop)
}

pub(crate) async fn fired(mut watch: Watch) -> Result<Event> {
    within("a watch to fire", poll_fn(|cx| watch.poll_fired(cx))).await
}

/// How many children were ever created below a znode: the server's own count, which no reply and
/// no connection can falsify.
pub(crate) async fn ever_created(admin: &Admin, path: &str) -> Result<i32> {
    let stat = admin.stat(path).await?.with_context(|| format!("no {path}"))?;
    Ok((stat.cversion + stat.num_children) / 2)
}
