//! The time, as it is handed in: nothing in the state machine has a clock of its own.

/// A moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on a clock that never goes back: sessions expire by it.
    pub elapsed_ms: u64,
    /// Milliseconds since 1970: nodes are dated by it.
    pub wall_ms: i64,
}
