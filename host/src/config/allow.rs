//! `allow`: which users of this machine may take part in a recipe through the API.

use super::report::Report;
use super::section::{Field, Key, Section};

const UIDS: Key = Key::new("uids", "[1000]");
const GIDS: Key = Key::new("gids", "[100]");

/// Which users of this machine may take part in a recipe, beside the host's own user and root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow {
    /// Users.
    pub uids: Vec<u32>,
    /// Groups; a process is in its effective one for this, not in its others.
    pub gids: Vec<u32>,
}

impl Allow {
    /// Whether it names anybody.
    pub fn is_empty(&self) -> bool {
        self.uids.is_empty() && self.gids.is_empty()
    }
}

pub(super) fn validate(mut section: Section<'_>, report: &mut Report<'_>) -> Option<Allow> {
    let uids = ids(section.field(&UIDS), report);
    let gids = ids(section.field(&GIDS), report);
    section.finish(report);
    Some(Allow { uids: uids?, gids: gids? })
}

fn ids(field: Option<Field<'_>>, report: &mut Report<'_>) -> Option<Vec<u32>> {
    let Some(field) = field else { return Some(Vec::new()) };
    let items = field.array(report)?;
    // The largest is what system calls take for none.
    let ids = items.iter().map(|item| item.integer(0..=u32::MAX - 1, report));
    ids.collect::<Vec<_>>().into_iter().collect()
}
