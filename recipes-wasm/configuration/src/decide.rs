//! What keys, expectations, looks and revisions mean.

/// The most bytes of a key.
const LONGEST: usize = 128;

/// The most bytes of a value: twelve of the largest still fit into one snapshot.
const LARGEST: usize = 64 * 1024;

/// What ZooKeeper takes for any version.
const ANY_VERSION: i32 = -1;

/// Whether a child of the mount is a key. The others are this recipe's own, or somebody else's.
pub(crate) fn is_key(name: &str) -> bool {
    check_key(name).is_ok()
}

/// Whether a key may be used.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_key(key: &str) -> Result<(), String> {
    let length = key.len();
    if !(1..=LONGEST).contains(&length) {
        return Err(format!("a key has 1 to {LONGEST} bytes, and this one {length}"));
    }
    if key.contains(|character: char| character == '/' || character.is_control()) {
        return Err(format!("the key {key:?} has a slash or a control character"));
    }
    if key.starts_with('.') {
        return Err(format!("the key {key:?} begins with a dot"));
    }
    Ok(())
}

/// Whether a value may be written.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_data(data: &[u8]) -> Result<(), String> {
    let length = data.len();
    if length > LARGEST {
        return Err(format!("a value has at most {LARGEST} bytes, and this one {length}"));
    }
    Ok(())
}

/// What a key must be for a change to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Any,
    Absent,
    Version(i32),
}

impl Expected {
    /// The version that a request to ZooKeeper has to name, of a key that has a value.
    ///
    /// # Errors
    /// Why none can be named.
    pub(crate) fn of_existing(self) -> Result<Option<i32>, String> {
        match self {
            Expected::Any => Ok(None),
            Expected::Absent => Err("a key that is absent cannot be removed".to_owned()),
            Expected::Version(ANY_VERSION) => Err(format!(
                "ZooKeeper takes the version {ANY_VERSION} for any; nothing was changed. If any is \
                 what you mean, expect `any`; if the value has this version, set it with `any` once"
            )),
            Expected::Version(version) => Ok(Some(version)),
        }
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// As the first one of its key.
    Create,
    /// In the place of the one with that version, or of any.
    Replace(Option<i32>),
}

/// What a write is refused for, at its key's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no such znode, or not its parent where it is to be created.
    NoNode,
    /// There is one.
    NodeExists,
    /// It has another version, or whatever else.
    Other,
}

/// What to do after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write in this way.
    Write(How),
    /// Make the mount's znode, and write again.
    MakeRoot,
    /// The key is not as expected.
    Refuse,
}

/// How a write begins.
///
/// # Errors
/// What cannot be expected.
pub(crate) fn first(expected: Expected) -> Result<How, String> {
    match expected {
        Expected::Absent => Ok(How::Create),
        other => other.of_existing().map(How::Replace),
    }
}

/// How it goes on. A key of which anything is expected may come and go between two requests.
pub(crate) fn next(expected: Expected, how: How, refusal: Refusal) -> Step {
    match (how, refusal, expected) {
        (How::Create, Refusal::NoNode, _) => Step::MakeRoot,
        (How::Create, Refusal::NodeExists, Expected::Any) => Step::Write(How::Replace(None)),
        (How::Replace(_), Refusal::NoNode, Expected::Any) => Step::Write(How::Create),
        _ => Step::Refuse,
    }
}

/// The version of what was written, if that can be told. `seen` is the version and the revision that
/// the host answers for the key: after a lost reply it has read them later, and somebody may have
/// written again by then.
pub(crate) fn version(how: How, revision: u64, seen: Option<(i32, u64)>) -> Option<i32> {
    match how {
        // ZooKeeper counts the first data as version 0, and wraps as we do.
        How::Create => Some(0),
        How::Replace(Some(expected)) => Some(expected.wrapping_add(1)),
        How::Replace(None) => {
            seen.filter(|(_, written)| *written == revision).map(|(version, _)| version)
        }
    }
}

