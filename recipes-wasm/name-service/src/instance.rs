//! An instance of this participant.

use wok_sdk::participant::Fence;
use wok_sdk::time_and_chance::random_u64;
use wok_sdk::zookeeper::{CreateMode, Error, MultiError, ensure, multi};
use wok_sdk::{Named, child};

use crate::decide;

/// An instance that is registered.
#[derive(Debug)]
pub(crate) struct Instance {
    own: Named,
    fence: Fence,
}

impl Instance {
    /// Registers it.
    pub(crate) fn register(directory: &str, data: &[u8]) -> Result<Self, Error> {
        loop {
            let path = child(directory, &decide::id(random_u64(), random_u64()));
            // 1
            match multi(&[Named::write(&path, data)], std::slice::from_ref(&path)) {
                Ok(committed) => {
                    let own = Named::of(path);
                    let fence = committed.fence;
                    let fence = fence.ok_or_else(|| Error::Other("multi: no fence".to_owned()))?;
                    return Ok(Instance { own, fence });
                }
                Err(MultiError { index: Some(_), error: Error::NoNode }) => {
                    ensure(&[directory.to_owned()], CreateMode::Container)?; // 2
                }
                Err(MultiError { error, .. }) => {
                    // It may have happened. Dropped, and so released.
                    drop(Named::of(path));
                    return Err(error);
                }
            }
        }
    }

    /// Its znode.
    pub(crate) fn path(&self) -> &str {
        self.own.path()
    }

    /// Its fencing token.
    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    /// Takes it out.
    ///
    /// # Errors
    /// As `participant.release`. Where the server refuses, it is still there.
    pub(crate) fn deregister(&mut self) -> Result<(), Error> {
        self.own.try_release()
    }

    /// Whether it is out.
    pub(crate) fn is_deregistered(&self) -> bool {
        self.own.is_over()
    }
}
