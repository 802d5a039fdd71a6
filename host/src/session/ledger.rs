//! The record of every ephemeral znode that a participant created, written before the request is
//! sent, so that whatever ends the participant, its znodes go.

use std::fmt;

use super::contact::Standing;
use super::named::CreationId;

/// Digits of the counter that the server appends, and the sign it has after 2^31 creates.
pub(super) const COUNTER_BYTES: usize = 11;

/// How a znode that may have been created is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trace {
    /// A contender: its name below `parent` starts with `stem`, which holds a UUID.
    Contender { parent: String, stem: String },
    /// A znode whose name was given.
    Named { path: String, creation: CreationId },
}

/// An ephemeral znode known to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Znode {
    pub(super) path: String,
    pub(super) czxid: i64,
    pub(super) naming: Naming,
}

/// Whether another znode may come to have the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// Never: there is a UUID in its name.
    Unique,
    /// Yes: its name was given, so it is looked at before it is deleted.
    Given,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// The create was sent, or is about to be, and has not been answered.
    Pending(Trace),
    /// The create was answered.
    Known(Znode),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Known(Znode { path, .. }) | Entry::Pending(Trace::Named { path, .. }) => {
                f.write_str(path)
            }
            Entry::Pending(Trace::Contender { parent, stem }) => write!(f, "{parent}/{stem}…"),
        }
    }
}

/// Identifies a ledger's entry while it is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryId(u64);

/// One participant's record.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<(EntryId, Entry, Standing)>,
    next: u64,
    /// The paths of known znodes of which a deletion was sent that nobody waits for any more.
    in_question: Vec<String>,
}

impl Ledger {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn open(&mut self, trace: Trace, standing: Standing) -> EntryId {
        let id = EntryId(self.next);
        self.next += 1;
        // Most participants have one znode, and there may be thousands of them.
        if self.entries.is_empty() {
            self.entries.reserve_exact(1);
        }
        self.entries.push((id, Entry::Pending(trace), standing));
        id
    }

    /// Enters what was created. An earlier znode at that path is gone, then, no matter which client
    /// deleted it: answers the earlier znode's `czxid`.
    pub(super) fn known(&mut self, id: EntryId, znode: Znode) -> Option<i64> {
        let earlier = self.find(&znode.path).map(|earlier| earlier.czxid);
        self.forget(&znode.path);
        if let Some((_, entry, _)) = self.entries.iter_mut().find(|(it, ..)| *it == id) {
            *entry = Entry::Known(znode);
        }
        earlier
    }

    pub(super) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let at = self.entries.iter().position(|(it, ..)| *it == id)?;
        Some(self.entries.swap_remove(at).1)
    }

    /// The known znode at a path.
    pub(super) fn find(&self, path: &str) -> Option<&Znode> {
        self.entries.iter().find_map(|(_, entry, _)| match entry {
            Entry::Known(znode) if znode.path == path => Some(znode),
            _ => None,
        })
    }

    /// The known znodes with a UUID in their names.
    pub(super) fn contenders(&self) -> impl Iterator<Item = &Znode> {
        self.entries.iter().filter_map(|(_, entry, _)| match entry {
            Entry::Known(znode) if znode.naming == Naming::Unique => Some(znode),
            _ => None,
        })
    }

    /// A create of that name that was sent and not answered.
    pub(super) fn pending(&self, path: &str) -> Option<(EntryId, CreationId)> {
        self.entries.iter().find_map(|(id, entry, _)| match entry {
            Entry::Pending(Trace::Named { path: it, creation }) if it == path => {
                Some((*id, *creation))
            }
            _ => None,
        })
    }

    /// A deletion of the znode at that path was sent, and nobody waits for the answer any more.
    pub(super) fn put_in_question(&mut self, path: &str) {
        if self.find(path).is_some() && !self.may_be_gone(path) {
            self.in_question.push(path.to_owned());
        }
    }

    /// Whether such a deletion may have been carried out.
    pub(super) fn may_be_gone(&self, path: &str) -> bool {
        self.in_question.iter().any(|it| it == path)
    }

    /// Bytes of the longest path that a contender of it has or may come to have.
    pub(super) fn longest_contender(&self) -> usize {
        let lengths = self.entries.iter().map(|(_, entry, _)| match entry {
            Entry::Known(Znode { path, naming: Naming::Unique, .. }) => path.len(),
            Entry::Pending(Trace::Contender { parent, stem }) => {
                parent.len() + 1 + stem.len() + COUNTER_BYTES
            }
            Entry::Known(_) | Entry::Pending(Trace::Named { .. }) => 0,
        });
        lengths.max().unwrap_or(0)
    }

    /// Strikes out what is at a path, because it is gone.
    pub(super) fn forget(&mut self, path: &str) {
        self.entries.retain(|(_, entry, _)| match entry {
            Entry::Known(znode) => znode.path != path,
            Entry::Pending(_) => true,
        });
        self.in_question.retain(|it| it != path);
    }

    pub(super) fn drain(&mut self) -> Vec<Entry> {
        self.in_question.clear();
        self.entries.drain(..).map(|(_, entry, _)| entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::super::contact::{Contact, ContactRule};
    use super::super::named::NamedZnodes;
    use super::super::timing::Timing;
    use super::*;
    use crate::clock::Boottime;

    fn named(path: &str) -> Trace {
        let creation = NamedZnodes::default().begin(path).unwrap();
        Trace::Named { path: path.to_owned(), creation }
    }

    fn standing() -> Standing {
        let timing = Timing::new(Duration::from_secs(10));
        let contact = Contact::new(timing, ContactRule::Quorum, Boottime::now());
        Standing::new(&Arc::new(Mutex::new(contact)))
    }

    #[test]
    fn a_znode_that_is_created_again_takes_the_place_of_the_one_before() {
        let mut ledger = Ledger::default();
        for (czxid, earlier) in [(5, None), (9, Some(5))] {
            let entry = ledger.open(named("/a"), standing());
            let znode = Znode { path: "/a".into(), czxid, naming: Naming::Given };
            assert_eq!(ledger.known(entry, znode), earlier);
        }
        assert_eq!(ledger.find("/a").map(|znode| znode.czxid), Some(9));
        assert_eq!(ledger.len(), 1);
    }

    #[test]
    fn a_ledger_keeps_what_is_pending_when_it_forgets_a_path() {
        let mut ledger = Ledger::default();
        let first = ledger.open(named("/a"), standing());
        ledger.known(first, Znode { path: "/a".into(), czxid: 5, naming: Naming::Given });
        ledger.open(named("/a"), standing());
        assert_eq!(ledger.find("/a").map(|znode| znode.czxid), Some(5));
        ledger.forget("/a");
        assert_eq!(ledger.find("/a"), None);
        assert!(ledger.pending("/a").is_some());
    }
}
