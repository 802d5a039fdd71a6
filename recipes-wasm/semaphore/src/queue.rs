//! The queue in front of the leases: who is first in it may take permits, and nobody else.

use wok_sdk::zookeeper::{Children, Error, get_children};
use wok_sdk::{Contender, Naming, Own, line, line_up, participant, wait_until_gone};

use crate::decide::{Then, Turn, turn};

/// The queue's directory, as Curator calls it.
pub(crate) const DIRECTORY: &str = "/locks";

/// How a place in it is named: as in the line of Curator's `InterProcessMutex`, which the queue is.
const PLACE: Naming = Naming::curator("-lock-");

/// A place whose turn it is.
#[derive(Debug)]
pub(crate) struct First {
    /// The place.
    pub(crate) own: Own,
    /// Whether others were before it.
    pub(crate) came: Came,
}

/// How a place came to be the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// Nobody was ahead.
    AtOnce,
    /// Those ahead have gone.
    InTurn,
}

/// Stands in the queue until nobody is ahead.
pub(crate) fn stand() -> Result<First, Error> {
    let owner = participant::owner();
    let (own, children) = Own::contend_and_list(DIRECTORY, &PLACE, owner.as_bytes())?; // 1
    let mut came = Came::AtOnce;
    let mut turn = read(&own, &children);
    loop {
        match turn {
            Turn::Ours => return Ok(First { own, came }),
            Turn::Gone => return Err(Error::NoNode),
            Turn::WaitFor { predecessor, then } => {
                // Nobody claims a place, so its going says nothing of those before it.
                wait_until_gone(&path(&predecessor))?;
                came = Came::InTurn;
                if then == Then::Ours {
                    return Ok(First { own, came });
                }
            }
        }
        turn = read(&own, &get_children(DIRECTORY)?);
    }
}

fn read(own: &Own, children: &Children) -> Turn {
    turn(own.contender(), &line_up(children, PLACE))
}

/// Who stands in it, at most so many.
pub(crate) fn waiting(most: usize) -> Result<Vec<Contender>, Error> {
    line(DIRECTORY, PLACE, most)
}

fn path(name: &str) -> String {
    [DIRECTORY, "/", name].concat()
}
