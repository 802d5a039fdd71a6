//! A name service, which ZooKeeper's page of recipes names among what the service gives "directly":
//! a name is a znode, and each instance an ephemeral child of it. Its steps:
//!
//! Register:
//!
//! 1. Create the instance's znode, an ephemeral one with a UUID as its name, and claim it.
//! 2. If the name has no directory, make it and go to 1.
//!
//! Resolve:
//!
//! 1. List the name's directory, behind a transaction that says that the list is not from before the
//!    call: an instance of a session that was over before is not in it.
//! 2. Read each of them, and the directory once more. If it has changed meanwhile, list it again.
//!
//! Observe and wait:
//!
//! 1. Watch the name's directory, and read its newest change.
//! 2. When a watch has fired, go to 1; tell the change if it is another one.

mod bindings;
mod decide;
mod instance;
mod listing;
mod observer;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use bindings::exports::wok::name_service::name_service::{
    Guest, Instance as Found, Instances, Registration,
};
use instance::Instance;
use observer::Observer;
use wok_sdk::zookeeper::{Error, Owner};
use wok_sdk::{child, snapshot, wait_for_change};

/// The mount is the directory of all names.
const NAMES: &str = "/";

/// The most names that one participant follows: it owns 64 watches at most, and each takes two.
const MOST_FOLLOWED: usize = 16;

/// One client's part in a name service.
#[derive(Debug)]
pub struct NameService;

thread_local! {
    static OWN: RefCell<Option<Instance>> = const { RefCell::new(None) };
    /// By the tags of their watches.
    static OBSERVERS: RefCell<BTreeMap<u64, Observer>> = const { RefCell::new(BTreeMap::new()) };
}

impl Guest for NameService {
    fn wake(fired: Vec<u64>) {
        // Of one directory two watches may have fired, and one look is enough.
        for tag in BTreeSet::from_iter(fired) {
            let observer = OBSERVERS.with_borrow_mut(|observers| observers.remove(&tag));
            if let Some(observer) = observer {
                let observer = observer.wake(tag);
                OBSERVERS.with_borrow_mut(|observers| observers.insert(tag, observer));
            }
        }
    }

    fn register(
        name: String,
        address: String,
        metadata: Vec<(String, String)>,
    ) -> Result<Registration, Error> {
        let directory = directory("register", &name)?;
        let data = decide::data(&address, &metadata);
        let data = data.map_err(|wrong| invalid("register", &wrong))?;
        if let Some(path) = OWN.with_borrow(|own| own.as_ref().map(|own| own.path().to_owned())) {
            let wrong = format!("this participant has an instance already, {path}");
            return Err(invalid("register", &wrong));
        }
        let own = Instance::register(&directory, data.as_bytes())?;
        let registration = Registration { path: own.path().to_owned(), fence: own.fence() };
        OWN.set(Some(own));
        Ok(registration)
    }

    fn deregister() -> Result<(), Error> {
        let Some(mut own) = OWN.take() else {
            return Err(invalid("deregister", "this participant has no instance"));
        };
        let deregistered = own.deregister();
        if !own.is_deregistered() {
            OWN.set(Some(own));
        }
        deregistered
    }

    fn resolve(name: String) -> Result<Instances, Error> {
        let directory = directory("resolve", &name)?;
        let Some(found) = snapshot(&directory, decide::is_id)? else {
            return Ok(Instances { revision: 0, instances: Vec::new() });
        };
        let there = found.children.into_iter();
        let there = there.filter(|(_, there)| there.stat.owner != Owner::None);
        let mut instances: Vec<Found> = there
            .filter_map(|(id, there)| {
                let (address, metadata) = decide::read(&there.data)?;
                Some(Found { id, address, metadata, fence: there.stat.czxid })
            })
            .collect();
        instances.sort_by_key(|instance| instance.fence);
        Ok(Instances { revision: found.revision, instances })
    }

    fn list() -> Result<Vec<String>, Error> {
        listing::names_with_instances()
    }

    fn observe(name: String) -> Result<u64, Error> {
        let directory = directory("observe", &name)?;
        OBSERVERS.with_borrow_mut(|observers| {
            let known = observers.iter().find(|(_, observer)| observer.name() == name);
            let next = observers.last_key_value().map_or(0, |(tag, _)| tag + 1);
            let tag = known.map_or(next, |(tag, _)| *tag);
            if known.is_none() && observers.len() >= MOST_FOLLOWED {
                let text =
                    format!("observe: this participant follows {MOST_FOLLOWED} names already");
                return Err(Error::OverLimit(text));
            }
            let (revision, observer) = Observer::observe(name, directory, tag)?;
            observers.insert(tag, observer);
            Ok(revision)
        })
    }

    fn wait(name: String, after: u64) -> Result<u64, Error> {
        wait_for_change(&directory("wait", &name)?, after)
    }
}

/// The directory of a name's instances.
fn directory(operation: &str, name: &str) -> Result<String, Error> {
    decide::check_name(name).map_err(|wrong| invalid(operation, &wrong))?;
    Ok(child(NAMES, name))
}

fn invalid(operation: &str, wrong: &str) -> Error {
    Error::Invalid(format!("{operation}: {wrong}"))
}
