//! A place in the line of one lock, whose directory is below the mount.

use wok_sdk::zookeeper::{Children, Error, MultiError, VersionRequest, Write, get_children, multi};
use wok_sdk::{Contender, Gone, Naming, Own, RevokeRequest, line_up, participant, wait_until_gone};

use crate::decide::{Step, Then, decide};

/// How the contenders of the locks are named, and how one of them would be asked to give way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    naming: Naming,
    request: RevokeRequest,
}

impl Format {
    pub(crate) const CURATOR: Format =
        Format { naming: Naming::curator("-lock-"), request: RevokeRequest::CURATOR };

    pub(crate) const KAZOO: Format =
        Format { naming: Naming::kazoo("__lock__"), request: RevokeRequest::UNLOCK };

    /// The contenders of the lock of that name, at most so many.
    pub(crate) fn line(&self, name: &str, most: usize) -> Result<Vec<Contender>, Error> {
        wok_sdk::line(&directory(name), self.naming, most)
    }

    /// Whose a contender is, by its data, in which somebody may have asked it to give way.
    pub(crate) fn owner(&self, data: &str) -> String {
        self.request.owner_in(data).to_owned()
    }
}

/// Stands in line until nobody is ahead.
pub(crate) fn stand(name: &str, format: Format) -> Result<Own, Error> {
    let (own, mut step) = contend(name, format)?; // 1, 2
    let directory = directory(name);
    loop {
        match step {
            Step::GoOn => return Ok(own), // 3
            Step::Gone => return Err(Error::NoNode),
            Step::WaitFor { predecessor, then } => {
                let gone = wait_until_gone(&[&*directory, "/", &predecessor].concat())?; // 4
                // Who claims is first in all of its lines, and so in this one.
                if then == Then::GoOn || gone == Gone::AsClaim {
                    return Ok(own);
                }
            }
        }
        step = look(&own, &get_children(&directory)?, format); // 5, 2
    }
}

/// Steps 1 and 2. The host makes the GUID and finds the znode again if the reply is lost.
pub(crate) fn contend(name: &str, format: Format) -> Result<(Own, Step), Error> {
    let directory = directory(name);
    let owner = format.request.without(&participant::owner());
    let (own, children) = Own::contend_and_list(&directory, &format.naming, &owner)?;
    let step = look(&own, &children, format);
    Ok((own, step))
}

fn look(own: &Own, children: &Children, format: Format) -> Step {
    decide(own.contender(), &line_up(children, format.naming))
}

/// Gives places up in one transaction, claimed or not: nobody sees some of them free and others not.
///
/// # Errors
/// As `multi`. Where the server refuses, as by an access list, the places are left as they were.
pub(crate) fn give_up(places: &mut Vec<Own>) -> Result<(), Error> {
    let delete = |place: &Own| {
        Write::Delete(VersionRequest { path: place.path().to_owned(), version: None })
    };
    let writes: Vec<Write> = places.iter().map(delete).collect();
    match multi(&writes, &[]) {
        Ok(_) => {
            for place in places.drain(..) {
                place.gone();
            }
            Ok(())
        }
        // Somebody has deleted one of them: the others go one by one, whatever becomes of each.
        Err(MultiError { error: Error::NoNode, .. }) => {
            let released: Vec<_> = places.drain(..).map(Own::release).collect();
            released.into_iter().collect()
        }
        Err(MultiError { index: Some(_), error }) => Err(error),
        // The host deletes those that are left, one by one, when they are dropped.
        Err(failed) => {
            places.clear();
            Err(failed.error)
        }
    }
}

/// The directory of the lock of that name.
pub(crate) fn directory(name: &str) -> String {
    ["/", name].concat()
}
