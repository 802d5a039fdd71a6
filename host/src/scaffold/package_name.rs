//! Which names a crate may have.

use std::fmt;
use std::path::Path;

use super::{ScaffoldError, lock_file};

/// Names that the language has for itself. Cargo takes them, the compiler does not.
const RESERVED: [&str; 60] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "Self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "recipe",
    "wok",
];

/// The name of a crate's package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageName(String);

impl PackageName {
    /// The name of the crate in this directory: the directory's own.
    ///
    /// # Errors
    /// [`ScaffoldError::Name`]: cargo or the compiler would refuse it.
    pub fn of(directory: &Path) -> Result<Self, ScaffoldError> {
        let absolute = std::path::absolute(directory).map_err(|source| ScaffoldError::File {
            action: "resolve",
            path: directory.to_owned(),
            source,
        })?;
        // `..` at its end is looked up: only the file system knows what it means.
        let absolute = absolute.canonicalize().unwrap_or(absolute);
        let name = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match problem(&name) {
            None => Ok(PackageName(name)),
            Some(problem) => Err(ScaffoldError::Name { name, problem }),
        }
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn problem(name: &str) -> Option<&'static str> {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    let as_identifier = name.replace('-', "_");
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        Some("it starts with no letter")
    } else if !name.chars().all(is_allowed) {
        Some("it has other characters than letters, digits, - and _")
    } else if RESERVED.contains(&as_identifier.as_str()) {
        Some("it has a meaning of its own")
    } else if lock_file::packages().any(|known| known.replace('-', "_") == as_identifier) {
        Some("the recipe or its judge depends on a crate of that name")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(directory: &str, expected: Result<&str, &str>) {
        let name = PackageName::of(Path::new(directory));
        match (name, expected) {
            (Ok(name), Ok(expected)) => assert_eq!(name.to_string(), expected),
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{error}");
            }
            (name, _) => panic!("{directory}: {name:?}"),
        }
    }

    #[test]
    fn a_crate_has_the_name_of_its_directory() {
        check("my-lock", Ok("my-lock"));
        check("/tmp/recipes/My_Lock2/", Ok("My_Lock2"));
        check("./a", Ok("a"));
    }

    #[test]
    fn what_cargo_or_the_compiler_would_refuse_is_refused_here() {
        check("my lock", Err("letters, digits"));
        check("schloß", Err("letters, digits"));
        check("2lock", Err("starts with no letter"));
        check("-lock", Err("starts with no letter"));
        check("/", Err("starts with no letter"));
        check("loop", Err("a meaning of its own"));
        check("proc-macro", Err("a meaning of its own"));
        check("wok-sdk", Err("depends on a crate of that name"));
        check("wit_bindgen", Err("depends on a crate of that name"));
    }
}
