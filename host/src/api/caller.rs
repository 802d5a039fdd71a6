//! Who is at the other end of a connection, and what that program may do.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::config::Allow;

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) credentials: Credentials,
    /// The number of the connection. This host gives none twice.
    pub(super) connection: u64,
    /// Cancels the connection.
    pub(super) hang_up: CancellationToken,
}

/// What is known of a caller.
#[derive(Debug, Clone)]
pub(super) enum Credentials {
    /// A process of this machine, by the kernel's word.
    Local {
        uid: u32,
        gid: u32,
        /// None where the process is in another namespace, where the host cannot see it.
        pid: Option<u32>,
        /// The process, where the host can see it.
        process: Option<Arc<OwnedFd>>,
    },
    /// Somebody who has the token.
    Remote,
}

impl Credentials {
    /// Those of a process that has just connected.
    pub(super) fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let peer = stream.peer_cred()?;
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        let process = pid.and_then(|pid| process_of(stream, pid)).map(Arc::new);
        Ok(Credentials::Local { uid: peer.uid(), gid: peer.gid(), pid, process })
    }

    /// The user; none for one who is not on this machine.
    pub(super) fn uid(&self) -> Option<u32> {
        match self {
            Credentials::Local { uid, .. } => Some(*uid),
            Credentials::Remote => None,
        }
    }

    /// The process, where the host can see it.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Credentials::Local { pid, .. } => *pid,
            Credentials::Remote => None,
        }
    }

    /// Whether it is root's or the host's own user's, who may do anything.
    pub(super) fn is_owner(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.uid().is_some_and(|uid| uid == 0 || uid == own)
    }

    /// Who it is, as `allow` names it.
    pub(super) fn in_words(&self) -> String {
        match self {
            Credentials::Local { uid, gid, .. } => format!("user {uid} with group {gid}"),
            Credentials::Remote => "a caller from elsewhere".to_owned(),
        }
    }

    /// Whether it may take part in a recipe that allows these.
    pub(super) fn may_use(&self, allow: &Allow) -> bool {
        match self {
            Credentials::Local { uid, gid, .. } => {
                self.is_owner() || allow.uids.contains(uid) || allow.gids.contains(gid)
            }
            Credentials::Remote => true,
        }
    }

    /// Whether it may see and end a participant of an app of that user.
    pub(super) fn may_manage(&self, uid: Option<u32>) -> bool {
        self.is_owner() || self.uid() == uid
    }
}

/// The process at the other end. The kernel gives it for the one that connected, whatever has become
/// of its number since; before Linux 6.5 it has to be asked for by its number.
fn process_of(stream: &UnixStream, pid: u32) -> Option<OwnedFd> {
    match getsockopt(&stream.as_fd(), PeerPidfd) {
        Err(Errno::ENOPROTOOPT) => {
            let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
            pidfd_open(pid, PidfdFlags::empty()).ok()
        }
        // It has ended: another process may have its number by now.
        process => process.ok(),
    }
}

/// Completes when the process has ended; never where the host cannot see it.
pub(super) async fn until_process_ends(credentials: &Credentials) {
    #[allow(
        deprecated,
        reason = "deprecated for descriptors that change while they are registered, and this one \
                  cannot; what is to follow it is unsafe"
    )]
    let register = |process| AsyncFd::with_interest(process, Interest::READABLE);
    if let Credentials::Local { process: Some(process), .. } = credentials
        && let Ok(process) = register(process.as_fd())
        && process.readable().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
