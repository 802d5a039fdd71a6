//! The znode by which a participant knows what became of its changes.

use std::cell::{Cell, RefCell};

use wok_sdk::zookeeper::{SetDataRequest, Write, Written};
use wok_sdk::{Named, participant};

/// An ephemeral znode of this participant, changed along with every key. Dropping it releases it.
///
/// Nobody else writes it. So after a lost reply it says whether the change was made, and its own
/// metadata name the transaction, whatever has become of the key by then.
pub(crate) struct Marker {
    znode: Named,
    /// None until it is created.
    version: Option<i32>,
}

thread_local! {
    static KEPT: RefCell<Option<Marker>> = const { RefCell::new(None) };
}

impl Marker {
    /// The one that is kept, or one that the next change creates, under a name that was never used.
    pub(crate) fn take() -> Self {
        KEPT.take().unwrap_or_else(Marker::new)
    }

    /// Keeps it for the next change.
    pub(crate) fn keep(self) {
        KEPT.set(Some(self));
    }

    fn new() -> Self {
        thread_local! {
            static MADE: Cell<u32> = const { Cell::new(0) };
        }
        let number = MADE.get();
        MADE.set(number.wrapping_add(1));
        let path = format!("/.writer-{}-{number}", participant::id());
        Marker { znode: Named::of(path), version: None }
    }

    /// The part of a `multi` that changes it.
    pub(crate) fn change(&self) -> Write {
        let (path, owner) = (self.znode.path(), participant::owner());
        match self.version {
            None => Named::write(path, owner.as_bytes()),
            Some(version) => Write::SetData(SetDataRequest {
                path: path.to_owned(),
                data: owner.into_bytes(),
                version: Some(version),
            }),
        }
    }

    /// The same after that change was made.
    #[must_use]
    pub(crate) fn changed(self) -> Self {
        // ZooKeeper counts the first data as version 0, and wraps as we do.
        let version = self.version.map_or(0, |version| version.wrapping_add(1));
        Marker { version: Some(version), ..self }
    }
}

/// The transaction that has changed a marker, by what the host answers of it.
pub(crate) fn revision(of_marker: Option<&Written>) -> Option<u64> {
    match of_marker {
        Some(Written::Created(created)) => Some(created.stat.czxid),
        Some(Written::DataSet(stat)) => Some(stat.mzxid),
        _ => None,
    }
}
