//! A tree from a snapshot, node by node.

use bytes::Bytes;

use super::{Node, NodeStat, Tree};
use crate::protocol::Acl;

impl Tree {
    /// Puts a node in its place as a snapshot has it, instead of one that is there. Parents come
    /// before their children.
    pub fn restore(&mut self, path: &str, data: Option<Bytes>, acl: &[Acl], stat: NodeStat) {
        let old = self.remove(path);
        let node = Node::new(data, self.acls.share(acl), stat).with_children_of(old);
        self.insert(path, node);
    }
}
