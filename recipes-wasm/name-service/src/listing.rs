//! Which names have instances.

use wok_sdk::zookeeper::{Children, Error, Reply, Request};
use wok_sdk::{child, confirmed, names, reads};

use crate::NAMES;
use crate::decide;

/// How many names are looked at in one round trip: each is answered with a list of children, of which
/// a component may own 16.
const LOOKED_AT_ONCE: usize = 8;

/// The most children of the mount.
const MOST_NAMES: usize = 10_000;

/// The names that have instances.
pub(crate) fn names_with_instances() -> Result<Vec<String>, Error> {
    let children = match confirmed(NAMES, Request::GetChildren(NAMES.to_owned()))? {
        Some(Reply::Children(children)) => children,
        None => return Ok(Vec::new()),
        Some(_) => return Err(Error::Other("get-children: another reply".to_owned())),
    };
    let mut all: Vec<String> = names(&children).filter(|name| decide::is_name(name)).collect();
    if all.len() > MOST_NAMES {
        let text = format!("list: {} names, and at most {MOST_NAMES} are read", all.len());
        return Err(Error::OverLimit(text));
    }
    all.sort_unstable();
    let mut found = Vec::new();
    for some in all.chunks(LOOKED_AT_ONCE) {
        let lists: Vec<Request> =
            some.iter().map(|name| Request::GetChildren(child(NAMES, name))).collect();
        for (name, reply) in some.iter().zip(reads(&lists)) {
            match reply {
                Ok(Reply::Children(instances)) if has_instance(&instances) => {
                    found.push(name.clone());
                }
                // The directory of a name that has no instances is there for a while, and one that may
                // not be read is somebody else's.
                Ok(_) | Err(Error::NoNode | Error::NoAuth) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(found)
}

fn has_instance(children: &Children) -> bool {
    names(children).any(|name| decide::is_id(&name))
}
