//! Whom a participant waits behind, as far as the host sees it.
//!
//! Who waits for another's znode to go watches that znode. Where it reads the data for that, the host
//! sees what the znode's owner wrote there, which by custom is who the owner is.

/// Most characters of an owner's text that are kept: it is told to people, and anybody may have
/// written it.
const MOST: usize = 200;

/// The znode of another that a participant watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The znode.
    pub path: String,
    /// Who owns it, in words; none if its data are no text.
    pub owner: Option<String>,
}

impl Ahead {
    pub(super) fn new(path: &str, data: &[u8]) -> Self {
        let text = std::str::from_utf8(data).ok().filter(|text| !text.is_empty());
        let owner = text.map(|text| text.chars().take(MOST).collect());
        Ahead { path: path.to_owned(), owner }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_text_of_bounded_length() {
        let owner = |data: &[u8]| Ahead::new("/a", data).owner;
        assert_eq!(owner(b"ann pid 7").as_deref(), Some("ann pid 7"));
        assert_eq!(owner(b""), None);
        assert_eq!(owner(b"\xff\x00"), None);
        assert_eq!(
            owner("\u{e9}".repeat(1_000).as_bytes()).map(|it| it.chars().count()),
            Some(MOST)
        );
    }
}
