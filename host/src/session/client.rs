//! The ensemble as zookeeper-client reaches it. The only file that knows that crate.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use zookeeper_client as zk;

use super::diagnose::diagnose;
use super::ensemble::{Connection, Ending, Ensemble};
use super::failure::{Failure, Refusal};
use super::hosts::{looked_up, with_a_name};
use super::nodelay::{ports, turn_off_nagle};
use super::options::{ConnectError, ConnectOptions, Tls};
use super::request::{Acl, CreateMode, Reply, Request, Stat, Watching, Write, Written};
use super::threads;
use super::timing::TICK;
use super::watch::{Event, Watch};
use crate::clock::{Boottime, Clock};
use crate::tasks::Tasks;

/// Two ticks of servers with default settings. With a shorter timeout attempts to connect over a slow
/// link end too soon.
const SHORT_TIMEOUT: Duration = Duration::from_secs(4);

/// The scheme of identities that a SASL login gives.
const SASL: &str = "sasl";

/// A session held through zookeeper-client.
#[derive(Debug)]
pub(super) struct Client {
    id: i64,
    timeout: Duration,
    options: ConnectOptions,
    tasks: Tasks,
    /// None once closed: dropping the last clone is how the crate closes a session.
    client: Mutex<Option<zk::Client>>,
    states: zk::StateWatcher,
    clock: Arc<dyn Clock>,
    connection: watch::Receiver<Connection>,
}

impl Client {
    /// Opens a session. Tries every host once.
    ///
    /// # Errors
    /// No host could be reached, or a host refused us.
    pub(super) async fn connect(
        options: &ConnectOptions,
        clock: Arc<dyn Clock>,
        tasks: &Tasks,
    ) -> Result<Client, ConnectError> {
        if let Err(error) = threads::ready().await {
            let reason = format!(
                "no threads can be started for a connection ({error}): raise the limit of processes \
                 (`ulimit -u`)"
            );
            return Err(ConnectError::Unreachable { hosts: options.hosts.clone(), reason });
        }
        // The crate gives a connection up that is silent for two fifths of the session timeout, and so
        // it should. Sooner, a link that loses packets hardly has a connection: each new one takes four
        // round trips until an answer counts. Later, a server that falls silent takes what is held at
        // it along before another server is asked.
        let mut connector = zk::Client::connector()
            .with_session_timeout(options.session_timeout)
            .with_fail_eagerly();
        for credential in &options.auth {
            connector = connector.with_auth(&credential.scheme, credential.secret.as_bytes());
        }
        if let Some(login) = &options.sasl {
            let (user, password) = (login.user.clone(), login.password.expose().to_owned());
            connector = connector.with_sasl(zk::SaslOptions::digest_md5(user, password));
        }
        let connected = match &options.tls {
            None => connector.connect(&looked_up(&options.hosts)).await,
            Some(tls) => {
                let certificates = certificates(tls)?;
                connector.with_tls(certificates).secure_connect(&with_a_name(&options.hosts)).await
            }
        };
        let hosts = options.hosts.clone();
        let client = match connected {
            Ok(client) => client,
            Err(zk::Error::AuthFailed) => return Err(ConnectError::AuthFailed { hosts }),
            Err(error @ zk::Error::BadArguments(_)) => {
                return Err(ConnectError::Unreachable { hosts, reason: error.to_string() });
            }
            Err(error) => {
                tracing::debug!(%error, hosts, "no session");
                let reason = diagnose(&hosts, options.tls.as_ref(), &Handle::current()).await;
                return Err(ConnectError::Unreachable { hosts, reason });
            }
        };
        if options.sasl.is_some() && !is_logged_in(&client).await {
            return Err(ConnectError::NotLoggedIn { hosts });
        }
        let ports = ports(&options.hosts);
        turn_off_nagle(&ports);
        let mut states = client.state_watcher();
        let (follower, connection) = watch::channel(Stood::default().translated(states.state()));
        tasks.spawn("connection state", follow(states, ports, Arc::clone(&clock), follower));
        Ok(Client {
            id: client.session_id().0,
            timeout: client.session_timeout(),
            options: options.clone(),
            tasks: tasks.clone(),
            states: client.state_watcher(),
            clock,
            connection,
            client: Mutex::new(Some(client)),
        })
    }

