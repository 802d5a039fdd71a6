//! Quotas: what lies below a path is counted, as a limit wants it that a client has set.
//!
//! They are nodes like others. `/zookeeper/quota/a/zookeeper_limits` is the limit of `/a`, and has it
//! counted; `/zookeeper/quota/a/zookeeper_stats` has the count as its data. Every change counts for
//! the nearest path at or above it that has a limit, and for no other. As in Apache ZooKeeper, the
//! count changes neither version nor time of its node and nobody is told of it, the root has no quota,
//! and a tree that is loaded is counted anew.

mod track;

use bytes::Bytes;

pub use track::{Limit, Track};

use super::Tree;
use crate::path;

/// Where quotas are kept.
const QUOTA: &str = "/zookeeper/quota";
const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

/// What a path may come to, and what it comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota<'a> {
    /// The path that has it.
    pub path: &'a str,
    /// The limits.
    pub limits: Track,
    /// What was counted. `None`: nothing counts it, because its node is gone.
    pub counted: Option<Track>,
}

impl Tree {
    /// The quota that a node of this path counts for.
    pub fn quota_of<'a>(&self, path: &'a str) -> Option<Quota<'a>> {
        let path = self.quota_path(path)?;
        let limits = Track::read(self.get(&place(path, LIMITS))?.data());
        let counted = self.get(&place(path, STATS)).map(|node| Track::read(node.data()));
        Some(Quota { path, limits, counted })
    }

    fn quota_path<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.quotas.is_empty() {
            return None;
        }
        path::ancestry(path).find(|path| self.quotas.contains(*path))
    }

    /// To be called after a node was created with so many bytes.
    pub(super) fn quota_created(&mut self, path: &str, bytes: usize) {
        match quota_node(path) {
            Some((counted, LIMITS)) if !counted.is_empty() => {
                self.quotas.insert(counted.into());
            }
            Some((counted, STATS)) => self.count_anew(counted),
            _ => {}
        }
        self.count_change(path, signed(bytes), 1);
    }

    /// To be called after a node of so many bytes was deleted.
    pub(super) fn quota_deleted(&mut self, path: &str, bytes: usize) {
        if let Some((counted, LIMITS)) = quota_node(path) {
            self.quotas.remove(counted);
        }
        self.count_change(path, -signed(bytes), -1);
    }

    /// To be called after a node's data was set.
    pub(super) fn quota_set(&mut self, path: &str, before: usize, after: usize) {
        self.count_change(path, signed(after) - signed(before), 0);
    }

    /// Finds the quotas of a tree that was put together node by node, and counts them.
    pub fn load_quotas(&mut self) {
        let mut open = vec![QUOTA.to_owned()];
        let mut found = Vec::new();
        while let Some(path) = open.pop() {
            let Some(node) = self.get(&path) else { continue };
            // Limits that have children are none, as in Apache ZooKeeper when it starts.
            if let (Some((counted, LIMITS)), 0) = (quota_node(&path), node.children().len()) {
                found.push(counted.to_owned());
            }
            open.extend(node.children().map(|name| path::join(&path, name)));
        }
        self.quotas.clear();
        for counted in found {
            self.count_anew(&counted);
            if !counted.is_empty() {
                self.quotas.insert(counted.into());
            }
        }
    }

    fn count_change(&mut self, path: &str, bytes: i64, nodes: i64) {
        let Some(quota) = self.quota_path(path) else { return };
        self.set_track(&place(quota, STATS), |track| track.add(nodes, bytes));
    }

    fn count_anew(&mut self, counted: &str) {
        let mut track = Track::new(0, 0);
        let mut open = vec![if counted.is_empty() { "/" } else { counted }.to_owned()];
        while let Some(path) = open.pop() {
            let Some(node) = self.get(&path) else { continue };
            track.add(1, signed(node.data_length()));
            open.extend(node.children().map(|name| path::join(&path, name)));
        }
        self.set_track(&place(counted, STATS), |counted| *counted = track);
    }

    fn set_track(&mut self, path: &str, change: impl FnOnce(&mut Track)) {
        let Some(node) = self.nodes.get_mut(path) else { return };
        let mut track = Track::read(node.data());
        change(&mut track);
        self.data_size = self.data_size.saturating_sub(node.data_length());
        node.replace_data(Bytes::from(track.to_string()));
        self.data_size += node.data_length();
    }
}

/// The path that a node below [`QUOTA`] is about, and its name.
fn quota_node(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    let counted = parent.strip_prefix(QUOTA)?;
    (counted.is_empty() || counted.starts_with('/')).then_some((counted, name))
}

fn place(path: &str, name: &str) -> String {
    format!("{QUOTA}{path}/{name}")
}

/// Data is limited by the longest frame.
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Acl;
    use crate::tree::{NewNode, Owner};

    fn create(tree: &mut Tree, path: &str, data: &'static str) {
        let (acl, data) = (Acl::open(), Some(Bytes::from_static(data.as_bytes())));
        let new = NewNode { path, data, acl: &acl, owner: Owner::None, parent_cversion: 1 };
        tree.create(new, 1, 0).unwrap();
    }

    fn counted(tree: &Tree, path: &str) -> String {
        let data = tree.get(&place(path, STATS)).unwrap().data().unwrap();
        String::from_utf8(data.to_vec()).unwrap()
    }

    fn limit(tree: &mut Tree, path: &str) {
        let place = format!("{QUOTA}{path}");
        create(tree, &place, "");
        create(tree, &format!("{place}/{LIMITS}"), "count=5,bytes=-1");
        create(tree, &format!("{place}/{STATS}"), "count=0,bytes=0");
    }

    #[test]
    fn what_lies_below_a_limit_is_counted_from_the_start_and_on() {
        let mut tree = Tree::new();
        create(&mut tree, "/a", "12345");
        create(&mut tree, "/a/b", "1");
        create(&mut tree, "/ab", "not below it");
        let size = |tree: &Tree| tree.data_size();
        limit(&mut tree, "/a");
        assert_eq!(counted(&tree, "/a"), "count=2,bytes=6");
        create(&mut tree, "/a/c", "123");
        assert_eq!(counted(&tree, "/a"), "count=3,bytes=9");
        tree.set_data("/a/c", None, 1, 2, 0).unwrap();
        assert_eq!(counted(&tree, "/a"), "count=3,bytes=6");
        tree.delete("/a/b", 3).unwrap();
        assert_eq!(counted(&tree, "/a"), "count=2,bytes=5");
        let stat = tree.stat(&place("/a", STATS)).unwrap();
        assert_eq!((stat.version, stat.mzxid, stat.data_length), (0, 1, 15));
        let before = size(&tree);
        tree.load_quotas();
        assert_eq!((counted(&tree, "/a").as_str(), size(&tree)), ("count=2,bytes=5", before));
        tree.delete(&place("/a", LIMITS), 4).unwrap();
        create(&mut tree, "/a/d", "1");
        assert_eq!(counted(&tree, "/a"), "count=2,bytes=5");
    }

    #[test]
    fn a_quota_of_the_root_is_counted_once_and_limits_nothing() {
        let mut tree = Tree::new();
        create(&mut tree, &format!("{QUOTA}/{LIMITS}"), "count=1,bytes=1");
        create(&mut tree, &format!("{QUOTA}/{STATS}"), "count=0,bytes=0");
        create(&mut tree, "/a", "");
        assert_eq!(counted(&tree, ""), "count=6,bytes=30");
        assert_eq!(tree.quota_of("/a"), None);
        tree.load_quotas();
        assert_eq!(counted(&tree, ""), "count=7,bytes=31");
    }
}
