//! The request to give way, as the data of a contender's znode. Pure.

/// What is written to a contender's znode to ask that contender to give way.
///
/// It is a word in a line of its own, behind the text that says whose the znode is. Where the znode says
/// nothing the word is all of the data, and so it is where a client wrote that replaces what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevokeRequest {
    word: &'static str,
}

impl RevokeRequest {
    /// As Curator's `Revoker` writes it.
    pub const CURATOR: RevokeRequest = RevokeRequest { word: "__REVOKE__" };

    /// As ZooKeeper's page of recipes has it.
    pub const UNLOCK: RevokeRequest = RevokeRequest { word: "unlock" };

    /// Whether the data asks to give way.
    pub fn is_in(&self, data: &[u8]) -> bool {
        self.before(data).is_some()
    }

    /// The data without the request: whose the znode is.
    pub fn owner<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        self.before(data).unwrap_or(data)
    }

    /// As [`RevokeRequest::owner`], of what was read as text.
    pub fn owner_in<'a>(&self, text: &'a str) -> &'a str {
        // What is cut off is ASCII, so what is left ends where a character does.
        text.get(..self.owner(text.as_bytes()).len()).unwrap_or(text)
    }

    /// The data with the request in it.
    pub fn added_to(&self, data: &[u8]) -> Vec<u8> {
        match data {
            [] => self.word.as_bytes().to_vec(),
            _ => [self.owner(data), b"\n", self.word.as_bytes()].concat(),
        }
    }

    /// The data of a new contender, whose owner's text may be anything: nobody asks it yet.
    pub fn without(&self, owner: &str) -> Vec<u8> {
        match self.is_in(owner.as_bytes()) {
            true => [owner, "\n"].concat().into_bytes(),
            false => owner.as_bytes().to_vec(),
        }
    }

    fn before<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        match data.strip_suffix(self.word.as_bytes())? {
            [] => Some(&[]),
            before => before.strip_suffix(b"\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(data: &str, asked: bool, owner: &str) {
        let request = RevokeRequest::CURATOR;
        assert_eq!(request.is_in(data.as_bytes()), asked, "{data:?}");
        assert_eq!(request.owner(data.as_bytes()), owner.as_bytes(), "{data:?}");
        assert_eq!(request.owner_in(data), owner);
    }

    #[test]
    fn a_request_stands_alone_or_in_the_last_line() {
        check("__REVOKE__", true, "");
        check("root@a pid 1\n__REVOKE__", true, "root@a pid 1");
        check("Zoë\n__REVOKE__", true, "Zoë");
        check("two\nlines\n__REVOKE__", true, "two\nlines");
    }

    #[test]
    fn what_only_holds_the_word_asks_for_nothing() {
        for data in ["", "root@a pid 1", "no __REVOKE__", "__REVOKE__\n", "__REVOKE__ x", "unlock"]
        {
            check(data, false, data);
        }
        assert!(
            RevokeRequest::UNLOCK.is_in(b"unlock") && RevokeRequest::UNLOCK.is_in(b"a\nunlock")
        );
    }

    #[test]
    fn a_request_keeps_the_owner_and_is_made_once() {
        for data in ["", "root@a pid 1", "two\nlines"] {
            let once = RevokeRequest::UNLOCK.added_to(data.as_bytes());
            assert!(RevokeRequest::UNLOCK.is_in(&once), "{data:?}");
            assert_eq!(RevokeRequest::UNLOCK.owner(&once), data.as_bytes());
            assert_eq!(
                RevokeRequest::UNLOCK.owner(&RevokeRequest::UNLOCK.added_to(&once)),
                data.as_bytes()
            );
        }
        // What Curator's holder compares with is the word and nothing else; its znode is empty.
        assert_eq!(RevokeRequest::CURATOR.added_to(b""), b"__REVOKE__");
    }

    #[test]
    fn an_owner_that_is_called_as_the_request_is_not_asked() {
        for owner in ["__REVOKE__", "a\n__REVOKE__", "root@a pid 1", ""] {
            let data = RevokeRequest::CURATOR.without(owner);
            assert!(!RevokeRequest::CURATOR.is_in(&data), "{owner:?}");
            assert!(data.starts_with(owner.as_bytes()));
        }
    }
}
