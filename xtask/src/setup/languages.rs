//! What recipes and apps need that are not in Rust: clang for C, Node.js and npm for JavaScript, and Go.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Package, first_line};
use crate::process;
use crate::workspace::QUESTION;

/// The oldest Node.js that the example in JavaScript is built with.
const NODE: u32 = 18;

/// The oldest Go that the apps in Go are compiled with.
const GO: (u32, u32) = (1, 19);

/// What clang is asked for, beside itself: it answers with a path where it finds the linker, wasi-libc
/// and its own runtime.
const PARTS: [&str; 3] =
    ["-print-prog-name=wasm-ld", "-print-file-name=crt1-reactor.o", "-print-libgcc-file-name"];

/// What clang is there, if it makes WebAssembly.
pub(super) fn clang() -> Result<Option<String>> {
    for part in PARTS {
        match first_line("clang", &["--target=wasm32-wasi", part])? {
            Some(path) if Path::new(&path).is_absolute() && Path::new(&path).is_file() => {}
            _ => return Ok(None),
        }
    }
    first_line("clang", &["--version"])
}

/// What Node.js is there, if it serves and npm is there, too.
pub(super) fn node() -> Result<Option<String>> {
    let Some(version) = first_line("node", &["--version"])? else {
        return Ok(None);
    };
    if major(&version).is_none_or(|major| major < NODE) {
        return Ok(None);
    }
    Ok(first_line("npm", &["--version"])?.map(|npm| format!("{version} with npm {npm}")))
}

/// What Go is there, if it compiles the apps.
pub(super) fn go() -> Result<Option<String>> {
    let version = first_line("go", &["env", "GOVERSION"])?;
    Ok(version.filter(|version| is_go(version)))
}

/// Whether Go's `GOVERSION` is new enough, as in `go1.19.8`. A Go that is built from a branch has no number
/// there, and is not taken.
fn is_go(version: &str) -> bool {
    let number = |text: &str| {
        let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
        text.get(..digits)?.parse::<u32>().ok()
    };
    let mut numbers = version.strip_prefix("go").unwrap_or_default().split('.').map_while(number);
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= GO)
}

/// The packages that bring Node.js and npm. That of Node.js's own publisher brings npm along and does
/// not bear Debian's beside it.
pub(super) fn node_packages() -> Vec<Package> {
    let node = Package { name: "nodejs", at_least: (NODE, 0) };
    let mut show = Command::new("apt-cache");
    show.args(["show", "--no-all-versions", node.name]);
    // Without lists there is no answer; they are fetched later, and are Debian's on most machines.
    let shown = process::output("apt-cache show", &mut show, QUESTION);
    let brings_npm =
        shown.is_ok_and(|shown| provides(&String::from_utf8_lossy(&shown.stdout), "npm"));
    if brings_npm { vec![node] } else { vec![node, Package::any("npm")] }
}

/// Whether what `apt-cache show` says of a package names `other` among what it provides.
fn provides(shown: &str, other: &str) -> bool {
    let names = shown.lines().filter_map(|line| line.strip_prefix("Provides: "));
    names.flat_map(|names| names.split(", ")).any(|name| name.split(' ').next() == Some(other))
}

/// The first number of a version such as `v18.20.8`.
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_of_node_is_its_first_number() {
        assert_eq!(major("v18.20.8"), Some(18));
        assert_eq!(major("v9.0.0"), Some(9));
        assert_eq!(major("18"), None);
    }

    #[test]
    fn go_is_new_enough_from_its_first_two_numbers_on() {
        for (version, is_enough) in
            [("go1.19", true), ("go1.22rc1", true), ("go2.0", true), ("go1.18.9", false)]
        {
            assert_eq!(is_go(version), is_enough, "{version}");
        }
        assert!(!is_go("devel +0fa13ec3f1"));
    }

    #[test]
    fn what_a_package_provides_is_read() {
        let shown = "Package: nodejs\nConflicts: npm\nProvides: nodejs-dev, npm (= 10)\n";
        assert!(provides(shown, "npm"));
        assert!(!provides("Package: nodejs\nConflicts: npm\nProvides: npm-x\n", "npm"));
    }
}
