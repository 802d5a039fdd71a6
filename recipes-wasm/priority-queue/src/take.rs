//! Takes items.

use std::collections::BTreeSet;

use wok_sdk::participant;
use wok_sdk::zookeeper::{
    CreateMode, CreateRequest, Error, MultiError, SetDataRequest, VersionRequest, Write, multi,
    wait,
};
use wok_sdk::{Named, Own};

use crate::decide::{Verdict, verdict};
use crate::held::{Held, Item};
use crate::line;
use crate::list::{self, List};
use crate::marked::{self, Unmade};
use crate::place;
use crate::read::{Read, read};
use crate::settings::{Delivery, Settings};

/// As many as are taken at once: each is two parts of a `multi`, which has 128 at most.
pub(crate) const MOST: usize = 64;

/// How many of the next items somebody asks for who was late for one.
const LOOKED_AT_ONCE: usize = 16;

/// How many items that cannot be buried one take leaves out, before it fails: each name takes some hundred
/// bytes of the component's memory.
const MOST_STUCK: usize = 4096;

/// The names of items that cannot be buried. The take that failed to bury them leaves them out of its lists,
/// so that it reaches the items behind them; the next take tries to bury them again.
type Stuck = BTreeSet<String>;

/// What was taken.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The items, the most urgent first, as they were before.
    pub(crate) items: Vec<Read>,
    /// Their claims; none where they are removed.
    pub(crate) held: Option<Held>,
}

/// Takes up to `most` items, and waits while there is none.
///
/// Who finds some does not stand in line for them, so a take costs no more than that; somebody who waits
/// may find that a newcomer was faster, and waits on.
pub(crate) fn take(settings: &Settings, most: usize) -> Result<Taken, Error> {
    // Whatever ends the wait takes the place along.
    let mut place: Option<Own> = None;
    let mut watches = Vec::new();
    let mut stuck = Stuck::new();
    loop {
        let list = match &place {
            None => list::list(&stuck)?, // 1
            Some(_) if watches.is_empty() => {
                let (list, all) = list::watch(&stuck)?; // 1
                watches = all;
                list
            }
            // What comes from here on makes the watches fire, or has.
            Some(_) => list::list(&stuck)?,
        };
        match through(settings, list, most, place.as_ref(), &mut stuck)? {
            Outcome::Taken(taken) => {
                place.map(Own::gone);
                return Ok(taken);
            }
            Outcome::ListAgain => continue,
            Outcome::Nothing => {}
        }
        if place.is_none() {
            place = Some(line::stand()?);
        } else {
            wait(&watches.iter().collect::<Vec<_>>())?; // 4
            watches.clear();
        }
    }
}

/// What came of a list.
enum Outcome {
    Taken(Taken),
    /// Nothing on it was to be had, and nothing else was in the queue.
    Nothing,
    /// Somebody was faster, or there are more items than the list shows.
    ListAgain,
}

/// Goes through the list until something is taken. The caller's place in line, if it has one, goes in the
/// same transaction.
fn through(
    settings: &Settings,
    mut list: List,
    most: usize,
    place: Option<&Own>,
    stuck: &mut Stuck,
) -> Result<Outcome, Error> {
    let max_attempts = match settings.delivery {
        Delivery::AtLeastOnce { max_attempts } => max_attempts,
        Delivery::AtMostOnce => None,
    };
    // A `multi` has 128 parts: two for each item, and one for the place.
    let most = if place.is_some() { most.min(MOST - 1) } else { most };
    let mut was_late = false;
    loop {
        if was_late {
            // Where one is gone, the next ones are likely to be gone as well: all are asked for at once.
            let next = list.next(LOOKED_AT_ONCE);
            list.put_back(list::left(next)?);
        }
        let names = list.next(most);
        if names.is_empty() {
            return Ok(if list.is_whole() { Outcome::Nothing } else { Outcome::ListAgain });
        }
        let (found, unread) = read(names)?; // 2
        list.put_back(unread);
        let (there, mut refused) = (found.len(), 0);
        let mut items = Vec::with_capacity(there);
        for item in found {
            let stat = item.contents.stat;
            let is_listed = list.has(stat.czxid)?;
            match verdict(stat.version, is_listed, max_attempts) {
                Verdict::Take => items.push(item),
                Verdict::Bury => {
                    if bury(&item)? == Burial::Refused {
                        refused += 1;
                        leave_out(stuck, item.name)?;
                    }
                }
                Verdict::ListAgain => return Ok(Outcome::ListAgain),
            }
        }
        if settings.delivery == Delivery::AtMostOnce
            && let Some(back) = items.iter().position(has_come_back)
        {
            // One that has come back is taken by itself.
            let later = items.split_off(back.max(1));
            list.put_back(later.into_iter().map(|item| item.name).collect());
        }
        let count = items.len();
        // Where all that was found cannot be buried, nobody was faster.
        was_late = refused == 0 || refused < there;
        if count == 0 {
            continue;
        }
        let taken = match settings.delivery {
            Delivery::AtLeastOnce { .. } => claim(items, place)?, // 3
            Delivery::AtMostOnce => remove(items, place)?,        // 3
        };
        match taken {
            Some(taken) => return Ok(Outcome::Taken(taken)),
            // Another consumer was faster. Who wants one goes on with the next; of many, others are
            // likely to be gone as well.
            None if count == 1 => {}
            None => return Ok(Outcome::ListAgain),
        }
    }
}

