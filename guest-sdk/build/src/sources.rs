//! The sources of crates for `include_str!`: what a binary needs to write them elsewhere.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::builder::crates_in;
use crate::embed::{directory_in, rerun_if_changed, write};

/// What of a crate is its author's. Its manifest is not, nor is that of the judge in its promise: both
/// inherit the workspace's.
const PARTS: [&str; 4] = ["README.md", "promise", "src", "wit"];

const MANIFEST: &str = "Cargo.toml";

/// Writes `table` in `OUT_DIR`: an expression, `&[(name, &[(path, text)])]`, with the files of some
/// crates. `crates` is the directory of one, relative to the build script's package, or `*` below a
/// directory for each in it, as in the `members` of a workspace.
///
/// # Errors
/// A file or directory that cannot be read or written.
pub fn embed_sources(table: &str, crates: &str) -> Result<(), Error> {
    let package = directory_in("CARGO_MANIFEST_DIR")?;
    let crates = match crates.strip_suffix("/*") {
        Some(parent) => {
            rerun_if_changed(&package.join(parent));
            crates_in(&package.join(parent))?
        }
        None => vec![package.join(crates)],
    };
    let mut text = String::from("&[\n");
    for directory in crates {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        // Writing to a string does not fail.
        let _ = writeln!(text, "    ({name:?}, &[");
        for file in sources(&directory)? {
            let path = file.strip_prefix(&directory).unwrap_or(&file).display().to_string();
            let file = file.display().to_string();
            let _ = writeln!(text, "        ({path:?}, include_str!({file:?})),");
        }
        text.push_str("    ]),\n");
    }
    text.push_str("]\n");
    write(&directory_in("OUT_DIR")?.join(table), text.as_bytes())
}

/// The files of a crate, in the order of their paths.
fn sources(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for part in PARTS {
        let path = directory.join(part);
        // Told of what is not there, cargo would run the build script every time.
        if path.exists() {
            rerun_if_changed(&path);
        }
        if path.is_dir() {
            collect(&path, &mut files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let error = |source| Error::File { action: "list", path: directory.to_owned(), source };
    for entry in fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // What an editor leaves beside a file while it is open.
        if name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if name != MANIFEST {
            files.push(path);
        }
    }
    Ok(())
}
