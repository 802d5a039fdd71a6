//! The field `ephemeralOwner`, which says how a node may end.

/// How a node may end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It does not.
    None,
    /// With this session.
    Session(i64),
    /// Once it has had children and has none.
    Container,
    /// This many milliseconds after its last change, if it has no children.
    Ttl(i64),
}

/// Forty bits of milliseconds.
pub const MAX_TTL_MS: i64 = 0xff_ffff_ffff;
const CONTAINER: i64 = i64::MIN;
/// A session's id never has these bits all set.
const EXTENDED: u64 = 0xff00_0000_0000_0000;
const FEATURE: u64 = 0x00ff_ff00_0000_0000;

impl Owner {
    /// The owner that a stored field tells.
    pub fn from_raw(raw: i64) -> Owner {
        let bits = raw.cast_unsigned();
        match raw {
            0 => Owner::None,
            CONTAINER => Owner::Container,
            _ if bits & EXTENDED == EXTENDED && bits & FEATURE == 0 => Owner::Ttl(raw & MAX_TTL_MS),
            id => Owner::Session(id),
        }
    }

    /// The field as stored.
    pub fn to_raw(self) -> i64 {
        match self {
            Owner::None => 0,
            Owner::Session(id) => id,
            Owner::Container => CONTAINER,
            Owner::Ttl(ttl_ms) => EXTENDED.cast_signed() | (ttl_ms & MAX_TTL_MS),
        }
    }

    /// The field as clients see it: only sessions are shown.
    pub fn shown(self) -> i64 {
        match self {
            Owner::Session(id) => id,
            Owner::None | Owner::Container | Owner::Ttl(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_owner_comes_back_as_itself() {
        let owners =
            [Owner::None, Owner::Session(1 << 40), Owner::Container, Owner::Ttl(MAX_TTL_MS)];
        for owner in owners {
            assert_eq!(Owner::from_raw(owner.to_raw()), owner);
        }
    }
}
