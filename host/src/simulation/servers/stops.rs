//! How a server that follows is stopped, and goes on: its process is, as by a debugger or a machine
//! that has too much to do. What is sent to it meanwhile waits for it, and nobody is told.

use wok_embedded::time::Now;

use super::Servers;

/// Whether a server's process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Running {
    Yes,
    /// Until it has asked its leader about a session: the answer finds it stopped.
    UntilItAsks,
    No,
}

impl Servers {
    pub(super) fn runs(&self, server: usize) -> bool {
        self.servers.get(server).is_some_and(|server| server.running != Running::No)
    }

    /// Whether a server is stopped, or is to be.
    pub(in super::super) fn is_halted(&self, server: usize) -> bool {
        self.servers.get(server).is_some_and(|server| server.running != Running::Yes)
    }

    /// Whether a server is stopped.
    pub(in super::super) fn is_stopped(&self, server: usize) -> bool {
        !self.runs(server)
    }

    /// A server is stopped as soon as it follows and has asked its leader about a session.
    pub(in super::super) fn stop_once_it_asks(&mut self, server: usize) {
        if let Some(server) = self.servers.get_mut(server) {
            server.running = Running::UntilItAsks;
        }
    }

    pub(super) fn stop(&mut self, server: usize) {
        self.can_settle = None;
        if let Some(server) = self.servers.get_mut(server) {
            server.running = Running::No;
        }
    }

    /// A server that was stopped goes on. What has come from its leader meanwhile is still to be read:
    /// see [`Servers::catch_up_reading`].
    pub(in super::super) fn go_on(&mut self, server: usize) {
        self.can_settle = None;
        if let Some(server) = self.servers.get_mut(server) {
            server.running = Running::Yes;
        }
    }

    /// A server reads what has come from its leader since it was stopped.
    pub(in super::super) fn catch_up_reading(&mut self, server: usize, now: Now) {
        while let Some(word) = self.servers.get_mut(server).and_then(|it| it.unread.pop_front()) {
            self.read(server, word, now);
        }
        self.carry(server, now);
    }
}
