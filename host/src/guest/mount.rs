//! The subtree that a recipe sees as `/`.
//!
//! What is malformed is refused, never normalised: two spellings of one znode are where escapes
//! come from. The rules of paths are in [`crate::znode_path`]; here they become what a component
//! is answered.

use crate::znode_path::{self, ZnodePath};

/// Longest absolute path. ZooKeeper has no limit of its own; this one bounds what a component can
/// make the host keep for each watch and ledger entry.
const MAX_PATH_BYTES: usize = 4096;

/// Why a path names no znode of the mount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It is no path that ZooKeeper would accept, or it is the ensemble's own.
    #[error("{path:?}: {source}")]
    Refused {
        /// The path, shortened if it is long.
        path: String,
        /// The rule that it breaks.
        source: znode_path::PathError,
    },
    /// It is too long.
    #[error("{path:?}: with what is added to it, the path is longer than {MAX_PATH_BYTES} bytes")]
    TooLong {
        /// The path, shortened.
        path: String,
    },
}

/// A recipe's root in the tree of znodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    root: ZnodePath,
}

impl Mount {
    /// A mount at an absolute path.
    ///
    /// # Errors
    /// The path breaks a rule of ZooKeeper's, or is the ensemble's own.
    pub fn new(path: &str) -> Result<Self, znode_path::PathError> {
        ZnodePath::parse(path).map(Mount::from)
    }

    /// The mount's absolute path.
    pub fn path(&self) -> &str {
        self.root.as_str()
    }

    /// The absolute path of the znode that a recipe calls `guest`.
    ///
    /// # Errors
    /// The path breaks a rule of ZooKeeper's, names something of the ensemble's own, or is too
    /// long.
    pub fn resolve(&self, guest: &str) -> Result<String, PathError> {
        self.resolve_with_room(guest, 0)
    }

    /// As [`Mount::resolve`], for a path to which so many bytes will be added.
    ///
    /// # Errors
    /// As [`Mount::resolve`], of the longer path.
    pub(super) fn resolve_with_room(&self, guest: &str, more: usize) -> Result<String, PathError> {
        // What is added may be a guest's own, and as long as that has made it.
        let length = self.path().len().saturating_add(guest.len()).saturating_add(more);
        if length > MAX_PATH_BYTES {
            return Err(PathError::TooLong { path: shortened(guest) });
        }
        let resolved = self.root.resolve(guest);
        let refused = |source| PathError::Refused { path: shortened(guest), source };
        resolved.map(String::from).map_err(refused)
    }

    /// What a recipe calls the znode at `absolute`; none if it is not under the mount.
    pub fn strip(&self, absolute: &str) -> Option<String> {
        self.root.strip(absolute).map(str::to_owned)
    }
}

impl From<ZnodePath> for Mount {
    fn from(root: ZnodePath) -> Self {
        Mount { root }
    }
}

/// The path may be megabytes long, and the error goes into logs.
fn shortened(path: &str) -> String {
    const SHOWN: usize = 120;
    match path.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", path.get(..end).unwrap_or_default()),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_refused(guest: &str) {
        for mount in ["/", "/app/lock"] {
            let mount = Mount::new(mount).unwrap();
            assert!(mount.resolve(guest).is_err(), "{guest:?} under {mount:?}");
        }
    }

    #[test]
    fn malformed_paths_are_refused_and_never_normalised() {
        for guest in [
            "",
            "a",
            "a/b",
            "//",
            "/a//b",
            "/a/",
            "/.",
            "/..",
            "/a/..",
            "/a/../../b",
            "/./a",
            "/a\0",
            "/\u{1}",
            "/\u{7f}",
            "/\u{9f}",
            "/\u{e000}",
            "/\u{f8ff}",
            "/\u{fff0}",
            "/\u{ffff}",
            "/\u{10000}",
            "/zookeeper/../x",
        ] {
            check_refused(guest);
        }
        check_refused(&format!("/{}", "x".repeat(5000)));
    }

    #[test]
    fn a_path_is_bounded_with_what_is_added_to_it() {
        let mount = Mount::new("/app").unwrap();
        let longest = format!("/{}", "x".repeat(MAX_PATH_BYTES - 5));
        assert!(mount.resolve(&longest).is_ok());
        let too_long = mount.resolve_with_room(&longest, 1).unwrap_err();
        assert!(matches!(too_long, PathError::TooLong { .. }), "{too_long}");
        assert!(too_long.to_string().len() < 300, "{too_long}");
        assert!(mount.resolve_with_room("/a", usize::MAX).is_err());
    }

    #[test]
    fn odd_but_legal_names_are_taken_literally() {
        let mount = Mount::new("/app").unwrap();
        for guest in ["/...", "/%2e%2e", "/a b", "/é", "/e\u{301}", "/\u{d7ff}", "/\u{f900}"] {
            assert_eq!(mount.resolve(guest).unwrap(), format!("/app{guest}"));
        }
    }

    #[test]
    fn a_sibling_with_the_same_prefix_is_outside() {
        let mount = Mount::new("/app/lock").unwrap();
        assert_eq!(mount.strip("/app/lock-evil/x"), None);
        assert_eq!(mount.strip("/app"), None);
        assert_eq!(mount.strip("/app/lock").as_deref(), Some("/"));
        assert_eq!(mount.strip("/app/lock/x/y").as_deref(), Some("/x/y"));
    }

    #[test]
    fn the_ensembles_own_znodes_are_out_of_reach_even_of_a_mount_at_the_root() {
        let mount = Mount::new("/").unwrap();
        let refused = mount.resolve("/zookeeper/config").unwrap_err();
        let reserved = znode_path::PathError::Reserved;
        assert!(matches!(&refused, PathError::Refused { source, .. } if *source == reserved));
        assert_eq!(mount.resolve("/zookeeper-x").unwrap(), "/zookeeper-x");
    }

    proptest! {
        #[test]
        fn every_result_starts_with_the_mounts_own_segments(
            mount in "(/[a-z.]{3,6}){0,3}", guest in "[/a-z.\u{0}-\u{20}é\u{fff0}-\u{10010}]{0,24}",
        ) {
            let mount = Mount::new(if mount.is_empty() { "/" } else { &mount });
            let Ok(mount) = mount else { return Ok(()) };
            if let Ok(absolute) = mount.resolve(&guest) {
                let absolute = ZnodePath::parse(&absolute).unwrap();
                let own: Vec<_> = mount.root.segments().collect();
                let got: Vec<_> = absolute.segments().collect();
                prop_assert_eq!(got.get(..own.len()), Some(own.as_slice()));
                let stripped = mount.strip(absolute.as_str());
                prop_assert_eq!(stripped.as_deref(), Some(guest.as_str()));
            }
        }
    }
}
