//! Writes whose outcome is always known.

use std::cell::RefCell;

use wok_sdk::Marker;
use wok_sdk::zookeeper::{Error, MultiError, Write, multi};

use crate::place::{self, MARKERS};

thread_local! {
    static MARKER: RefCell<Option<Marker>> = const { RefCell::new(None) };
}

/// Why none of the writes were made.
#[derive(Debug)]
pub(crate) enum Unmade {
    /// The part of that number has this error.
    Part(usize, Error),
    /// All of it has.
    All(Error),
}

impl Unmade {
    /// The error alone.
    pub(crate) fn error(self) -> Error {
        match self {
            Unmade::Part(_, error) | Unmade::All(error) => error,
        }
    }
}

/// Makes all of the writes or none, together with the participant's marker: never answers
/// `outcome-unknown`. A request and a round trip, and a look at the marker with the first one.
pub(crate) fn write(writes: &[Write]) -> Result<(), Unmade> {
    loop {
        let marker = MARKER.take().unwrap_or_else(|| Marker::new(&[MARKERS, "/"].concat()));
        // First, as it is a znode of this participant's, which the others are not.
        let mut all = vec![marker.change()];
        all.extend_from_slice(writes);
        match multi(&all, &[]) {
            Ok(_) => {
                MARKER.set(Some(marker.changed()));
                return Ok(());
            }
            Err(MultiError { index: Some(0), error: Error::NoNode }) if marker.is_new() => {
                MARKER.set(Some(marker));
                place::furnish().map_err(Unmade::All)?;
            }
            // Somebody else has deleted the marker or written to it: another one will do.
            Err(MultiError { index: Some(0), error: Error::NoNode | Error::BadVersion }) => {}
            Err(MultiError { index: Some(part @ 1..), error }) => {
                MARKER.set(Some(marker));
                return Err(Unmade::Part(part.saturating_sub(1) as usize, error));
            }
            // The marker may be there or not. It is dropped, and so released.
            Err(MultiError { error, .. }) => return Err(Unmade::All(error)),
        }
    }
}
