//! The directory of compiled modules.
//!
//! What is found there is run as machine code, so nobody else may be able to write to it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use wasmtime::{Cache, CacheConfig};

/// Why a compile cache is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// It is not there and cannot be made, or cannot be looked at.
    #[error("compile cache {}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others can write to it.
    #[error("compile cache {}: {problem}; remove it, and it is made anew", path.display())]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// Why it is not trusted.
        problem: String,
    },
    /// wasmtime cannot use it.
    #[error("compile cache {}: {source:#}", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// What wasmtime said.
        source: wasmtime::Error,
    },
}

/// Makes the directory if it is missing, and refuses one that is not this user's alone.
pub(super) fn open(path: &Path) -> Result<Cache, CacheError> {
    let io_error = |source| CacheError::Io { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error)?;
    check_own(path)?;
    let mut config = CacheConfig::new();
    config.with_directory(fs::canonicalize(path).map_err(io_error)?);
    Cache::new(config).map_err(|source| CacheError::Unusable { path: path.to_owned(), source })
}

fn check_own(path: &Path) -> Result<(), CacheError> {
    let untrusted = |problem: String| CacheError::Untrusted { path: path.to_owned(), problem };
    let metadata = fs::symlink_metadata(path)
        .map_err(|source| CacheError::Io { path: path.to_owned(), source })?;
    if !metadata.is_dir() {
        return Err(untrusted("it is no directory".to_owned()));
    }
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own {
        return Err(untrusted(format!("it belongs to user {}, not {own}", metadata.uid())));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(untrusted(format!("its mode {mode:o} lets others write to it")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_missing_directory_is_made_for_this_user_alone() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        for mode in [0o770, 0o702] {
            fs::set_permissions(parent.path(), fs::Permissions::from_mode(mode)).unwrap();
            let refused = open(parent.path()).unwrap_err().to_string();
            assert!(refused.contains("lets others write"), "{refused}");
        }
    }

    #[test]
    fn a_link_to_a_directory_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join("link");
        symlink(parent.path(), &link).unwrap();
        assert!(matches!(open(&link), Err(CacheError::Untrusted { .. })));
    }
}
