//! Whom a participant waits behind, as far as the host sees it.
//!
//! Who waits for another's znode to go watches that znode. Where it reads the data for that, the host
//! sees what the znode's owner wrote there, which by custom is who the owner is. A participant goes with
//! its session, so a znode that stays is nobody: a directory whose data are a setting, for instance.

use super::request::Stat;

/// Most characters of an owner's text that are kept: it is told to people, and anybody may have
/// written it.
const MOST: usize = 200;

/// The znode of another that a participant watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The znode.
    pub path: String,
    /// Who owns it, in words; none if its data are no text that can be told to people.
    pub owner: Option<String>,
}

impl Ahead {
    /// The owner of another's znode; none where the znode is not ephemeral, and so is nobody's.
    pub(super) fn of(path: &str, data: &[u8], stat: &Stat) -> Option<Self> {
        if stat.ephemeral_owner == 0 {
            return None;
        }
        // Numbers in binary are UTF-8 as well where they are small.
        let is_binary = |text: &str| text.contains(|c: char| c.is_control() && !is_line_break(c));
        let text = std::str::from_utf8(data).ok();
        let text = text.filter(|text| !text.is_empty() && !is_binary(text));
        let owner = text.map(|text| text.chars().take(MOST).collect());
        Some(Ahead { path: path.to_owned(), owner })
    }
}

fn is_line_break(character: char) -> bool {
    matches!(character, '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn owner(data: &[u8]) -> Option<String> {
        let stat = Stat { ephemeral_owner: 7, ..Stat::default() };
        Ahead::of("/a", data, &stat).unwrap().owner
    }

    #[test]
    fn an_owner_is_text_of_bounded_length() {
        assert_eq!(owner(b"ann pid 7").as_deref(), Some("ann pid 7"));
        assert_eq!(owner(b"ann\r\npid 7\n").as_deref(), Some("ann\r\npid 7\n"));
        assert_eq!(owner("ann \u{202e}7".as_bytes()).as_deref(), Some("ann \u{202e}7"));
        assert_eq!(owner(b""), None);
        assert_eq!(owner(b"\xff\x00"), None);
        assert_eq!(owner(b"\0\0\0\x02"), None);
        assert_eq!(owner(b"ann\x1b[2J"), None);
        assert_eq!(
            owner("\u{e9}".repeat(1_000).as_bytes()).map(|it| it.chars().count()),
            Some(MOST)
        );
    }

    #[test]
    fn nobody_is_ahead_with_a_znode_that_is_not_ephemeral() {
        assert_eq!(Ahead::of("/leases", b"\0\0\0\x02", &Stat::default()), None);
        assert_eq!(Ahead::of("/barrier", b"ann pid 7", &Stat::default()), None);
    }
}
