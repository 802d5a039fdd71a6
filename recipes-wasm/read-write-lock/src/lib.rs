//! The shared lock of ZooKeeper's recipes: many readers or one writer.
//!
//! The numbers in the code are the steps of the published pseudo-code, of a reader and of a writer:
//!
//! 1. Create an ephemeral sequential znode in the lock's directory, with a GUID in its name and behind
//!    it what it wants the lock for. (The text has a slash between them, which would need a parent, and
//!    looks for names that start with "write-"; it is what stands before the counter that tells.)
//! 2. List the directory, without a watch.
//! 3. A reader has the lock if no writer has a lower counter; a writer if nobody has.
//! 4. A reader watches the writer with the next lowest counter, a writer the contender with it. (The
//!    text says `exists`; reading the data leaves no watch behind where the znode is already gone.)
//! 5. Once it is gone, go to 2. (Unless it was the only one in the way: then the lock is ours without
//!    a look.)
//!
//! Unlock: delete the znode of step 1.
//!
//! Steps 1 and 2 are sent together: ZooKeeper carries them out in their order. The text has no way from
//! writing to reading. Here the writer's znode is replaced by a reader's with the same counter, in one
//! transaction, so a writer whose predecessor wrote looks again, always: what has gone may stand there
//! as a reader.

mod bindings;
mod decide;

use std::cell::RefCell;

use bindings::exports::wok::read_write_lock::read_write_lock::{
    Config, Contender as InLine, Format, Grant, Guest, Mode,
};
use decide::{Names, Step, decide, holders};
use wok_sdk::zookeeper::{Children, Error, get_children};
use wok_sdk::{Naming, Own, line, line_up, owners, participant, wait_until_gone};

/// The mount is the lock's directory.
const DIRECTORY: &str = "/";

/// How many contenders are told of: a list for people, and its memory would never be given back.
const MOST_CONTENDERS: usize = 1000;

/// One client's part in the lock.
#[derive(Debug)]
pub struct ReadWriteLock;

struct State {
    names: Names,
    held: Option<(Own, Grant)>,
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { names: Names::CURATOR, held: None }) };
}

impl Guest for ReadWriteLock {
    fn configure(config: Config) -> Result<(), String> {
        let names = match config.format.unwrap_or(Format::Curator) {
            Format::Curator => Names::CURATOR,
            Format::Kazoo => Names::KAZOO,
        };
        STATE.with_borrow_mut(|state| state.names = names);
        Ok(())
    }

    fn acquire_read() -> Result<Grant, Error> {
        acquire(Mode::Read)
    }

    fn acquire_write() -> Result<Grant, Error> {
        acquire(Mode::Write)
    }

    fn try_acquire_read() -> Result<Option<Grant>, Error> {
        try_acquire(Mode::Read)
    }

    fn try_acquire_write() -> Result<Option<Grant>, Error> {
        try_acquire(Mode::Write)
    }

    fn downgrade() -> Result<Grant, Error> {
        let Some((mut own, grant)) = STATE.with_borrow_mut(|state| state.held.take()) else {
            return Err(Error::Invalid("downgrade: the lock is not held".to_owned()));
        };
        if grant.mode == Mode::Read {
            keep(own, grant.clone());
            return Ok(grant);
        }
        let owner = participant::owner();
        match own.become_kind(&names().read, owner.as_bytes(), None) {
            Ok(fence) => {
                let grant = Grant { path: own.path().to_owned(), fence, mode: Mode::Read };
                keep(own, grant.clone());
                Ok(grant)
            }
            Err(error) => {
                keep(own, grant);
                Err(error)
            }
        }
    }

    fn release() -> Result<(), Error> {
        match STATE.with_borrow_mut(|state| state.held.take()) {
            Some((own, _)) => own.release(),
            None => Err(Error::Invalid("release: the lock is not held".to_owned())),
        }
    }

    fn contenders() -> Result<Vec<InLine>, Error> {
        let names = names();
        let line = line(DIRECTORY, names.read, MOST_CONTENDERS)?;
        let owners = owners(DIRECTORY, &line)?;
        let in_line = line.iter().zip(owners).zip(holders(&names, &line));
        Ok(in_line
            .filter_map(|((contender, owner), is_holder)| {
                let mode = if names.writes(contender) { Mode::Write } else { Mode::Read };
                let path = contender.path(DIRECTORY);
                Some(InLine { path, owner: owner?, mode, is_holder })
            })
            .collect())
    }
}

fn acquire(mode: Mode) -> Result<Grant, Error> {
    if let Some(grant) = held(mode)? {
        return Ok(grant);
    }
    let (own, mut step) = contend(mode)?; // 1, 2
    loop {
        match step {
            Step::Hold => return hold(own, mode), // 3
            Step::Gone => return Err(Error::NoNode),
            Step::WaitFor { predecessor, then } => {
                let gone = wait_until_gone(&path(&predecessor))?; // 4
                if then.holds_after(gone) {
                    return hold(own, mode);
                }
            }
        }
        step = look(&own)?; // 5, 2
    }
}

fn try_acquire(mode: Mode) -> Result<Option<Grant>, Error> {
    if let Some(grant) = held(mode)? {
        return Ok(Some(grant));
    }
    let (own, step) = contend(mode)?; // 1, 2
    match step {
        Step::Hold => hold(own, mode).map(Some), // 3
        Step::Gone => Err(Error::NoNode),
        Step::WaitFor { .. } => own.release().map(|()| None),
    }
}

/// What is held for that already. Refuses to wait for what this participant has itself.
fn held(wanted: Mode) -> Result<Option<Grant>, Error> {
    let held = STATE.with_borrow(|state| state.held.as_ref().map(|(_, grant)| grant.clone()));
    match (wanted, held) {
        (Mode::Write, Some(Grant { mode: Mode::Read, .. })) => Err(Error::Invalid(
            "it is held to read, and to write it would wait for itself: release it first, or \
             acquire it to write and downgrade"
                .to_owned(),
        )),
        (Mode::Read, Some(Grant { mode: Mode::Write, .. })) => {
            Err(Error::Invalid("it is held to write: call downgrade to go on reading".to_owned()))
        }
        (_, held) => Ok(held),
    }
}

/// Steps 1 and 2. The host makes the GUID and finds the znode again if the reply is lost.
fn contend(mode: Mode) -> Result<(Own, Step), Error> {
    let owner = participant::owner();
    let naming = naming(mode);
    let (own, children) = Own::contend_and_list(DIRECTORY, &naming, owner.as_bytes())?;
    let step = step(&own, &children);
    Ok((own, step))
}

/// Step 2, once more.
fn look(own: &Own) -> Result<Step, Error> {
    Ok(step(own, &get_children(DIRECTORY)?))
}

fn step(own: &Own, children: &Children) -> Step {
    let names = names();
    decide(&names, own.contender(), &line_up(children, names.read))
}

/// Step 3: from here the host watches the znode, and nobody else decides whether it still stands.
fn hold(own: Own, mode: Mode) -> Result<Grant, Error> {
    let grant = Grant { path: own.path().to_owned(), fence: own.claim()?, mode };
    keep(own, grant.clone());
    Ok(grant)
}

fn keep(own: Own, grant: Grant) {
    STATE.with_borrow_mut(|state| state.held = Some((own, grant)));
}

fn names() -> Names {
    STATE.with_borrow(|state| state.names)
}

fn naming(mode: Mode) -> Naming {
    let names = names();
    match mode {
        Mode::Read => names.read,
        Mode::Write => names.write,
    }
}

fn path(name: &str) -> String {
    [DIRECTORY, name].concat()
}
