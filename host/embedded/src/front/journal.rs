//! Where txns go before they are applied and answered.

use crate::prepare::Proposal;

/// What outlives the process. So far nothing does: all state is in memory, and is gone when the
/// server stops.
#[derive(Debug)]
pub(super) enum Journal {
    /// Nothing is kept.
    Memory,
}

impl Journal {
    /// Keeps txns, all of them at once, and returns once they are safe.
    ///
    /// # Errors
    /// If that is not certain: then nothing may be answered any more.
    pub(super) async fn force<'a>(
        &mut self,
        _proposals: impl Iterator<Item = &'a Proposal>,
    ) -> std::io::Result<()> {
        match self {
            Journal::Memory => Ok(()),
        }
    }
}
