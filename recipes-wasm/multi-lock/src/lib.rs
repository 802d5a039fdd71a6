//! Several locks at once, taken in the order of their names, all of them or none.
//!
//! ZooKeeper's page of recipes has none. Each lock is the lock of that page, in a directory of its own,
//! and the numbers in the code are the steps of its pseudo-code, for one lock after another:
//!
//! 1. Create an ephemeral sequential znode in the lock's directory, with a GUID in its name.
//! 2. List the directory, without a watch.
//! 3. If no contender has a lower counter, go on with 1 for the next lock.
//! 4. Otherwise watch the contender with the next lower counter.
//! 5. Once it is gone, go to 2. (Unless it was the first, as it was if it had claimed its znode.)
//! 6. First in all lines: claim all of the znodes, as one. Nothing is held before.
//!
//! Unlock: delete all of the znodes, in one transaction. Whatever ends a wait deletes those that there
//! are by then.

mod bindings;
mod decide;
mod place;

use std::cell::RefCell;

use bindings::exports::wok::multi_lock::multi_lock::{
    Attempt, Config, Contender as InLine, Format as ConfiguredFormat, Grant, Guest,
};
use decide::{Refusal, Step, in_order, is_segment};
use place::{Format, contend, directory, give_up, stand};
use wok_sdk::participant::claim_all;
use wok_sdk::zookeeper::Error;
use wok_sdk::{Own, owners};

/// How many contenders are told of: a list for people, and its memory would never be given back.
const MOST_CONTENDERS: usize = 1000;

/// One client's part in the locks.
#[derive(Debug)]
pub struct MultiLock;

struct State {
    format: Format,
    held: Option<Held>,
}

struct Held {
    places: Vec<Own>,
    grants: Vec<Grant>,
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { format: Format::CURATOR, held: None }) };
}

impl Guest for MultiLock {
    fn configure(config: Config) -> Result<(), String> {
        let format = match config.format.unwrap_or(ConfiguredFormat::Curator) {
            ConfiguredFormat::Curator => Format::CURATOR,
            ConfiguredFormat::Kazoo => Format::KAZOO,
        };
        STATE.with_borrow_mut(|state| state.format = format);
        Ok(())
    }

    fn acquire(names: Vec<String>) -> Result<Vec<Grant>, Error> {
        let names = asked_for("acquire", names)?;
        if let Some(grants) = held("acquire", &names)? {
            return Ok(grants);
        }
        let mut places = Vec::with_capacity(names.len());
        for name in &names {
            places.push(stand(name, format())?); // 1 to 5
        }
        hold(names, places)
    }

    fn try_acquire(names: Vec<String>) -> Result<Attempt, Error> {
        let names = asked_for("try-acquire", names)?;
        if let Some(grants) = held("try-acquire", &names)? {
            return Ok(Attempt::Granted(grants));
        }
        let mut places = Vec::with_capacity(names.len());
        for name in &names {
            let (place, step) = contend(name, format())?; // 1, 2
            places.push(place);
            match step {
                Step::GoOn => {} // 3
                Step::Gone => return Err(Error::NoNode),
                Step::WaitFor { .. } => {
                    return give_up(&mut places).map(|()| Attempt::Busy(name.clone()));
                }
            }
        }
        hold(names, places).map(Attempt::Granted)
    }

    fn release() -> Result<(), Error> {
        let Some(mut held) = STATE.with_borrow_mut(|state| state.held.take()) else {
            return Err(Error::Invalid("release: no lock is held".to_owned()));
        };
        let given_up = give_up(&mut held.places);
        if !held.places.is_empty() {
            STATE.with_borrow_mut(|state| state.held = Some(held));
        }
        given_up
    }

    fn contenders(name: String) -> Result<Vec<InLine>, Error> {
        if !is_segment(&name) {
            return Err(refused("contenders", &Refusal::NoSegment(name)));
        }
        let (format, directory) = (format(), directory(&name));
        let line = format.line(&name, MOST_CONTENDERS)?;
        let owners = owners(&directory, &line)?;
        let in_line = line.iter().zip(owners).enumerate();
        Ok(in_line
            .filter_map(|(ahead, (contender, owner))| {
                let (path, owner) = (contender.path(&directory), format.owner(&owner?));
                Some(InLine { path, owner, is_first: ahead == 0 })
            })
            .collect())
    }
}

/// The names in the order in which their locks are taken.
fn asked_for(operation: &str, names: Vec<String>) -> Result<Vec<String>, Error> {
    in_order(names).map_err(|refusal| refused(operation, &refusal))
}

/// The grants of these locks, if this participant holds them; none if it holds nothing.
fn held(operation: &str, names: &[String]) -> Result<Option<Vec<Grant>>, Error> {
    STATE.with_borrow(|state| {
        let Some(Held { grants, .. }) = &state.held else { return Ok(None) };
        if grants.iter().map(|grant| &grant.name).eq(names) {
            return Ok(Some(grants.clone()));
        }
        Err(Error::Invalid(format!(
            "{operation}: this participant holds other locks: release them first, and ask for all of \
             them at once"
        )))
    })
}

/// Step 6: from here the host watches the znodes, and nobody else decides whether they still stand.
fn hold(names: Vec<String>, places: Vec<Own>) -> Result<Vec<Grant>, Error> {
    let paths: Vec<String> = places.iter().map(|place| place.path().to_owned()).collect();
    let fences = claim_all(&paths)?;
    let locks = names.into_iter().zip(paths).zip(fences);
    let grants: Vec<Grant> =
        locks.map(|((name, path), fence)| Grant { name, path, fence }).collect();
    let held = Held { places, grants: grants.clone() };
    STATE.with_borrow_mut(|state| state.held = Some(held));
    Ok(grants)
}

fn format() -> Format {
    STATE.with_borrow(|state| state.format)
}

fn refused(operation: &str, refusal: &Refusal) -> Error {
    Error::Invalid(format!("{operation}: {refusal}"))
}
