//! A shelf: operations that take arguments, and what others have answered.

mod bindings;

use bindings::exports::wok::shelf::shelf::{Guest, Item};
use wok_sdk::zookeeper::{self, CreateMode, Error};

/// One client's way to the shelf.
#[derive(Debug)]
pub struct Shelf;

impl Guest for Shelf {
    fn put(label: String, weight: u32) -> Result<Item, Error> {
        if weight == 0 {
            return Err(Error::Invalid(format!("{label} has no weight")));
        }
        let data = weight.to_string();
        let mode = CreateMode::PersistentSequential;
        let put = || zookeeper::create("/item-", data.as_bytes(), mode);
        let created = match put() {
            // The first thing on it: as yet there is no shelf.
            Err(Error::NoNode) => {
                match zookeeper::create("/", b"", CreateMode::Persistent) {
                    Ok(_) | Err(Error::NodeExists) => {}
                    Err(error) => return Err(error),
                }
                put()?
            }
            other => other?,
        };
        Ok(Item { path: created.path, weight })
    }

    fn weigh(path: String) -> Result<u32, Error> {
        let contents = zookeeper::get_data(&path)?;
        let weight = str::from_utf8(&contents.data).ok().and_then(|text| text.parse().ok());
        weight.ok_or_else(|| Error::Other(format!("{path} is no item")))
    }

    fn take(path: String, weight: u32) -> Result<(), Error> {
        if Self::weigh(path.clone())? != weight {
            return Err(Error::Invalid(format!("{path} is not as heavy as {weight}")));
        }
        zookeeper::delete(&path, None)
    }

    fn count() -> Result<u32, Error> {
        match zookeeper::get_children("/") {
            Ok(children) => Ok(children.count()),
            // Nobody has put anything there yet.
            Err(Error::NoNode) => Ok(0),
            Err(error) => Err(error),
        }
    }
}
