//! An own contender znode.

use crate::participant::{self, Fence};
use crate::zookeeper::{self, Children, Created, Error, VersionRequest, Write};
use crate::{Contender, Named, Naming, name_of};

/// An ephemeral znode of this participant that stands in a line, or holds what it stood for.
///
/// Dropping it releases it, so that whatever way an operation fails or is cancelled nothing is left
/// behind.
#[derive(Debug)]
pub struct Own {
    path: String,
    contender: Contender,
    /// Where it may stand instead: nobody knows whether it has become one of another kind.
    in_doubt: Option<String>,
    released: Released,
}

#[derive(Debug, PartialEq, Eq)]
enum Released {
    No,
    Yes,
}

impl Own {
    /// Joins the line in `parent`.
    ///
    /// # Errors
    /// As `participant.contend`.
    pub fn contend(parent: &str, naming: &Naming, data: &[u8]) -> Result<Self, Error> {
        Own::of(participant::contend(parent, &naming.contender_name(), data)?, naming)
    }

    /// Joins the line in `parent` and lists it, in one round trip.
    ///
    /// # Errors
    /// As `participant.contend-and-list`.
    pub fn contend_and_list(
        parent: &str,
        naming: &Naming,
        data: &[u8],
    ) -> Result<(Self, Children), Error> {
        let name = naming.contender_name();
        let (created, children) = participant::contend_and_list(parent, &name, data)?;
        Ok((Own::of(created, naming)?, children))
    }

    fn of(created: Created, naming: &Naming) -> Result<Self, Error> {
        let name = name_of(&created.path).to_owned();
        let Some(contender) = naming.read(name) else {
            // Not ours to understand, but ours to take away.
            participant::release(&created.path)?;
            return Err(Error::Other(format!("contend {}: no counter in the name", created.path)));
        };
        Ok(Own { path: created.path, contender, in_doubt: None, released: Released::No })
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its place in the line.
    pub fn contender(&self) -> &Contender {
        &self.contender
    }

    /// Claims it.
    ///
    /// # Errors
    /// As `participant.claim`; `no-node` if it is gone.
    pub fn claim(&self) -> Result<Fence, Error> {
        participant::claim(&self.path)
    }

    /// Becomes a contender of another kind at the same place in line, and claims it as that, in one
    /// `multi`: nobody behind ever sees the place empty, and what runs under an earlier claim of it
    /// goes on under the new one. With a version of its data it happens only if that is the newest.
    ///
    /// # Errors
    /// As `multi`, and it stays what it is: `bad-version` where its data has another version. After `cancelled` and `outcome-unknown` it may have become
    /// the other: then the claim of it is lost, as the host tells, and to release it takes both away.
    pub fn become_kind(
        &mut self,
        naming: &Naming,
        data: &[u8],
        version: Option<i32>,
    ) -> Result<Fence, Error> {
        let Some(contender) = naming.in_the_place_of(&self.contender) else {
            return Err(Error::Other(format!("{}: no place in a line", self.path)));
        };
        let directory = self.path.len().saturating_sub(self.contender.name.len());
        let path = contender.path(self.path.get(..directory).unwrap_or_default());
        let gone = VersionRequest { path: self.path.clone(), version };
        let writes = [Named::write(&path, data), Write::Delete(gone)];
        let committed = zookeeper::multi(&writes, std::slice::from_ref(&path));
        let fence = match committed {
            Ok(committed) => committed.fence,
            Err(refused) => {
                if matches!(refused.error, Error::Cancelled | Error::OutcomeUnknown) {
                    self.in_doubt = Some(path);
                }
                return Err(refused.error);
            }
        };
        (self.path, self.contender, self.in_doubt) = (path, contender, None);
        fence.ok_or_else(|| Error::Other(format!("multi: no fence for {}", self.path)))
    }

    /// Guards it no more, because a `multi` has deleted it. Answers its path.
    pub fn gone(mut self) -> String {
        self.released = Released::Yes;
        std::mem::take(&mut self.path)
    }

    /// Deletes it and says how that went.
    ///
    /// # Errors
    /// As `participant.release`.
    pub fn release(mut self) -> Result<(), Error> {
        self.released = Released::Yes;
        self.take_away()
    }

    /// Deletes it, and says how that went, for a holder that goes on where the server refuses: then it stands,
    /// guarded and claimed as before. [`Own::is_released`] says whether it does.
    ///
    /// # Errors
    /// As `participant.release`.
    pub fn try_release(&mut self) -> Result<(), Error> {
        let outcome = self.take_away();
        // After `cancelled` the host goes on until it is gone.
        if matches!(outcome, Ok(()) | Err(Error::Cancelled)) {
            self.released = Released::Yes;
        }
        outcome
    }

    /// Whether it is gone, or goes by itself.
    pub fn is_released(&self) -> bool {
        self.released == Released::Yes
    }

    /// What is claimed goes first: what runs under the claim has ended then.
    fn take_away(&mut self) -> Result<(), Error> {
        let own = participant::release(&self.path);
        let Some(path) = self.in_doubt.take() else { return own };
        match participant::release(&path) {
            // It never came to be.
            Err(Error::Invalid(_)) => own,
            in_doubt => own.and(in_doubt),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if self.released == Released::No {
            // Nobody is left to tell, and the host goes on until the znode is gone.
            let _ = self.take_away();
        }
    }
}