    fn client(&self) -> Option<zk::Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether the server knows somebody by the SASL login. A server without SASL answers the login as one that
/// needs no further step, and the crate takes the session for logged in.
async fn is_logged_in(client: &zk::Client) -> bool {
    match client.list_auth_users().await {
        Ok(users) => users.iter().any(|user| user.scheme() == SASL),
        // A server before 3.7 does not know the question. What else there is shows in what is asked next.
        Err(error) => {
            tracing::debug!(%error, "cannot ask whom the session is logged in as");
            true
        }
    }
}

/// Whom to trust, and who we are, as the crate takes it.
fn certificates(tls: &Tls) -> Result<zk::TlsOptions, ConnectError> {
    let wrong = |what, reason| ConnectError::Certificate { what, reason };
    let trusted = zk::TlsOptions::new().with_pem_ca(&tls.ca);
    let trusted = trusted.map_err(|error| wrong("ca-file", error.to_string()))?;
    let Some(identity) = &tls.identity else { return Ok(trusted) };
    let pair = "cert-file and key-file";
    // The crate finds it only as it connects, and what fails then is tried again.
    if identity.is_mismatched() {
        return Err(wrong(pair, "the key is not that of the certificate".to_owned()));
    }
    let identified = trusted.with_pem_identity(&identity.certificate, identity.key.expose());
    identified.map_err(|error| wrong(pair, error.to_string()))
}

/// Translates the crate's session states, and sees to every new connection.
async fn follow(
    mut states: zk::StateWatcher,
    ports: Vec<u16>,
    clock: Arc<dyn Clock>,
    connection: watch::Sender<Connection>,
) {
    let mut looks = tokio::time::interval(TICK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stood = Stood::default();
    loop {
        let now = clock.now();
        // In this order: where it is only time to look, the state has not changed until after `now`. Both
        // are cancel-safe: a change stays one until it is seen, and a look is only a reason to look.
        let state = tokio::select! {
            biased;
            state = states.changed() => state,
            _ = looks.tick() => {
                stood.seen(*connection.borrow(), now);
                continue;
            }
        };
        let state = stood.translated(state);
        if state.is_up() {
            turn_off_nagle(&ports);
        }
        connection.send_replace(state);
        if matches!(state, Connection::Over(_)) {
            return;
        }
    }
}

/// The newest moment at which a connection was seen to stand. The crate tells that a connection is lost
/// before it asks a server for the next one (`start_once` and `serve_once` in its `session/mod.rs`).
#[derive(Debug, Default)]
struct Stood(Option<Boottime>);

impl Stood {
    /// The state of the connection has not changed until after `now`.
    fn seen(&mut self, connection: Connection, now: Boottime) {
        if connection.is_up() {
            self.0 = Some(now);
        }
    }

    fn translated(&self, state: zk::SessionState) -> Connection {
        match state {
            zk::SessionState::SyncConnected => Connection::Up { stood: self.0 },
            // A read-only server may be cut off from the quorum: nothing is granted on its word.
            zk::SessionState::Disconnected | zk::SessionState::ConnectedReadOnly => {
                Connection::Down
            }
            zk::SessionState::AuthFailed => Connection::Over(Ending::AuthFailed),
            zk::SessionState::Expired => Connection::Over(Ending::Expired),
            zk::SessionState::Closed => Connection::Over(Ending::Closed),
        }
    }
}

impl Ensemble for Client {
    fn id(&self) -> i64 {
        self.id
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn submit(&self, request: Request, acl: Acl) -> BoxFuture<'static, Result<Reply, Failure>> {
        let Some(client) = self.client() else {
            return futures_util::future::ready(Err(Failure::SessionLost)).boxed();
        };
        started(async move { perform(&client, request, acl).await }.boxed())
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.clone()
    }

    fn least_timeout(&self) -> BoxFuture<'static, Option<Duration>> {
        if self.timeout <= SHORT_TIMEOUT {
            return futures_util::future::ready(Some(self.timeout)).boxed();
        }
        // Servers tell it only to those who open a session.
        let options = ConnectOptions { session_timeout: SHORT_TIMEOUT, ..self.options.clone() };
        let (clock, tasks) = (Arc::clone(&self.clock), self.tasks.clone());
        async move {
            let client = Client::connect(&options, clock, &tasks).await;
            let client = client
                .inspect_err(|error| tracing::debug!(%error, "the servers' tick is not learned"))
                .ok()?;
            let granted = client.timeout();
            client.close().await;
            Some(granted)
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last clone's drop is what closes; requests under way hold clones of their own.
        drop(client);
        let mut states = self.states.clone();
        async move {
            while !states.peek_state().is_terminated() {
                states.changed().await;
            }
        }
        .boxed()
    }
}

/// Polls a request once, so that it is queued now and not when somebody awaits it: the crate sends
/// in the order of first polls, [`Ensemble`] promises the order of calls.
fn started<T: Send + 'static>(mut request: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(&mut request).poll(&mut context) {
        Poll::Ready(answer) => futures_util::future::ready(answer).boxed(),
        Poll::Pending => request,
    }
}

