//! The SDK and the contract beside a recipe, and their renewal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::crates::{LICENSE, Sources};
use super::{File, ScaffoldError, make_parent};
use crate::digest::hex;

/// Where it is in a recipe's directory.
pub(super) const DIRECTORY: &str = "wok-sdk";

/// What was written there, in the format of `sha256sum`.
const SUMS: &str = "SHA256SUMS";

const MANIFEST: &str = include_str!("../../../guest-sdk/standalone/sdk.toml");
const JUDGE_MANIFEST: &str = include_str!("../../../guest-sdk/standalone/sdk-judge.toml");

/// The SDK, as the build script found it.
const SDK: &[(&str, Sources)] = include!(concat!(env!("OUT_DIR"), "/sdk_sources.rs"));

/// What a judge is written with, likewise: a crate within the SDK's directory, as in the repository.
const JUDGE: &[(&str, Sources)] = include!(concat!(env!("OUT_DIR"), "/sdk_judge_sources.rs"));

/// What a renewal did to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was not there.
    Added,
    /// It had other contents.
    Replaced,
    /// The SDK has it no more.
    Removed,
}

/// One file that a renewal changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Relative to the recipe's directory.
    pub path: String,
    /// How.
    pub change: Change,
}

/// A renewed SDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refreshed {
    /// The files that are not as they were, in their order.
    pub changed: Vec<Changed>,
    /// The contract's version before, if it had one.
    pub contract_before: Option<String>,
    /// And now.
    pub contract: String,
}

/// All files of the SDK beside a recipe.
pub(super) fn files() -> Vec<File> {
    let placed = |file: File| File::new(format!("{DIRECTORY}/{}", file.path), file.text);
    let files = own_files();
    let sums = File::new(SUMS, sums(&files));
    files.into_iter().chain([sums]).map(placed).collect()
}

/// The same without the record of them, relative to the SDK's directory.
fn own_files() -> Vec<File> {
    let mut files = vec![
        File::new("Cargo.toml", MANIFEST),
        File::new("judge/Cargo.toml", JUDGE_MANIFEST),
        File::new("LICENSE", LICENSE),
    ];
    let sources = SDK.iter().flat_map(|(_, sources)| sources.iter());
    files.extend(sources.map(|(path, text)| File::new(*path, *text)));
    let sources = JUDGE.iter().flat_map(|(_, sources)| sources.iter());
    files.extend(sources.map(|(path, text)| File::new(format!("judge/{path}"), *text)));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn sums(files: &[File]) -> String {
    let mut text = format!(
        "# Written by wok {}. `wok new . --refresh-sdk` replaces what is as listed here.\n",
        env!("CARGO_PKG_VERSION")
    );
    for file in files {
        // Writing to a string does not fail.
        writeln!(text, "{}  {}", digest(file.text.as_bytes()), file.path).unwrap_or_default();
    }
    text
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Replaces the SDK and the contract in a recipe's directory by those of this binary.
///
/// # Errors
/// There is none, or somebody has changed it; then nothing is written. Or a file cannot be read or
/// written; then this can be repeated.
pub fn refresh(directory: &Path) -> Result<Refreshed, ScaffoldError> {
    let sdk = directory.join(DIRECTORY);
    let recorded = recorded(directory, &sdk)?;
    let files = own_files();
    let mut there = BTreeMap::new();
    for path in recorded.keys().map(String::as_str).chain(files.iter().map(|file| &*file.path)) {
        if let Some(bytes) = read(&sdk.join(path))? {
            there.insert(path.to_owned(), bytes);
        }
    }
    let is_new = |path: &str, bytes: &[u8]| {
        files.iter().any(|file| file.path == path && file.text.as_bytes() == bytes)
    };
    let is_edited = |(path, bytes): &(&String, &Vec<u8>)| {
        recorded.get(*path) != Some(&digest(bytes)) && !is_new(path, bytes)
    };
    let edited: Vec<String> =
        there.iter().filter(is_edited).map(|(path, _)| format!("{DIRECTORY}/{path}")).collect();
    if !edited.is_empty() {
        return Err(ScaffoldError::Edited { files: edited });
    }
    let contract_before = there.iter().find_map(|(path, bytes)| contract_version(path, bytes));
    let changed = replace(&sdk, &there, &files)?;
    let contract = files.iter().find_map(|file| contract_version(&file.path, file.text.as_bytes()));
    Ok(Refreshed { changed, contract_before, contract: contract.unwrap_or_default() })
}

/// The files that were written there, and their digests.
fn recorded(directory: &Path, sdk: &Path) -> Result<BTreeMap<String, String>, ScaffoldError> {
    let no_sdk =
        |problem: String| ScaffoldError::NoSdk { directory: directory.to_owned(), problem };
    let path = sdk.join(SUMS);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(no_sdk(format!("{DIRECTORY}/{SUMS} is not there")));
        }
        Err(source) => return Err(ScaffoldError::File { action: "read", path, source }),
    };
    let mut recorded = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((digest, path)) = line.split_once("  ").filter(|(_, path)| is_inside(path)) else {
            return Err(no_sdk(format!("{DIRECTORY}/{SUMS} is not understood: {line}")));
        };
        recorded.insert(path.to_owned(), digest.to_owned());
    }
    Ok(recorded)
}

/// Whether a path leads nowhere else: what is listed may be removed.
fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, ScaffoldError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ScaffoldError::File { action: "read", path: path.to_owned(), source }),
    }
}

/// Writes and removes what is not as it should be. The record comes last: until then, whatever is
/// there is as either record says.
fn replace(
    sdk: &Path,
    there: &BTreeMap<String, Vec<u8>>,
    files: &[File],
) -> Result<Vec<Changed>, ScaffoldError> {
    let mut changed = Vec::new();
    let mut tell = |path: &str, change| {
        changed.push(Changed { path: format!("{DIRECTORY}/{path}"), change });
    };
    for file in files {
        match there.get(&file.path) {
            Some(bytes) if bytes == file.text.as_bytes() => continue,
            Some(_) => tell(&file.path, Change::Replaced),
            None => tell(&file.path, Change::Added),
        }
        write(&sdk.join(&file.path), &file.text)?;
    }
    for path in there.keys().filter(|path| files.iter().all(|file| file.path != **path)) {
        let place = sdk.join(path);
        fs::remove_file(&place).map_err(|source| ScaffoldError::File {
            action: "remove",
            path: place,
            source,
        })?;
        tell(path, Change::Removed);
    }
    write(&sdk.join(SUMS), &sums(files))?;
    changed.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changed)
}

fn write(path: &Path, text: &str) -> Result<(), ScaffoldError> {
    make_parent(path)?;
    let error = |source| ScaffoldError::File { action: "write", path: PathBuf::from(path), source };
    fs::write(path, text).map_err(error)
}

/// The version that a file of the contract declares.
fn contract_version(path: &str, bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|_| path.starts_with("wit/"))?;
    let declared = text.lines().find_map(|line| line.strip_prefix("package wok:recipe@"))?;
    Some(declared.trim_end_matches(';').to_owned())
}
