//! A session's client in the simulation, in zookeeper-client's place: it keeps a connection, fails
//! what is unanswered when that breaks, goes on with another server, and takes its watches along.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use wok_embedded::protocol::ErrorCode;

use super::chance::Chance;
use super::frames::{self, Armed, Incoming, Rearmed};
use super::history::{HostId, What};
use super::network::{Counted, Inbox, Network};
use super::recorder::Recorder;
use super::servers::MIN_SESSION_TIMEOUT_MS;
use crate::clock::{Boottime, Clock};
use crate::session::{
    Acl, Connection, Ending, Ensemble, Event, Failure, Refusal, Reply, Request, Watch, Watching,
    Write,
};
use crate::tasks::Tasks;

/// A session's client. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    me: Weak<Inner>,
    host: HostId,
    network: Network,
    recorder: Arc<Recorder>,
    session: i64,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    connection: watch::Sender<Connection>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    password: Bytes,
    last_zxid: i64,
    next_xid: i32,
    link: Option<u64>,
    pending: VecDeque<Pending>,
    watches: BTreeMap<(Armed, String), Vec<oneshot::Sender<Event>>>,
    /// Watches to be taken back unless a request under way asks for the same.
    deferred: BTreeSet<(Armed, String)>,
    chance: Chance,
    /// The servers to go to next, if somebody says so.
    next_servers: VecDeque<usize>,
    /// Its process was killed: it never speaks again.
    is_killed: bool,
    /// When the connection was lost last.
    lost: Option<Boottime>,
}

impl State {
    fn see(&mut self, zxid: i64) {
        self.last_zxid = self.last_zxid.max(zxid);
    }
}

#[derive(Debug)]
struct Pending {
    xid: i32,
    request: Option<Request>,
    answer: oneshot::Sender<Result<Reply, Failure>>,
}

/// How long the real one waits for a server, on a connection as for a new one.
fn patience(timeout: Duration) -> Duration {
    timeout * 2 / 5
}

impl Client {
    /// Opens a session, trying servers until one answers.
    pub(super) async fn open(
        network: &Network,
        recorder: &Arc<Recorder>,
        host: HostId,
        timeout: Duration,
        clock: Arc<dyn Clock>,
        tasks: &Tasks,
        mut chance: Chance,
    ) -> Self {
        let (link, inbox, welcome) = loop {
            let hello = frames::hello(0, millis(timeout), 0, &[0; 16]);
            let server = any_server(&mut chance, network);
            if let Some(greeted) = greet(network, host, server, hello, timeout).await
                && greeted.2.session != 0
            {
                break greeted;
            }
            tokio::time::sleep(Duration::from_millis(chance.within(20, 200))).await;
        };
        let client = Client {
            inner: Arc::new_cyclic(|me| Inner {
                me: me.clone(),
                host,
                network: network.clone(),
                recorder: Arc::clone(recorder),
                session: welcome.session,
                timeout: Duration::from_millis(welcome.timeout_ms),
                clock,
                connection: watch::Sender::new(Connection::Up { stood: None }),
                state: Mutex::new(State {
                    password: welcome.password,
                    last_zxid: 0,
                    next_xid: 1,
                    link: Some(link),
                    pending: VecDeque::new(),
                    watches: BTreeMap::new(),
                    deferred: BTreeSet::new(),
                    chance,
                    next_servers: VecDeque::new(),
                    is_killed: false,
                    lost: None,
                }),
            }),
        };
        tasks.spawn("simulated client", Arc::clone(&client.inner).run(inbox));
        client
    }

    /// Its process is killed: nothing is sent any more, in whatever order its parts are dropped.
    pub(super) fn kill(&self) {
        self.inner.state().is_killed = true;
    }

    /// The next connection goes to that server.
    pub(super) fn go_to(&self, server: usize) {
        self.inner.state().next_servers = VecDeque::from([server]);
    }

    /// The next connection goes to that server, and so does the one after it.
    pub(super) fn keep_to(&self, server: usize) {
        self.inner.state().next_servers = VecDeque::from([server, server]);
    }

    /// How many watches somebody still waits for.
    pub(super) fn watches(&self) -> usize {
        let state = self.inner.state();
        state.watches.values().flatten().filter(|waiting| !waiting.is_closed()).count()
    }
}

