//! The znodes of the barrier: generations, and the counter that says which is the newest.

use wok_sdk::names;
use wok_sdk::zookeeper::{
    Children, Contents, CreateMode, CreateRequest, Error, MultiError, Request, SetDataRequest,
    VersionRequest, Watch, Write, ensure, exists, get_children, get_data, multi, pipeline,
    watch_data,
};

use crate::decide::{Generation, Old, Round};

/// The mount is the barrier.
const DIRECTORY: &str = "/";

/// Its version is the number of the newest generation. It is set in the transaction that creates a
/// generation, so that there is one newest generation at any time: a list of the directory may be old.
const NEWEST: &str = "/newest";

/// What a generation's name begins with.
const GENERATION: &str = "gen-";

/// What a member's name begins with. Other children of a generation are none of this recipe's.
const MEMBER: &str = "member-";

/// How many generations are deleted in one round trip.
const BURIED_AT_ONCE: usize = 64;

/// The path of a generation.
pub(crate) fn path(number: i32) -> String {
    [DIRECTORY, GENERATION, &number.to_string()].concat()
}

/// The path of a member's znode.
pub(crate) fn path_of(number: i32, member: &str) -> String {
    [&path(number), "/", member].concat()
}

/// The name of a participant's znode.
pub(crate) fn member(id: &str) -> String {
    [MEMBER, id].concat()
}

/// The members among the children of a generation.
pub(crate) fn members(children: &Children) -> impl Iterator<Item = String> {
    names(children).filter(|name| name.starts_with(MEMBER))
}

/// The number of the newest generation. The first one has number 1.
pub(crate) fn newest() -> Result<i32, Error> {
    loop {
        match exists(NEWEST)? {
            Some(stat) => return Ok(stat.version),
            None => ensure(&[NEWEST.to_owned()], CreateMode::Persistent)?,
        }
    }
}

/// Reads a generation and watches its data, which are set when it opens. None if there is no such.
pub(crate) fn look(number: i32) -> Result<Option<(Generation, Watch)>, Error> {
    // Nothing waits for it while idle, so the tag says nothing.
    const TAG: u64 = 0;
    let found = unless_gone(watch_data(&path(number), TAG))?;
    Ok(found.map(|(contents, watch)| (generation(&contents), watch)))
}

/// Reads a generation. None if there is no such.
pub(crate) fn read(number: i32) -> Result<Option<Generation>, Error> {
    let found = unless_gone(get_data(&path(number)))?;
    Ok(found.map(|contents| generation(&contents)))
}

fn generation(contents: &Contents) -> Generation {
    let (round, stat) = (Round::parse(&contents.data), contents.stat);
    Generation { round, version: stat.version, children: stat.num_children }
}

fn unless_gone<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates the generation after `number`, unless somebody else has: answers which is the newest now.
pub(crate) fn succeed(number: i32, old: Old, size: u32) -> Result<i32, Error> {
    let next = number.wrapping_add(1);
    let mut writes = step(number, size);
    match old {
        Old::Bury => writes.push(delete(path(number))),
        Old::Close => writes.push(open(number, &Round::forming(size))),
        Old::Gone | Old::Keep => {}
    }
    match multi(&writes, &[]) {
        Ok(_) => bury(next).map(|()| next),
        Err(MultiError { index: Some(1), error: Error::NodeExists }) => {
            Err(Error::Invalid(format!(
                "{} was there before its turn: somebody has deleted {NEWEST}, which counts the \
                 generations; once nobody uses the barrier, delete both",
                path(next)
            )))
        }
        // Somebody else has changed what was read, or this very multi has: its reply was lost.
        Err(MultiError {
            error: Error::BadVersion | Error::NoNode | Error::NotEmpty | Error::OutcomeUnknown,
            ..
        }) => newest(),
        Err(failed) => Err(failed.error),
    }
}

/// The parts of a `multi` that create the generation after `number`, which must be the newest.
pub(crate) fn step(number: i32, size: u32) -> Vec<Write> {
    let next = CreateRequest {
        path: path(number.wrapping_add(1)),
        data: Round::forming(size).data(),
        mode: CreateMode::Persistent,
    };
    vec![set_data(NEWEST.to_owned(), Vec::new(), number), Write::Create(next)]
}

/// Deletes the generations before this one that are empty: all have opened, so nobody comes in any
/// more. Mostly there is none. The last to leave buries its own; those whose last member died are left.
fn bury(newest: i32) -> Result<(), Error> {
    let children = get_children(DIRECTORY)?;
    let number = |name: String| name.strip_prefix(GENERATION)?.parse::<i32>().ok();
    let is_earlier = |number: &i32| number.wrapping_sub(newest) < 0;
    let earlier: Vec<i32> = names(&children).filter_map(number).filter(is_earlier).collect();
    for some in earlier.chunks(BURIED_AT_ONCE) {
        let deletes: Vec<_> = some
            .iter()
            .map(|number| Request::Delete(VersionRequest { path: path(*number), version: None }))
            .collect();
        // Those that have members are refused, and so they should be. What else goes wrong is left
        // to the member that creates the next one.
        pipeline(&deletes);
    }
    Ok(())
}

/// A part of a `multi`: the znode must be there.
pub(crate) fn check(path: String) -> Write {
    Write::Check(VersionRequest { path, version: None })
}

/// A part of a `multi`: the generation must not have opened.
pub(crate) fn check_forming(number: i32) -> Write {
    Write::Check(VersionRequest { path: path(number), version: Some(0) })
}

/// A part of a `multi`: the generation opens.
pub(crate) fn open(number: i32, round: &Round) -> Write {
    set_data(path(number), round.data(), 0)
}

/// A part of a `multi`: the znode goes.
pub(crate) fn delete(path: String) -> Write {
    Write::Delete(VersionRequest { path, version: None })
}

fn set_data(path: String, data: Vec<u8>, version: i32) -> Write {
    Write::SetData(SetDataRequest { path, data, version: Some(version) })
}
