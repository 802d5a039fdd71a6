//! An argument that is read from standard input, as its bytes are: `name=@-`.

use std::io::{self, Read};
use std::os::fd::AsFd;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::FileType;
use serde_json::{Value, json};

use super::exit::Failure;

/// What stands for standard input.
const MARK: &str = "@-";

/// No argument takes more: a ZooKeeper that nobody has set up otherwise refuses requests of 1 MiB.
const MOST: u64 = 1 << 20;

/// Whose standard input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StandardInput {
    /// The operation's.
    OfTheCall,
    /// That of the command that runs under the claim.
    OfTheCommand,
}

impl StandardInput {
    /// Takes the argument that standard input is to be read for out of the others, and answers its name.
    ///
    /// # Errors
    /// There are several, or standard input is another command's.
    pub(super) fn take(self, texts: &mut Vec<String>) -> Result<Option<String>, Failure> {
        let is_marked = |text: &String| text.split_once('=').is_some_and(|(_, it)| it == MARK);
        let (marked, others): (Vec<String>, Vec<String>) =
            std::mem::take(texts).into_iter().partition(is_marked);
        *texts = others;
        let mut names = marked.iter().filter_map(|text| Some(text.split_once('=')?.0.to_owned()));
        let (Some(name), None) = (names.next(), names.next()) else {
            return match marked.as_slice() {
                [] => Ok(None),
                _ => Err(Failure::Usage(format!(
                    "{} are to be read from standard input, which is read once: give one of them so",
                    marked.join(" and ")
                ))),
            };
        };
        match self {
            StandardInput::OfTheCall => Ok(Some(name)),
            StandardInput::OfTheCommand => Err(Failure::Usage(format!(
                "argument {name}={MARK}: standard input is the command's; only `wok call` reads an \
                 argument from there. The text {MARK} itself is written as {name}='\"{MARK}\"'"
            ))),
        }
    }
}

/// Reads all of standard input, for the argument of that name.
///
/// # Errors
/// It cannot be read, is `/dev/null`, or has more than an argument takes.
pub(super) fn read(name: &str) -> Result<Value, Failure> {
    let input = io::stdin();
    // The runtime opens /dev/null in place of a standard input that is closed. Who has closed it gave no
    // data, and empty data would replace what is there.
    if is_null(&input) {
        return Err(Failure::Usage(format!(
            "argument {name}={MARK}: standard input is closed, or is /dev/null: give the data there, or \
             write `{name}=` for empty data"
        )));
    }
    value_of(input.lock())
}

/// Whether it is the device `/dev/null`.
fn is_null(file: impl AsFd) -> bool {
    // On Linux the device of that number, wherever its node stands.
    let null = rustix::fs::makedev(1, 3);
    rustix::fs::fstat(file).is_ok_and(|it| {
        FileType::from_raw_mode(it.st_mode) == FileType::CharacterDevice && it.st_rdev == null
    })
}

/// The bytes as they are given to a module: a string where they are text.
fn value_of(mut input: impl Read) -> Result<Value, Failure> {
    let unreadable =
        |error: io::Error| Failure::Usage(format!("cannot read standard input: {error}"));
    let mut bytes = Vec::new();
    input.by_ref().take(MOST).read_to_end(&mut bytes).map_err(unreadable)?;
    let mut more = Vec::new();
    input.take(1).read_to_end(&mut more).map_err(unreadable)?;
    if !more.is_empty() {
        return Err(Failure::Usage(format!(
            "standard input has more than {MOST} bytes, which no znode takes: store the data elsewhere, \
             and where they are in ZooKeeper"
        )));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Value::String(text),
        Err(error) => json!({ "base64": STANDARD.encode(error.as_bytes()) }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(
        texts: &[&str],
        whose: StandardInput,
    ) -> Result<(Option<String>, Vec<String>), String> {
        let mut texts: Vec<String> = texts.iter().map(|it| (*it).to_owned()).collect();
        let name = whose.take(&mut texts).map_err(|failure| failure.to_string())?;
        Ok((name, texts))
    }

    #[test]
    fn one_argument_may_be_read_from_standard_input() {
        let call = |texts: &[&str]| taken(texts, StandardInput::OfTheCall).unwrap();
        let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let (name, rest) = call(&["priority=1", "data=@-"]);
        assert_eq!((name.as_deref(), rest), (Some("data"), texts(&["priority=1"])));
        // These are texts.
        for text in ["data=@", "data=@-x", "data=\"@-\"", "@-", "{\"data\":\"@-\"}"] {
            assert_eq!(call(&[text]), (None, texts(&[text])), "{text}");
        }
        let twice = taken(&["data=@-", "key=@-"], StandardInput::OfTheCall).unwrap_err();
        assert!(twice.contains("data=@- and key=@-"), "{twice}");
    }

    #[test]
    fn the_standard_input_of_a_command_is_not_read() {
        let whose = StandardInput::OfTheCommand;
        assert_eq!(taken(&["data=x"], whose), Ok((None, vec!["data=x".to_owned()])));
        let refused = taken(&["data=@-"], whose).unwrap_err();
        assert!(refused.contains("`wok call`"), "{refused}");
    }

    #[test]
    fn bytes_are_taken_as_they_are() {
        for (bytes, value) in [
            (&b""[..], json!("")),
            (b"12\n", json!("12\n")),
            (b"{\"a\":1}", json!("{\"a\":1}")),
            (b"\xff\x00", json!({ "base64": "/wA=" })),
        ] {
            assert_eq!(value_of(bytes).unwrap(), value);
        }
        let most = vec![b'x'; 1 << 20];
        assert!(value_of(most.as_slice()).is_ok());
        let more = [most.as_slice(), b"x"].concat();
        let refused = value_of(more.as_slice()).unwrap_err().to_string();
        assert!(refused.contains("more than 1048576 bytes"), "{refused}");
    }
}
