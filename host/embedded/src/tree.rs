//! Znodes: the tree as every replica has it.

mod acl_pool;
mod node;
mod owner;
mod quota;
mod restore;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use acl_pool::AclPool;
pub use node::{Node, NodeStat};
pub use owner::{MAX_TTL_MS, Owner};
pub use quota::{Limit, Quota, Track};

use crate::path;
use crate::protocol::{Acl, Acls, ErrorCode, Stat};

/// The nodes that every tree has, parents first.
pub const BUILT_IN: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

/// All nodes by path.
///
/// The map of nodes is only looked up, never iterated: its order differs between replicas.
#[derive(Debug)]
pub struct Tree {
    nodes: HashMap<Arc<str>, Node>,
    ephemerals: BTreeMap<i64, BTreeSet<Arc<str>>>,
    containers: BTreeSet<Arc<str>>,
    ttls: BTreeSet<Arc<str>>,
    /// The paths that have a limit.
    quotas: BTreeSet<Box<str>>,
    acls: AclPool,
    data_size: usize,
}

/// What a node is created with.
#[derive(Debug)]
pub struct NewNode<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its data.
    pub data: Option<Bytes>,
    /// Its access list.
    pub acl: &'a [Acl],
    /// How it may end.
    pub owner: Owner,
    /// The parent's count of children ever created, this one included.
    pub parent_cversion: i32,
}

/// The access lists that decide who is told of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audience {
    /// Of the node.
    pub node: Acls,
    /// Of its parent, for the change of the parent's children.
    pub parent: Acls,
}

impl Default for Tree {
    fn default() -> Self {
        Tree::new()
    }
}

impl Tree {
    /// A tree of the built-in nodes.
    pub fn new() -> Self {
        let mut tree = Tree {
            nodes: HashMap::new(),
            ephemerals: BTreeMap::new(),
            containers: BTreeSet::new(),
            ttls: BTreeSet::new(),
            quotas: BTreeSet::new(),
            acls: AclPool::default(),
            data_size: 0,
        };
        for path in BUILT_IN {
            // Only reconfig may change the ensemble's description, and its list says so.
            let is_config = path == "/zookeeper/config";
            let acl = if is_config { Acl::readable() } else { Acl::open() };
            let stat = NodeStat { aversion: if is_config { -1 } else { 0 }, ..NodeStat::default() };
            tree.insert(path, Node::new(Some(Bytes::new()), acl, stat));
        }
        tree
    }

    /// Whether a path is of a node that every tree has.
    pub fn is_built_in(path: &str) -> bool {
        BUILT_IN.contains(&path)
    }

