//! Going through a tree that changes meanwhile.

use std::sync::Arc;

use super::{Node, Tree};
use crate::path;

impl Tree {
    /// The root, with which a walk begins.
    pub fn root(&self) -> Option<(Arc<str>, &Node)> {
        self.entry("/")
    }

    /// The node after a path, which need not be there any more: parents come before their
    /// children, children by their names. Whatever changes between two steps, no path comes
    /// twice, and none before its parent.
    pub fn following(&self, path: &str) -> Option<(Arc<str>, &Node)> {
        let first = self.get(path).and_then(|node| node.children().next());
        if let Some(first) = first {
            return self.entry(&path::join(path, first));
        }
        let up = path::ancestry(path).take_while(|path| *path != "/");
        up.filter_map(path::split).find_map(|(parent, name)| {
            let next = self.get(parent)?.child_after(name)?;
            self.entry(&path::join(parent, next))
        })
    }

    fn entry(&self, path: &str) -> Option<(Arc<str>, &Node)> {
        self.nodes.get_key_value(path).map(|(path, node)| (path.clone(), node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Acl;
    use crate::tree::{NewNode, Owner};

    fn tree(paths: &[&str]) -> Tree {
        let mut tree = Tree::new();
        for path in paths {
            let acl = Acl::open();
            let new =
                NewNode { path, data: None, acl: &acl, owner: Owner::None, parent_cversion: 1 };
            tree.create(new, 1, 0).unwrap();
        }
        tree
    }

    fn walk(tree: &Tree, from: &str) -> Vec<String> {
        let next = |path: &String| tree.following(path).map(|(path, _)| path.to_string());
        std::iter::successors(Some(from.to_owned()), next).skip(1).collect()
    }

    #[test]
    fn a_walk_comes_by_every_node_once_and_by_parents_first() {
        // A dash sorts before a slash, so paths as a whole have another order.
        let tree = tree(&["/a", "/a/c", "/a-b", "/a/c/d", "/b"]);
        let all = ["/a", "/a/c", "/a/c/d", "/a-b", "/b", "/zookeeper", "/zookeeper/config"];
        assert_eq!(walk(&tree, "/"), [&all[..], &["/zookeeper/quota"]].concat());
    }

    #[test]
    fn a_walk_goes_on_where_its_place_was() {
        let mut tree = tree(&["/a", "/a/c", "/a/c/d", "/b"]);
        for path in ["/a/c/d", "/a/c", "/a"] {
            tree.delete(path, 2).unwrap();
        }
        assert_eq!(walk(&tree, "/a/c/d").first().map(String::as_str), Some("/b"));
        assert_eq!(walk(&tree, "/zookeeper/quota"), Vec::<String>::new());
    }
}
