//! What the tests that failed printed, said once more at the end: of a long run often no more than
//! the end is kept.

/// How much of what one test printed is said again.
const LINES: usize = 8;

/// How much of a line is, in characters.
const WIDTH: usize = 400;

/// What the tests that failed printed.
#[derive(Debug, Default)]
pub(super) struct Failures {
    said: Vec<String>,
    place: Place,
}

/// Where in the output of cargo's tests a line stands.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Elsewhere,
    /// Among what the tests printed that failed.
    Section,
    /// Below the name of one, with so many lines left to be said.
    Test(usize),
}

impl Failures {
    /// Takes down one line, if a test that failed printed it.
    pub(super) fn read(&mut self, line: &str) {
        let is_name = line.starts_with("---- ") && line.ends_with(" ----");
        let is_backtrace = line.eq_ignore_ascii_case("stack backtrace:");
        self.place = match (&self.place, line) {
            (_, "failures:") => Place::Section,
            (_, "successes:") => Place::Elsewhere,
            _ if line.starts_with("test result: ") => Place::Elsewhere,
            (Place::Section | Place::Test(_), _) if is_name => {
                self.say(line);
                Place::Test(LINES)
            }
            (Place::Test(_), _) if is_backtrace => Place::Section,
            (Place::Test(left @ 1..), _) if !line.trim().is_empty() => {
                let left = left - 1;
                self.say(line);
                Place::Test(left)
            }
            _ => return,
        };
    }

    /// What is to be said again, a line each; empty if no test failed.
    pub(super) fn lines(&self) -> &[String] {
        &self.said
    }

    fn say(&mut self, line: &str) {
        let end = line.char_indices().nth(WIDTH).map_or(line.len(), |(end, _)| end);
        self.said.push(line.get(..end).unwrap_or(line).to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str) -> Vec<String> {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.read(line));
        failures.lines().to_vec()
    }

    #[test]
    fn what_a_failed_test_printed_is_said_again_without_its_backtrace() {
        let output = "\
running 3 tests
test one ... ok
test two ... FAILED

successes:

---- one stdout ----
a line that nobody needs

successes:
    one

failures:

---- two stdout ----

thread 'two' panicked at tests/two.rs:1:1:
assertion failed
stack backtrace:
   0: core::panicking::panic
---- three stdout ----
Error: refused

failures:
    two
    three

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out
---- no test's ----";
        let said = [
            "---- two stdout ----",
            "thread 'two' panicked at tests/two.rs:1:1:",
            "assertion failed",
            "---- three stdout ----",
            "Error: refused",
        ];
        assert_eq!(read(output), said);
    }

    #[test]
    fn what_is_long_is_cut() {
        let long =
            format!("failures:\n---- a stdout ----\n{}{}", "ä".repeat(WIDTH + 1), "\nb".repeat(99));
        let said = read(&long);
        assert_eq!(said.len(), 1 + LINES);
        assert_eq!(said[1].chars().count(), WIDTH);
    }
}
