//! A semaphore: a number of permits, each held by one at a time.
//!
//! ZooKeeper's page of recipes has none. The znodes are those of Curator's `InterProcessSemaphoreV2`, and
//! the numbers in the code are the steps of that protocol:
//!
//! 1. Stand in a queue, which is a lock, until nobody is ahead.
//! 2. Create a lease. (Here the leases are created last, in step 4, so that each that is there is held.)
//! 3. List the leases, and watch for changes. (The directory's data say how many permits there are, and
//!    its metadata how many leases: one read, without a list. Only where there are too few permits are
//!    both watched.)
//! 4. If there are no more leases than permits, leave the queue: the lease is held. (One transaction
//!    deletes the place in the queue, writes the number of permits once more if nobody has since it was
//!    read, and creates as many leases as were asked for.)
//! 5. Otherwise wait for a change, and go to 3.
//!
//! Release: delete the leases.

mod bindings;
mod decide;
mod leases;
mod queue;

use std::cell::RefCell;

use bindings::exports::wok::semaphore::semaphore::{
    Availability, Config, Contender as Someone, Grant, Guest,
};
use decide::{Refusal, Step, Stored, Terms, decide};
use leases::{Permits, Seen, Taken};
use queue::{Came, First};
use wok_sdk::zookeeper::{CreateMode, Error, wait};
use wok_sdk::{Contender, owners};

/// As many permits as one participant may hold: each is a znode that the host watches, and all of them
/// are created by one `multi`, which has 128 parts at most.
const MOST_PERMITS: u32 = 100;

/// How many contenders are told of, of those who hold and of those who wait: a list for people, and its
/// memory would never be given back.
const MOST_CONTENDERS: usize = 1000;

/// One client's part in the semaphore.
#[derive(Debug)]
pub struct Semaphore;

struct State {
    terms: Terms,
    held: Option<Permits>,
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { terms: Terms::Open, held: None }) };
}

impl Guest for Semaphore {
    fn configure(config: Config) -> Result<(), String> {
        let Some(permits) = config.permits else { return Ok(()) };
        check_number(permits)?;
        STATE.with_borrow_mut(|state| state.terms = Terms::Stated(permits));
        Ok(())
    }

    fn acquire(permits: Option<u32>) -> Result<Grant, Error> {
        let wanted = permits.unwrap_or(1);
        if !(1..=MOST_PERMITS).contains(&wanted) {
            let text = format!("acquire: {wanted} permits are not from 1 to {MOST_PERMITS}");
            return Err(Error::Invalid(text));
        }
        STATE.with_borrow_mut(|state| {
            if let Some(held) = &state.held {
                return again(held, wanted);
            }
            let permits = take_in_turn(wanted, &mut state.terms)?;
            let grant = grant(&permits);
            state.held = Some(permits);
            Ok(grant)
        })
    }

    fn release() -> Result<(), Error> {
        let Some(mut permits) = STATE.with_borrow_mut(|state| state.held.take()) else {
            return Err(Error::Invalid("release: no permit is held".to_owned()));
        };
        let given_back = permits.give_back();
        if permits.count() > 0 {
            STATE.with_borrow_mut(|state| state.held = Some(permits));
        }
        given_back
    }

    fn available() -> Result<Availability, Error> {
        let seen = leases::look()?;
        let (permits, available) = decide::available(terms(), seen.leases())
            .map_err(|refusal| refused("available", 0, refusal))?;
        Ok(Availability { permits, available })
    }

    fn resize(permits: u32) -> Result<(), Error> {
        check_number(permits).map_err(|why| Error::Invalid(["resize: ", &why].concat()))?;
        while !leases::set(permits, None)? {
            let First { own: _place, .. } = queue::stand()?;
            if leases::create(permits, CreateMode::Persistent)? {
                break;
            }
        }
        Ok(())
    }

