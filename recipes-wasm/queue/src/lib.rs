//! A queue: items that wait, each taken once and the oldest first.
//!
//! The numbers in the code are the steps of *Queues* on ZooKeeper's page of recipes, as a consumer takes
//! them; a producer has one, to create a sequential znode. (The text has producers create ephemeral ones,
//! which would go with them. Here items stay.)
//!
//! 1. List the queue, with a watch. (Who finds an item there needs no watch. Of those who find none, one
//!    watches, and the others stand in line behind that one.)
//! 2. Begin with the lowest number. Until the list is exhausted, do not list the queue again. (Where items
//!    can come back, a list is exhausted after a second as well.)
//! 3. Process the item and remove it. (The text does not say how a consumer makes the item its own. Here
//!    it removes the item first, or claims it and removes it when the work is done: see `Delivery`.)
//! 4. If the queue is empty, wait for the watch and go to 1.

mod bindings;
mod decide;
mod held;
mod length;
mod line;
mod list;
mod marked;
mod place;
mod put;
mod read;
mod settings;
mod take;

use std::cell::RefCell;
use std::collections::BTreeSet;

use bindings::exports::wok::queue::queue::{self, Config, Guest, LengthInfo};
use decide::{attempts, name_in};
use held::Held;
use list::List;
use read::Read;
use settings::Settings;
use take::MOST;
use wok_sdk::participant::Fence;
use wok_sdk::reads;
use wok_sdk::zookeeper::{Contents, Error, Reply, Request, get_data};

/// One client's part in the queue.
#[derive(Debug)]
pub struct Queue;

struct State {
    settings: Settings,
    list: Option<List>,
    held: Option<Held>,
}

/// What `take` says while more is taken than it shows.
const SEVERAL: &str = "take: several items are taken: `take-many` answers them again, and `ack` or `reject` is \
                       for all of them";

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { settings: Settings::DEFAULT, list: None, held: None }) };
}

impl Guest for Queue {
    fn configure(config: Config) -> Result<(), String> {
        let settings = Settings::of(config)?;
        place::set_layout(settings.layout);
        STATE.with_borrow_mut(|state| state.settings = settings);
        Ok(())
    }

    fn put(data: Vec<u8>) -> Result<(), Error> {
        put::put(vec![data], settings().layout)
    }

    fn put_all(items: Vec<Vec<u8>>) -> Result<(), Error> {
        match items.len() {
            0 => Ok(()),
            1..=MOST => put::put(items, settings().layout),
            many => Err(Error::Invalid(format!("put-all: {many} items, and {MOST} are the most"))),
        }
    }

    fn take() -> Result<queue::Taken, Error> {
        let mut taken = take(1)?;
        match (taken.pop(), taken.len()) {
            (Some(item), 0) => Ok(item),
            // To show one of them would have `ack` remove the others unseen.
            (Some(_), _) => Err(Error::Invalid(SEVERAL.to_owned())),
            (None, _) => Err(Error::Other("take: nothing was taken".to_owned())),
        }
    }

    fn take_many(max: Option<u32>) -> Result<Vec<queue::Taken>, Error> {
        let most = max.map_or(MOST, |max| max as usize);
        if !(1..=MOST).contains(&most) {
            return Err(Error::Invalid(format!("take-many: {most} is not from 1 to {MOST}")));
        }
        take(most)
    }

    fn ack() -> Result<(), Error> {
        held("ack")?.ack()
    }

    fn ack_item(item: String, fence: Fence) -> Result<(), Error> {
        held::ack_for(name_in(&item), fence)
    }

    fn reject() -> Result<(), Error> {
        let held = held("reject")?;
        // It does not show what comes back.
        STATE.with_borrow_mut(|state| state.list = None);
        held.reject()
    }

    fn length() -> Result<LengthInfo, Error> {
        length::length()
    }

    fn peek(item: Option<String>) -> Result<Option<queue::Item>, Error> {
        if let Some(item) = item {
            return look(name_in(&item));
        }
        let mut list = list::list(settings().layout, &BTreeSet::new())?;
        while let Some(name) = list.next(1).pop() {
            if let Some(item) = look(&name)? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

/// Takes up to `most` items, or answers those that are taken already.
fn take(most: usize) -> Result<Vec<queue::Taken>, Error> {
    STATE.with_borrow_mut(|state| {
        if let Some(held) = state.held.take() {
            let left = again(&held);
            // Nothing is left to do where all of it was acknowledged by `ack-item`.
            if left.as_ref().is_ok_and(Vec::is_empty) {
                held.reject()?;
            } else {
                state.held = Some(held);
                return left;
            }
        }
        let mut list = state.list.take().unwrap_or_default();
        let taken = take::take(&state.settings, &mut list, most)?;
        state.list = Some(list);
        let fence = taken.held.as_ref().map(|held| held.fence);
        state.held = taken.held;
        Ok(taken.items.into_iter().map(|item| told(item, fence)).collect())
    })
}

/// What is told of an item that was read before it was taken.
fn told(item: Read, fence: Option<Fence>) -> queue::Taken {
    let Contents { data, stat } = item.contents;
    let (path, attempt) = (place::item(&item.name), attempts(stat.version.wrapping_add(1)));
    queue::Taken { path, data, czxid: stat.czxid, attempt, fence }
}

/// What is held, for somebody who asks once more. Items that are acknowledged one by one are left out.
fn again(held: &Held) -> Result<Vec<queue::Taken>, Error> {
    let paths: Vec<String> = held.paths().collect();
    let asks: Vec<Request> = paths.iter().cloned().map(Request::GetData).collect();
    let mut items = Vec::with_capacity(paths.len());
    for (path, reply) in paths.into_iter().zip(reads(&asks)) {
        match reply {
            Ok(Reply::Data(Contents { data, stat })) if held::was_taken(&stat, held.fence) => {
                let (attempt, fence) = (held::attempt(stat.version), Some(held.fence));
                items.push(queue::Taken { path, data, czxid: stat.czxid, attempt, fence });
            }
            // It is gone, and perhaps another one has its name.
            Ok(Reply::Data(_)) | Err(Error::NoNode) => {}
            Ok(_) => return Err(Error::Other("get-data: another reply".to_owned())),
            Err(error) => return Err(error),
        }
    }
    Ok(items)
}

/// The item of that name, if there is one.
fn look(name: &str) -> Result<Option<queue::Item>, Error> {
    let path = place::item(name);
    match get_data(&path) {
        Ok(Contents { data, stat }) => {
            let (czxid, attempts) = (stat.czxid, attempts(stat.version));
            Ok(Some(queue::Item { path, data, czxid, attempts }))
        }
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What this participant has taken, for the operation that ends that.
fn held(operation: &str) -> Result<Held, Error> {
    let held = STATE.with_borrow_mut(|state| state.held.take());
    held.ok_or_else(|| Error::Invalid([operation, ": nothing is taken"].concat()))
}

fn settings() -> Settings {
    STATE.with_borrow(|state| state.settings)
}
