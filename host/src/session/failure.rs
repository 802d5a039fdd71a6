//! Three classes of failure, which are never flattened into one: refused (nothing happened),
//! outcome unknown, session lost.

/// Why the server refused a request. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The znode, or the parent of one to create, does not exist.
    #[error("no such znode")]
    NoNode,
    /// A znode of that name exists.
    #[error("the znode exists")]
    NodeExists,
    /// The znode has children.
    #[error("the znode has children")]
    NotEmpty,
    /// The version is not the expected one.
    #[error("the version is not the expected one")]
    BadVersion,
    /// The parent is ephemeral.
    #[error("an ephemeral znode can have no children")]
    NoChildrenForEphemerals,
    /// The ACL forbids it.
    #[error("the ACL does not allow it")]
    NoAuth,
    /// A quota is enforced and spent.
    #[error("the quota is spent")]
    QuotaExceeded,
    /// The server does not know the operation.
    #[error("the server does not know this operation")]
    Unimplemented,
    /// The server has too much to do, and asks to be asked again.
    #[error("the server has too much to do: try again")]
    Throttled,
    /// Anything else, in the server's or the client's words.
    #[error("{0}")]
    Other(String),
}

impl Refusal {
    /// Whether it is about the tree, as the ensemble agrees that it is: the answer to a write that
    /// was carried to the leader. Not so if the server or the client library itself had an objection.
    pub(super) fn is_of_the_tree(&self) -> bool {
        match self {
            Refusal::NoNode
            | Refusal::NodeExists
            | Refusal::NotEmpty
            | Refusal::BadVersion
            | Refusal::NoChildrenForEphemerals
            | Refusal::NoAuth
            | Refusal::QuotaExceeded => true,
            Refusal::Unimplemented | Refusal::Throttled | Refusal::Other(_) => false,
        }
    }

    /// Whether the same request may well be carried out when it is sent again later.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Refusal::Throttled | Refusal::Other(_))
    }
}

/// How a request of a participant failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server said no, and nothing happened.
    #[error("{refusal}")]
    Refused {
        /// Its reason.
        refusal: Refusal,
        /// In a `multi`, which part it is about.
        index: Option<usize>,
    },
    /// The connection was lost before the reply: a write may or may not have happened.
    #[error("the connection was lost before the reply")]
    OutcomeUnknown,
    /// The session is over for this host, whatever the server thinks.
    #[error("the session is lost")]
    SessionLost,
    /// A limit of the participant or of the session is spent; the text names it.
    #[error("{0}")]
    OverLimit(String),
    /// The request was not sent because it is wrong in itself.
    #[error("{0}")]
    Invalid(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused { refusal, index: None }
    }
}
