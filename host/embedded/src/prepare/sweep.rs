//! Removing containers that have served and nodes whose time to live is over.

use super::{Leader, Proposal, Request};
use crate::protocol::Write;
use crate::replica::Replica;
use crate::time::Now;
use crate::tree::Owner;

impl Leader {
    /// Deletes what is due. The task that drives the leader calls this every so often; Apache
    /// ZooKeeper does so every minute.
    pub fn sweep(&mut self, replica: &Replica, now: Now) -> Vec<Proposal> {
        let tree = replica.tree();
        let due: Vec<String> = (tree.containers().chain(tree.ttls()))
            .filter(|path| self.is_due(replica, path, now))
            .map(str::to_owned)
            .collect();
        let delete =
            |path| self.prepare(replica, Request::own(0, Write::DeleteContainer { path }), now);
        due.into_iter().map(delete).collect()
    }

    fn is_due(&self, replica: &Replica, path: &str, now: Now) -> bool {
        let Ok(node) = self.outstanding.get(replica, path) else { return false };
        let age_ms = now.wall_ms.saturating_sub(node.stat.mtime_ms);
        node.child_count == 0
            && match Owner::from_raw(node.stat.ephemeral_owner) {
                Owner::Container if node.stat.cversion > 0 => true,
                Owner::Container => self
                    .options
                    .never_used_container_ms
                    .is_some_and(|limit| u64::try_from(age_ms).is_ok_and(|age| age > limit)),
                Owner::Ttl(ttl_ms) => age_ms > ttl_ms,
                Owner::None | Owner::Session(_) => false,
            }
    }
}
