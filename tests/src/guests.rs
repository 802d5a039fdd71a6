//! The test guests: components that misbehave, or show every kind of value.

use std::path::PathBuf;

use anyhow::{Context, Result};

const GUESTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// The bytes of a guest of `tests/guests`, by the name of its directory.
///
/// # Errors
/// If there is none of that name.
pub fn guest(name: &str) -> Result<&'static [u8]> {
    let found = GUESTS.iter().find(|(known, _)| *known == name);
    found.map(|(_, bytes)| *bytes).with_context(|| format!("no guest {name:?} in tests/guests"))
}

/// The same as a file, for commands that take a path.
///
/// # Errors
/// If there is none of that name, or it cannot be written.
pub fn guest_file(name: &str) -> Result<(tempfile::TempDir, PathBuf)> {
    let directory = crate::scratch::dir()?;
    let path = directory.path().join(format!("{name}.wasm"));
    std::fs::write(&path, guest(name)?)?;
    Ok((directory, path))
}
