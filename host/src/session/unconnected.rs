//! A seat on no session, for a component that is asked something before there is one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use tokio::sync::{mpsc, watch};

use super::core::Core;
use super::ensemble::{Connection, Ensemble};
use super::failure::Failure;
use super::request::{Acl, Reply, Request};
use super::seat::{Seat, SeatLimits};
use crate::clock::{Boottime, SystemClock};

/// A seat without a session: no request to the ensemble that is made through this seat is ever answered.
pub fn unconnected() -> Seat {
    let nowhere = Box::new(Nowhere { connection: watch::Sender::new(Connection::Down) });
    // Nothing is created, so there is no work for a janitor.
    let (janitor, _) = mpsc::unbounded_channel();
    let clock = Arc::new(SystemClock);
    let core = Arc::new(Core::new(nowhere, Acl::Open, clock, Boottime::now(), janitor));
    #[allow(clippy::expect_used, reason = "nobody else has a seat there")]
    Seat::new(core, "/", SeatLimits::default()).expect("there is room for one seat")
}

/// No ensemble: nobody answers.
#[derive(Debug)]
struct Nowhere {
    connection: watch::Sender<Connection>,
}

impl Ensemble for Nowhere {
    fn id(&self) -> i64 {
        0
    }

    /// As long as it takes to ask a component something, and far longer.
    fn timeout(&self) -> Duration {
        Duration::from_secs(3600)
    }

    fn submit(&self, _: Request, _: Acl) -> BoxFuture<'static, Result<Reply, Failure>> {
        pending().boxed()
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    fn least_timeout(&self) -> BoxFuture<'static, Option<Duration>> {
        ready(None).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        ready(()).boxed()
    }
}
