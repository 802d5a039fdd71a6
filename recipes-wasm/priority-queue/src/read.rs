//! Reads items before they are taken.

use wok_sdk::reads;
use wok_sdk::zookeeper::{Contents, Error, Reply, Request};

use crate::decide::fitting;
use crate::place;

/// How many bytes of data are taken at once, if it is more than one item: each is written once more to
/// count the attempt, and the component holds all of them.
const MOST_BYTES: u32 = 512 << 10;

/// An item as it was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) name: String,
    pub(crate) contents: Contents,
}

/// Reads the items of these names, in their order, and leaves out those that are gone. Also answers the
/// names of those, the last ones, that would be too much at once: they are not read.
pub(crate) fn read(names: Vec<String>) -> Result<(Vec<Read>, Vec<String>), Error> {
    let (names, rest) = match names.len() {
        0 | 1 => (names, Vec::new()),
        // How long they are has to be known before they are asked for.
        _ => fit(names)?,
    };
    let asks: Vec<_> = names.iter().map(|name| Request::GetData(place::item(name))).collect();
    let mut found = Vec::with_capacity(names.len());
    for (name, reply) in names.into_iter().zip(reads(&asks)) {
        match reply {
            Ok(Reply::Data(contents)) => found.push(Read { name, contents }),
            Err(Error::NoNode) => {}
            Ok(_) => return Err(Error::Other("get-data: another reply".to_owned())),
            Err(error) => return Err(place::in_the_way(&name, error)),
        }
    }
    Ok((found, rest))
}

/// Parts the names of the items that are there into those that fit and the rest.
fn fit(names: Vec<String>) -> Result<(Vec<String>, Vec<String>), Error> {
    let there = there(names)?;
    let fits = fitting(there.iter().map(|(_, length)| *length), MOST_BYTES);
    let mut names: Vec<String> = there.into_iter().map(|(name, _)| name).collect();
    let rest = names.split_off(fits.min(names.len()));
    Ok((names, rest))
}

/// Those of the names whose items are there, and how long each item is.
pub(crate) fn there(names: Vec<String>) -> Result<Vec<(String, u32)>, Error> {
    let asks: Vec<_> = names.iter().map(|name| Request::Exists(place::item(name))).collect();
    let mut there = Vec::with_capacity(names.len());
    for (name, reply) in names.into_iter().zip(reads(&asks)) {
        match reply {
            Ok(Reply::Exists(Some(stat))) => there.push((name, stat.data_length)),
            Ok(Reply::Exists(None)) => {}
            Ok(_) => return Err(Error::Other("exists: another reply".to_owned())),
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}
