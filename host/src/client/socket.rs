//! Where the daemon listens, unless its config says otherwise, and where its clients look for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::{Uid, geteuid};

/// The socket of whoever runs this process. The daemon makes its directory, for nobody else to write
/// to.
pub fn default_socket() -> PathBuf {
    default_of(geteuid(), std::env::var_os("XDG_RUNTIME_DIR"))
}

fn default_of(user: Uid, runtime_directory: Option<OsString>) -> PathBuf {
    if user.is_root() {
        return PathBuf::from("/run/wok/wok.sock");
    }
    // By its specification a relative path is as good as none.
    match runtime_directory.map(PathBuf::from).filter(|it| it.is_absolute()) {
        Some(directory) => directory.join("wok.sock"),
        None => PathBuf::from(format!("/tmp/wok-{}/wok.sock", user.as_raw())),
    }
}

/// The socket that a client uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    path: PathBuf,
    owner: Owner,
}

/// Who may listen there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Whoever does: the socket was named, or stands where nobody else can make one.
    Anybody,
    /// This process's user, or root. Anybody may make a directory in `/tmp`, and whoever answers there
    /// would say what is held.
    Own,
}

impl Socket {
    /// The one that was named, else the default.
    pub fn new(named: Option<PathBuf>) -> Self {
        let Some(path) = named else { return Self::by_default(default_socket()) };
        Socket { path, owner: Owner::Anybody }
    }

    fn by_default(path: PathBuf) -> Self {
        let owner = if path.starts_with("/tmp") { Owner::Own } else { Owner::Anybody };
        Socket { path, owner }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a process of that user may listen there.
    pub(super) fn trusts(&self, user: u32) -> bool {
        self.owner == Owner::Anybody || user == 0 || user == geteuid().as_raw()
    }
}

impl std::fmt::Display for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_socket() {
        let some = |text: &str| Some(OsString::from(text));
        let of = |user, directory| default_of(Uid::from_raw(user), directory);
        assert_eq!(of(0, some("/run/user/0")), Path::new("/run/wok/wok.sock"));
        assert_eq!(of(7, some("/run/user/7")), Path::new("/run/user/7/wok.sock"));
        for none in [None, some(""), some("run")] {
            assert_eq!(of(7, none), Path::new("/tmp/wok-7/wok.sock"));
        }
    }

    #[test]
    fn a_stranger_is_not_believed_where_anybody_can_listen() {
        let own = geteuid().as_raw();
        let stranger = own + 1;
        let shared = Socket::by_default("/tmp/wok-7/wok.sock".into());
        assert!(shared.trusts(own) && shared.trusts(0) && !shared.trusts(stranger));
        assert!(Socket::by_default("/run/user/7/wok.sock".into()).trusts(stranger));
        assert!(Socket::new(Some("/tmp/mine.sock".into())).trusts(stranger));
    }
}
