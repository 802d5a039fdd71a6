//! Watch events.

/// What happened to a watched node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// It came into being.
    NodeCreated,
    /// It is gone.
    NodeDeleted,
    /// Its data was set.
    NodeDataChanged,
    /// A child came or went.
    NodeChildrenChanged,
}

impl EventType {
    /// The number on the wire.
    pub fn code(self) -> i32 {
        match self {
            EventType::NodeCreated => 1,
            EventType::NodeDeleted => 2,
            EventType::NodeDataChanged => 3,
            EventType::NodeChildrenChanged => 4,
        }
    }
}
