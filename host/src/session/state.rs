//! What a session knows of itself.

/// Why a session is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionLoss {
    /// A server said that it expired, or no server took it over in its whole timeout. In the second
    /// case the ensemble may not have ended it yet.
    Expired,
    /// Nothing was heard for so long that the server may expire it any moment.
    Deadline,
    /// The server refused the credentials on a reconnect, or demands some by then.
    AuthFailed,
    /// This host closed it.
    Closed,
}

impl SessionLoss {
    /// Its kind in one word, for programs and for counting.
    pub fn kind(self) -> &'static str {
        match self {
            SessionLoss::Expired => "expired",
            SessionLoss::Deadline => "deadline",
            SessionLoss::AuthFailed => "auth-failed",
            SessionLoss::Closed => "closed",
        }
    }
}

impl std::fmt::Display for SessionLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SessionLoss::Expired => {
                "the session expired: a server said so, or none could be asked for its timeout"
            }
            SessionLoss::Deadline => "no contact with ZooKeeper until the session's local deadline",
            SessionLoss::AuthFailed => {
                "the server refused the credentials, or demands some where none are given"
            }
            SessionLoss::Closed => "this host closed the session",
        })
    }
}

/// What a session knows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// In contact.
    Connected,
    /// In doubt: what is held is still held, but perhaps not for long.
    Suspended,
    /// Over, for good.
    Lost(SessionLoss),
}