/// Claims the items, all or none: an attempt is counted for each by its version, in the transaction that
/// creates the claims. None if one of them is not there any more, or is claimed.
fn claim(items: Vec<Read>, place: Option<&Own>) -> Result<Option<Taken>, Error> {
    let owner = participant::owner();
    let paths: Vec<String> = items.iter().map(|item| place::claim(&item.name)).collect();
    let mut writes = Vec::with_capacity(2 * items.len() + 1);
    for (item, claim) in items.iter().zip(&paths) {
        writes.push(Write::SetData(SetDataRequest {
            path: place::item(&item.name),
            data: item.contents.data.clone(),
            version: Some(item.contents.stat.version),
        }));
        writes.push(Named::write(claim, owner.as_bytes()));
    }
    writes.extend(place.map(leave));
    let of_place = 2 * items.len();
    loop {
        // Before the request: its caller may withdraw while it is under way.
        let claims: Vec<Named> = paths.iter().cloned().map(Named::of).collect();
        let failed = match multi(&writes, &paths) {
            Ok(committed) => {
                let fence = committed.fence;
                let fence = fence.ok_or_else(|| Error::Other("multi: no fence".to_owned()))?;
                let version = |item: &Read| item.contents.stat.version.wrapping_add(1);
                let held = claims.into_iter().zip(&items);
                let held = held.map(|(claim, item)| Item { claim, version: version(item) });
                let held = Held { items: held.collect(), fence };
                return Ok(Some(Taken { items, held: Some(held) }));
            }
            Err(MultiError { index: Some(part), error }) => (part as usize, error),
            // Some of the claims may be there. They are dropped, and so released.
            Err(MultiError { index: None, error }) => return Err(of(&items, 0, error)),
        };
        // None was created, and one of that name is somebody else's.
        claims.into_iter().for_each(|claim| drop(claim.gone()));
        match failed {
            (part, error) if part == of_place => return Err(error),
            (_, Error::NodeExists | Error::BadVersion) => return Ok(None),
            // The directory of claims, or else the item.
            (part, Error::NoNode) if part % 2 == 1 => place::furnish()?,
            (_, Error::NoNode) => return Ok(None),
            (part, error) => return Err(of(&items, part / 2, error)),
        }
    }
}

