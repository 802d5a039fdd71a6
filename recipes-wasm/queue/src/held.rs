//! Items that are taken and not acknowledged.

use wok_sdk::participant::Fence;
use wok_sdk::zookeeper::{Error, MultiError, Reply, Request, Stat, VersionRequest, Write, multi};
use wok_sdk::{Named, confirmed_reads};

use crate::decide::{answer, attempts, name_in};
use crate::marked::{self, Unmade};
use crate::place;

/// Items that this participant has taken: their claims are one claim of the host's.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) items: Vec<Item>,
    /// The fence of all of them.
    pub(crate) fence: Fence,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) claim: Named,
    /// That of the item since it is taken. Whoever takes it next makes it another one, so it says that
    /// nobody else has.
    pub(crate) version: i32,
}

impl Item {
    fn name(&self) -> &str {
        name_in(self.claim.path())
    }

    fn path(&self) -> String {
        place::item(self.name())
    }
}

impl Held {
    /// The paths of the items.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        self.items.iter().map(Item::path)
    }

    /// Removes the items together with their claims, in one transaction, and without those that have gone
    /// already. Answers what kept it from removing some of them; their claims are given back.
    pub(crate) fn ack(self) -> Result<(), Error> {
        let mut done = Ok(());
        let mut kept: Vec<bool> = self.items.iter().map(|_| false).collect();
        loop {
            let mut writes = Vec::with_capacity(2 * self.items.len());
            // Which item each part is about.
            let mut about = Vec::with_capacity(2 * self.items.len());
            for (number, (item, is_kept)) in self.items.iter().zip(&kept).enumerate() {
                if !is_kept {
                    writes.push(delete(item.path(), Some(item.version)));
                    about.push(Some(number));
                }
                writes.push(delete(item.claim.path().to_owned(), None));
                about.push(None);
            }
            match multi(&writes, &[]) {
                Ok(_) => {
                    self.forget();
                    return done;
                }
                Err(MultiError {
                    index,
                    error: error @ (Error::NoNode | Error::BadVersion | Error::NotEmpty),
                }) => {
                    let part = index.and_then(|index| about.get(index as usize).copied().flatten());
                    let named = part.and_then(|it| Some((self.items.get(it)?, kept.get_mut(it)?)));
                    let Some((item, is_kept)) = named else {
                        // A claim is gone, and with it all of them: what is left is given back.
                        return Err(error);
                    };
                    // It has gone, or another client has written to it or below it. The others are done.
                    *is_kept = true;
                    done = answer(done, place::stays(item.name(), error));
                }
                Err(MultiError { error, .. }) => return Err(error),
            }
        }
    }

    /// Gives the items back, all in one transaction.
    pub(crate) fn reject(self) -> Result<(), Error> {
        let gone = |item: &Item| delete(item.claim.path().to_owned(), None);
        let writes: Vec<Write> = self.items.iter().map(gone).collect();
        match multi(&writes, &[]) {
            Ok(_) => {
                self.forget();
                Ok(())
            }
            // The host deletes those that are left, one by one.
            Err(MultiError { error, .. }) => Err(error),
        }
    }

    /// Guards the claims no more: they are gone.
    fn forget(self) {
        for item in self.items {
            item.claim.gone();
        }
    }
}

/// Removes the item of that name, which somebody has taken under that fence, and leaves the claim to
/// whoever has it.
pub(crate) fn ack_for(name: &str, fence: Fence) -> Result<(), Error> {
    let (item, claim) = (place::item(name), place::claim(name));
    loop {
        // Another session has made the claim, so the server may not have heard of it yet, and that it is
        // not there is said as a fact. And the item first: if it is taken anew after the claim was seen,
        // its version is another one.
        let asks = [Request::Exists(item.clone()), Request::Exists(claim.clone())];
        let replies = match confirmed_reads(&claim, &asks) {
            Ok(replies) => replies,
            Err(Error::NoNode) => return Err(not_taken(name, fence)),
            Err(error) => return Err(error),
        };
        let mut found = Vec::with_capacity(asks.len());
        for reply in replies {
            match reply {
                Ok(Reply::Exists(stat)) => found.push(stat),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        let (Some(Some(there)), Some(Some(claimed))) = (found.first(), found.get(1)) else {
            return Err(not_taken(name, fence));
        };
        if claimed.czxid != fence || !was_taken(there, fence) {
            return Err(not_taken(name, fence));
        }
        let check = VersionRequest { path: claim.clone(), version: None };
        let writes = [Write::Check(check), delete(item.clone(), Some(there.version))];
        match marked::write(&writes) {
            Ok(()) => return Ok(()),
            // The claim is another one, or none, or somebody has written to the item.
            Err(Unmade::Part(_, Error::NoNode | Error::BadVersion)) => {}
            Err(unmade) => return Err(place::stays(name, unmade.error())),
        }
    }
}

/// Whether an item was there when a claim with that fence was made. One that came later has the name of an
/// item that was taken under it: names come back where all items have gone and their directory with them.
pub(crate) fn was_taken(item: &Stat, fence: Fence) -> bool {
    item.czxid < fence
}

fn not_taken(name: &str, fence: Fence) -> Error {
    Error::Invalid(format!(
        "ack-item: {name} is not taken under fence {fence}: it was acknowledged already, or the claim was \
         lost and the item is somebody else's to do"
    ))
}

/// How often an item was taken that has this version now.
pub(crate) fn attempt(version: i32) -> u32 {
    attempts(version)
}

fn delete(path: String, version: Option<i32>) -> Write {
    Write::Delete(VersionRequest { path, version })
}
