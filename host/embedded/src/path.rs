//! Path rules.

/// Whether a node of this path can exist.
///
/// ZooKeeper looks at UTF-16 units, so everything beyond the basic plane is refused for its
/// surrogates.
pub fn is_valid(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    rest.is_empty()
        || rest.split('/').all(|name| {
            !name.is_empty() && name != "." && name != ".." && name.chars().all(is_allowed)
        })
}

fn is_allowed(c: char) -> bool {
    !matches!(c,
        '\u{0}'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{fff0}'..='\u{ffff}'
        | '\u{10000}'..)
}

/// Splits a path into its parent and its name, without asking whether it is valid. The parent of
/// a name below the root is `/`.
pub fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((if parent.is_empty() { "/" } else { parent }, name))
}

/// The path itself and every ancestor, the root last.
pub fn ancestry(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match *path {
        "/" => None,
        path => split(path).map(|(parent, _)| parent),
    })
}

/// The path of a child.
pub fn join(parent: &str, name: &str) -> String {
    let parent = if parent == "/" { "" } else { parent };
    format!("{parent}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_valid_as_zookeeper_finds_them() {
        for path in ["/", "/a", "/a/b", "/é", "/...", "/a b"] {
            assert!(is_valid(path), "{path:?}");
        }
        let bad = [
            "",
            "a",
            "//",
            "/a/",
            "/a//b",
            "/.",
            "/..",
            "/a/./b",
            "/a/../b",
            "/\0",
            "/\u{1}",
            "/\u{85}",
            "/😀",
            "/\u{e000}",
            "/\u{fff0}",
            "/\u{ffff}",
        ];
        for path in bad {
            assert!(!is_valid(path), "{path:?}");
        }
    }

    #[test]
    fn ancestry_ends_at_the_root() {
        assert_eq!(ancestry("/a/b").collect::<Vec<_>>(), ["/a/b", "/a", "/"]);
        assert_eq!(ancestry("/").collect::<Vec<_>>(), ["/"]);
        assert_eq!(ancestry("a").collect::<Vec<_>>(), ["a"]);
    }
}
