//! What names, znodes and revisions mean.

use wok_sdk::zookeeper::Owner;

/// The most bytes of a name.
const LONGEST: usize = 128;

/// The most bytes of a member's data: eleven of the largest still fit into one view.
const LARGEST: usize = 64 * 1024;

/// Whether a member may have that name. Children of other names are none of this recipe's.
pub(crate) fn is_name(name: &str) -> bool {
    check_name(name).is_ok()
}

/// Whether a member may have that name.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let length = name.len();
    if !(1..=LONGEST).contains(&length) {
        return Err(format!("a name has 1 to {LONGEST} bytes, and this one {length}"));
    }
    if name.contains(|character: char| character == '/' || character.is_control()) {
        return Err(format!("the name {name:?} has a slash or a control character"));
    }
    if name.starts_with('.') {
        return Err(format!("the name {name:?} begins with a dot"));
    }
    Ok(())
}

/// Whether a member may say that of itself.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_data(data: &[u8]) -> Result<(), String> {
    let length = data.len();
    if length > LARGEST {
        return Err(format!("a member's data has at most {LARGEST} bytes, and this has {length}"));
    }
    Ok(())
}

/// Whether a child of the group's directory is a member: it is if it goes with somebody.
pub(crate) fn is_member(owner: Owner) -> bool {
    owner != Owner::None
}

/// What to do about a name that somebody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is a member's: wait until it is gone.
    Wait,
    /// It is no member's, and does not go with anybody.
    Refuse,
}

/// Decides that, by whose znode it is. Nobody's is ever taken for one's own: that of the own session
/// may be another participant's, or about to be deleted, and the znode of a session that is dead but
/// not over yet will go.
pub(crate) fn taken(owner: Owner) -> Taken {
    match owner {
        Owner::Me | Owner::Other => Taken::Wait,
        Owner::None => Taken::Refuse,
    }
}

/// What there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing.
    None,
    /// The group has that revision now.
    Changed(u64),
    /// The group has no directory any more.
    Gone,
}

/// What an observer was told last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// The highest revision so far.
    highest: Option<u64>,
    /// Whether the directory was told to be gone since.
    is_gone: bool,
}

impl Told {
    /// Compares with what was read now. An observer never goes back to an earlier revision.
    pub(crate) fn hear(&mut self, revision: Option<u64>) -> News {
        match revision {
            Some(revision) if self.highest.is_none_or(|highest| revision > highest) => {
                *self = Told { highest: Some(revision), is_gone: false };
                News::Changed(revision)
            }
            None if self.highest.is_some() && !self.is_gone => {
                self.is_gone = true;
                News::Gone
            }
            _ => News::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_shows() {
        for name in ["a", "web-1", "10.0.0.1:80", " ", "\u{fc}", &"x".repeat(LONGEST)] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
        for wrong in ["", "a/b", "/a", "a\n", "\0", "\u{85}", ".", "..", ".hidden"] {
            assert!(check_name(wrong).is_err() && !is_name(wrong), "{wrong:?}");
        }
        let told = check_name(&"x".repeat(LONGEST + 1)).expect_err("it is too long");
        assert!(told.contains("128") && told.contains("129"), "{told}");
    }

    #[test]
    fn what_a_member_says_has_a_largest_size() {
        assert_eq!(check_data(&[]), Ok(()));
        assert_eq!(check_data(&vec![0; LARGEST]), Ok(()));
        let told = check_data(&vec![0; LARGEST + 1]).expect_err("it is too large");
        assert!(told.contains("65536") && told.contains("65537"), "{told}");
    }

    #[test]
    fn no_znode_that_is_there_is_taken_for_ones_own() {
        assert_eq!(taken(Owner::Me), Taken::Wait);
        assert_eq!(taken(Owner::Other), Taken::Wait);
        assert_eq!(taken(Owner::None), Taken::Refuse);
    }

    #[test]
    fn who_goes_with_nobody_is_no_member() {
        assert!(is_member(Owner::Me) && is_member(Owner::Other));
        assert!(!is_member(Owner::None));
    }

    #[test]
    fn an_observer_is_told_of_what_is_later_and_never_goes_back() {
        let mut told = Told::default();
        let heard = [None, Some(5), Some(5), Some(8), Some(7), None, None, Some(8), Some(9)];
        let news = heard.map(|revision| told.hear(revision));
        let expected = [
            News::None,
            News::Changed(5),
            News::None,
            News::Changed(8),
            News::None,
            News::Gone,
            News::None,
            News::None,
            News::Changed(9),
        ];
        assert_eq!(news, expected);
    }
}
