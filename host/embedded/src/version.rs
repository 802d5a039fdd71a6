//! Which ZooKeeper to be like.

/// The version of Apache ZooKeeper whose behaviour is shown where versions differ. It is 3.8 unless
/// one asks for 3.9: scripts that run on both servers hold this one against Apache ZooKeeper 3.8, and
/// its data directories are handed over to that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerVersion {
    /// An event's header has zxid -1. A connection has one watch of data and one of children on a
    /// path: the last one asked for, so that a watch for one event takes the place of one that lasts.
    #[default]
    V3_8,
    /// An event's header has its txn's zxid. Watches of different kinds stand side by side.
    V3_9,
}

impl ServerVersion {
    /// As the four-letter words tell it.
    pub fn text(self) -> &'static str {
        match self {
            ServerVersion::V3_8 => "3.8.0-wok",
            ServerVersion::V3_9 => "3.9.0-wok",
        }
    }
}
