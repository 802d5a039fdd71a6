//! Where modules come from: stock recipes built into this binary, and files.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::digest::hex;
use crate::guest::Module;
use crate::named_file;
use crate::near::near;

/// The stock recipes, by name, as the build script found them.
const STOCK: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/recipes.rs"));

/// The judges of what stock recipes promise, by the recipe's name.
#[cfg(feature = "simulation")]
const JUDGES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/judges.rs"));

/// What implements a recipe. A stock recipe is only a component with a name: a user's own has
/// exactly the same powers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleSource {
    /// One that comes with the host, by its name.
    Stock(String),
    /// A component in a file.
    File(PathBuf),
}

/// Why a module cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// No stock recipe has that name.
    #[error(
        "there is no stock recipe {name:?}{}; there are {known}, or write a path to a .wasm file",
        near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default()
    )]
    Unknown {
        /// The name.
        name: String,
        /// The one that was probably meant.
        near: Option<&'static str>,
        /// Those there are.
        known: String,
    },
    /// It is a directory, as `wok new` makes one.
    #[error("{name} is a directory: `wok build {name}` makes {name}/{name}.wasm of a recipe in it")]
    Directory {
        /// Its name.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read the module {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than a module may be.
    #[error("the module {path} is not loaded: {source}; build it for release")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How large it may be.
        source: std::io::Error,
    },
    /// The module is not the one that was pinned.
    #[error(
        "the module {name} has sha256 {actual}, but {expected} is pinned: if the change is \
         wanted, pin the new digest"
    )]
    Mismatch {
        /// The module.
        name: String,
        /// The digest of what is there.
        actual: String,
        /// The digest that was wanted.
        expected: String,
    },
}

impl ModuleSource {
    /// A name or a path: a path if there is a slash in it, or if it ends with `.wasm`.
    pub fn parse(text: &str) -> Self {
        if text.contains('/') || text.ends_with(".wasm") {
            ModuleSource::File(PathBuf::from(text))
        } else {
            ModuleSource::Stock(text.to_owned())
        }
    }

    /// What to call a recipe that uses it and has no name of its own.
    pub fn name(&self) -> String {
        match self {
            ModuleSource::Stock(name) => name.clone(),
            ModuleSource::File(path) => {
                path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
        }
    }

    /// The component's bytes, checked against a pinned digest. What is checked is what is
    /// answered: a file is read once.
    ///
    /// # Errors
    /// There is no such module, or it is another one than was pinned.
    pub fn read(&self, pin: Option<&[u8; 32]>) -> Result<Cow<'static, [u8]>, SourceError> {
        let bytes = match self {
            ModuleSource::Stock(name) => Cow::Borrowed(find_stock(name)?),
            ModuleSource::File(path) => Cow::Owned(read_file(path)?),
        };
        let actual: [u8; 32] = Sha256::digest(&bytes).into();
        match pin {
            Some(expected) if *expected != actual => Err(SourceError::Mismatch {
                name: self.name(),
                actual: hex(&actual),
                expected: hex(expected),
            }),
            _ => Ok(bytes),
        }
    }
}

/// The stock recipes' names.
pub fn stock_names() -> impl Iterator<Item = &'static str> {
    STOCK.iter().map(|(name, _)| *name)
}

/// The judge of what a stock recipe promises. A stock recipe's interface has its name.
#[cfg(feature = "simulation")]
pub fn stock_judge(name: &str) -> Option<&'static [u8]> {
    JUDGES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

fn find_stock(name: &str) -> Result<&'static [u8], SourceError> {
    if let Some((_, bytes)) = STOCK.iter().find(|(known, _)| *known == name) {
        return Ok(bytes);
    }
    let (directory, name) = (Path::new(name).is_dir(), name.to_owned());
    Err(match directory {
        true => SourceError::Directory { name },
        false => SourceError::Unknown {
            near: near(&name, stock_names()),
            known: stock_names().collect::<Vec<_>>().join(", "),
            name,
        },
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, SourceError> {
    named_file::read(path, Module::MAX_BYTES).map_err(|source| {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::FileTooLarge => SourceError::TooLarge { path, source },
            _ => SourceError::Unreadable { path, source },
        }
    })
}
