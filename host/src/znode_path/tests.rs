use proptest::prelude::*;

use super::*;

/// `PathUtils.validatePath` of Apache ZooKeeper as it is written there, over UTF-16 units: the
/// oracle for ours, which goes by components and characters.
fn java_accepts(path: &str) -> bool {
    let units: Vec<u16> = path.encode_utf16().collect();
    let slash = u16::from(b'/');
    let dot = u16::from(b'.');
    if units.first() != Some(&slash) {
        return false;
    }
    if units.len() == 1 {
        return true;
    }
    if units.last() == Some(&slash) {
        return false;
    }
    let ends_at = |i: usize| units.get(i).is_none_or(|unit| *unit == slash);
    for i in 1..units.len() {
        let (last, unit) = (units[i - 1], units[i]);
        let refused = unit == 0
            || (unit == slash && last == slash)
            || (unit == dot && last == dot && units[i - 2] == slash && ends_at(i + 1))
            || (unit == dot && last == slash && ends_at(i + 1))
            || matches!(unit, 1..=0x1F | 0x7F..=0x9F | 0xD800..=0xF8FF | 0xFFF0..=0xFFFF);
        if refused {
            return false;
        }
    }
    true
}

/// Texts rich in what the rules are about.
fn awkward_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("/".to_owned()),
        2 => Just(".".to_owned()),
        1 => Just("..".to_owned()),
        2 => Just("a".to_owned()),
        1 => Just("zookeeper".to_owned()),
        1 => Just("%2e%2e".to_owned()),
        1 => any::<char>().prop_map(String::from),
        1 => prop::sample::select(vec![
            '\0', '\u{1}', '\u{1f}', ' ', '\u{7e}', '\u{7f}', '\u{9f}', '\u{a0}', '\u{d7ff}',
            '\u{e000}', '\u{f8ff}', '\u{f900}', '\u{ffef}', '\u{fff0}', '\u{ffff}', '\u{10000}',
            '\u{1f600}', '\u{202e}', '\u{301}',
        ])
        .prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn well_formed() -> impl Strategy<Value = ZnodePath> {
    prop::collection::vec("[a-z.]{3,9}", 0..4).prop_filter_map("reserved", |segments| {
        ZnodePath::root().join(segments.iter().map(String::as_str)).ok()
    })
}

proptest! {
    #[test]
    fn check_agrees_with_apache_zookeeper_outside_the_reserved_subtree(
        text in prop_oneof![awkward_text(), awkward_text().prop_map(|text| format!("/{text}"))]
    ) {
        let reserved = text == "/zookeeper" || text.starts_with("/zookeeper/");
        prop_assert_eq!(check(&text).is_ok(), java_accepts(&text) && !reserved, "{:?}", text);
    }

    #[test]
    fn join_never_escapes(base in well_formed(), segments in prop::collection::vec(awkward_text(), 0..4)) {
        if let Ok(joined) = base.join(segments.iter().map(String::as_str)) {
            let expected: Vec<&str> =
                base.segments().chain(segments.iter().map(String::as_str)).collect();
            prop_assert_eq!(joined.segments().collect::<Vec<_>>(), expected);
            prop_assert!(base.contains(&joined));
            prop_assert_eq!(check(joined.as_str()), Ok(()));
        }
    }

    #[test]
    fn resolve_never_escapes_and_strip_undoes_it(base in well_formed(), path in awkward_text()) {
        if let Ok(resolved) = base.resolve(&path) {
            prop_assert!(base.contains(&resolved));
            prop_assert_eq!(check(resolved.as_str()), Ok(()));
            prop_assert_eq!(base.strip(resolved.as_str()), Some(path.as_str()));
        } else {
            // Only the ensemble's own subtree is refused beyond the rules.
            let reserved = base == ZnodePath::root() && check(&path) == Err(PathError::Reserved);
            prop_assert!(reserved || !java_accepts(&path), "{:?} in {}", path, base);
        }
    }
}

#[track_caller]
fn refused(path: &str, expected: PathError) {
    assert_eq!(check(path), Err(expected), "{path:?}");
}

#[test]
fn each_rule_is_named() {
    refused("", PathError::NotAbsolute);
    refused("locks", PathError::NotAbsolute);
    refused("/locks/", PathError::TrailingSlash);
    refused("//", PathError::TrailingSlash);
    refused("/a//b", PathError::EmptyComponent);
    refused("/a/./b", PathError::RelativeComponent("."));
    refused("/a/..", PathError::RelativeComponent(".."));
    refused("/zookeeper", PathError::Reserved);
    refused("/zookeeper/quota", PathError::Reserved);
    refused("/é/a\0", PathError::ForbiddenCharacter { character: '\0', at: 5 });
    refused("/😀", PathError::ForbiddenCharacter { character: '😀', at: 1 });
    refused("/a\u{85}", PathError::ForbiddenCharacter { character: '\u{85}', at: 2 });
}

#[test]
fn every_character_of_the_basic_plane_is_judged_as_apache_zookeeper_does() {
    for character in (0..=0x1_0010).filter_map(char::from_u32) {
        let path = format!("/a{character}b");
        assert_eq!(check(&path).is_ok(), java_accepts(&path), "{path:?}");
    }
}

#[test]
fn names_that_only_look_relative_or_reserved_are_names() {
    for path in ["/", "/...", "/.a", "/a..", "/zookeeper-x", "/a/zookeeper", "/Zookeeper", "/a b"] {
        assert_eq!(check(path), Ok(()), "{path:?}");
    }
}

#[test]
fn a_sibling_with_the_same_beginning_is_outside() {
    let mount = ZnodePath::parse("/app/lock").unwrap();
    assert!(!mount.contains(&ZnodePath::parse("/app/lock-evil").unwrap()));
    assert!(mount.contains(&ZnodePath::parse("/app/lock/x").unwrap()));
    assert!(mount.contains(&mount));
    assert_eq!(mount.strip("/app/lock-evil"), None);
    assert_eq!(mount.strip("/app/lock"), Some("/"));
    assert_eq!(mount.strip("/app/lock/x"), Some("/x"));
}

#[test]
fn components_are_joined_whole() {
    let mount = ZnodePath::parse("/app").unwrap();
    assert_eq!(mount.join(["a", "b"]).unwrap().as_str(), "/app/a/b");
    assert_eq!(mount.join([]).unwrap(), mount);
    assert_eq!(mount.join(["a/b"]), Err(PathError::SlashInComponent("a/b".to_owned())));
    assert_eq!(mount.join(["zookeeper"]).unwrap().as_str(), "/app/zookeeper");
    assert_eq!(ZnodePath::root().join(["zookeeper"]), Err(PathError::Reserved));
}
