//! What is learned of the servers' tick, for a session that is believed in for longer then.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::core::Core;
use crate::backoff::Backoff;

/// The longest pause between two attempts. Each takes a server a connection and the ensemble two
/// transactions, and what refuses one, as a limit of connections, is there for minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

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
    let mut backoff = Backoff::between(heartbeat, LONGEST_PAUSE.max(heartbeat));
    let mut not_before = None;
    loop {
        let now = ticks.tick().await;
        let is_up = core.ensemble().connection().borrow().is_up();
        let is_due = not_before.is_none_or(|not_before| now >= not_before);
        if !is_up || !is_due || !core.contact().has_znodes() {
            continue;
        }
        if let Some(least) = core.ensemble().least_timeout().await {
            return core.contact().learn(least);
        }
        not_before = Some(now + backoff.next_by(&**core.clock()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::stand_in::StandIn;

    #[tokio::test(start_paused = true)]
    async fn servers_that_do_not_tell_their_tick_are_asked_more_and_more_rarely() {
        let stand_in = StandIn::open();
        let standing = stand_in.core.standing();
        let hours = |hours: u64| Duration::from_secs(hours * 60 * 60);
        let asking = tokio::time::timeout(hours(1), ask(&stand_in.core)).await;
        assert!(asking.is_err(), "nobody has told it");
        // One for each of the pauses until they are longest, and then two a minute at most.
        let asked = stand_in.asked_for_least();
        assert!((60..=130).contains(&asked), "asked {asked} times");
        drop(standing);
    }
}
