//! The znode by which a participant knows what became of its writes.

use std::cell::Cell;

use crate::zookeeper::{SetDataRequest, Write};
use crate::{Named, participant};

/// An ephemeral znode of this participant that is changed along with what others own. Dropping it
/// releases it.
///
/// A write whose reply is lost may have happened. The host looks at the own znode of a `multi` then, which
/// nobody else writes: its version says whether the `multi` happened, and all of it did or nothing.
#[derive(Debug)]
pub struct Marker {
    znode: Named,
    /// None until it is created.
    version: Option<i32>,
}

impl Marker {
    /// One that the first change creates. Its path begins with that, as `/markers/` or `/marker-`, and was
    /// never used.
    pub fn new(beginning: &str) -> Self {
        thread_local! {
            static MADE: Cell<u32> = const { Cell::new(0) };
        }
        let number = MADE.get();
        MADE.set(number.wrapping_add(1));
        let path = [beginning, &participant::id(), "-", &number.to_string()].concat();
        Marker { znode: Named::of(path), version: None }
    }

    /// The part of a `multi` that changes it. A `multi` that does not happen because of this part, by
    /// `no-node` or `bad-version`, was kept from it by somebody who meddled with the marker: another one
    /// will do. (Where the part creates it, `no-node` means that there is no directory.)
    pub fn change(&self) -> Write {
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

    /// Whether the next change creates it.
    pub fn is_new(&self) -> bool {
        self.version.is_none()
    }

    /// The same after that change was made.
    #[must_use]
    pub fn changed(self) -> Self {
        // ZooKeeper counts the first data as version 0, and wraps as we do.
        let version = self.version.map_or(0, |version| version.wrapping_add(1));
        Marker { version: Some(version), ..self }
    }
}
