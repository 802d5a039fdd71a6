//! A seat that one participant has at a time: about the smallest recipe that is of use.
//!
//! 1. Create an ephemeral sequential znode in the seat's directory, with a GUID in its name.
//! 2. List the directory.
//! 3. The participant with the lowest counter has the seat. Any other deletes its znode and leaves.

mod bindings;
mod decide;

use std::cell::RefCell;

use bindings::exports::my::seat::seat::Guest;
use decide::{Step, decide};
use wok_sdk::participant::{self, Fence};
use wok_sdk::zookeeper::Error;
use wok_sdk::{Naming, Own, line_up};

/// The mount is the seat's directory: a recipe sees nothing else of the tree.
const DIRECTORY: &str = "/";

const NAMING: Naming = Naming::curator("-seat-");

/// One client's part in it.
#[derive(Debug)]
pub struct Recipe;

thread_local! {
    static HELD: RefCell<Option<(Own, Fence)>> = const { RefCell::new(None) };
}

impl Guest for Recipe {
    fn take() -> Result<Option<Fence>, Error> {
        if let Some(fence) = HELD.with_borrow(|held| held.as_ref().map(|(_, fence)| *fence)) {
            return Ok(Some(fence));
        }
        // 1, 2. In one round trip. The host makes the GUID and finds the znode again if the reply is
        // lost. Whichever way this ends without a claim, dropping `own` deletes the znode.
        let owner = participant::owner();
        let (own, children) = Own::contend_and_list(DIRECTORY, &NAMING, owner.as_bytes())?;
        match decide(own.contender(), &line_up(&children, NAMING)) {
            // 3. From here the host watches the znode, and says so when it is lost.
            Step::Sit => {
                let fence = own.claim()?;
                HELD.set(Some((own, fence)));
                Ok(Some(fence))
            }
            Step::Leave => own.release().map(|()| None),
            Step::Gone => Err(Error::NoNode),
        }
    }
}
