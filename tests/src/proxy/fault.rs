//! Which request is struck, and by what.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::watch;

use super::record::Seen;
use crate::frames::Opcode;
use crate::patience::within;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In order: the peer reads the end of the stream.
    Fin,
    /// By a reset: the peer gets an error.
    Reset,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It does not reach the server, and the connection is cut.
    CutBefore(Cut),
    /// It is sent to the server, and the client's connection is cut at once. The server's stays
    /// until it has answered. The outcome is open: a client that is back before the server has
    /// read the request makes it close this connection; [`super::Proxy::refuse`] prevents that.
    CutAfter(Cut),
    /// The server carries it out; its reply is swallowed and the connection cut.
    DropReplyAndCut(Cut),
    /// The server carries it out; its reply is swallowed, and all else goes on.
    DropReply,
    /// It does not reach the server, and the client is answered that error in its place.
    Refuse(i32),
    /// It and everything after it on this connection is held back until the proxy releases
    /// it. Replies and notifications pass.
    StallRequests,
    /// The server carries it out; its reply and everything after it on this connection is held
    /// back until the proxy releases it. Requests pass.
    StallReplies,
    /// Nothing passes on this connection either way, from this request on, until the proxy
    /// releases it. Both peers believe that it is up. The request does not reach the server before.
    HalfOpen,
    /// It and everything after it on this connection is late by that time.
    Delay(Duration),
}

type Test = dyn Fn(&Seen) -> bool + Send + Sync;

/// Which request is meant: the n-th, counted from [`super::Proxy::inject`], of those that pass
/// all the tests. Pings never pass: they come by the clock and would make counts random.
#[derive(Clone)]
pub struct Match {
    tests: Vec<Arc<Test>>,
    nth: usize,
}

impl Match {
    /// Any request but pings.
    pub fn any() -> Self {
        Match { tests: Vec::new(), nth: 1 }
    }

    /// Requests of that operation.
    pub fn opcode(opcode: Opcode) -> Self {
        Match::any().and(move |seen| seen.opcode == opcode)
    }

    /// Requests that create one znode, of whatever kind.
    pub fn creates() -> Self {
        Match::any().and(|seen| seen.opcode.is_create())
    }

    /// The transactions that keep a session that has ephemeral znodes.
    pub fn heartbeats() -> Self {
        Match::opcode(Opcode::Multi).and(|seen| seen.path.as_deref() == Some("/"))
    }

    /// Of those, the ones about `path` or a znode below it; of a `multi` its first path counts.
    #[must_use]
    pub fn under(self, path: &str) -> Self {
        let path = path.trim_end_matches('/').to_owned();
        self.and(move |seen| {
            let below = seen.path.as_deref().and_then(|seen| seen.strip_prefix(&path));
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Of those, the ones that pass `test`.
    #[must_use]
    pub fn and(mut self, test: impl Fn(&Seen) -> bool + Send + Sync + 'static) -> Self {
        self.tests.push(Arc::new(test));
        self
    }

    /// The `n`-th of those, from 1.
    #[must_use]
    pub fn nth(mut self, n: usize) -> Self {
        self.nth = n;
        self
    }

    pub(super) fn picks(&self, seen: &Seen) -> bool {
        seen.opcode != Opcode::Ping && self.tests.iter().all(|test| test(seen))
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {} of those that pass {} tests", self.nth, self.tests.len())
    }
}

/// A fault that was asked for. Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Fault {
    struck: watch::Receiver<Option<Seen>>,
}

impl Fault {
    /// Waits until it strikes; answers the request it struck, as it came.
    ///
    /// # Errors
    /// If it does not, or the proxy was healed before.
    pub async fn struck(&self) -> Result<Seen> {
        let mut struck = self.struck.clone();
        let seen = within("a fault to strike", struck.wait_for(Option::is_some)).await?;
        let seen =
            seen.map_err(|_| anyhow::anyhow!("the proxy was healed before the fault struck"));
        Ok(seen?.clone().expect("waited for"))
    }

    /// Whether it has struck by now.
    pub fn has_struck(&self) -> bool {
        self.struck.borrow().is_some()
    }
}

/// A fault as the proxy keeps it until it strikes.
#[derive(Debug)]
pub(super) struct Pending {
    when: Match,
    action: Action,
    passed: usize,
    struck: watch::Sender<Option<Seen>>,
}

impl Pending {
    pub(super) fn new(when: Match, action: Action) -> (Pending, Fault) {
        let (sender, struck) = watch::channel(None);
        (Pending { when, action, passed: 0, struck: sender }, Fault { struck })
    }

    /// Counts the request; whether it is the one.
    pub(super) fn counts(&mut self, seen: &Seen) -> bool {
        if !self.when.picks(seen) {
            return false;
        }
        self.passed += 1;
        self.passed == self.when.nth
    }

    pub(super) fn strike(self, seen: &Seen) -> Action {
        self.struck.send_replace(Some(seen.clone()));
        self.action
    }
}
