//! Session passwords: computed from the id, so that every server of an ensemble knows them.

use sha1::{Digest as _, Sha1};

use crate::protocol::PASSWORD_LENGTH;

/// How a session's password follows from its id.
#[derive(Clone)]
pub enum Passwords {
    /// From a secret that all servers share: nobody else can guess them.
    Secret([u8; 32]),
    /// As Apache ZooKeeper computes them, so that sessions outlive a move of the data to or from
    /// it. Anybody who sees a session's id can compute its password, there as here.
    LikeApache,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Passwords::Secret(_) => "Secret",
            Passwords::LikeApache => "LikeApache",
        })
    }
}

impl Passwords {
    /// A session's password.
    pub fn of(&self, session_id: i64) -> [u8; PASSWORD_LENGTH] {
        match self {
            Passwords::Secret(secret) => keyed(secret, session_id),
            Passwords::LikeApache => java_random(session_id ^ 0xB341_5C00),
        }
    }

    /// Whether a password is the session's, in a time that does not tell how much of it is.
    pub fn matches(&self, session_id: i64, password: &[u8]) -> bool {
        let right = self.of(session_id);
        password.len() == right.len()
            && right.iter().zip(password).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// The secret goes in twice, around the id, so that a digest cannot be extended.
fn keyed(secret: &[u8; 32], session_id: i64) -> [u8; PASSWORD_LENGTH] {
    let inner = Sha1::new().chain_update(secret).chain_update(session_id.to_be_bytes()).finalize();
    let outer = Sha1::new().chain_update(inner).chain_update(secret).finalize();
    let mut password = [0; PASSWORD_LENGTH];
    for (to, from) in password.iter_mut().zip(outer) {
        *to = from;
    }
    password
}

/// The bytes that a `java.util.Random` of this seed gives: a linear congruential generator of 48
/// bits whose upper 32 bits come out with their lowest byte first.
fn java_random(seed: i64) -> [u8; PASSWORD_LENGTH] {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = (seed.cast_unsigned() ^ MULTIPLIER) & MASK;
    let mut bytes = [0; PASSWORD_LENGTH];
    for chunk in bytes.chunks_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        let word = u32::try_from(state >> 16).unwrap_or_default();
        for (to, from) in chunk.iter_mut().zip(word.to_le_bytes()) {
            *to = from;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apaches_passwords_are_known() {
        // From the handshake with a server of Apache ZooKeeper 3.8.0.
        let password = Passwords::LikeApache.of(0x0100_000d_be4c_0000);
        assert_eq!(hex(password), "166702aaebd98074e4b64ab5acfff238");
        let password = Passwords::LikeApache.of(0x0100_000d_be4c_0005);
        assert_eq!(hex(password), "750ce5a90b54ddccae054f8eceab593a");
    }

    fn hex(bytes: [u8; PASSWORD_LENGTH]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_password_fits_its_session_only() {
        let passwords = Passwords::Secret([7; 32]);
        assert!(passwords.matches(1, &passwords.of(1)));
        assert!(!passwords.matches(2, &passwords.of(1)));
        assert!(!passwords.matches(1, b""));
    }
}
