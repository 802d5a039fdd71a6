//! The lock of ZooKeeper's recipes.
//!
//! The numbers in the code are the steps of the published pseudo-code:
//!
//! 1. Create an ephemeral sequential znode in the lock's directory, with a GUID in its name.
//! 2. List the directory, without a watch.
//! 3. The contender with the lowest counter has the lock.
//! 4. Watch the contender with the next lowest counter. (The text says `exists`; reading the data
//!    leaves no watch behind where the znode is already gone.)
//! 5. Once it is gone, go to 2. (Unless it was the first, as it was if it had claimed its znode: then
//!    the lock is ours without a look.)
//!
//! Unlock: delete the znode of step 1.
//!
//! Steps 1 and 2 are sent together: ZooKeeper carries them out in their order.

mod bindings;
mod decide;

use std::cell::RefCell;

use bindings::exports::wok::lock::lock::{Config, Contender as InLine, Format, Grant, Guest};
use decide::{Step, Then, decide};
use wok_sdk::zookeeper::{Children, Error, get_children};
use wok_sdk::{Gone, Naming, Own, line, line_up, owners, participant, wait_until_gone};

/// The mount is the lock's directory.
const DIRECTORY: &str = "/";

/// How many contenders are told of: a list for people, and its memory would never be given back.
const MOST_CONTENDERS: usize = 1000;

const CURATOR: Naming = Naming::curator("-lock-");
const KAZOO: Naming = Naming::kazoo("__lock__");

/// One client's part in the lock.
#[derive(Debug)]
pub struct Lock;

struct State {
    naming: Naming,
    held: Option<(Own, Grant)>,
}

thread_local! {
    static STATE: RefCell<State> = const { RefCell::new(State { naming: CURATOR, held: None }) };
}

impl Guest for Lock {
    fn configure(config: Config) -> Result<(), String> {
        let naming = match config.format.unwrap_or(Format::Curator) {
            Format::Curator => CURATOR,
            Format::Kazoo => KAZOO,
        };
        STATE.with_borrow_mut(|state| state.naming = naming);
        Ok(())
    }

    fn acquire() -> Result<Grant, Error> {
        if let Some(grant) = held() {
            return Ok(grant);
        }
        let (own, mut step) = contend()?; // 1, 2
        loop {
            match step {
                Step::Hold => return hold(own), // 3
                Step::Gone => return Err(Error::NoNode),
                Step::WaitFor { predecessor, then } => {
                    let gone = wait_until_gone(&path(&predecessor))?; // 4
                    if then == Then::Hold || gone == Gone::AsClaim {
                        return hold(own);
                    }
                }
            }
            step = look(&own)?; // 5, 2
        }
    }

    fn try_acquire() -> Result<Option<Grant>, Error> {
        if let Some(grant) = held() {
            return Ok(Some(grant));
        }
        let (own, step) = contend()?; // 1, 2
        match step {
            Step::Hold => hold(own).map(Some), // 3
            Step::Gone => Err(Error::NoNode),
            Step::WaitFor { .. } => own.release().map(|()| None),
        }
    }

    fn release() -> Result<(), Error> {
        match STATE.with_borrow_mut(|state| state.held.take()) {
            Some((own, _)) => own.release(),
            None => Err(Error::Invalid("release: the lock is not held".to_owned())),
        }
    }

    fn contenders() -> Result<Vec<InLine>, Error> {
        let line = line(DIRECTORY, naming(), MOST_CONTENDERS)?;
        let owners = owners(DIRECTORY, &line)?;
        let in_line = line.iter().zip(owners).enumerate();
        Ok(in_line
            .filter_map(|(ahead, (contender, owner))| {
                Some(InLine { path: path(&contender.name), owner: owner?, is_holder: ahead == 0 })
            })
            .collect())
    }
}

/// Steps 1 and 2. The host makes the GUID and finds the znode again if the reply is lost.
fn contend() -> Result<(Own, Step), Error> {
    let owner = participant::owner();
    let (own, children) = Own::contend_and_list(DIRECTORY, &naming(), owner.as_bytes())?;
    let step = step(&own, &children);
    Ok((own, step))
}

/// Step 2, once more.
fn look(own: &Own) -> Result<Step, Error> {
    Ok(step(own, &get_children(DIRECTORY)?))
}

fn step(own: &Own, children: &Children) -> Step {
    decide(own.contender(), &line_up(children, naming()))
}

/// Step 3: from here the host watches the znode, and nobody else decides whether it still stands.
fn hold(own: Own) -> Result<Grant, Error> {
    let grant = Grant { path: own.path().to_owned(), fence: own.claim()? };
    STATE.with_borrow_mut(|state| state.held = Some((own, grant.clone())));
    Ok(grant)
}

fn held() -> Option<Grant> {
    STATE.with_borrow(|state| state.held.as_ref().map(|(_, grant)| grant.clone()))
}

fn naming() -> Naming {
    STATE.with_borrow(|state| state.naming)
}

fn path(name: &str) -> String {
    [DIRECTORY, name].concat()
}
