//! The record of every ephemeral znode that a participant created, written before the request is
//! sent, so that whatever ends the participant, its znodes go.

use std::collections::HashMap;
use std::fmt;

use super::contact::Standing;

/// Digits of the counter that the server appends, and the sign it has after 2^31 creates.
pub(super) const COUNTER_BYTES: usize = 11;

/// Tells participants of one session apart.
pub(super) type SeatId = u64;

/// How a znode that may have been created is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trace {
    /// A contender: its name below `parent` starts with `stem`, which holds a UUID.
    Contender { parent: String, stem: String },
    /// A znode whose name was given.
    Named { path: String },
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
            Entry::Known(Znode { path, .. }) | Entry::Pending(Trace::Named { path }) => {
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

    pub(super) fn known(&mut self, id: EntryId, znode: Znode) {
        if let Some((_, entry, _)) = self.entries.iter_mut().find(|(it, ..)| *it == id) {
            *entry = Entry::Known(znode);
        }
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

    /// A create of that name that was sent and not answered.
    pub(super) fn pending(&self, path: &str) -> Option<EntryId> {
        self.entries.iter().find_map(|(id, entry, _)| match entry {
            Entry::Pending(Trace::Named { path: it }) if it == path => Some(*id),
            _ => None,
        })
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
    }

    pub(super) fn drain(&mut self) -> Vec<Entry> {
        self.entries.drain(..).map(|(_, entry, _)| entry).collect()
    }
}

/// Who of this session's participants created the ephemeral znodes whose names were given: the
/// session is shared, so `ephemeralOwner` alone does not tell participants apart. Contenders need
/// no entry, their UUID does.
#[derive(Debug, Default)]
pub(super) struct NamedZnodes {
    by_path: HashMap<String, Vec<(SeatId, Option<i64>)>>,
}

impl NamedZnodes {
    /// Notes that a participant is about to create this znode. Refused while another is about to:
    /// if both replies were lost, nobody could tell whose the znode is.
    pub(super) fn begin(&mut self, path: &str, seat: SeatId) -> bool {
        let creators = self.by_path.entry(path.to_owned()).or_default();
        if creators.iter().any(|(_, czxid)| czxid.is_none()) {
            return false;
        }
        creators.push((seat, None));
        true
    }

    /// Notes what became of it.
    pub(super) fn settle(&mut self, path: &str, seat: SeatId, czxid: i64) {
        for (creator, known) in self.by_path.get_mut(path).into_iter().flatten() {
            if *creator == seat && known.is_none() {
                *known = Some(czxid);
            }
        }
    }

    /// Strikes out a znode that was not created, or is gone.
    pub(super) fn forget(&mut self, path: &str, seat: SeatId, czxid: Option<i64>) {
        if let Some(creators) = self.by_path.get_mut(path) {
            creators.retain(|it| *it != (seat, czxid));
            if creators.is_empty() {
                self.by_path.remove(path);
            }
        }
    }

    /// Whether another participant of this session created that very znode.
    pub(super) fn is_anothers(&self, path: &str, seat: SeatId, czxid: i64) -> bool {
        let creators = self.by_path.get(path);
        creators.into_iter().flatten().any(|(it, known)| *it != seat && *known == Some(czxid))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::super::contact::{Contact, ContactRule};
    use super::super::timing::Timing;
    use super::*;
    use crate::clock::Boottime;

    fn standing() -> Standing {
        let timing = Timing::new(Duration::from_secs(10));
        let contact = Contact::new(timing, ContactRule::Quorum, Boottime::now());
        Standing::new(&Arc::new(Mutex::new(contact)))
    }

    #[test]
    fn a_name_being_created_by_one_participant_is_refused_to_another() {
        let mut named = NamedZnodes::default();
        assert!(named.begin("/a", 1));
        assert!(!named.begin("/a", 2));
        named.settle("/a", 1, 70);
        assert!(named.begin("/a", 2));
        assert!(named.is_anothers("/a", 2, 70));
        assert!(!named.is_anothers("/a", 1, 70));
        named.forget("/a", 1, Some(70));
        assert!(!named.is_anothers("/a", 2, 70));
    }

    #[test]
    fn a_ledger_keeps_what_is_pending_when_it_forgets_a_path() {
        let mut ledger = Ledger::default();
        let first = ledger.open(Trace::Named { path: "/a".into() }, standing());
        ledger.known(first, Znode { path: "/a".into(), czxid: 5, naming: Naming::Given });
        ledger.open(Trace::Named { path: "/a".into() }, standing());
        assert_eq!(ledger.find("/a").map(|znode| znode.czxid), Some(5));
        ledger.forget("/a");
        assert_eq!(ledger.find("/a"), None);
        assert!(ledger.pending("/a").is_some());
    }
}
