//! Recipe crates that stand alone: what `wok new` writes.
//!
//! The crates of the stock recipes and of the templates are in this binary as text. In their own
//! repository they take versions, settings and the SDK from the workspace around them; written
//! elsewhere, they bring these along, so that they build with nothing but a Rust toolchain and the
//! registry.
//!
//! Code map:
//! - `crates`: the crates in this binary, and what they become elsewhere
//! - `package_name`: which names a crate may have
//! - `lock_file`: the versions it is built with
//! - `vendored`: the SDK beside a recipe, and its renewal
//!
//! Invariants:
//! - No file that exists is written over, except those of a vendored SDK that nobody has touched.
//! - No recipe is named here: each is a directory of the repository with a name.

mod crates;
mod lock_file;
mod package_name;
mod vendored;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use crates::{Origin, stock_names, template_names};
pub use package_name::PackageName;
pub use vendored::{Change, Changed, Refreshed, refresh};

/// Why no crate was written, or no SDK renewed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaffoldError {
    /// There is no such recipe or template.
    #[error("there is no {what} {name:?}; there are {known}")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// Its name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The directory's name cannot be a crate's.
    #[error("{name:?} cannot be a crate's name: {problem}; give the directory another name")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is something where the crate would be.
    #[error(
        "{directory} is not empty, and nothing in it is written over: give a directory that is \
         empty or not there (--refresh-sdk renews the SDK of a recipe that is)"
    )]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// There is no vendored SDK to renew.
    #[error("{directory} has no SDK from `wok new`: {problem}")]
    NoSdk {
        /// The directory.
        directory: PathBuf,
        /// What is missing or wrong.
        problem: String,
    },
    /// Somebody has changed the vendored SDK.
    #[error(
        "changed by hand, and not written over: {}; move the changes to the recipe's own files, or \
         delete these, then try again",
        files.join(", ")
    )]
    Edited {
        /// The files.
        files: Vec<String>,
    },
    /// A file or directory cannot be read or written.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A crate that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its name.
    pub package: PackageName,
    /// Its files, relative to its directory, in their order.
    pub files: Vec<String>,
}

/// Writes a crate that stands alone into a directory that is empty or not there.
///
/// # Errors
/// Nothing is written if the error is not of a file; otherwise what was written stays.
pub fn create(directory: &Path, origin: &Origin) -> Result<Created, ScaffoldError> {
    let package = PackageName::of(directory)?;
    let files = origin.files(&package)?;
    check_empty(directory)?;
    for file in &files {
        file.create_in(directory)?;
    }
    Ok(Created { package, files: files.into_iter().map(|file| file.path).collect() })
}

fn check_empty(directory: &Path) -> Result<(), ScaffoldError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(ScaffoldError::File { action: "list", path: directory.to_owned(), source });
        }
    };
    match entries.count() {
        0 => Ok(()),
        _ => Err(ScaffoldError::NotEmpty { directory: directory.to_owned() }),
    }
}

/// A file that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    /// Relative to where it is written.
    path: String,
    text: String,
}

impl File {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        File { path: path.into(), text: text.into() }
    }

    /// Writes it where no file is.
    fn create_in(&self, directory: &Path) -> Result<(), ScaffoldError> {
        let path = directory.join(&self.path);
        make_parent(&path)?;
        let mut options = OpenOptions::new();
        // Also if somebody else has made one since the directory was looked at.
        let opened = options.write(true).create_new(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all(self.text.as_bytes()));
        written.map_err(|source| ScaffoldError::File { action: "write", path, source })
    }
}

fn make_parent(path: &Path) -> Result<(), ScaffoldError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|source| ScaffoldError::File {
        action: "make the directory",
        path: parent.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
