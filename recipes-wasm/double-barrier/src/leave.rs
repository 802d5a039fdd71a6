//! The published procedure *Leave*.

use wok_sdk::zookeeper::{Error, MultiError, get_children, multi};
use wok_sdk::{Named, wait_until_gone};

use crate::decide::{Departure, Round, depart};
use crate::enter::Inside;
use crate::generation::{delete, members, path, path_of, step};

/// A member that has finished.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Its name.
    name: String,
    /// The number of its generation.
    pub(crate) number: i32,
    round: Round,
}

impl Finished {
    /// Takes a member apart: what it waits for, and its znode.
    pub(crate) fn of(inside: Inside) -> (Self, Named) {
        let Inside { own, name, number, round, .. } = inside;
        (Finished { name, number, round }, own)
    }

    /// Waits until all others of the round have finished or are gone. The own znode is given up on the
    /// way, or when the caller withdraws; there is none any more if that was before.
    pub(crate) fn leave(&self, mut own: Option<Named>) -> Result<(), Error> {
        // 1. Who was inside is known from the generation. Those who are gone by now are found missing
        // when they are waited for.
        let mut left = self.round.inside.clone();
        if own.is_none() {
            left.retain(|name| *name != self.name);
        }
        loop {
            match depart(&self.name, left.iter().map(String::as_str)) {
                Departure::Over => return Ok(()), // 2
                Departure::Last => {
                    return own.take().map_or(Ok(()), |own| self.close(own)); // 3
                }
                Departure::StayAndWaitFor(highest) => {
                    wait_until_gone(&self.path_of(highest))?; // 4
                }
                Departure::GoAndWaitFor(lowest) => {
                    if let Some(own) = own.take() {
                        own.release()?; // 5
                    }
                    wait_until_gone(&self.path_of(lowest))?; // 5
                }
            }
            left = self.left()?; // 6, 1
        }
    }

    /// Those of the round whose znodes are there. The last one has taken the generation along.
    fn left(&self) -> Result<Vec<String>, Error> {
        match get_children(&path(self.number)) {
            Ok(children) => Ok(members(&children).filter(|name| self.round.has(name)).collect()),
            Err(Error::NoNode) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Step 3: the last one deletes its znode. With it goes the generation, and the next one takes its
    /// place, so that none of those who wake now and enter again has to create it.
    fn close(&self, own: Named) -> Result<(), Error> {
        let burial = [delete(own.path().to_owned()), delete(path(self.number))];
        let mut writes = step(self.number, self.round.size);
        writes.extend(burial.iter().cloned());
        // Where the next one is there already, this one still goes.
        for writes in [&writes[..], &burial] {
            match multi(writes, &[]) {
                Ok(_) => {
                    own.gone();
                    return Ok(());
                }
                Err(MultiError { error: Error::BadVersion | Error::NodeExists, .. }) => {}
                // A latecomer has a znode there: the creator of the next one buries this one.
                Err(_) => break,
            }
        }
        own.release()
    }

    fn path_of(&self, member: &str) -> String {
        path_of(self.number, member)
    }
}
