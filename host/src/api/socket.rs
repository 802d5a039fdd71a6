//! The Unix socket that the host listens on.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Uid;
use tokio::net::{UnixListener, UnixStream};

/// Why a socket cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another process serves it.
    #[error(
        "another wok serves {}: end that one, or give this one another `socket` in [api]",
        .0.display()
    )]
    InUse(PathBuf),
    /// There is something else of that name.
    #[error("{} is there and is no socket: move it away, or name another `socket` in [api]", .0.display())]
    NoSocket(PathBuf),
    /// Another user can write to the directory, or owns it, and so could put another socket there.
    #[error(
        "another user can write to {}, and so could serve apps in wok's place: name a `socket` in \
         [api] in a directory of this user's own",
        .0.display()
    )]
    Open(PathBuf),
    /// It cannot be made.
    #[error("cannot listen on {}: {source}: name another `socket` in [api]", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}: name another address as `http` in [api]")]
    Tcp {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A certificate or key cannot be used.
    #[error("`tls` in [api]: {0}")]
    Tls(String),
}

/// How many connections wait to be accepted: as many as the kernel allows by default.
const BACKLOG: i32 = 4096;

/// Where a user's host listens, and its clients look, unless they are told otherwise: `/run/wok` for
/// root, else in the runtime directory of the XDG base directory specification, else in a directory
/// of the user's own in the one for temporary files.
pub fn default_socket() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    default_of(rustix::process::geteuid(), runtime, &temporary_files())
}

/// The directory that all users have for temporary files. A `TMPDIR` that is empty or relative counts as
/// one that is not set.
pub fn temporary_files() -> PathBuf {
    absolute_or_usual(std::env::temp_dir())
}

fn absolute_or_usual(named: PathBuf) -> PathBuf {
    if named.is_absolute() { named } else { PathBuf::from("/tmp") }
}

/// That of a user with these directories.
fn default_of(user: Uid, runtime: Option<PathBuf>, temporary: &Path) -> PathBuf {
    if user.is_root() {
        return PathBuf::from("/run/wok/wok.sock");
    }
    match runtime.filter(|directory| directory.is_absolute()) {
        Some(directory) => directory.join("wok.sock"),
        None => temporary.join(format!("wok-{}", user.as_raw())).join("wok.sock"),
    }
}

/// A socket that is listened on. Dropping it removes its file.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Of the file, so that another's is not removed.
    inode: u64,
    /// Held as long as the socket is: who holds it may take a stale file away.
    _lock: fs::File,
}

impl Socket {
    /// Listens. A file that a process left behind which did not end in order is taken away; that of
    /// one that lives is not.
    pub(super) async fn bind(path: &Path, mode: u32) -> Result<Self, BindError> {
        let io = |source| BindError::Io { path: path.to_owned(), source };
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        // Others must be able to pass where they may connect.
        let passable = if mode & 0o077 == 0 { 0o700 } else { 0o755 };
        make(directory, passable).map_err(|error| {
            // Without this "File exists" would be said of a socket that is not there.
            let text = format!("cannot make the directory {}: {error}", directory.display());
            io(io::Error::new(error.kind(), text))
        })?;
        let metadata = fs::metadata(directory).map_err(io)?;
        // In a sticky directory nobody moves another's files, but its owner does.
        let is_open = metadata.mode() & 0o022 != 0 && metadata.mode() & 0o1000 == 0;
        let own = rustix::process::geteuid().as_raw();
        let is_ours = [0, own].contains(&metadata.uid());
        if is_open || !is_ours {
            return Err(BindError::Open(directory.to_owned()));
        }
        let lock = lock(path).map_err(io)?.ok_or_else(|| BindError::InUse(path.to_owned()))?;
        remove_stale(path).await?;
        let listener = listen(path, mode).map_err(io)?;
        match fs::symlink_metadata(path) {
            Ok(metadata) => {
                let (path, inode) = (path.to_owned(), metadata.ino());
                Ok(Socket { listener, path, inode, _lock: lock })
            }
            Err(source) => Err(io(source)),
        }
    }
}