/// One look at the whole configuration.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// The revision that was read before all else; none if there was no configuration.
    pub(crate) before: Option<u64>,
    /// The keys that were listed then, in order.
    pub(crate) listed: Vec<String>,
    /// Whether all that were read after that had a value.
    pub(crate) is_whole: bool,
    /// The revision that was read after all else.
    pub(crate) after: Option<u64>,
}

/// Whether what was read of these keys is all of the configuration at one revision. What a session
/// reads never gets older, and every change of a key writes the root as well: where the root is the
/// same before and after, nothing in between has changed. (0 is the revision of no configuration.)
pub(crate) fn is_snapshot(look: &Look, keys: &[String]) -> Option<u64> {
    let is_one = look.before == look.after && look.is_whole && look.listed == keys;
    is_one.then(|| look.before.unwrap_or(0))
}

/// The root as an observer has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// Its `mzxid`, the configuration's revision.
    pub(crate) revision: u64,
    /// How often it was written.
    pub(crate) version: i32,
    /// Its `czxid`: tells it from one that was created in its place.
    pub(crate) created: u64,
}

/// What there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing.
    None,
    /// One change, whose key is the root's data.
    One(u64),
    /// Several, or one that is no set or removal.
    Several(u64),
    /// There is no configuration any more.
    Gone,
}

/// What an observer was told last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told(Option<Root>);

