//! The subtree that a recipe sees as `/`.
//!
//! A path is checked and joined segment by segment, and what is malformed is refused, never
//! normalised: two spellings of one znode are where escapes come from. So the first segments of
//! every result are the mount's, for any input.

/// Longest absolute path. ZooKeeper has no limit of its own; this one bounds what a component can
/// make the host keep for each watch and ledger entry.
const MAX_PATH_BYTES: usize = 4096;

/// Why a path names no znode of the mount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It is no path that ZooKeeper would accept.
    #[error("{path:?}: {problem}")]
    Malformed {
        /// The path, shortened if it is long.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// It names something of the ensemble's own.
    #[error("{path:?}: the ensemble keeps its own znodes under /zookeeper")]
    Reserved {
        /// The path.
        path: String,
    },
}

/// A recipe's root in the tree of znodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Empty for `/`, else the absolute path: either way a guest path can be appended to it.
    prefix: String,
}

impl Mount {
    /// A mount at an absolute path.
    ///
    /// # Errors
    /// The path is malformed.
    pub fn new(path: &str) -> Result<Self, PathError> {
        check(path)?;
        let prefix = if path == "/" { String::new() } else { path.to_owned() };
        Ok(Mount { prefix })
    }

    /// The mount's absolute path.
    pub fn path(&self) -> &str {
        if self.prefix.is_empty() { "/" } else { &self.prefix }
    }

    /// The absolute path of the znode that a recipe calls `guest`.
    ///
    /// # Errors
    /// The path is malformed, or names something of the ensemble's own.
    pub fn resolve(&self, guest: &str) -> Result<String, PathError> {
        if self.prefix.len() + guest.len() > MAX_PATH_BYTES {
            return Err(malformed(guest, "the path is longer than 4096 bytes"));
        }
        check(guest)?;
        let absolute = match (self.prefix.as_str(), guest) {
            (prefix, "/") if !prefix.is_empty() => prefix.to_owned(),
            (prefix, guest) => [prefix, guest].concat(),
        };
        if segments(&absolute).next() == Some("zookeeper") {
            return Err(PathError::Reserved { path: shortened(&absolute) });
        }
        Ok(absolute)
    }

    /// What a recipe calls the znode at `absolute`; none if it is not under the mount.
    pub fn strip(&self, absolute: &str) -> Option<String> {
        let mut rest = segments(absolute);
        for expected in segments(self.path()) {
            if rest.next() != Some(expected) {
                return None;
            }
        }
        let mut guest = String::with_capacity(absolute.len());
        for segment in rest {
            guest.push('/');
            guest.push_str(segment);
        }
        Some(if guest.is_empty() { "/".to_owned() } else { guest })
    }
}

/// Checks one name in a path by ZooKeeper's rules.
///
/// # Errors
/// What is wrong with it.
pub fn check_segment(segment: &str) -> Result<(), &'static str> {
    match segment {
        "" => return Err("an empty name, from a double or trailing slash"),
        "." | ".." => return Err("relative names are not resolved"),
        _ => {}
    }
    for character in segment.chars() {
        match character {
            '/' => return Err("a slash within a name"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => return Err("a control character"),
            // What is above U+FFFF is a pair of surrogates to the server, which refuses those.
            '\u{e000}'..='\u{f8ff}' | '\u{fff0}'.. => {
                return Err("a character that ZooKeeper does not allow");
            }
            _ => {}
        }
    }
    Ok(())
}

fn check(path: &str) -> Result<(), PathError> {
    let Some(rest) = path.strip_prefix('/') else {
        return Err(malformed(path, "a path starts with a slash"));
    };
    if rest.is_empty() {
        return Ok(());
    }
    rest.split('/').try_for_each(check_segment).map_err(|problem| malformed(path, problem))
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

fn malformed(path: &str, problem: &'static str) -> PathError {
    PathError::Malformed { path: shortened(path), problem }
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
        assert!(matches!(refused, PathError::Reserved { .. }), "{refused}");
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
                let own: Vec<_> = segments(mount.path()).collect();
                let got: Vec<_> = segments(&absolute).collect();
                prop_assert_eq!(got.get(..own.len()), Some(own.as_slice()));
                prop_assert!(check(&absolute).is_ok());
                let stripped = mount.strip(&absolute);
                prop_assert_eq!(stripped.as_deref(), Some(guest.as_str()));
            }
        }
    }
}
