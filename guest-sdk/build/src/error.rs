//! What can go wrong between a recipe's sources and its component.

use std::io;
use std::path::PathBuf;

use crate::NoToolchain;

/// Why no component was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No compiler here can build for WebAssembly.
    #[error(transparent)]
    NoToolchain(#[from] NoToolchain),
    /// A tool or library that a recipe's language takes is missing.
    #[error("{package}: {missing} missing; {remedy}")]
    NoTools {
        /// The guest.
        package: String,
        /// What was looked for and not found.
        missing: String,
        /// What to type.
        remedy: String,
    },
    /// A directory holds no recipe.
    #[error("{path}: no recipe ({reason}); `wok new` makes one")]
    NoRecipe {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A program could not be run.
    #[error("run {program}")]
    Run {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{action} {path}")]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The compiler refused a guest.
    #[error("build of {packages} failed:\n{diagnostics}")]
    Compile {
        /// The packages of the invocation.
        packages: String,
        /// What the compiler, or failing that cargo, said.
        diagnostics: String,
    },
    /// Cargo refuses a manifest, or says of it what is not understood here.
    #[error("{manifest}: {reason}")]
    Cargo {
        /// The manifest in question.
        manifest: PathBuf,
        /// What cargo says, or what is wrong with that.
        reason: String,
    },
    /// The module does not make a component.
    #[error("{package}: make a component of the module: {reason}")]
    Encode {
        /// The guest.
        package: String,
        /// Every cause, outermost first.
        reason: String,
    },
    /// The component is none that wok would run.
    #[error("{package}: {reason}")]
    NotARecipe {
        /// The guest.
        package: String,
        /// What is wrong with its imports or exports.
        reason: String,
    },
    /// The component is no judge of a promise.
    #[error("{package}: {reason}")]
    NotAJudge {
        /// The judge's package.
        package: String,
        /// What is wrong with its imports or exports.
        reason: String,
    },
    /// A WIT package does not resolve, or the section that should hold one does not.
    #[error("{place}: {reason}")]
    Wit {
        /// The directory or section.
        place: String,
        /// Every cause, outermost first.
        reason: String,
    },
}

/// The whole chain of an error of wit-component's, on one line.
pub(crate) fn causes(error: &impl std::fmt::Display) -> String {
    // The alternate form of its error type prints every cause.
    format!("{error:#}")
}