impl Told {
    /// Notes what was found, and says what of it is news.
    pub(crate) fn hear(&mut self, found: Option<Root>) -> News {
        match (std::mem::replace(&mut self.0, found), found) {
            (None, None) => News::None,
            (Some(_), None) => News::Gone,
            (Some(old), Some(new)) if old.revision == new.revision => News::None,
            (Some(old), Some(new))
                if old.created == new.created && new.version == old.version.wrapping_add(1) =>
            {
                News::One(new.revision)
            }
            (_, Some(new)) => News::Several(new.revision),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_name_that_shows() {
        for key in ["a", "db.pool.size", " ", "\u{fc}", "a b", "adder-1", &"x".repeat(LONGEST)] {
            assert_eq!(check_key(key), Ok(()), "{key:?}");
        }
        for wrong in ["", "a/b", "/a", "a\n", "\0", "\u{85}", ".", "..", ".writer-1"] {
            assert!(check_key(wrong).is_err() && !is_key(wrong), "{wrong:?}");
        }
        let told = check_key(&"x".repeat(LONGEST + 1)).expect_err("it is too long");
        assert!(told.contains("128") && told.contains("129"), "{told}");
    }

    #[test]
    fn a_value_has_a_largest_size() {
        assert_eq!(check_data(&[]), Ok(()));
        assert_eq!(check_data(&vec![0; LARGEST]), Ok(()));
        let told = check_data(&vec![0; LARGEST + 1]).expect_err("it is too large");
        assert!(told.contains("65536") && told.contains("65537"), "{told}");
    }

    #[test]
    fn the_version_that_zookeeper_takes_for_any_is_never_expected() {
        let told = first(Expected::Version(-1)).expect_err("it would match any");
        assert!(told.contains("expect `any`"), "{told}");
        assert!(Expected::Version(-1).of_existing().is_err());
        assert_eq!(first(Expected::Version(i32::MIN)), Ok(How::Replace(Some(i32::MIN))));
        assert_eq!(first(Expected::Version(0)), Ok(How::Replace(Some(0))));
    }

    #[test]
    fn what_is_expected_to_be_absent_is_created_and_never_replaced() {
        assert_eq!(first(Expected::Absent), Ok(How::Create));
        assert_eq!(next(Expected::Absent, How::Create, Refusal::NodeExists), Step::Refuse);
        assert_eq!(next(Expected::Absent, How::Create, Refusal::NoNode), Step::MakeRoot);
        assert!(Expected::Absent.of_existing().is_err());
    }

    #[test]
    fn a_version_is_replaced_and_never_created() {
        let how = How::Replace(Some(3));
        assert_eq!(first(Expected::Version(3)), Ok(how));
        for refusal in [Refusal::NoNode, Refusal::NodeExists, Refusal::Other] {
            assert_eq!(next(Expected::Version(3), how, refusal), Step::Refuse);
        }
    }

    #[test]
    fn any_finds_its_way_whether_there_is_a_value_or_not() {
        let replace = How::Replace(None);
        assert_eq!(first(Expected::Any), Ok(replace));
        assert_eq!(next(Expected::Any, replace, Refusal::NoNode), Step::Write(How::Create));
        assert_eq!(next(Expected::Any, How::Create, Refusal::NodeExists), Step::Write(replace));
        assert_eq!(next(Expected::Any, How::Create, Refusal::NoNode), Step::MakeRoot);
        assert_eq!(next(Expected::Any, replace, Refusal::Other), Step::Refuse);
    }

    #[test]
    fn a_version_is_told_only_where_it_is_that_of_the_own_value() {
        assert_eq!(version(How::Create, 70, None), Some(0));
        assert_eq!(version(How::Replace(Some(i32::MAX)), 70, Some((9, 80))), Some(i32::MIN));
        assert_eq!(version(How::Replace(None), 70, Some((4, 70))), Some(4));
        // Somebody has written again before the lost reply was settled, or removed the key.
        assert_eq!(version(How::Replace(None), 70, Some((5, 80))), None);
        assert_eq!(version(How::Replace(None), 70, None), None);
    }

    fn look(before: Option<u64>, listed: &[&str], after: Option<u64>) -> Look {
        let listed = listed.iter().map(|key| (*key).to_owned()).collect();
        Look { before, listed, is_whole: true, after }
    }

    #[test]
    fn what_was_read_between_two_equal_revisions_is_a_snapshot() {
        let keys = ["a".to_owned(), "b".to_owned()];
        assert_eq!(is_snapshot(&look(Some(7), &["a", "b"], Some(7)), &keys), Some(7));
        assert_eq!(is_snapshot(&look(None, &[], None), &[]), Some(0));
    }

    #[test]
    fn what_changed_meanwhile_is_none() {
        let keys = ["a".to_owned()];
        assert_eq!(is_snapshot(&look(Some(7), &["a"], Some(8)), &keys), None);
        assert_eq!(is_snapshot(&look(None, &[], Some(8)), &[]), None);
        assert_eq!(is_snapshot(&look(Some(7), &["a", "b"], Some(7)), &keys), None);
        assert_eq!(is_snapshot(&look(Some(7), &[], Some(7)), &keys), None);
        let torn = Look { is_whole: false, ..look(Some(7), &["a"], Some(7)) };
        assert_eq!(is_snapshot(&torn, &keys), None);
    }

    #[test]
    fn an_observer_is_told_of_one_change_by_its_key_and_of_several_without() {
        let root = |revision, version| Some(Root { revision, version, created: 5 });
        let mut told = Told::default();
        assert_eq!(told.hear(None), News::None);
        assert_eq!(told.hear(root(5, 0)), News::Several(5));
        assert_eq!(told.hear(root(5, 0)), News::None);
        assert_eq!(told.hear(root(8, 1)), News::One(8));
        assert_eq!(told.hear(root(12, 3)), News::Several(12));
        assert_eq!(told.hear(None), News::Gone);
        assert_eq!(told.hear(None), News::None);
    }

    #[test]
    fn one_change_is_one_across_the_wrap_and_not_at_another_root() {
        let root = |revision, version, created| Some(Root { revision, version, created });
        let mut told = Told(root(8, i32::MAX, 5));
        assert_eq!(told.hear(root(9, i32::MIN, 5)), News::One(9));
        let mut told = Told(root(8, 3, 5));
        assert_eq!(told.hear(root(20, 4, 15)), News::Several(20));
    }
}
