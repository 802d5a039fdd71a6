//! Heartbeats, and the judgement of what they tell.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse};
use tokio::time::MissedTickBehavior;

use super::core::Core;
use super::ensemble::{Connection, Ending};
use super::omission::Omission;
use super::request::{Request, Watching};
use super::state::{SessionLoss, SessionState};
use super::timing::TICK;

/// What a heartbeat reads: it exists on every server, and looking at it needs no permission.
const HEARTBEAT_PATH: &str = "/";

/// Watches over a session until it is lost.
pub(super) async fn run(core: Arc<Core>) {
    let mut connection = core.ensemble().connection();
    let mut ticks = tokio::time::interval(TICK.min(core.timing().heartbeat() / 2));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heartbeat: Fuse<BoxFuture<'static, ()>> = Fuse::terminated();
    let mut beating = false;
    while !core.lost().is_cancelled() {
        // All are cancel-safe: a change stays visible, a tick is only a reason to look, and the
        // heartbeat is kept across turns.
        tokio::select! {
            biased;
            changed = connection.changed() => {
                if changed.is_err() {
                    core.lose(SessionLoss::Closed);
                }
            }
            () = &mut heartbeat => beating = false,
            _ = ticks.tick() => {}
        }
        let now_up = *connection.borrow_and_update();
        if now_up == Connection::Up && core.omits(Omission::ContactDeadline) {
            core.believe();
        }
        judge(&core, now_up);
        let due = core.now().saturating_duration_since(core.contact()) >= core.timing().heartbeat();
        if due && !beating && now_up == Connection::Up {
            beating = true;
            heartbeat = beat(Arc::clone(&core)).fuse();
        }
    }
}

fn judge(core: &Core, connection: Connection) {
    let silence = core.now().saturating_duration_since(core.contact());
    match connection {
        Connection::Over(Ending::Expired) => core.lose(SessionLoss::Expired),
        Connection::Over(Ending::AuthFailed) => core.lose(SessionLoss::AuthFailed),
        Connection::Over(Ending::Closed) => core.lose(SessionLoss::Closed),
        _ if silence >= core.timing().patience() => core.lose(SessionLoss::Deadline),
        Connection::Down => core.note(SessionState::Suspended),
        Connection::Up if silence >= core.timing().doubt() => core.note(SessionState::Suspended),
        Connection::Up => core.note(SessionState::Connected),
    }
}

fn beat(core: Arc<Core>) -> BoxFuture<'static, ()> {
    async move {
        let request = Request::Exists(HEARTBEAT_PATH.to_owned(), Watching::No);
        // An answer has been noted as contact; without one, the next judgement draws the
        // conclusion.
        if let Err(failure) = core.exchange(request).await {
            tracing::debug!(%failure, "heartbeat not answered");
        }
    }
    .boxed()
}
