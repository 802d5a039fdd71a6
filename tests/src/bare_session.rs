//! A session without a server, for measuring what the host itself costs.
//!
//! It answers reads of metadata and heartbeats at once and refuses everything else, so it proves nothing about
//! ZooKeeper: no test judges a recipe by it.
//!
//! The answers come from a task of the session's, as those of the real client do. An answer that
//! was there when it is asked for would never suspend the component, and so would hide how long a
//! component waits for its turn once its answer has come.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use wok::clock::{Boottime, SystemClock};
use wok::session::{
    Acl, Connection, Ensemble, Failure, Refusal, Reply, Request, Session, Stat, Watching,
};
use wok::tasks::Tasks;

/// A session of that timeout on the runtime that this is called in, and its heartbeats.
pub fn open(timeout: Duration) -> (Arc<Session>, Heartbeats) {
    let heartbeats = Heartbeats::default();
    let tasks = Tasks::on(Handle::current());
    // As bounded as what comes in: a session has a limit of requests in flight.
    let (requests, inbox) = mpsc::unbounded_channel();
    tasks.spawn("bare session", serve(inbox, heartbeats.clone()));
    let connection = watch::Sender::new(Connection::Up { stood: None });
    let ensemble = StandIn { timeout, requests, connection };
    let clock = Arc::new(SystemClock);
    let session = Session::new(Box::new(ensemble), Acl::Open, clock, Boottime::now(), tasks);
    (Arc::new(session), heartbeats)
}

/// When a session last asked for a sign of life, and the longest that it went without asking.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats(Arc<Mutex<Beats>>);

#[derive(Debug, Default)]
struct Beats {
    last: Option<Instant>,
    count: u64,
    longest: Duration,
}

impl Heartbeats {
    /// How many there were, and the longest time from one to the next.
    pub fn so_far(&self) -> (u64, Duration) {
        let beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is overdue counts, too.
        let since = beats.last.map(|last| last.elapsed()).unwrap_or_default();
        (beats.count, beats.longest.max(since))
    }

    fn beat(&self) {
        let mut beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let since = beats.last.map(|last| now - last).unwrap_or_default();
        beats.longest = beats.longest.max(since);
        beats.last = Some(now);
        beats.count += 1;
    }
}

/// A request, and where its answer goes.
type Asked = (Request, oneshot::Sender<Result<Reply, Failure>>);

async fn serve(mut inbox: mpsc::UnboundedReceiver<Asked>, heartbeats: Heartbeats) {
    while let Some((request, reply)) = inbox.recv().await {
        let answer = match request {
            Request::Exists(_, Watching::No) => Ok(Reply::Exists(Some(Stat::default()), None)),
            // Participants of a session without a server have no reason to wait for the leader.
            Request::Sync(_) => {
                heartbeats.beat();
                Ok(Reply::Synced)
            }
            _ => Err(Failure::from(Refusal::Unimplemented)),
        };
        // The caller may have gone.
        reply.send(answer).ok();
    }
}

#[derive(Debug)]
struct StandIn {
    timeout: Duration,
    requests: mpsc::UnboundedSender<Asked>,
    connection: watch::Sender<Connection>,
}

impl Ensemble for StandIn {
    fn id(&self) -> i64 {
        1
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn submit(&self, request: Request, _: Acl) -> BoxFuture<'static, Result<Reply, Failure>> {
        let (reply, answer) = oneshot::channel();
        // Sent here and not when it is awaited: requests go in the order of these calls.
        let sent = self.requests.send((request, reply));
        async move {
            sent.map_err(|_| Failure::SessionLost)?;
            answer.await.unwrap_or(Err(Failure::SessionLost))
        }
        .boxed()
    }

    fn least_timeout(&self) -> BoxFuture<'static, Option<Duration>> {
        ready(None).boxed()
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        ready(()).boxed()
    }
}

#[cfg(test)]
mod tests {
    use wok::session::{SeatLimits, SessionState};

    use super::*;
    use crate::patience::eventually;

    #[tokio::test]
    async fn a_session_without_work_is_kept_alive_by_its_heartbeats() {
        let (session, heartbeats) = open(Duration::from_secs(1));
        eventually("three heartbeats", async || Ok((heartbeats.so_far().0 >= 3).then_some(())))
            .await
            .unwrap();
        assert_eq!(*session.state().borrow(), SessionState::Connected);
        let seat = session.join("/work", SeatLimits::default()).unwrap();
        let reply = seat.submit(Request::Exists("/work".to_owned(), Watching::No)).await;
        assert!(matches!(reply, Ok(Reply::Exists(Some(_), None))), "{reply:?}");
        drop(seat);
        session.close().await;
    }
}