async fn perform(client: &zk::Client, request: Request, acl: Acl) -> Result<Reply, Failure> {
    match request {
        Request::Write(write) => Ok(Reply::Written(perform_write(client, write, acl).await?)),
        Request::Multi(writes) => perform_multi(client, writes, acl).await,
        Request::Exists(path, Watching::No) => {
            let stat = client.check_stat(&path).await.map_err(classify)?;
            Ok(Reply::Exists(stat.map(translate_stat), None))
        }
        Request::Exists(path, Watching::Yes) => {
            let (stat, watcher) = client.check_and_watch_stat(&path).await.map_err(classify)?;
            Ok(Reply::Exists(stat.map(translate_stat), Some(translate_watch(watcher))))
        }
        Request::GetData(path, Watching::No) => {
            let (data, stat) = client.get_data(&path).await.map_err(classify)?;
            Ok(Reply::Data(data, translate_stat(stat), None))
        }
        Request::GetData(path, Watching::Yes) => {
            let (data, stat, watcher) = client.get_and_watch_data(&path).await.map_err(classify)?;
            Ok(Reply::Data(data, translate_stat(stat), Some(translate_watch(watcher))))
        }
        Request::GetChildren(path, Watching::No) => {
            let (names, stat) = client.get_children(&path).await.map_err(classify)?;
            Ok(Reply::Children(names, translate_stat(stat), None))
        }
        Request::GetChildren(path, Watching::Yes) => {
            let (names, stat, watcher) =
                client.get_and_watch_children(&path).await.map_err(classify)?;
            Ok(Reply::Children(names, translate_stat(stat), Some(translate_watch(watcher))))
        }
        Request::Sync(path) => {
            client.sync(&path).await.map_err(classify)?;
            Ok(Reply::Synced)
        }
    }
}

async fn perform_write(client: &zk::Client, write: Write, acl: Acl) -> Result<Written, Failure> {
    match write {
        Write::Create { path, data, mode } => {
            let options = translate_mode(mode).with_acls(acls(acl));
            let (stat, sequence) = client.create(&path, &data, &options).await.map_err(classify)?;
            let path = match mode {
                CreateMode::PersistentSequential | CreateMode::EphemeralSequential => {
                    format!("{path}{sequence}")
                }
                _ => path,
            };
            Ok(Written::Created(path, translate_stat(stat)))
        }
        Write::Delete { path, version } => {
            client.delete(&path, version).await.map_err(classify)?;
            Ok(Written::Deleted)
        }
        Write::SetData { path, data, version } => {
            let stat = client.set_data(&path, &data, version).await.map_err(classify)?;
            Ok(Written::DataSet(translate_stat(stat)))
        }
        Write::Check { .. } => Err(Failure::Invalid("a check stands in a multi only".to_owned())),
    }
}

async fn perform_multi(
    client: &zk::Client,
    writes: Vec<Write>,
    acl: Acl,
) -> Result<Reply, Failure> {
    let mut writer = client.new_multi_writer();
    for write in &writes {
        let added = match write {
            Write::Create { path, data, mode } => {
                writer.add_create(path, data, &translate_mode(*mode).with_acls(acls(acl)))
            }
            Write::Delete { path, version } => writer.add_delete(path, *version),
            Write::SetData { path, data, version } => writer.add_set_data(path, data, *version),
            Write::Check { path, version } => {
                writer.add_check_version(path, version.unwrap_or(ANY_VERSION))
            }
        };
        added.map_err(classify)?;
    }
    let results = writer.commit().await.map_err(|error| match error {
        zk::MultiWriteError::OperationFailed { index, source } => match classify(source) {
            Failure::Refused { refusal, .. } => Failure::Refused { refusal, index: Some(index) },
            other => other,
        },
        zk::MultiWriteError::RequestFailed { source } => classify(source),
    })?;
    let written = results.into_iter().map(|result| match result {
        zk::MultiWriteResult::Create { path, stat } => {
            // Most servers do not tell it here.
            let stat = if stat.is_invalid() { Stat::default() } else { translate_stat(stat) };
            Ok(Written::Created(path, stat))
        }
        zk::MultiWriteResult::Delete => Ok(Written::Deleted),
        zk::MultiWriteResult::SetData { stat } => Ok(Written::DataSet(translate_stat(stat))),
        zk::MultiWriteResult::Check => Ok(Written::Checked),
        // It was done, but what it did cannot be told.
        _ => Err(Failure::OutcomeUnknown),
    });
    Ok(Reply::Multi(written.collect::<Result<_, _>>()?))
}

/// On the wire, the version that matches all.
const ANY_VERSION: i32 = -1;

