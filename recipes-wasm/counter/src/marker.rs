//! The znode by which a participant knows what became of its writes.

use std::cell::Cell;

use wok_sdk::zookeeper::{SetDataRequest, Write};
use wok_sdk::{Named, participant};

/// An ephemeral znode of this participant, changed along with the counter. Dropping it releases it.
pub(crate) struct Marker {
    znode: Named,
    /// None until it is created.
    version: Option<i32>,
}

impl Marker {
    /// One that the first change creates, under a name that was never used.
    pub(crate) fn new() -> Self {
        thread_local! {
            static MADE: Cell<u32> = const { Cell::new(0) };
        }
        let number = MADE.get();
        MADE.set(number.wrapping_add(1));
        let path = format!("/adder-{}-{number}", participant::id());
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
