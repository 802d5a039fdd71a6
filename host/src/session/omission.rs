//! Rules that a simulation leaves out, one at a time, to see that its judges notice.

/// A rule of this room that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omission {
    /// After a lost reply, a contender is created again without looking for its UUID.
    UuidLookUp,
    /// What is found at a name is taken for this session's, whosever it is.
    SessionCheck,
    /// What a create has done is looked for on a server that may be behind.
    CatchUpBeforeLookUp,
    /// A znode is deleted by its path, whatever its `czxid`.
    CzxidCheck,
    /// A znode is claimed though it is not in the participant's ledger.
    Ledger,
    /// The local deadline is counted from when the connection was last believed in.
    ContactDeadline,
    /// That a server takes the session over counts as contact, whatever the leader knows.
    AnswerAfterTakeover,
    /// Whether the session is live is not looked at again before it is said.
    LookAfterPause,
    /// A read counts as contact, and heartbeats are reads.
    HeartbeatByRead,
    /// A `sync` counts as contact also for what is held, and heartbeats are syncs.
    HeartbeatBySync,
    /// Something is held on the strength of contact that is long ago, or was with another server.
    GrantOnOldContact,
    /// A refusal that is made up by the client counts as contact, and heartbeats are requests that
    /// the client refuses.
    MadeUpAnswer,
    /// Who gets a counter that others may have as well stands in line with it.
    CounterCheck,
}

impl Omission {
    /// All of them.
    pub const ALL: [Omission; 13] = [
        Omission::UuidLookUp,
        Omission::SessionCheck,
        Omission::CatchUpBeforeLookUp,
        Omission::CzxidCheck,
        Omission::Ledger,
        Omission::ContactDeadline,
        Omission::AnswerAfterTakeover,
        Omission::LookAfterPause,
        Omission::HeartbeatByRead,
        Omission::HeartbeatBySync,
        Omission::GrantOnOldContact,
        Omission::MadeUpAnswer,
        Omission::CounterCheck,
    ];
}
