//! What names, instances and revisions mean.

use std::fmt::Write as _;

/// The most bytes of a name, and of a key.
const LONGEST: usize = 128;

/// The most bytes of what an instance says of itself.
const LARGEST: usize = 16 * 1024;

/// Whether a service may have that name. Children of the mount with other names are none of this
/// recipe's.
pub(crate) fn is_name(name: &str) -> bool {
    check_name(name).is_ok()
}

/// Whether a service may have that name.
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

/// The id that is made of 128 random bits: a UUID of version 4.
pub(crate) fn id(high: u64, low: u64) -> String {
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    let (time, middle, version) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
    let (variant, node) = (low >> 48, low & 0xffff_ffff_ffff);
    format!("{time:08x}-{middle:04x}-{version:04x}-{variant:04x}-{node:012x}")
}

/// Whether a child of a name's directory is an instance. The others are somebody else's.
pub(crate) fn is_id(name: &str) -> bool {
    const PARTS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let mut parts = name.split('-');
    PARTS.iter().all(|length| {
        parts.next().is_some_and(|part| part.len() == *length && part.bytes().all(is_hex))
    }) && parts.next().is_none()
}

/// What an instance's znode holds: its address, and a line `key=value` for each pair.
///
/// # Errors
/// Why it cannot be told so.
pub(crate) fn data(address: &str, metadata: &[(String, String)]) -> Result<String, String> {
    if address.is_empty() || has_control(address) {
        return Err(format!("the address {address:?} is empty or has a control character"));
    }
    let mut data = format!("{address}\n");
    for (key, value) in metadata {
        let length = key.len();
        if !(1..=LONGEST).contains(&length) || key.contains('=') || has_control(key) {
            return Err(format!(
                "the key {key:?} does not have 1 to {LONGEST} bytes, or has a = or a control \
                 character"
            ));
        }
        if has_control(value) {
            return Err(format!("the value {value:?} has a control character"));
        }
        // To write to a text does not fail.
        let _ = writeln!(data, "{key}={value}");
    }
    match data.len() {
        length if length > LARGEST => Err(format!(
            "address and metadata have at most {LARGEST} bytes, and these have {length}"
        )),
        _ => Ok(data),
    }
}

fn has_control(text: &str) -> bool {
    text.contains(char::is_control)
}

/// The address and the metadata that a znode holds; none if it is no instance's.
pub(crate) fn read(data: &[u8]) -> Option<(String, Vec<(String, String)>)> {
    let mut lines = std::str::from_utf8(data).ok()?.strip_suffix('\n')?.split('\n');
    let address = lines.next().filter(|address| !address.is_empty())?;
    let pair =
        |line: &str| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let metadata: Option<Vec<_>> = lines.map(pair).collect();
    Some((address.to_owned(), metadata?))
}

/// What there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing.
    None,
    /// The instances have that revision now.
    Changed(u64),
    /// The name has no directory any more.
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

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_name_is_one_that_shows() {
        for name in ["a", "web", "db.primary", " ", "\u{fc}", &"x".repeat(LONGEST)] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
        for wrong in ["", "a/b", "/a", "a\n", "\0", "\u{85}", ".", "..", ".hidden"] {
            assert!(check_name(wrong).is_err() && !is_name(wrong), "{wrong:?}");
        }
        let told = check_name(&"x".repeat(LONGEST + 1)).expect_err("it is too long");
        assert!(told.contains("128") && told.contains("129"), "{told}");
    }

    #[test]
    fn an_id_is_a_uuid_of_version_4() {
        assert_eq!(id(0, 0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(id(u64::MAX, u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let one = id(0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdef);
        assert_eq!(one, "01234567-89ab-4def-8123-456789abcdef");
        assert!(is_id(&one));
        for other in ["", "a", "-", "lock-0000000001", &one[1..], &format!("{one}-0"), "notes"] {
            assert!(!is_id(other), "{other:?}");
        }
    }

    #[test]
    fn what_an_instance_says_is_read_as_it_was_written() {
        for metadata in [
            pairs(&[]),
            pairs(&[("zone", "b"), ("weight", "")]),
            pairs(&[("query", "a=b=c"), ("zone", "\u{fc}")]),
        ] {
            let written = data("10.0.0.1:80", &metadata).expect("it can be told");
            let expected = ("10.0.0.1:80".to_owned(), metadata);
            assert_eq!(read(written.as_bytes()), Some(expected));
        }
    }

    #[test]
    fn what_could_be_read_as_something_else_is_refused() {
        for (address, metadata) in [
            ("", pairs(&[])),
            ("a\nb", pairs(&[])),
            ("a", pairs(&[("", "x")])),
            ("a", pairs(&[("x=y", "z")])),
            ("a", pairs(&[("x\n", "z")])),
            ("a", pairs(&[("x", "z\ny=1")])),
        ] {
            assert!(data(address, &metadata).is_err(), "{address:?} {metadata:?}");
        }
        let told = data(&"x".repeat(LARGEST), &[]).expect_err("it is too large");
        assert!(told.contains("16384") && told.contains("16385"), "{told}");
    }

    #[test]
    fn what_is_no_instances_is_not_read() {
        for foreign in [&b""[..], b"a", b"\n", b"a\nb\n", b"a\n=\xff\n", b"{\"name\":1}"] {
            assert_eq!(read(foreign), None, "{foreign:?}");
        }
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
