//! What is learned of the servers' tick, for a session that is believed in for longer then.

use std::sync::Arc;

use tokio::time::MissedTickBehavior;

use super::core::Core;
use super::ensemble::Connection;

/// Learns once how short a session timeout the servers grant, when the session has had an ephemeral
/// znode for about a heartbeat: who holds for less, and nothing waits for it, pays nothing.
pub(super) async fn learn(core: Arc<Core>) {
    core.lost().run_until_cancelled(ask(&core)).await;
}

async fn ask(core: &Core) {
    let heartbeat = core.timing().heartbeat();
    // tidy: no lease is judged by it, and to ask later than that harms nobody
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + heartbeat, heartbeat);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let is_up = *core.ensemble().connection().borrow() == Connection::Up;
        if is_up
            && core.contact().has_znodes()
            && let Some(least) = core.ensemble().least_timeout().await
        {
            return core.contact().learn(least);
        }
    }
}
