//! `[engine]`: what one process sets aside for guests.

use super::report::Report;
use super::section::{Key, Section};

/// What a host is measured with. A participant that waits costs tens of KiB, so the pool is some
/// hundreds of MB when it is full. Empty it is address space, 4 MB of memory more than a pool for a
/// thousand, and a tenth of a second at the start.
const DEFAULT_PARTICIPANTS: u32 = 10_000;

/// The pool reserves address space for each participant's memory and stack; a process has 128 TiB.
/// Each takes six mappings, and a process has 65,530 of them unless `vm.max_map_count` is raised.
const MAX_PARTICIPANTS: u32 = 10_000;

const PARTICIPANTS: Key = Key::new("participants", "10000");

/// What the process sets aside for guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engine {
    /// How many participants can exist at once.
    pub participants: u32,
}

impl Default for Engine {
    fn default() -> Self {
        Engine { participants: DEFAULT_PARTICIPANTS }
    }
}

pub(super) fn validate(mut section: Section<'_>, report: &mut Report<'_>) -> Option<Engine> {
    let participants = match section.field(&PARTICIPANTS) {
        Some(field) => field.integer(1..=MAX_PARTICIPANTS, report),
        None => Some(DEFAULT_PARTICIPANTS),
    };
    section.finish(report);
    Some(Engine { participants: participants? })
}
