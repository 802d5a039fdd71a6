//! The directory of compiled modules.
//!
//! What is found there is run as machine code, so nobody else may be able to write to it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use wasmtime::{Cache, CacheConfig, Config};

use super::engine::CompileCache;

/// Why a compile cache is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// It is not there and cannot be made, or cannot be looked at.
    #[error(
        "compile cache {}: {source}; set WOK_CACHE_DIR to a directory that this user can make and write to",
        path.display()
    )]
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
    /// Others can put another directory in its place.
    #[error(
        "compile cache {}: {problem}, who could have other code run in place of ours; set \
         WOK_CACHE_DIR to a directory below which only this user and root can write",
        path.display()
    )]
    Reachable {
        /// The directory.
        path: PathBuf,
        /// What is wrong on the way to it.
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

/// Links in a path that are followed at most: as the operating system.
const MOST_LINKS: usize = 40;

/// Has compiled code kept where the options say.
pub(super) fn apply(config: &mut Config, cache: &CompileCache) -> Result<(), CacheError> {
    let CompileCache::In(directory) = cache else { return Ok(()) };
    match open(directory) {
        Ok(cache) => {
            config.cache(Some(cache));
        }
        Err(error @ CacheError::Unusable { .. }) => return Err(error),
        // Nothing but time is lost without it.
        Err(error) => tracing::warn!(%error, "modules are compiled anew at each start"),
    }
    Ok(())
}

/// Makes the directory if it is missing, and refuses one that is not this user's alone, or that
/// somebody else could put another one in the place of.
pub(super) fn open(path: &Path) -> Result<Cache, CacheError> {
    let io_error = |source| CacheError::Io { path: path.to_owned(), source };
    let own = rustix::process::geteuid().as_raw();
    // Before anything is made, and then once more with what was made.
    check_way(path, own)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error)?;
    check_way(path, own)?;
    check_own(path, own)?;
    let mut config = CacheConfig::new();
    config.with_directory(fs::canonicalize(path).map_err(io_error)?);
    Cache::new(config).map_err(|source| CacheError::Unusable { path: path.to_owned(), source })
}

/// Checks every directory above a path, link by link, as far as it is there: a user who can write
/// to one of them can put something else in the place of what is below it.
fn check_way(path: &Path, own: u32) -> Result<(), CacheError> {
    let io_error = |source| CacheError::Io { path: path.to_owned(), source };
    let absolute = std::path::absolute(path).map_err(io_error)?;
    let mut left: Vec<OsString> = absolute.parent().map(parts).unwrap_or_default();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let metadata = match fs::symlink_metadata(&next) {
            Ok(metadata) => metadata,
            // What is made from here on is this user's alone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io_error(error)),
        };
        if let Some(problem) = problem_on_the_way(&metadata, own) {
            let problem = format!("{} {problem}", next.display());
            return Err(CacheError::Reachable { path: path.to_owned(), problem });
        }
        if !metadata.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(io_error(io::Error::other("too many links")));
        }
        let target = fs::read_link(&next).map_err(io_error)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        left.extend(parts(&target));
    }
    Ok(())
}

/// The names in a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

/// What lets somebody else than this user and root change what is below, if anything does. In a
/// directory with the sticky bit, as `/tmp`, everybody can only remove what is his own. Only a user
/// who can write to a link's directory can change the link, which has no mode of its own.
fn problem_on_the_way(metadata: &Metadata, own: u32) -> Option<String> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if owner != own && owner != 0 {
        return Some(format!("belongs to user {owner}"));
    }
    let is_open = !metadata.is_symlink() && mode & 0o022 != 0 && mode & 0o1000 == 0;
    is_open.then(|| format!("can be written to by others (mode {mode:o})"))
}

fn check_own(path: &Path, own: u32) -> Result<(), CacheError> {
    let untrusted = |problem: String| CacheError::Untrusted { path: path.to_owned(), problem };
    let metadata = fs::symlink_metadata(path)
        .map_err(|source| CacheError::Io { path: path.to_owned(), source })?;
    if !metadata.is_dir() {
        return Err(untrusted("it is no directory".to_owned()));
    }
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

    /// What is wrong on the way to a cache.
    fn reachable(path: &Path) -> Option<String> {
        match open(path) {
            Ok(_) => None,
            Err(CacheError::Reachable { problem, .. }) => Some(problem),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_directory_on_the_way_that_others_can_write_to_is_refused_and_nothing_is_made() {
        let parent = tempfile::tempdir().unwrap();
        let open_to_all = parent.path().join("open");
        fs::create_dir(&open_to_all).unwrap();
        for mode in [0o770, 0o702] {
            fs::set_permissions(&open_to_all, fs::Permissions::from_mode(mode)).unwrap();
            let problem = reachable(&open_to_all.join("a/b")).unwrap();
            assert!(problem.contains(&format!("open can be written to by others (mode {mode:o})")));
            assert!(!open_to_all.join("a").exists());
        }
        // As `/tmp` is, in which this test works itself.
        fs::set_permissions(&open_to_all, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(reachable(&open_to_all.join("a/b")), None);
    }

    #[test]
    fn links_on_the_way_are_followed_and_what_they_lead_through_is_looked_at() {
        let parent = tempfile::tempdir().unwrap();
        let (open_to_all, good) = (parent.path().join("open"), parent.path().join("good"));
        fs::create_dir_all(open_to_all.join("inside")).unwrap();
        fs::create_dir(&good).unwrap();
        fs::set_permissions(&open_to_all, fs::Permissions::from_mode(0o777)).unwrap();
        symlink("../open/inside", good.join("astray")).unwrap();
        symlink(&good, good.join("round")).unwrap();
        assert!(reachable(&good.join("astray/cache")).unwrap().contains("open can be written"));
        assert_eq!(reachable(&good.join("round/round/cache")), None);
        symlink("endless", good.join("endless")).unwrap();
        assert!(matches!(open(&good.join("endless/cache")), Err(CacheError::Io { .. })));
    }

    #[test]
    fn what_belongs_to_another_user_is_refused_on_the_way() {
        let parent = tempfile::tempdir().unwrap();
        let metadata = fs::metadata(parent.path()).unwrap();
        // As root under somebody's home, without being root.
        let problem = problem_on_the_way(&metadata, metadata.uid() + 1);
        match metadata.uid() {
            // What root owns only root can change.
            0 => assert_eq!(problem, None),
            owner => assert_eq!(problem, Some(format!("belongs to user {owner}"))),
        }
        if metadata.uid() == 0 {
            std::os::unix::fs::chown(parent.path(), Some(12_345), None).unwrap();
            let problem = reachable(&parent.path().join("cache")).unwrap();
            assert!(problem.ends_with("belongs to user 12345"), "{problem}");
            assert!(!parent.path().join("cache").exists());
            std::os::unix::fs::chown(parent.path(), Some(0), None).unwrap();
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
