//! A session's attendant: it stays with the session to the end, and closes it.

use std::sync::Arc;
use std::time::Duration;

use super::open_sessions::{Epoch, OpenSessions};
use crate::session::SessionState;

/// Waits until the session is lost, is needed no more, or is to be closed with all others; then
/// strikes it out, and closes it when those that were on it have let go of what they held.
pub(super) async fn attend(open: Arc<OpenSessions>, epoch: Epoch, idle: Duration) {
    let session = format!("{:#x}", epoch.session.id());
    // Cancel-safe, all of them: a loss stays lost, who looks again looks for themselves, and
    // `until_dismissed` completes in the same poll in which it strikes the session out.
    tokio::select! {
        biased;
        loss = epoch.session.until_lost() => {
            // The participants end by themselves; those who are done with this session go on with
            // another meanwhile.
            let open = open.remove(&epoch);
            tracing::warn!(session, reason = %loss, cause = loss.kind(), open, "session lost");
            epoch.over.cancel();
            epoch.session.until_let_go().await;
        }
        never = tell_doubt(&open, &epoch, &session) => never,
        () = until_dismissed(&open, &epoch, idle) => {
            tracing::info!(session, "closing a session that nobody uses");
        }
        () = open.until_closing() => {}
    }
    open.remove(&epoch);
    epoch.over.cancel();
    epoch.session.close().await;
    tracing::info!(session, "session ended");
}

/// Has those who wait for a session look again whenever this one is in doubt or is not any more, and logs
/// both.
async fn tell_doubt(open: &OpenSessions, epoch: &Epoch, session: &str) {
    let (mut state, mut is_in_doubt) = (epoch.session.state(), false);
    loop {
        let now = *state.borrow_and_update();
        match now {
            SessionState::Suspended if !is_in_doubt => {
                tracing::warn!(session, "session in doubt: no contact with ZooKeeper");
            }
            SessionState::Connected if is_in_doubt => {
                tracing::info!(session, "session in contact again");
            }
            // A loss is logged where it is seen to.
            SessionState::Suspended | SessionState::Connected | SessionState::Lost(_) => {}
        }
        is_in_doubt = now == SessionState::Suspended;
        // Once before the first change: there may have been one before this was begun.
        open.look_again();
        if state.changed().await.is_err() {
            // The session is gone, and its loss is told.
            return std::future::pending().await;
        }
    }
}

/// Completes when nobody has been on the session for that time, others are open, and it is not among
/// them any more.
async fn until_dismissed(open: &OpenSessions, epoch: &Epoch, idle: Duration) {
    let mut participants = epoch.session.participants();
    loop {
        if participants.wait_for(|participants| *participants == 0).await.is_err() {
            // The session is gone, and its loss is told.
            return std::future::pending().await;
        }
        let joined = participants.wait_for(|participants| *participants > 0);
        let is_idle = tokio::time::timeout(idle, joined).await.is_err();
        if is_idle && open.dismiss(epoch) {
            return;
        }
    }
}
