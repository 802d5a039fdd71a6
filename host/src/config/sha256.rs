//! A module's digest.

use std::fmt;
use std::str::FromStr;

use super::quantity::BadValue;

/// A SHA-256 digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// The digest's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Sha256 {
    fn from(bytes: [u8; 32]) -> Self {
        Sha256(bytes)
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Sha256 {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = |what: String| {
            let remedy = "give the 64 hexadecimal digits that `wok inspect <module>` prints";
            BadValue::new(format!("{what} in a SHA-256 digest"), remedy)
        };
        if let Some((at, wrong)) = text.char_indices().find(|(_, c)| !c.is_ascii_hexdigit()) {
            let within = at..at + wrong.len_utf8();
            return Err(bad(format!("{wrong:?} is not a hexadecimal digit")).at(within));
        }
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(bad(format!("{} hexadecimal digits, not 64,", text.len())));
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = digits.iter().filter_map(|digit| char::from(*digit).to_digit(16));
            // Two digits of base 16 fit into a byte.
            *byte = digits.fold(0, |value, digit| value << 4 | digit as u8);
        }
        Ok(Sha256(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_in_either_case_and_printed_in_lower() {
        let lower = "00ff10a0".repeat(8);
        let digest: Sha256 = lower.to_uppercase().parse().unwrap();
        assert_eq!(digest.as_bytes()[..4], [0x00, 0xff, 0x10, 0xa0]);
        assert_eq!(digest.to_string(), lower);
    }

    #[test]
    fn anything_but_64_digits_is_refused() {
        let message = |text: &str| text.parse::<Sha256>().unwrap_err().message;
        assert_eq!(message("ab"), "2 hexadecimal digits, not 64, in a SHA-256 digest");
        let spoiled = format!("{}g{}", "a".repeat(30), "a".repeat(33));
        let bad = spoiled.parse::<Sha256>().unwrap_err();
        assert_eq!(bad.message, "'g' is not a hexadecimal digit in a SHA-256 digest");
        assert_eq!(bad.within, Some(30..31));
    }
}