    /// The node of a path. The empty path is the root's other name, as in Apache ZooKeeper.
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(if path.is_empty() { "/" } else { path })
    }

    /// A node's facts.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    pub fn stat(&self, path: &str) -> Result<Stat, ErrorCode> {
        self.get(path).map(Node::stat).ok_or(ErrorCode::NoNode)
    }

    /// How many nodes there are, as Apache ZooKeeper counts: the root by both its names.
    pub fn count(&self) -> usize {
        self.nodes.len() + 1
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never: the root is always there.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The bytes of all paths and data.
    pub fn data_size(&self) -> usize {
        self.data_size
    }

    /// How many nodes lie below a path.
    pub fn count_below(&self, path: &str) -> usize {
        if path == "/" {
            return self.nodes.len() - 1;
        }
        let mut count = 0;
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let Some(node) = self.get(&path) else { continue };
            count += node.children().len();
            open.extend(node.children().map(|name| path::join(&path, name)));
        }
        count
    }

    /// The paths of a session's ephemerals.
    pub fn ephemerals_of(&self, session_id: i64) -> impl Iterator<Item = &str> {
        self.ephemerals.get(&session_id).into_iter().flatten().map(AsRef::as_ref)
    }

    /// The sessions that own ephemerals, with those.
    pub fn ephemerals(&self) -> impl ExactSizeIterator<Item = (i64, &BTreeSet<Arc<str>>)> {
        self.ephemerals.iter().map(|(session_id, paths)| (*session_id, paths))
    }

    /// The paths of all containers.
    pub fn containers(&self) -> impl Iterator<Item = &str> {
        self.containers.iter().map(AsRef::as_ref)
    }

    /// The paths of all nodes that have a time to live.
    pub fn ttls(&self) -> impl Iterator<Item = &str> {
        self.ttls.iter().map(AsRef::as_ref)
    }

    /// Creates a node.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`] without parent; [`ErrorCode::NodeExists`], which happens only when
    /// txns are applied again over a newer tree: then the parent's facts are brought up to date.
    pub fn create(
        &mut self,
        new: NewNode<'_>,
        zxid: i64,
        time_ms: i64,
    ) -> Result<(Stat, Audience), ErrorCode> {
        let (parent_path, name) = path::split(new.path).ok_or(ErrorCode::BadArguments)?;
        let parent = self.nodes.get_mut(parent_path).ok_or(ErrorCode::NoNode)?;
        parent.child_created(new.parent_cversion, zxid);
        if !parent.add_child(name) {
            let acl = self.acls.share(new.acl);
            if let Some(node) = self.nodes.get_mut(new.path) {
                node.created_again(acl, zxid);
            }
            return Err(ErrorCode::NodeExists);
        }
        let parent_acl = parent.acl().clone();
        let acl = self.acls.share(new.acl);
        let stat = NodeStat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime_ms: time_ms,
            mtime_ms: time_ms,
            ephemeral_owner: new.owner.to_raw(),
            ..NodeStat::default()
        };
        let node = Node::new(new.data, acl.clone(), stat);
        let (stat, bytes) = (node.stat(), node.data_length());
        self.insert(new.path, node);
        self.quota_created(new.path, bytes);
        Ok((stat, Audience { node: acl, parent: parent_acl }))
    }

    /// Deletes a node. Whether it may be deleted has been decided before.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`]; when txns are applied again over a newer tree, the parent's facts
    /// are brought up to date all the same.
    pub fn delete(&mut self, path: &str, zxid: i64) -> Result<Audience, ErrorCode> {
        let (parent_path, name) = path::split(path).ok_or(ErrorCode::BadArguments)?;
        let parent_acl = self.nodes.get_mut(parent_path).map(|parent| {
            parent.child_deleted(name, zxid);
            parent.acl().clone()
        });
        let node = self.remove(path).ok_or(ErrorCode::NoNode)?;
        self.quota_deleted(path, node.data_length());
        let acl = node.acl().clone();
        let parent = parent_acl.unwrap_or_else(|| acl.clone());
        Ok(Audience { node: acl, parent })
    }

    /// Sets a node's data.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    pub fn set_data(
        &mut self,
        path: &str,
        data: Option<Bytes>,
        version: i32,
        zxid: i64,
        time_ms: i64,
    ) -> Result<(Stat, Acls), ErrorCode> {
        let node = self.nodes.get_mut(path).ok_or(ErrorCode::NoNode)?;
        let before = node.data_length();
        node.set_data(data, version, zxid, time_ms);
        let after = node.data_length();
        let set = (node.stat(), node.acl().clone());
        self.data_size = self.data_size.saturating_sub(before) + after;
        self.quota_set(path, before, after);
        Ok(set)
    }

    /// Sets a node's access list.
    ///
    /// # Errors
    /// [`ErrorCode::NoNode`].
    pub fn set_acl(&mut self, path: &str, acl: &[Acl], version: i32) -> Result<Stat, ErrorCode> {
        let node = self.nodes.get_mut(path).ok_or(ErrorCode::NoNode)?;
        node.set_acl(self.acls.share(acl), version);
        Ok(node.stat())
    }

    fn insert(&mut self, path: &str, node: Node) {
        // A txn applied again over a newer tree may find a child whose parent was deleted again.
        self.remove(path);
        let path: Arc<str> = Arc::from(path);
        match node.owner() {
            Owner::Session(id) => {
                self.ephemerals.entry(id).or_default().insert(path.clone());
            }
            Owner::Container => {
                self.containers.insert(path.clone());
            }
            Owner::Ttl(_) => {
                self.ttls.insert(path.clone());
            }
            Owner::None => {}
        }
        if let Some((parent, name)) = path::split(&path).filter(|(_, name)| !name.is_empty())
            && let Some(parent) = self.nodes.get_mut(parent)
        {
            parent.add_child(name);
        }
        self.data_size += path.len() + node.data_length();
        self.nodes.insert(path, node);
    }

    fn remove(&mut self, path: &str) -> Option<Node> {
        let node = self.nodes.remove(path)?;
        self.data_size = self.data_size.saturating_sub(path.len() + node.data_length());
        match node.owner() {
            Owner::Session(id) => {
                if let Some(paths) = self.ephemerals.get_mut(&id) {
                    paths.remove(path);
                    if paths.is_empty() {
                        self.ephemerals.remove(&id);
                    }
                }
            }
            Owner::Container => {
                self.containers.remove(path);
            }
            Owner::Ttl(_) => {
                self.ttls.remove(path);
            }
            Owner::None => {}
        }
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_tree_is_as_apache_shows_it() {
        let tree = Tree::new();
        let stat = |path| tree.stat(path).unwrap();
        assert_eq!((stat("/").cversion, stat("/").num_children), (-1, 1));
        assert_eq!((stat("/zookeeper").cversion, stat("/zookeeper").num_children), (-2, 2));
        assert_eq!(stat("/zookeeper/config").aversion, -1);
        assert_eq!(tree.get("/").unwrap().children().collect::<Vec<_>>(), ["zookeeper"]);
        assert_eq!(tree.len(), 4);
        assert_eq!(tree.count_below("/"), 3);
    }

    fn create(tree: &mut Tree, path: &str, owner: Owner, parent_cversion: i32, zxid: i64) {
        let acl = Acl::open();
        let new = NewNode { path, data: None, acl: &acl, owner, parent_cversion };
        tree.create(new, zxid, 0).unwrap();
    }

    #[test]
    fn a_parents_versions_count_as_apache_counts_them() {
        let mut tree = Tree::new();
        create(&mut tree, "/p", Owner::None, 1, 1);
        for (number, name) in ["/p/a", "/p/b", "/p/c"].into_iter().enumerate() {
            let number = i32::try_from(number).unwrap();
            create(&mut tree, name, Owner::None, number + 1, i64::from(number) + 2);
        }
        tree.delete("/p/a", 5).unwrap();
        tree.set_data("/p/b", None, 1, 6, 0).unwrap();
        let stat = tree.stat("/p").unwrap();
        assert_eq!((stat.cversion, stat.pzxid, stat.num_children), (4, 5, 2));
    }

    #[test]
    fn indexes_follow_the_nodes() {
        let mut tree = Tree::new();
        let before = tree.data_size();
        create(&mut tree, "/e", Owner::Session(7), 1, 1);
        create(&mut tree, "/c", Owner::Container, 2, 2);
        create(&mut tree, "/t", Owner::Ttl(5), 3, 3);
        assert_eq!(tree.ephemerals_of(7).collect::<Vec<_>>(), ["/e"]);
        assert_eq!(tree.containers().count() + tree.ttls().count(), 2);
        for path in ["/e", "/c", "/t"] {
            tree.delete(path, 9).unwrap();
        }
        assert_eq!(tree.ephemerals().len() + tree.containers().count() + tree.ttls().count(), 0);
        assert_eq!(tree.data_size(), before);
    }
}
