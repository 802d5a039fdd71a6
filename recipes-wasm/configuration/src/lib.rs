//! A configuration that many follow. ZooKeeper's page of recipes names it among what the service
//! gives "directly" and has no text for it. Its steps:
//!
//! Set, or remove:
//!
//! 1. In one transaction write, create or delete the key's znode, at the version that is expected;
//!    write the key's name into the root; and change the participant's own marker.
//! 2. Where the root is missing, make it and go to 1. Where anything is expected, and the znode came or
//!    went meanwhile, go to 1 and do the other.
//!
//! Snapshot:
//!
//! 1. In one pipeline have the server catch up, read the root, list its children, read the keys that
//!    the newest list had, and read the root again.
//! 2. If the root's `mzxid` is the same before and after, and the list has just those keys, it is one
//!    revision's. Otherwise go to 1, with the keys of this list.
//!
//! Observe:
//!
//! 1. Read the root and watch it, in one request.
//! 2. When the watch has fired, go to 1; if the root's `mzxid` is another one, tell it.
//!
//! Wait:
//!
//! 1. As Observe 1. If the root's `mzxid` is higher than the one given, answer it.
//! 2. When the watch has fired, go to 1.

mod bindings;
mod change;
mod decide;
mod marker;
mod observer;
mod snapshot;

use std::cell::RefCell;

use bindings::exports::wok::configuration::configuration::{
    Entry, Expected, Guest, Settings, Value, Written,
};
use observer::Observer;
use wok_sdk::zookeeper::Error;

/// The mount is the root: its children are the keys, and every change writes it.
const ROOT: &str = "/";

/// One client's part in the configuration.
#[derive(Debug)]
pub struct Configuration;

thread_local! {
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

impl Guest for Configuration {
    fn wake(_fired: Vec<u64>) {
        // Only the observer watches anything.
        OBSERVER.set(OBSERVER.take().map(Observer::wake));
    }

    fn get(key: String) -> Result<Option<Value>, Error> {
        decide::check_key(&key).map_err(|wrong| invalid("get", &wrong))?;
        let found = snapshot::get(&key)?;
        Ok(found.map(|found| Value { data: found.data, version: found.stat.version }))
    }

    fn set(key: String, data: Vec<u8>, expected: Expected) -> Result<Written, Error> {
        let fits = decide::check_key(&key).and_then(|()| decide::check_data(&data));
        fits.map_err(|wrong| invalid("set", &wrong))?;
        let (version, revision) = change::set(&key, &data, of(expected))?;
        Ok(Written { version, revision })
    }

    fn remove(key: String, expected: Expected) -> Result<u64, Error> {
        decide::check_key(&key).map_err(|wrong| invalid("remove", &wrong))?;
        change::remove(&key, of(expected))
    }

    fn snapshot() -> Result<Settings, Error> {
        let (revision, found) = snapshot::snapshot()?;
        let entries = found.into_iter().map(|(key, contents)| Entry {
            key,
            data: contents.data,
            version: contents.stat.version,
        });
        Ok(Settings { revision, entries: entries.collect() })
    }

    fn observe() -> Result<u64, Error> {
        let (revision, observer) = Observer::observe()?;
        OBSERVER.set(Some(observer));
        Ok(revision)
    }

    fn wait(after: u64) -> Result<u64, Error> {
        observer::wait(after)
    }
}

/// The path of a key.
fn path(key: &str) -> String {
    [ROOT, key].concat()
}

fn of(expected: Expected) -> decide::Expected {
    match expected {
        Expected::Any => decide::Expected::Any,
        Expected::Absent => decide::Expected::Absent,
        Expected::Version(version) => decide::Expected::Version(version),
    }
}

fn invalid(operation: &str, wrong: &str) -> Error {
    Error::Invalid(format!("{operation}: {wrong}"))
}