    fn contenders() -> Result<Vec<Someone>, Error> {
        let holders = leases::holders(MOST_CONTENDERS)?;
        let mut all = told(leases::DIRECTORY, &holders, true)?;
        let waiting = queue::waiting(MOST_CONTENDERS)?;
        all.extend(told(queue::DIRECTORY, &waiting, false)?);
        Ok(all)
    }
}

/// Steps 1 to 5. Whatever ends the wait takes the place in the queue along.
fn take_in_turn(wanted: u32, terms: &mut Terms) -> Result<Permits, Error> {
    let First { mut own, came } = queue::stand()?; // 1
    let mut seen = match came {
        Came::AtOnce => leases::look()?, // 3
        // One that others were before is likely to wait here, too.
        Came::InTurn => leases::watch()?, // 3
    };
    loop {
        let step = decide(wanted, *terms, seen.leases());
        if let Step::Take { .. } | Step::Wait = step {
            *terms = terms.agreed();
        }
        match step {
            Step::Take { permits, version } => match leases::take(own, wanted, permits, version)? {
                Taken::Permits(permits) => return Ok(permits), // 2, 4
                Taken::Changed(place) => own = place,
            },
            Step::Wait => {
                if let Seen::Watched(_, [number, leases]) = &seen {
                    wait(&[number, leases])?; // 5
                }
                seen = leases::watch()?; // 3
                continue;
            }
            Step::Store { permits, version } => store(permits, version)?,
            Step::Refuse(refusal) => return Err(refused("acquire", wanted, refusal)),
        }
        seen = leases::look()?; // 3
    }
}

/// Says how many permits there are where nobody has. A directory that settings have made goes when nobody
/// uses it, as the settings remain.
fn store(permits: u32, version: Option<i32>) -> Result<(), Error> {
    let stored = match version {
        None => leases::create(permits, CreateMode::Container),
        version => leases::set(permits, version),
    };
    match stored {
        // Whether this participant has said it, or another one has at the same time, the next look tells.
        Ok(_) | Err(Error::OutcomeUnknown) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The grant that is held, for somebody who asks once more.
fn again(held: &Permits, wanted: u32) -> Result<Grant, Error> {
    let count = held.count();
    if count == wanted {
        return Ok(grant(held));
    }
    Err(Error::Invalid(format!(
        "acquire: {wanted} permits are asked for, and this participant holds {count}: release them \
         first, or join once more"
    )))
}

fn grant(permits: &Permits) -> Grant {
    Grant { paths: permits.paths(), fence: permits.fence }
}

fn terms() -> Terms {
    STATE.with_borrow(|state| state.terms)
}

/// What people are told of some contenders. Those who have gone meanwhile are left out.
fn told(directory: &str, line: &[Contender], is_holder: bool) -> Result<Vec<Someone>, Error> {
    let owners = owners(directory, line)?;
    let told = line.iter().zip(owners).filter_map(|(contender, owner)| {
        Some(Someone { path: contender.path(directory), owner: owner?, is_holder })
    });
    Ok(told.collect())
}

fn check_number(permits: u32) -> Result<(), String> {
    if (1..=Stored::LARGEST).contains(&permits) {
        return Ok(());
    }
    Err(format!("permits: {permits} is not from 1 to {}", Stored::LARGEST))
}

fn refused(operation: &str, wanted: u32, refusal: Refusal) -> Error {
    let directory = leases::DIRECTORY;
    Error::Invalid(match refusal {
        Refusal::Nothing => format!(
            "{operation}: nobody has said how many permits there are: give `permits` in the \
             settings, or call resize"
        ),
        Refusal::Unreadable => format!(
            "{operation}: the data of {directory} are no number of permits, which is four bytes: \
             call resize"
        ),
        Refusal::Differs { stated, stored } => format!(
            "{operation}: {directory} says that there are {stored} permits, but `permits` is \
             {stated} here: give all who use this semaphore the same, or none and call resize"
        ),
        Refusal::TooMany { permits } => {
            format!("{operation}: {wanted} permits would never be free, there are only {permits}")
        }
    })
}