fn acls(acl: Acl) -> zk::Acls<'static> {
    match acl {
        Acl::Open => zk::Acls::anyone_all(),
        Acl::Creator => zk::Acls::creator_all(),
    }
}

fn translate_mode(mode: CreateMode) -> zk::CreateMode {
    match mode {
        CreateMode::Persistent => zk::CreateMode::Persistent,
        CreateMode::PersistentSequential => zk::CreateMode::PersistentSequential,
        CreateMode::Ephemeral => zk::CreateMode::Ephemeral,
        CreateMode::EphemeralSequential => zk::CreateMode::EphemeralSequential,
        CreateMode::Container => zk::CreateMode::Container,
    }
}

fn translate_stat(stat: zk::Stat) -> Stat {
    Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        pzxid: stat.pzxid,
        ctime_ms: stat.ctime,
        mtime_ms: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_length: stat.data_length,
        num_children: stat.num_children,
    }
}

fn translate_watch(watcher: zk::OneshotWatcher) -> Watch {
    let fired = async move {
        match watcher.changed().await.event_type {
            zk::EventType::NodeCreated => Event::Created,
            zk::EventType::NodeDeleted => Event::Deleted,
            zk::EventType::NodeDataChanged => Event::DataChanged,
            zk::EventType::NodeChildrenChanged => Event::ChildrenChanged,
            // The end of the session: it is told apart from a znode's event by never being one.
            _ => std::future::pending().await,
        }
    };
    Watch::new(fired.boxed())
}

/// The crate reports the raw cause of a lost connection where it has one, so that "custom" errors
/// say nothing of the outcome.
fn classify(error: zk::Error) -> Failure {
    let refusal = match error {
        zk::Error::NoNode => Refusal::NoNode,
        zk::Error::NodeExists => Refusal::NodeExists,
        zk::Error::NotEmpty => Refusal::NotEmpty,
        zk::Error::BadVersion => Refusal::BadVersion,
        zk::Error::NoChildrenForEphemerals => Refusal::NoChildrenForEphemerals,
        zk::Error::NoAuth => Refusal::NoAuth,
        zk::Error::QuotaExceeded => Refusal::QuotaExceeded,
        zk::Error::Unimplemented => Refusal::Unimplemented,
        zk::Error::Throttled => Refusal::Throttled,
        zk::Error::SessionExpired
        | zk::Error::AuthFailed
        | zk::Error::ClientClosed
        | zk::Error::NoHosts => return Failure::SessionLost,
        zk::Error::ConnectionLoss
        | zk::Error::Timeout
        | zk::Error::Custom(_)
        | zk::Error::UnexpectedError(_)
        | zk::Error::UnmarshalError { .. } => return Failure::OutcomeUnknown,
        // The leader takes the session to be at another server, and has carried nothing out: it asks that
        // before anything else (`PrepRequestProcessor` and `SessionTrackerImpl.checkSession` of Apache's
        // server). The session lives. Servers from 3.4.11, 3.5.4 and 3.6 on end the connection instead of
        // answering; earlier ones answer a multi so (ZOOKEEPER-2886).
        zk::Error::SessionMoved => Refusal::Other(
            "the server takes this session to be at another server: nothing was changed".to_owned(),
        ),
        refused => Refusal::Other(refused.to_string()),
    };
    Failure::from(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_taken_to_be_at_another_server_is_not_lost_and_its_write_is_refused() {
        let moved = classify(zk::Error::SessionMoved);
        let Failure::Refused { refusal, index: None } = moved else { panic!("{moved:?}") };
        assert!(!refusal.is_of_the_tree(), "it proves no contact");
        assert!(refusal.may_pass(), "a clean-up asks again");
        assert_eq!(classify(zk::Error::SessionExpired), Failure::SessionLost);
        assert_eq!(classify(zk::Error::ConnectionLoss), Failure::OutcomeUnknown);
    }

    #[test]
    fn a_connection_tells_until_when_the_one_before_it_was_seen_to_stand() {
        let (lost, back) = (zk::SessionState::Disconnected, zk::SessionState::SyncConnected);
        let at = |seconds: u64| Boottime::from_nanos(seconds * 1_000_000_000);
        let mut stood = Stood::default();
        let first = stood.translated(back);
        assert_eq!(first, Connection::Up { stood: None });
        stood.seen(first, at(1));
        stood.seen(first, at(2));
        let down = stood.translated(lost);
        assert_eq!(down, Connection::Down);
        // The next one may be under way already.
        stood.seen(down, at(3));
        let second = stood.translated(back);
        assert_eq!(second, Connection::Up { stood: Some(at(2)) });
        stood.seen(second, at(4));
        // That it was lost in between was not seen.
        assert_eq!(stood.translated(back), Connection::Up { stood: Some(at(4)) });
    }
}