fn any_server(chance: &mut Chance, network: &Network) -> usize {
    let last = network.server_count().saturating_sub(1);
    usize::try_from(chance.within(0, u64::try_from(last).unwrap_or(0))).unwrap_or(0)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Connects to a server and shakes hands; none if it closes, or takes too long.
async fn greet(
    network: &Network,
    host: HostId,
    server: usize,
    hello: Bytes,
    timeout: Duration,
) -> Option<(u64, Inbox, frames::Welcome)> {
    let (link, mut inbox) = network.connect(host, server)?;
    network.send(link, hello);
    let welcome = tokio::time::timeout(patience(timeout), inbox.recv()).await;
    match welcome.ok().flatten().and_then(|frame| frames::welcome(&frame).ok()) {
        Some(welcome) => Some((link, inbox, welcome)),
        None => {
            network.close(link);
            None
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self: Arc<Self>, mut inbox: Inbox) {
        loop {
            let heard = self.listen(&mut inbox).await;
            self.disconnected();
            match self.reconnect(heard).await {
                Some(next) => inbox = next,
                None => return,
            }
        }
    }

    /// Takes in frames until the connection ends; answers when the last one came.
    async fn listen(&self, inbox: &mut Inbox) -> Instant {
        let mut heard = Instant::now();
        let patience = patience(self.timeout);
        loop {
            // Cancel-safe: a frame that is not received stays in the inbox.
            tokio::select! {
                biased;
                frame = inbox.recv() => match frame {
                    Some(frame) => {
                        heard = Instant::now();
                        self.take(&frame);
                    }
                    None => return heard,
                },
                () = tokio::time::sleep_until(heard + patience) => return heard,
            }
        }
    }

    fn take(&self, frame: &[u8]) {
        match frames::incoming(frame) {
            Ok(Incoming::Event { event, path, zxid }) => {
                // Servers before 3.9 do not tell it.
                self.state().see(zxid);
                self.fire(event, &path);
            }
            Ok(Incoming::Reply { error: Some(ErrorCode::SessionExpired), .. }) => self.expired(),
            Ok(Incoming::Reply { xid, zxid, error, body }) => {
                let mut state = self.state();
                state.see(zxid);
                if state.pending.front().is_none_or(|pending| pending.xid != xid) {
                    return;
                }
                let Some(Pending { request, answer, .. }) = state.pending.pop_front() else {
                    return;
                };
                drop(state);
                let Some(request) = request else {
                    // A session that is closed has nothing more to say.
                    answer.send(Ok(Reply::Synced)).ok();
                    return;
                };
                let watch = |armed| self.arm(armed, &request);
                let reply = frames::reply(&request, error, &body, watch);
                self.remove_deferred(&request);
                // The caller may have gone.
                answer.send(reply).ok();
            }
            Err(malformed) => tracing::error!(%malformed, "host bug: a frame cannot be read"),
        }
    }

    fn fire(&self, event: Event, path: &str) {
        let name = match event {
            Event::Created => "created",
            Event::Deleted => "deleted",
            Event::DataChanged => "data-changed",
            Event::ChildrenChanged | Event::Elapsed => "children-changed",
        };
        let (host, session) = (self.host, self.session);
        let (event_name, path_name) = (name.to_owned(), path.to_owned());
        self.recorder.note(What::Event { host, session, event: event_name, path: path_name });
        let kinds: &[Armed] = match event {
            Event::Created => &[Armed::Exist],
            Event::DataChanged => &[Armed::Data],
            Event::Deleted => &[Armed::Data, Armed::Exist, Armed::Child],
            Event::ChildrenChanged | Event::Elapsed => &[Armed::Child],
        };
        let mut state = self.state();
        let fired: Vec<_> = kinds
            .iter()
            .filter_map(|kind| state.watches.remove(&(*kind, path.to_owned())))
            .flatten()
            .collect();
        drop(state);
        // The caller that set the watch may have lost interest.
        for waiting in fired {
            waiting.send(event).ok();
        }
    }

    fn arm(&self, armed: Armed, request: &Request) -> Watch {
        let (Request::Exists(path, _) | Request::GetData(path, _) | Request::GetChildren(path, _)) =
            request
        else {
            return Watch::new(std::future::pending().boxed());
        };
        let (fire, fired) = oneshot::channel();
        let key = (armed, path.clone());
        self.state().watches.entry(key.clone()).or_default().push(fire);
        let disarm = Disarm { client: self.me.clone(), key };
        Watch::new(wait(Waiting { fired, _disarm: disarm }).boxed())
    }

    /// A server answered a request for a session that is over. zookeeper-client ends the session at once,
    /// and does not connect again to be told so.
    fn expired(&self) {
        let mut state = self.state();
        if let Some(link) = state.link.take() {
            self.network.close(link);
        }
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        for Pending { request, answer, .. } in pending {
            // Who closes the session has what it asked for. The caller may have gone.
            answer.send(request.map_or(Ok(Reply::Synced), |_| Err(Failure::SessionLost))).ok();
        }
        self.connection.send_replace(Connection::Over(Ending::Expired));
    }

    /// Fails what is unanswered, as nobody knows what became of it.
    fn disconnected(&self) {
        let mut state = self.state();
        if let Some(link) = state.link.take() {
            self.network.close(link);
        }
        state.lost = Some(self.clock.now());
        let pending = std::mem::take(&mut state.pending);
        state.deferred.clear();
        drop(state);
        for Pending { answer, .. } in pending {
            answer.send(Err(Failure::OutcomeUnknown)).ok();
        }
        self.connection.send_if_modified(|connection| {
            let was_up = connection.is_up();
            if was_up {
                *connection = Connection::Down;
            }
            was_up
        });
    }

    /// None when the session is over.
    async fn reconnect(&self, heard: Instant) -> Option<Inbox> {
        loop {
            if matches!(*self.connection.borrow(), Connection::Over(_)) {
                return None;
            }
            // The real one gives up only here, long after the server may have expired the session.
            if heard.elapsed() > self.timeout * 7 / 5 {
                self.connection.send_replace(Connection::Over(Ending::Expired));
                return None;
            }
            let (server, pause, hello) = {
                let mut state = self.state();
                let server = match state.next_servers.pop_front() {
                    Some(server) => server,
                    None => any_server(&mut state.chance, &self.network),
                };
                let pause = Duration::from_millis(state.chance.within(1, 100));
                let timeout_ms = millis(self.timeout);
                let password = state.password.clone();
                (server, pause, frames::hello(state.last_zxid, timeout_ms, self.session, &password))
            };
            tokio::time::sleep(pause).await;
            let greeted = greet(&self.network, self.host, server, hello, self.timeout).await;
            match greeted {
                Some((link, _, welcome)) if welcome.session == 0 => {
                    self.network.close(link);
                    self.connection.send_replace(Connection::Over(Ending::Expired));
                    return None;
                }
                Some((link, inbox, _)) => {
                    self.reconnected(link);
                    return Some(inbox);
                }
                None => {}
            }
        }
    }

    fn reconnected(&self, link: u64) {
        let mut state = self.state();
        state.link = Some(link);
        state.watches.retain(|_, waiting| {
            waiting.retain(|waiting| !waiting.is_closed());
            !waiting.is_empty()
        });
        let paths = |kind: Armed| {
            let of_kind = state.watches.keys().filter(move |(armed, _)| *armed == kind);
            of_kind.map(|(_, path)| path.clone()).collect()
        };
        let rearmed = Rearmed {
            data: paths(Armed::Data),
            exist: paths(Armed::Exist),
            child: paths(Armed::Child),
        };
        if !state.watches.is_empty() {
            self.network.send(link, frames::set_watches(state.last_zxid, &rearmed));
        }
        let stood = state.lost;
        drop(state);
        self.connection.send_if_modified(|connection| {
            let was_down = *connection == Connection::Down;
            if was_down {
                *connection = Connection::Up { stood };
            }
            was_down
        });
    }

    fn submit(&self, request: Request, acl: Acl) -> oneshot::Receiver<Result<Reply, Failure>> {
        let (answer, answered) = oneshot::channel();
        if let Some(refusal) = refused(&request) {
            answer.send(Err(refusal)).ok();
            return answered;
        }
        let mut state = self.state();
        let Some(link) = state.link.filter(|_| !state.is_killed) else {
            drop(state);
            answer.send(Err(Failure::OutcomeUnknown)).ok();
            return answered;
        };
        let xid = state.next_xid;
        state.next_xid += 1;
        let frame = frames::request(xid, &request, acl);
        let counted = if is_heartbeat(&request) { Counted::No } else { Counted::Yes };
        if counted == Counted::Yes {
            let (name, path) = frames::describe(&request);
            let (name, path) = (name.to_owned(), path.to_owned());
            let (host, session) = (self.host, self.session);
            self.recorder.note(What::Request { host, session, name, path });
        }
        state.pending.push_back(Pending { xid, request: Some(request), answer });
        drop(state);
        self.network.send_request(link, xid, frame, counted);
        answered
    }

    /// Takes a watch back that nobody waits for any more.
    fn disarm(&self, armed: Armed, path: &str) {
        let mut state = self.state();
        let key = (armed, path.to_owned());
        let Some(waiting) = state.watches.get_mut(&key) else { return };
        waiting.retain(|waiting| !waiting.is_closed());
        if waiting.is_empty() {
            state.watches.remove(&key);
            self.remove(&mut state, armed, path);
        }
    }

    fn remove(&self, state: &mut State, armed: Armed, path: &str) {
        let is_child = armed == Armed::Child;
        // For the server, both kinds of watches on a znode itself are one.
        let is_twin = |other: Armed| (other == Armed::Child) == is_child;
        if state.watches.keys().any(|(other, of)| of == path && is_twin(*other)) {
            return;
        }
        // As the real one: the server would take away what a request under way has asked for.
        let is_asked_for = |pending: &Pending| match &pending.request {
            Some(Request::Exists(of, Watching::Yes) | Request::GetData(of, Watching::Yes)) => {
                of == path && !is_child
            }
            Some(Request::GetChildren(of, Watching::Yes)) => of == path && is_child,
            _ => false,
        };
        if state.pending.iter().any(is_asked_for) {
            state.deferred.insert((armed, path.to_owned()));
            return;
        }
        if let Some(link) = state.link.filter(|_| !state.is_killed) {
            self.network.send(link, frames::remove_watch(path, if is_child { 1 } else { 2 }));
        }
    }

    /// A request is answered: what waited for that can be taken back, unless it is watched again.
    fn remove_deferred(&self, answered: &Request) {
        let (Request::Exists(path, _) | Request::GetData(path, _) | Request::GetChildren(path, _)) =
            answered
        else {
            return;
        };
        let mut state = self.state();
        for armed in [Armed::Data, Armed::Exist, Armed::Child] {
            if state.deferred.remove(&(armed, path.clone())) {
                self.remove(&mut state, armed, path);
            }
        }
    }
}

/// What the real one refuses by itself, without sending it.
fn refused(request: &Request) -> Option<Failure> {
    let writes = match request {
        Request::Write(write) => std::slice::from_ref(write),
        Request::Multi(writes) => writes,
        _ => return None,
    };
    let is_of_root = |write: &Write| match write {
        Write::Create { path, .. } | Write::Delete { path, .. } => path == "/",
        Write::SetData { .. } | Write::Check { .. } => false,
    };
    let refusal = || Refusal::Other("bad arguments: can not create or delete root node".to_owned());
    writes.iter().any(is_of_root).then(|| refusal().into())
}

/// Never completes for a watch that went with its client.
async fn wait(mut waiting: Waiting) -> Event {
    match (&mut waiting.fired).await {
        Ok(event) => event,
        Err(_) => std::future::pending().await,
    }
}

/// Somebody who waits for a watch. The fields are dropped in this order: the watch is looked at when
/// the receiver is gone.
struct Waiting {
    fired: oneshot::Receiver<Event>,
    _disarm: Disarm,
}

/// Disarms a watch when the last who waits for it is gone.
struct Disarm {
    client: Weak<Inner>,
    key: (Armed, String),
}

impl Drop for Disarm {
    fn drop(&mut self) {
        if let Some(client) = self.client.upgrade() {
            client.disarm(self.key.0, &self.key.1);
        }
    }
}

/// Whether it comes from the session's monitor: those about the root, which is no participant's.
fn is_heartbeat(request: &Request) -> bool {
    match request {
        Request::Exists(path, Watching::No) | Request::Sync(path) => path == "/",
        Request::Write(write) => is_about_the_root(write),
        Request::Multi(writes) => writes.iter().all(is_about_the_root),
        _ => false,
    }
}

fn is_about_the_root(write: &Write) -> bool {
    matches!(write, Write::Check { path, .. } | Write::Delete { path, .. } if path == "/")
}

impl Ensemble for Client {
    fn id(&self) -> i64 {
        self.inner.session
    }

    fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    fn submit(&self, request: Request, acl: Acl) -> BoxFuture<'static, Result<Reply, Failure>> {
        let answered = self.inner.submit(request, acl);
        // A client that is gone answers nothing.
        async move { answered.await.unwrap_or(Err(Failure::OutcomeUnknown)) }.boxed()
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.inner.connection.subscribe()
    }

    fn least_timeout(&self) -> BoxFuture<'static, Option<Duration>> {
        let is_up = self.inner.state().link.is_some();
        let granted = is_up.then_some(Duration::from_millis(MIN_SESSION_TIMEOUT_MS));
        std::future::ready(granted).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (answer, answered) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        let mut state = inner.state();
        if let Some(link) = state.link.filter(|_| !state.is_killed) {
            let xid = state.next_xid;
            state.next_xid += 1;
            state.pending.push_back(Pending { xid, request: None, answer });
            self.inner.network.send(link, frames::close_session(xid));
        }
        drop(state);
        async move {
            // Answered, or the connection is gone: there is nothing more to be done about it.
            answered.await.ok();
            inner.connection.send_replace(Connection::Over(Ending::Closed));
        }
        .boxed()
    }
}
