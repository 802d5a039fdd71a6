//! Files of the repository that a program can write: they are checked in, so that they can be read
//! where they are, and a test writes them again.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The variable that has them written instead of compared.
pub const WRITE: &str = "WOK_WRITE_GENERATED";

/// Compares a file, by its path in the repository, with what it should be.
///
/// # Errors
/// It is another; the error names the first line that differs, and the remedy.
pub fn check(path: &str, expected: &str) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository's root")?;
    let file = root.join(path);
    if env::var_os(WRITE).is_some_and(|value| !value.is_empty()) {
        return fs::write(&file, expected).with_context(|| format!("write {path}"));
    }
    let there = fs::read_to_string(&file).with_context(|| format!("read {path}"))?;
    if there == expected {
        return Ok(());
    }
    let lines = there.lines().zip(expected.lines());
    let same = lines.take_while(|(one, other)| one == other).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").to_owned();
    bail!(
        "{path}:{}: it says {:?} and should say {:?}; {WRITE}=1 with this test writes it",
        same + 1,
        line(&there),
        line(expected),
    )
}
