//! In which language a recipe is written.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// The languages there is a way to build for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// A crate: there is a `Cargo.toml`.
    Rust,
    /// A package of npm's: there is a `package.json`.
    JavaScript,
    /// Neither of them, and files `src/*.c`.
    C,
}

impl Language {
    /// What the recipe in this directory is written in.
    pub(crate) fn of(directory: &Path) -> Result<Self, Error> {
        if directory.join("Cargo.toml").is_file() {
            Ok(Language::Rust)
        } else if directory.join("package.json").is_file() {
            Ok(Language::JavaScript)
        } else if !c_sources(directory)?.is_empty() {
            Ok(Language::C)
        } else {
            let reason = match directory.is_dir() {
                true => "it has no Cargo.toml, no package.json and no src/*.c",
                false => "there is no such directory",
            };
            Err(Error::NoRecipe { path: directory.to_owned(), reason: reason.to_owned() })
        }
    }
}

/// The C files of a recipe, from its directory, in the order of their names.
pub(crate) fn c_sources(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let src = directory.join("src");
    if !src.is_dir() {
        return Ok(Vec::new());
    }
    let error = |source| Error::File { action: "list", path: src.clone(), source };
    let mut sources = Vec::new();
    for entry in fs::read_dir(&src).map_err(error)? {
        let name = PathBuf::from(entry.map_err(error)?.file_name());
        if name.extension().is_some_and(|extension| extension == "c") {
            sources.push(Path::new("src").join(name));
        }
    }
    sources.sort();
    Ok(sources)
}
