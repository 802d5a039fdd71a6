//! The line of consumers that wait: the first of them watches the queue, and nobody else does, so an item
//! that comes wakes one.

use wok_sdk::zookeeper::{Children, Error, get_children};
use wok_sdk::{Contender, Line, Naming, Own, Standing, line_up, participant, wait_until_gone};

use crate::place::CONSUMERS;

/// How a place in it is named.
const PLACE: Naming = Naming::curator("-consumer-");

/// Stands in the line until nobody is ahead. The place is given up when what is answered is dropped.
pub(crate) fn stand() -> Result<Own, Error> {
    let owner = participant::owner();
    let (own, children) = Own::contend_and_list(CONSUMERS, &PLACE, owner.as_bytes())?;
    let mut standing = standing(&own, &children);
    loop {
        match standing {
            Standing::First => return Ok(own),
            Standing::Behind { predecessor, .. } => wait_for(&predecessor)?,
            // Somebody has deleted the place.
            Standing::Gone => return Err(Error::NoNode),
        }
        // It may have given up while others are still ahead.
        standing = self::standing(&own, &get_children(CONSUMERS)?);
    }
}

fn wait_for(predecessor: &Contender) -> Result<(), Error> {
    wait_until_gone(&predecessor.path(CONSUMERS)).map(|_| ())
}

fn standing(own: &Own, children: &Children) -> Standing {
    line_up(children, PLACE).standing(own.contender())
}
