//! The marker of a participant's changes: an ephemeral znode that is changed along with every key.
//!
//! Nobody else writes it. So after a lost reply it says whether the change was made, and its own
//! metadata name the transaction, whatever has become of the key by then.

use std::cell::RefCell;

use wok_sdk::Marker;
use wok_sdk::zookeeper::Written;

thread_local! {
    static KEPT: RefCell<Option<Marker>> = const { RefCell::new(None) };
}

/// The one that is kept, or one that the next change creates.
pub(crate) fn take() -> Marker {
    KEPT.take().unwrap_or_else(|| Marker::new("/.writer-"))
}

/// Keeps it for the next change.
pub(crate) fn keep(marker: Marker) {
    KEPT.set(Some(marker));
}

/// The transaction that has changed a marker, by what the host answers of it.
pub(crate) fn revision(of_marker: Option<&Written>) -> Option<u64> {
    match of_marker {
        Some(Written::Created(created)) => Some(created.stat.czxid),
        Some(Written::DataSet(stat)) => Some(stat.mzxid),
        _ => None,
    }
}
