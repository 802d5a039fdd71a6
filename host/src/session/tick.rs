//! What is learned of the servers' tick, for a session that is believed in for longer then.

use std::sync::Arc;

use tokio::time::MissedTickBehavior;

use super::core::Core;
use super::ensemble::Connection;

/// Learns once how short a session timeout the servers grant, when something has been held for about
/// a heartbeat: whoever holds for less pays nothing for it.
pub(super) async fn learn(core: Arc<Core>) {
    core.lost().run_until_cancelled(ask(&core)).await;
}

async fn ask(core: &Core) {
    let heartbeat = core.timing().heartbeat();
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + heartbeat, heartbeat);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !core.contact().has_claims() || *core.ensemble().connection().borrow() != Connection::Up
        {
            continue;
        }
        match core.ensemble().least_timeout().await {
            Some(least) => return core.contact().learn(least),
            None => ticks.reset_after(core.timing().timeout()),
        }
    }
}
