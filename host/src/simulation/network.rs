//! What is between the hosts and the ensemble, and what drives the ensemble: everything that
//! happens there happens at a moment of an agenda, in an order that follows from the seed.

mod connections;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use wok_embedded::serve::Delivery;
use wok_embedded::time::Now;

use super::chance::Chance;
use super::clock::BEGIN_WALL_MS;
use super::history::{FaultKind, HostId, ParticipantId};
use super::recorder::Recorder;
use super::servers::{Alarm, Expiry, Servers, TICK_MS};

/// How often empty containers are removed: far more often than for real, so that directories go
/// away under the recipes.
const SWEEP_MS: u64 = 2_500;

/// How long a frame is on its way, and a txn on its way to a majority of disks.
const WIRE_US: (u64, u64) = (300, 2_000);
const COMMIT_US: (u64, u64) = (500, 3_000);
/// How long a leader takes at most from a session that it has picked for its end to the next, and until it
/// proposes that end, as the seed decides: it may have much to do.
const MOST_CLOSING_US: [u64; 4] = [500, 500, 5_000, 100_000];
/// How long servers that look for a leader take to find or elect one.
const ELECTION_US: (u64, u64) = (200_000, 1_000_000);
/// How far servers are behind: at least this, and at most one of those, as the seed decides.
const LEAST_LAG_US: u64 = 200;
const MOST_LAG_US: [u64; 4] = [6_000, 6_000, 40_000, 250_000];

/// The network of a run, shared by its hosts.
#[derive(Debug, Clone)]
pub(super) struct Network {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

/// A client's end of a connection: frames without their lengths; it ends when the connection does.
pub(super) type Inbox = mpsc::UnboundedReceiver<Bytes>;

/// What a request is about to meet, when it is the one that a fault waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ambush {
    pub(super) fault: FaultKind,
    /// Which fault of the plan.
    pub(super) index: usize,
}

/// A fault that has met what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sprung {
    /// Which fault of the plan.
    pub(super) index: usize,
    /// Whose host call it was, if it waited for one.
    pub(super) by: Option<ParticipantId>,
}

#[derive(Debug)]
struct State {
    servers: Servers,
    began: Instant,
    recorder: Arc<Recorder>,
    chance: Chance,
    most_lag_us: u64,
    /// Which of a server's threads comes first, and after how long.
    threads: Chance,
    most_closing_us: u64,
    agenda: BTreeMap<(u64, u64), Due>,
    next_due: u64,
    links: BTreeMap<u64, Link>,
    next_link: u64,
    /// By server, if it leads.
    commits_due: Vec<usize>,
    /// By server: how many applies are on the agenda, when the last of them is, and how slow the
    /// server is just now.
    applies: Vec<(usize, u64)>,
    /// Servers that apply nothing.
    held: BTreeSet<usize>,
    lag_us: BTreeMap<usize, u64>,
    delay_us: BTreeMap<HostId, u64>,
    is_electing: bool,
    /// Hosts that do not reach a server, by how many faults.
    cuts: BTreeMap<(HostId, usize), usize>,
    requests: BTreeMap<HostId, u64>,
    ambushes: BTreeMap<(HostId, u64), Vec<Ambush>>,
    next_ambushes: BTreeMap<HostId, Vec<Ambush>>,
    sprung: mpsc::UnboundedSender<Sprung>,
}

/// A connection.
#[derive(Debug)]
struct Link {
    host: HostId,
    server: usize,
    /// Dropped when the connection breaks.
    inbox: mpsc::UnboundedSender<Bytes>,
    /// When the last frame arrives, in each direction: frames do not overtake each other.
    up_until: u64,
    down_until: u64,
    is_half_open: bool,
    /// The client's end is closed; what it had sent still gets to the server.
    is_left: bool,
    /// The connection breaks instead of delivering the reply to this request.
    breaks_at: Option<i32>,
    /// What waits for the way to be healed, in each direction.
    waiting: Vec<Due>,
}

/// Which ways are cut, in silence: nobody is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cut {
    /// From one server to another.
    pub(super) servers: Vec<(usize, usize)>,
    /// Between a host and a server, both ways.
    pub(super) hosts: Vec<(HostId, usize)>,
}

/// What is on the agenda.
#[derive(Debug)]
enum Due {
    ToServer {
        link: u64,
        frame: Bytes,
    },
    ToClient {
        link: u64,
        frame: Bytes,
    },
    /// The server learns that the client is gone.
    Hangup {
        link: u64,
    },
    /// The client learns that the server has closed.
    Closed {
        link: u64,
    },
    Commit {
        server: usize,
    },
    /// A leader refuses what comes of a session that it has picked for its end.
    Refuse(Expiry),
    /// A leader proposes that end.
    Close(Expiry),
    Apply {
        server: usize,
    },
    Tick,
    Sweep,
    /// Servers that look for a leader find or elect one.
    Settle,
    Alarm(Alarm),
}

