//! Who is told of changes.

use std::collections::BTreeSet;

use super::{Delivery, Member};
use crate::protocol::{Acl, EventType, Permissions, notification};
use crate::replica::{Change, ChangeKind};
use crate::version::ServerVersion;
use crate::{access, path};

/// The zxid in the header of events that are no txn's.
pub(super) const NO_ZXID: i64 = -1;

impl Member {
    /// Tells watchers of changes, in order.
    pub(super) fn tell(&mut self, zxid: i64, changes: &[Change]) {
        let zxid = match self.options.version {
            ServerVersion::V3_8 => NO_ZXID,
            ServerVersion::V3_9 => zxid,
        };
        for Change { path, kind, audience } in changes {
            let parent = path::split(path).map_or("/", |(parent, _)| parent);
            match kind {
                ChangeKind::Created => {
                    let watchers = self.watches.data.trigger(path, EventType::NodeCreated);
                    self.notify(zxid, EventType::NodeCreated, path, &watchers, &audience.node);
                }
                ChangeKind::DataChanged => {
                    let event = EventType::NodeDataChanged;
                    let watchers = self.watches.data.trigger(path, event);
                    self.notify(zxid, event, path, &watchers, &audience.node);
                    continue;
                }
                ChangeKind::Deleted => {
                    let event = EventType::NodeDeleted;
                    let mut watchers = self.watches.data.trigger(path, event);
                    self.notify(zxid, event, path, &watchers, &audience.node);
                    // Those who watch both data and children are told once.
                    let told = std::mem::take(&mut watchers);
                    let of_children = self.watches.child.trigger(path, event);
                    let rest: BTreeSet<_> = of_children.difference(&told).copied().collect();
                    self.notify(zxid, event, path, &rest, &audience.node);
                }
            }
            let event = EventType::NodeChildrenChanged;
            let watchers = self.watches.child.trigger(parent, event);
            self.notify(zxid, event, parent, &watchers, &audience.parent);
        }
    }

    fn notify(
        &mut self,
        zxid: i64,
        event: EventType,
        path: &str,
        watchers: &BTreeSet<u64>,
        acl: &[Acl],
    ) {
        for connection in watchers {
            self.notify_one(zxid, event, path, *connection, acl);
        }
    }

    /// Who may not read a node is not told of it, though the watch is spent.
    pub(super) fn notify_one(
        &mut self,
        zxid: i64,
        event: EventType,
        path: &str,
        connection: u64,
        acl: &[Acl],
    ) {
        let Some(peer) = self.connections.get_mut(&connection) else { return };
        if !access::allows(acl, Permissions::READ, &peer.ids) {
            return;
        }
        peer.statistics.sent += 1;
        self.statistics.sent += 1;
        let frame = notification(zxid, event, path);
        self.deliveries.push(Delivery::Event { connection, frame });
    }
}