/// Removes the items, all or none. None if one of them is not there any more, or is claimed.
///
/// A client that deletes an item by itself and loses the reply does not know whether the item was its
/// own: if it goes on with the next one, an item may be lost. Here the marker says.
///
/// An item of version 0 was never claimed. Another one may be, by somebody who takes at least once, unless
/// a claim can be made.
fn remove(items: Vec<Read>, place: Option<&Own>) -> Result<Option<Taken>, Error> {
    let mut writes = Vec::with_capacity(items.len() + 2);
    let back = items.iter().find(|item| has_come_back(item));
    let claim = back.map(|item| place::claim(&item.name));
    writes.extend(claim.iter().map(|claim| Named::write(claim, &[])));
    writes.extend(
        items
            .iter()
            .map(|Read { name, contents }| delete(place::item(name), Some(contents.stat.version))),
    );
    writes.extend(place.map(leave));
    loop {
        // Before the request: its caller may withdraw while it is under way.
        let claim = claim.clone().map(Named::of);
        let (part, error) = match marked::write(&writes) {
            // The claim is dropped, and so released.
            Ok(()) => return Ok(Some(Taken { items, held: None })),
            Err(Unmade::All(error)) => return Err(of(&items, 0, error)),
            Err(Unmade::Part(part, error)) => (part, error),
        };
        claim.map(Named::gone);
        match (writes.get(part), error) {
            (Some(Write::Create(_)), Error::NoNode) => place::furnish()?,
            (_, error) if place.is_some() && part + 1 == writes.len() => return Err(error),
            (_, Error::NoNode | Error::NodeExists | Error::BadVersion) => return Ok(None),
            (_, error) => {
                let first = writes.len() - items.len() - usize::from(place.is_some());
                return Err(of(&items, part.saturating_sub(first), error));
            }
        }
    }
}

/// What the server says of one of the items.
fn of(items: &[Read], number: usize, error: Error) -> Error {
    match items.get(number) {
        Some(item) => place::in_the_way(&item.name, error),
        None => error,
    }
}

/// Whether somebody had taken it before.
fn has_come_back(item: &Read) -> bool {
    item.contents.stat.version != 0
}

/// The part of a `multi` that gives up the place in line.
fn leave(place: &Own) -> Write {
    delete(place.path().to_owned(), None)
}

fn delete(path: String, version: Option<i32>) -> Write {
    Write::Delete(VersionRequest { path, version })
}

/// How it ended to bury an item.
#[derive(Debug, PartialEq, Eq)]
enum Burial {
    /// It is buried, or somebody else has it, or it is gone.
    Over,
    /// It stays where it is, and nobody takes it.
    Refused,
}

/// Has an item left out from here on.
fn leave_out(stuck: &mut Stuck, name: String) -> Result<(), Error> {
    if stuck.len() == MOST_STUCK {
        let text =
            format!("more than {MOST_STUCK} items cannot become dead letters: the log says why");
        return Err(Error::OverLimit(text));
    }
    stuck.insert(name);
    Ok(())
}

/// Says why the item stays.
fn unburied(item: &Read, error: Error) -> Result<Burial, Error> {
    place::unburied(&item.name, error).map(|()| Burial::Refused)
}

/// Makes the item a dead letter, unless somebody has it.
fn bury(item: &Read) -> Result<Burial, Error> {
    // As long as this stands nobody else claims the item; and it says what became of the list.
    let owner = participant::owner();
    let claim = place::claim(&item.name);
    let mut letter = item.name.clone();
    loop {
        let writes = [
            Named::write(&claim, owner.as_bytes()),
            delete(place::item(&item.name), Some(item.contents.stat.version)),
            Write::Create(CreateRequest {
                path: place::dead_letter(&letter),
                data: item.contents.data.clone(),
                mode: CreateMode::Persistent,
            }),
        ];
        let claim = Named::of(claim.clone());
        match multi(&writes, &[]) {
            Ok(_) => return claim.release().map(|()| Burial::Over),
            Err(MultiError { index: Some(part), error }) => {
                claim.gone();
                match (part, error) {
                    (0, Error::NoNode) => place::furnish()?,
                    (2, Error::NoNode) => {
                        if let Err(error) = place::furnish_cemetery() {
                            return unburied(item, error);
                        }
                    }
                    // An earlier item of that name, from before the directory's counter began anew.
                    (2, Error::NodeExists) if letter == item.name => {
                        letter = [&item.name, "-", &item.contents.stat.czxid.to_string()].concat();
                    }
                    (2, error) => return unburied(item, error),
                    // Somebody has it, or it is gone.
                    (_, Error::NodeExists | Error::NoNode | Error::BadVersion) => {
                        return Ok(Burial::Over);
                    }
                    (1, error @ Error::NotEmpty) => return unburied(item, error),
                    (_, error) => return Err(place::in_the_way(&item.name, error)),
                }
            }
            Err(MultiError { index: None, error }) => {
                return unburied(item, error);
            }
        }
    }
}
