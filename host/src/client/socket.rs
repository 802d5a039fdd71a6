//! Where a client looks for the daemon.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::api::{default_socket, temporary_files};

/// The socket that a client uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    path: PathBuf,
    owner: Owner,
}

/// Who may listen there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Any user: the socket was named, or stands where nobody else can make one.
    Anybody,
    /// This process's user, or root. Anybody may make a directory among the temporary files, and
    /// the process that answers there says what is held.
    Own,
}

impl Socket {
    /// The one that was named, else the default.
    pub fn new(named: Option<PathBuf>) -> Self {
        let Some(path) = named else { return Self::by_default(default_socket()) };
        Socket { path, owner: Owner::Anybody }
    }

    fn by_default(path: PathBuf) -> Self {
        let is_among_all = path.starts_with(temporary_files());
        let owner = if is_among_all { Owner::Own } else { Owner::Anybody };
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
    fn a_stranger_is_not_believed_where_anybody_can_listen() {
        let own = geteuid().as_raw();
        let stranger = own + 1;
        let shared = Socket::by_default(temporary_files().join("wok-7/wok.sock"));
        assert!(shared.trusts(own) && shared.trusts(0) && !shared.trusts(stranger));
        assert!(Socket::by_default("/run/user/7/wok.sock".into()).trusts(stranger));
        assert!(Socket::new(Some("/tmp/mine.sock".into())).trusts(stranger));
    }
}
