//! What a session knows of itself.

/// Why a session is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionLoss {
    /// The server expired it.
    Expired,
    /// Nothing was heard for so long that the server may expire it any moment.
    Deadline,
    /// The server refused the credentials on a reconnect.
    AuthFailed,
    /// This host closed it.
    Closed,
}

impl SessionLoss {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionLoss::Expired => "the server expired the session",
            SessionLoss::Deadline => "no contact with ZooKeeper until the session's local deadline",
            SessionLoss::AuthFailed => "the server refused the credentials",
            SessionLoss::Closed => "this host closed the session",
        }
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
