//! An own ephemeral znode whose name was given.

use crate::participant::{self, Fence};
use crate::zookeeper::{self, CreateMode, CreateRequest, Error, Write};

/// An ephemeral znode of this participant with a name of the recipe's choice: a marker, a vote, a
/// member.
///
/// Dropping it releases it, so that whatever way an operation fails or is cancelled nothing is left
/// behind.
#[derive(Debug)]
pub struct Named {
    path: String,
    /// Whether it is somebody else's to delete from now on, or gone.
    is_over: bool,
}

impl Named {
    /// Creates the znode.
    ///
    /// # Errors
    /// As `create`: `node-exists` if there is one of that name, whosever it is.
    pub fn create(path: &str, data: &[u8]) -> Result<Self, Error> {
        zookeeper::create(path, data, CreateMode::Ephemeral).map(|created| Named::of(created.path))
    }

    /// The part of a `multi` that creates such a znode; once it is done, [`Named::of`] guards it.
    pub fn write(path: &str, data: &[u8]) -> Write {
        let mode = CreateMode::Ephemeral;
        Write::Create(CreateRequest { path: path.to_owned(), data: data.to_vec(), mode })
    }

    /// Guards a znode that this participant has created.
    pub fn of(path: String) -> Self {
        Named { path, is_over: false }
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Claims it.
    ///
    /// # Errors
    /// As `participant.claim`; `no-node` if it is gone.
    pub fn claim(&self) -> Result<Fence, Error> {
        participant::claim(&self.path)
    }

    /// Deletes it and says how that went.
    ///
    /// # Errors
    /// As `participant.release`.
    pub fn release(mut self) -> Result<(), Error> {
        self.is_over = true;
        participant::release(&self.path)
    }

    /// Deletes it, and says how that went, for an owner that goes on where the server refuses: then it stands,
    /// guarded and claimed as before. [`Named::is_over`] says whether it does.
    ///
    /// # Errors
    /// As `participant.release`.
    pub fn try_release(&mut self) -> Result<(), Error> {
        let outcome = participant::release(&self.path);
        // After `cancelled` the host goes on until it is gone.
        self.is_over = matches!(outcome, Ok(()) | Err(Error::Cancelled));
        outcome
    }

    /// Whether it is gone, or goes by itself.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Guards it no more, because a `multi` has deleted it. Answers its path.
    pub fn gone(mut self) -> String {
        self.is_over = true;
        std::mem::take(&mut self.path)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if !self.is_over {
            // Nobody is left to tell, and the host goes on until the znode is gone.
            let _ = participant::release(&self.path);
        }
    }
}
