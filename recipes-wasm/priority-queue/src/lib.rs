//! A queue: items that wait, each with a priority and taken once, the most urgent first.
//!
//! The numbers in the code are the steps of *Queues* on ZooKeeper's page of recipes, as a consumer takes
//! them, with the two changes that *Priority Queues* makes to them; a producer has one, to create a
//! sequential znode. (The text has producers create ephemeral ones, which would go with them. Here items
//! stay.) The first change is that the priority stands in the name. (The text does not say how: here it is
//! as wide for each, and its sign sorts.)
//!
//! 1. List the queue, with a watch. (Who finds an item there needs no watch. Of those who find none, one
//!    watches, and the others stand in line behind that one.)
//! 2. Begin with the lowest priority, and of several with the lowest number. The list must be up to date:
//!    that is the second change. (Each `take` lists the queue anew, behind a `sync`.)
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

use bindings::exports::wok::priority_queue::priority_queue::{
    self as queue, Config, Guest, LengthInfo,
};
use decide::{Turn, attempts, name_in};
use held::Held;
use read::Read;
use settings::Settings;
use take::MOST;
use wok_sdk::participant::Fence;
use wok_sdk::reads;
use wok_sdk::zookeeper::{Contents, Error, Reply, Request, get_data};

/// One client's part in the queue.
#[derive(Debug)]
pub struct PriorityQueue;

struct State {
    settings: Settings,
    held: Option<Held>,
}

/// What `take` says while more is taken than it shows.
const SEVERAL: &str = "take: several items are taken: `take-many` answers them again, and `ack` or `reject` is \
                       for all of them";

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { settings: Settings::DEFAULT, held: None }) };
}

impl Guest for PriorityQueue {
    fn configure(config: Config) -> Result<(), String> {
        let settings = Settings::of(config)?;
        STATE.with_borrow_mut(|state| state.settings = settings);
        Ok(())
    }

    fn put(data: Vec<u8>, priority: Option<i32>) -> Result<(), Error> {
        put::put(vec![data], priority.unwrap_or_default())
    }

    fn put_all(items: Vec<Vec<u8>>, priority: Option<i32>) -> Result<(), Error> {
        match items.len() {
            0 => Ok(()),
            1..=MOST => put::put(items, priority.unwrap_or_default()),
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
        held("reject")?.reject()
    }

    fn length() -> Result<LengthInfo, Error> {
        length::length()
    }

    fn peek(item: Option<String>) -> Result<Option<queue::Item>, Error> {
        if let Some(item) = item {
            return look(name_in(&item));
        }
        let mut list = list::list(&BTreeSet::new())?;
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
        let taken = take::take(&state.settings, most)?;
        let fence = taken.held.as_ref().map(|held| held.fence);
        state.held = taken.held;
        Ok(taken.items.into_iter().map(|item| told(item, fence)).collect())
    })
}

/// What is told of an item that was read before it was taken.
fn told(item: Read, fence: Option<Fence>) -> queue::Taken {
    let Contents { data, stat } = item.contents;
    let (path, attempt) = (place::item(&item.name), attempts(stat.version.wrapping_add(1)));
    queue::Taken { priority: priority(&path), path, data, czxid: stat.czxid, attempt, fence }
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
                let (priority, czxid) = (priority(&path), stat.czxid);
                items.push(queue::Taken { path, priority, data, czxid, attempt, fence });
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
            Ok(Some(queue::Item { priority: priority(&path), path, data, czxid, attempts }))
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

/// The priority in the name of an item; one of another client's that has none, and is asked for by its
/// name, has the usual one.
fn priority(path: &str) -> i32 {
    Turn::of(name_in(path)).map_or(0, |turn| turn.priority)
}
