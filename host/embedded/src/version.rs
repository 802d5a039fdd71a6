//! Which ZooKeeper to be like.

/// The version of Apache ZooKeeper whose behaviour is shown where versions differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerVersion {
    /// An event's header has zxid -1. A connection has one watch of one kind on a path: the last
    /// one asked for.
    V3_8,
    /// An event's header has its txn's zxid. Watches of different kinds stand side by side.
    #[default]
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
