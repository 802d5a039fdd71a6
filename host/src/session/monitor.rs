//! Heartbeats, and the judgement of what they tell.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::MissedTickBehavior;

use super::contact::Authority;
use super::core::Core;
use super::ensemble::{Connection, Ending};
use super::failure::Failure;
use super::omission::Omission;
use super::request::{Request, Watching, Write};
use super::state::{SessionLoss, SessionState};
use super::timing::TICK;

/// What heartbeats ask for: every server has it.
const ROOT: &str = "/";

/// Watches over a session until it is lost and nobody is on it any more.
pub(super) async fn run(core: Arc<Core>) {
    until_lost(&core).await;
    // If the server has heard of the session in time, the server does not expire it, and the client
    // keeps it alive. Unless the session is closed here, its znodes stay, and others wait for them
    // for ever.
    let mut participants = core.budget.participants();
    if participants.wait_for(|participants| *participants == 0).await.is_ok() {
        core.ensemble().close().await;
    }
}

async fn until_lost(core: &Arc<Core>) {
    let mut connection = core.ensemble().connection();
    let mut ticks = tokio::time::interval(TICK.min(core.timing().heartbeat() / 2));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A heartbeat is sent at every interval whether the one before it is answered or not: when the
    // connection has got over a lost packet all are answered at once, and contact is as new as the
    // newest of them. Each request is given up after a session timeout, so with the reminders there
    // are sixty under way at most.
    let mut under_way: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    let mut asked = core.contact().newest();
    let mut reminded = asked;
    while !core.lost().is_cancelled() {
        // All are cancel-safe: a change stays visible, a tick is only a reason to look, and the
        // heartbeats are kept across turns.
        tokio::select! {
            biased;
            changed = connection.changed() => {
                if changed.is_err() {
                    core.lose(SessionLoss::Closed);
                }
            }
            Some(()) = under_way.next() => {}
            _ = ticks.tick() => {}
        }
        let seen = core.look_at_connection();
        if seen.is_up() && core.omits(Omission::ContactDeadline) {
            core.believe();
        }
        judge(core, seen);
        if seen.is_up() {
            let (now, timing) = (core.now(), core.timing());
            let since_asked = now.saturating_duration_since(asked).min(core.silence());
            if since_asked >= timing.heartbeat() {
                (asked, reminded) = (now, now);
                under_way.push(beat(core));
            } else if !under_way.is_empty()
                && now.saturating_duration_since(reminded) >= timing.reminder()
            {
                reminded = now;
                under_way.push(remind(core));
            }
        }
    }
}

fn judge(core: &Core, connection: Connection) {
    match connection {
        Connection::Over(Ending::Expired) => core.lose(SessionLoss::Expired),
        Connection::Over(Ending::AuthFailed) => core.lose(SessionLoss::AuthFailed),
        Connection::Over(Ending::Closed) => core.lose(SessionLoss::Closed),
        _ if core.is_overdue() => core.lose(SessionLoss::Deadline),
        Connection::Down => core.note(SessionState::Suspended),
        Connection::Up { .. } if core.silence() >= core.timing().doubt() => {
            core.note(SessionState::Suspended);
        }
        Connection::Up { .. } => core.note(SessionState::Connected),
    }
}

/// Sends a heartbeat, and right behind its answer a `sync`: the leader's answer to that tells what
/// the leader knows, and costs no transaction.
fn beat(core: &Arc<Core>) -> BoxFuture<'static, ()> {
    let core = Arc::clone(core);
    async move {
        if exchange(&core, heartbeat(&core)).await {
            exchange(&core, reminder(&core)).await;
        }
    }
    .boxed()
}

/// Sends a `sync` behind a heartbeat that is not answered yet: it costs no transaction, and tells sooner
/// what the leader knows.
fn remind(core: &Arc<Core>) -> BoxFuture<'static, ()> {
    let core = Arc::clone(core);
    async move {
        exchange(&core, reminder(&core)).await;
    }
    .boxed()
}

/// What only the leader answers, and costs no transaction; a read where heartbeats are reads.
fn reminder(core: &Core) -> Request {
    // A server answers in order: behind a request to a leader that it is cut off from, it answers no read.
    match core.omits(Omission::HeartbeatByRead) {
        true => heartbeat(core),
        false => Request::Sync(ROOT.to_owned()),
    }
}

/// Whether a request was answered. An answer has been noted as contact; without one, the next judgement
/// draws the conclusion.
async fn exchange(core: &Core, request: Request) -> bool {
    let answer = core.exchange(request).await;
    if let Err(failure) = &answer {
        tracing::debug!(%failure, "heartbeat not answered");
    }
    matches!(answer, Ok(_) | Err(Failure::Refused { .. }))
}

/// The cheapest request whose answer is contact at present.
fn heartbeat(core: &Core) -> Request {
    if core.omits(Omission::HeartbeatByRead) {
        return Request::Exists(ROOT.to_owned(), Watching::No);
    }
    if core.omits(Omission::HeartbeatBySync) {
        return Request::Sync(ROOT.to_owned());
    }
    if core.omits(Omission::MadeUpAnswer) {
        return Request::Write(Write::Delete { path: ROOT.to_owned(), version: None });
    }
    match core.contact().authority() {
        Authority::Quorum => Request::no_change(),
        Authority::Leader | Authority::Server => Request::Sync(ROOT.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;
    use crate::session::stand_in::StandIn;

    #[tokio::test]
    async fn a_connection_that_was_made_again_before_anybody_looked_is_another_one() {
        let stand_in = StandIn::open();
        let mut monitor = pin!(until_lost(&stand_in.core));
        assert_eq!(monitor.as_mut().now_or_never(), None);
        assert!(!stand_in.core.contact().may_be_behind());
        stand_in.make_connection_again();
        assert_eq!(monitor.as_mut().now_or_never(), None);
        assert!(stand_in.core.contact().may_be_behind(), "it may be a server that is behind");
    }
}