/// Makes the directories that are missing, with this mode.
fn make(directory: &Path, mode: u32) -> io::Result<()> {
    let missing: Vec<_> = directory.ancestors().take_while(|it| !it.exists()).collect();
    fs::DirBuilder::new().recursive(true).mode(mode).create(directory)?;
    // What the umask took. The innermost is made passable last, so that nobody comes to one that is not ready.
    for made in missing.into_iter().rev().filter(|it| !it.as_os_str().is_empty()) {
        fs::set_permissions(made, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Listens on a file that nobody else may connect to at any moment: Linux gives the file the mode of
/// the socket it is bound to, less what the umask takes.
fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    // One byte more could be bound, and no client that is written with a C string could name it.
    SocketAddr::from_pathname(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    // What the umask took.
    let listener = fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .and_then(|()| Ok(rustix::net::listen(&socket, BACKLOG)?))
        .and_then(|()| UnixListener::from_std(socket.into()));
    if listener.is_err() {
        // It was made a moment ago; that nobody can listen on it is what is told.
        fs::remove_file(path).ok();
    }
    listener
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|it| it.ino() == self.inode);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the socket's file stays behind");
        }
    }
}

/// The lock of a socket; none if another process has it.
fn lock(socket: &Path) -> io::Result<Option<fs::File>> {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(fs::File::from(file))),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Takes away what a host left behind that was killed. The caller has the lock.
async fn remove_stale(path: &Path) -> Result<(), BindError> {
    let io = |source| BindError::Io { path: path.to_owned(), source };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(BindError::NoSocket(path.to_owned()));
    }
    // One that knows nothing of the lock may listen there.
    match UnixStream::connect(path).await {
        Ok(_) => Err(BindError::InUse(path.to_owned())),
        Err(_) => fs::remove_file(path).or_else(absent_is_well).map_err(io),
    }
}

fn absent_is_well(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_default_of_its_own() {
        let (user, temporary) = (Uid::from_raw(1000), Path::new("/var/tmp"));
        for (user, runtime, expected) in [
            (Uid::ROOT, Some("/run/user/0"), "/run/wok/wok.sock"),
            (user, Some("/run/user/1000"), "/run/user/1000/wok.sock"),
            (user, Some("elsewhere"), "/var/tmp/wok-1000/wok.sock"),
            (user, None, "/var/tmp/wok-1000/wok.sock"),
        ] {
            let socket = default_of(user, runtime.map(PathBuf::from), temporary);
            assert_eq!(socket, Path::new(expected), "{user:?} {runtime:?}");
        }
    }

    #[test]
    fn temporary_files_are_where_all_look_if_the_variable_names_no_absolute_path() {
        for (named, expected) in [("", "/tmp"), ("scratch", "/tmp"), ("/var/tmp", "/var/tmp")] {
            assert_eq!(absolute_or_usual(named.into()), Path::new(expected), "{named:?}");
        }
    }

    #[tokio::test]
    async fn a_socket_is_taken_over_from_the_dead_and_not_from_the_living() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run/wok.sock");
        let first = Socket::bind(&path, 0o600).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(UnixStream::connect(&path).await.is_ok());
        assert!(matches!(Socket::bind(&path, 0o600).await, Err(BindError::InUse(_))));
        // As a process that is killed leaves it: the file is there, and nobody listens.
        std::os::unix::net::UnixListener::bind(directory.path().join("stale")).unwrap();
        fs::rename(directory.path().join("stale"), &path).unwrap();
        drop(first);
        assert!(path.exists(), "another's file stays");
        let second = Socket::bind(&path, 0o660).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn directories_that_were_there_stay_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let (there, made) = (directory.path().join("run"), directory.path().join("run/wok"));
        fs::DirBuilder::new().mode(0o700).create(&there).unwrap();
        make(&made, 0o755).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&there), mode(&made)), (0o700, 0o755));
    }

    #[tokio::test]
    async fn a_name_as_long_as_a_socket_can_have_is_listened_on() {
        let directory = tempfile::tempdir().unwrap();
        let more = 107 - directory.path().as_os_str().len() - 1;
        let path = directory.path().join("s".repeat(more));
        let socket = Socket::bind(&path, 0o600).await.unwrap();
        assert!(UnixStream::connect(&path).await.is_ok());
        drop(socket);
        let longer = directory.path().join("s".repeat(more + 1));
        assert!(matches!(Socket::bind(&longer, 0o600).await, Err(BindError::Io { .. })));
    }

    #[tokio::test]
    async fn what_is_no_socket_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("wok.sock");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(Socket::bind(&path, 0o600).await, Err(BindError::NoSocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Socket::bind(&file.join("wok.sock"), 0o600).await.unwrap_err().to_string();
        let named = format!("cannot make the directory {}: ", file.display());
        assert!(error.contains(&named), "{error}");
    }

    #[tokio::test]
    async fn a_directory_that_all_can_write_to_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let open = directory.path().join("open");
        fs::create_dir(&open).unwrap();
        for mode in [0o777, 0o775] {
            fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
            let bound = Socket::bind(&open.join("wok.sock"), 0o600).await;
            assert!(matches!(bound, Err(BindError::Open(_))), "{mode:o}");
        }
    }
}