impl Network {
    /// The network around an ensemble, with chances for the network and for the servers' threads. What
    /// springs from an ambush, by its number in the plan, is told on `sprung`.
    pub(super) fn new(
        servers: Servers,
        recorder: Arc<Recorder>,
        (mut chance, mut threads): (Chance, Chance),
        sprung: mpsc::UnboundedSender<Sprung>,
    ) -> Self {
        let mut state = State {
            applies: vec![(0, 0); servers.count()],
            commits_due: vec![0; servers.count()],
            servers,
            began: Instant::now(),
            recorder,
            most_lag_us: chance.pick(&MOST_LAG_US).copied().unwrap_or(LEAST_LAG_US),
            chance,
            most_closing_us: threads.pick(&MOST_CLOSING_US).copied().unwrap_or(0),
            threads,
            agenda: BTreeMap::new(),
            next_due: 0,
            links: BTreeMap::new(),
            next_link: 1,
            held: BTreeSet::new(),
            lag_us: BTreeMap::new(),
            delay_us: BTreeMap::new(),
            is_electing: false,
            cuts: BTreeMap::new(),
            requests: BTreeMap::new(),
            ambushes: BTreeMap::new(),
            next_ambushes: BTreeMap::new(),
            sprung,
        };
        state.put(TICK_MS * 1_000, Due::Tick);
        state.put(SWEEP_MS * 1_000, Due::Sweep);
        Network { state: Arc::new(Mutex::new(state)), changed: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works through the agenda for as long as the run lasts.
    pub(super) async fn run(self) {
        loop {
            let next = {
                let mut state = self.state();
                state.work();
                state.next_instant()
            };
            // Both are only reasons to look.
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// A change to the state, after which the agenda is looked at again.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let value = change(&mut self.state());
        self.changed.notify_one();
        value
    }

    /// How many servers there are.
    pub(super) fn server_count(&self) -> usize {
        self.state().servers.count()
    }

    /// Connects a host to a server; refused while the server has no leader.
    pub(super) fn connect(&self, host: HostId, server: usize) -> Option<(u64, Inbox)> {
        self.change(|state| state.connect(host, server))
    }

    /// Sends a frame of the session's own, which is no request.
    pub(super) fn send(&self, link: u64, frame: Bytes) {
        self.change(|state| state.send(link, frame));
    }

    /// Sends a request; it may meet an ambush. Heartbeats are not counted.
    pub(super) fn send_request(&self, link: u64, xid: i32, frame: Bytes, counted: Counted) {
        self.change(|state| state.send_request(link, xid, frame, counted));
    }

    /// The client's end is closed.
    pub(super) fn close(&self, link: u64) {
        self.change(|state| state.close(link));
    }

    /// Has a fault wait for a host's n-th request, counted from 1.
    pub(super) fn lay_ambush(&self, host: HostId, nth: u64, ambush: Ambush) {
        self.change(|state| state.ambushes.entry((host, nth)).or_default().push(ambush));
    }

    /// Has a fault wait for a host's next request.
    pub(super) fn ambush_next(&self, host: HostId, ambush: Ambush) {
        self.change(|state| state.next_ambushes.entry(host).or_default().push(ambush));
    }

    /// A fault that is not about a request has met what it waited for.
    pub(super) fn spring(&self, sprung: Sprung) {
        // The run is over when nobody listens.
        self.state().sprung.send(sprung).ok();
    }

    /// Breaks all connections of a host at once; what is on its way is lost.
    pub(super) fn break_host(&self, host: HostId) {
        self.change(|state| state.break_links(|_, link| link.host == host));
    }

    /// Nothing comes through the host's connections any more, and nobody is told.
    pub(super) fn half_open(&self, host: HostId) {
        self.change(|state| {
            for link in state.links.values_mut().filter(|link| link.host == host) {
                link.is_half_open = true;
            }
        });
    }

    /// Frames of a host take so much longer; zero ends it.
    pub(super) fn delay(&self, host: HostId, by: Duration) {
        self.change(|state| state.delay_us.insert(host, micros(by)));
    }

    /// A server applies what is committed so much later; zero ends it.
    pub(super) fn lag(&self, server: usize, by: Duration) {
        self.change(|state| state.lag(server, micros(by)));
    }

    /// A server applies nothing more, until it is let go.
    pub(super) fn hold(&self, server: usize) {
        self.change(|state| state.held.insert(server));
    }

    /// A server that follows is stopped when it has next asked its leader about a session, until it is told
    /// to go on. False if that is so already.
    pub(super) fn stop_once_it_asks(&self, server: usize) -> bool {
        self.change(|state| {
            let is_new = !state.servers.is_halted(server);
            if is_new {
                state.servers.stop_once_it_asks(server);
            }
            is_new
        })
    }

    /// A server that was stopped goes on.
    pub(super) fn go_on(&self, server: usize) {
        self.change(|state| state.go_on(server));
    }

    /// One of the servers that follow. The leader itself is never behind.
    pub(super) fn follower(&self, number: usize) -> Option<usize> {
        let state = self.state();
        let leads = state.servers.leads()?;
        let followers = (0..state.servers.count()).filter(|server| *server != leads);
        let followers: Vec<usize> = followers.collect();
        followers.get(number.checked_rem(followers.len())?).copied()
    }

    /// The server that a host is connected to.
    pub(super) fn server_of(&self, host: HostId) -> Option<usize> {
        let state = self.state();
        let mut links = state.links.values().rev();
        links.find(|link| link.host == host && !link.is_left).map(|link| link.server)
    }

    /// The hosts that are connected to a server.
    pub(super) fn hosts_at(&self, server: usize) -> BTreeSet<HostId> {
        let state = self.state();
        let links = state.links.values().filter(|link| link.server == server && !link.is_left);
        links.map(|link| link.host).collect()
    }

    /// Cuts ways, of which nobody is told.
    pub(super) fn cut(&self, cut: &Cut) {
        self.change(|state| state.cut(cut));
    }

    /// Heals them: what was said meanwhile arrives where both ends are still there.
    pub(super) fn heal(&self, cut: &Cut) {
        self.change(|state| state.heal(cut));
    }

    /// A server that was held catches up.
    pub(super) fn let_go(&self, server: usize) {
        self.change(|state| state.held.remove(&server));
    }

    /// The ensemble ends a session.
    pub(super) fn expire(&self, session: i64) {
        self.change(|state| {
            let now = state.now();
            state.servers.close_session(session, now);
        });
    }

    /// Another program creates a znode.
    pub(super) fn create_foreign(&self, path: String, data: &[u8]) {
        self.change(|state| {
            let now = state.now();
            state.servers.create_foreign(path, data, now);
        });
    }

    /// The leader is lost; after `election` another server leads. A part of what was prepared turns
    /// out to have been committed.
    pub(super) fn change_leader(&self, election: Duration) {
        self.change(|state| state.change_leader(election));
    }

    /// The servers' wall clock.
    pub(super) fn wall_ms(&self) -> i64 {
        self.state().now().wall_ms
    }

    /// The server that leads; of several that believe so, the one that was elected last.
    pub(super) fn leader(&self) -> Option<usize> {
        self.state().servers.leads()
    }

    /// Whether clients can connect to a server.
    pub(super) fn serves(&self, server: usize) -> bool {
        self.state().servers.serves(server)
    }

    /// Whether one server leads and all others follow it.
    pub(super) fn is_whole(&self) -> bool {
        self.state().servers.is_whole()
    }

    /// Looks at what has been committed.
    pub(super) fn truth<T>(&self, look: impl FnOnce(&wok_embedded::replica::Replica) -> T) -> T {
        look(self.state().servers.truth())
    }
}

/// Whether a request counts among those that faults wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Yes,
    No,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl State {
    fn now_us(&self) -> u64 {
        micros(self.began.elapsed())
    }

    fn now(&self) -> Now {
        let elapsed_ms = self.now_us() / 1_000;
        let wall_ms = i64::try_from(BEGIN_WALL_MS + elapsed_ms).unwrap_or(i64::MAX);
        Now { elapsed_ms, wall_ms }
    }

    fn put(&mut self, at_us: u64, due: Due) {
        self.agenda.insert((at_us, self.next_due), due);
        self.next_due += 1;
    }

    fn next_instant(&self) -> Instant {
        // The ticks never end, so there always is a next.
        let at_us = self.agenda.first_key_value().map_or(0, |((at_us, _), _)| *at_us);
        self.began + Duration::from_micros(at_us)
    }

    fn work(&mut self) {
        let now_us = self.now_us();
        loop {
            self.note_committed();
            self.deliver();
            self.plan();
            let Some(entry) = self.agenda.first_entry().filter(|due| due.key().0 <= now_us) else {
                return;
            };
            let due = entry.remove();
            self.act(due);
        }
    }

    fn note_committed(&mut self) {
        for committed in self.servers.take_committed() {
            self.recorder.note(committed);
        }
    }

    fn act(&mut self, due: Due) {
        let now = self.now();
        match due {
            Due::ToServer { link, .. }
            | Due::ToClient { link, .. }
            | Due::Hangup { link }
            | Due::Closed { link } => self.pass(link, due),
            Due::Commit { server } => {
                if let Some(due) = self.commits_due.get_mut(server) {
                    *due = due.saturating_sub(1);
                }
                self.servers.commit(server, now);
            }
            Due::Apply { server } => {
                if let Some((due, _)) = self.applies.get_mut(server) {
                    *due = due.saturating_sub(1);
                }
                self.servers.apply(server, now);
            }
            Due::Refuse(expiry) => {
                self.servers.refuse_expired(expiry);
                let after = self.threads.within(0, self.most_closing_us);
                self.put(self.now_us() + after, Due::Close(expiry));
            }
            Due::Close(expiry) => self.servers.close_expired(expiry, now),
            Due::Tick => {
                let mut at_us = self.now_us();
                for expiry in self.servers.pick_expired(now) {
                    at_us += self.threads.within(0, self.most_closing_us);
                    self.put(at_us, Due::Refuse(expiry));
                }
                self.put(self.now_us() + TICK_MS * 1_000, Due::Tick);
            }
            Due::Sweep => {
                self.servers.sweep(now);
                self.put(self.now_us() + SWEEP_MS * 1_000, Due::Sweep);
            }
            Due::Settle => {
                self.is_electing = false;
                self.servers.settle(&mut self.chance, now);
            }
            Due::Alarm(Alarm::Beat { server, epoch }) => self.servers.beat(server, epoch, now),
            Due::Alarm(Alarm::Silence { server, epoch }) => self.servers.listen(server, epoch, now),
        }
    }

    /// Puts what the servers have prepared, and what they are behind with, on the agenda.
    fn plan(&mut self) {
        let now_us = self.now_us();
        for (at_ms, alarm) in self.servers.take_alarms() {
            self.put(at_ms * 1_000, Due::Alarm(alarm));
        }
        if !self.is_electing && self.servers.can_settle() {
            self.is_electing = true;
            let after = self.chance.within(ELECTION_US.0, ELECTION_US.1);
            self.put(now_us + after, Due::Settle);
        }
        for server in 0..self.servers.count() {
            let ready = self.servers.ready(server);
            while let Some(due) = self.commits_due.get_mut(server)
                && *due < ready
            {
                *due += 1;
                let after = self.chance.within(COMMIT_US.0, COMMIT_US.1);
                self.put(now_us + after, Due::Commit { server });
            }
            if self.held.contains(&server) || self.servers.is_stopped(server) {
                continue;
            }
            let slow = self.lag_us.get(&server).copied().unwrap_or(0);
            while let Some((due, last)) = self.applies.get_mut(server)
                && *due < self.servers.behind(server)
            {
                let after = self.chance.within(LEAST_LAG_US, self.most_lag_us) + slow;
                let at_us = (now_us + after).max(*last);
                (*due, *last) = (*due + 1, at_us);
                self.put(at_us, Due::Apply { server });
            }
        }
    }

    fn deliver(&mut self) {
        for server in 0..self.servers.count() {
            for delivery in self.servers.take_deliveries(server) {
                match delivery {
                    Delivery::Reply { connection, frame } => self.answer(connection, &frame),
                    Delivery::Event { connection, frame } => self.send_down(connection, &frame),
                    Delivery::Close { connection } => {
                        let until = self.links.get(&connection).map_or(0, |link| link.down_until);
                        let at_us = until.max(self.now_us());
                        self.put(at_us, Due::Closed { link: connection });
                    }
                }
            }
        }
    }

    fn lag(&mut self, server: usize, by_us: u64) {
        self.lag_us.insert(server, by_us);
        // What it is behind with is put on the agenda anew: a server that is slow no more catches up.
        self.agenda.retain(|_, due| !matches!(due, Due::Apply { server: of } if *of == server));
        self.applies.get_mut(server).into_iter().for_each(|applies| *applies = (0, 0));
    }

    /// A server goes on: what its leader and its clients have sent meanwhile is there all at once, and
    /// either may be read first.
    fn go_on(&mut self, server: usize) {
        let now = self.now();
        self.servers.go_on(server);
        if self.threads.happens(50) {
            self.servers.catch_up_reading(server, now);
        }
        self.bring(|link| link.server == server);
        self.servers.catch_up_reading(server, now);
    }

    fn change_leader(&mut self, election: Duration) {
        let now_us = self.now_us();
        self.break_links(|_, _| true);
        self.servers.lose_leader();
        self.is_electing = true;
        // What was to be found sooner is not.
        self.agenda.retain(|_, due| !matches!(due, Due::Settle));
        self.put(now_us + micros(election), Due::Settle);
    }
}
