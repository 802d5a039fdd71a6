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
//!
//! A lock that is revocable adds to that, as the text's "Revocable Shared Locks" do:
//!
//! * 1r. Read the data of the own znode, with a watch. (The text does so right behind step 1, and looks for
//!   a request only when the watch has told of a change. Here it is done when it is our turn, and what is
//!   read first is looked at: a request that was made before is in it.)
//! * 2r. Woken by that watch, read it again, with a watch. If it holds the request, consent.
//! * 3r. To ask: write the request to the other's znode.
//! * 4r. "Freaking laser beams", only where `force-after-ms` says so: delete that znode when the time is
//!   over.

mod bindings;
mod decide;
mod settings;

use std::cell::RefCell;

use bindings::exports::wok::read_write_lock::read_write_lock::{
    Config, Consent, Contender as InLine, Grant, Guest, Mode, RequestOutcome,
};
use decide::{Names, Step, decide, holders};
use settings::Settings;
use wok_sdk::participant::{Fence, Level, log};
use wok_sdk::zookeeper::{Children, Error, get_children, get_data, watch_data};
use wok_sdk::{
    Asked, Heard, Listening, Naming, Own, ask_to_give_way, line, line_up, name_of, owners,
    participant, reason, wait_until_gone,
};

/// The mount is the lock's directory.
const DIRECTORY: &str = "/";

/// How many contenders are told of: a list for people, and its memory would never be given back.
const MOST_CONTENDERS: usize = 1000;

/// The tag of the watch on the own znode.
const REQUEST: u64 = 1;

/// One client's part in the lock.
#[derive(Debug)]
pub struct ReadWriteLock;

struct State {
    settings: Settings,
    held: Option<Held>,
}

struct Held {
    own: Own,
    grant: Grant,
    /// None if it is not revocable.
    listening: Option<Listening>,
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { settings: Settings::DEFAULT, held: None }) };
}

impl Guest for ReadWriteLock {
    fn configure(config: Config) -> Result<(), String> {
        let settings = Settings::of(&config)?;
        STATE.with_borrow_mut(|state| state.settings = settings);
        Ok(())
    }

    fn wake(_fired: Vec<u64>) {
        let Some(mut held) = take_held() else { return };
        let Some(listening) = &mut held.listening else { return keep(held) };
        let heard = listening.wake(held.grant.fence); // 2r
        if heard == Heard::Nothing || settings().consent != Some(Consent::AtOnce) {
            return keep(held);
        }
        let path = held.grant.path.clone();
        // What runs under the claim ends before the znode goes.
        if let Err(error) = give_back(held) {
            let text = ["give ", &path, " back: ", reason(&error)].concat();
            log(Level::Warn, &text);
        }
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
        let Some(mut held) = take_held() else {
            return Err(Error::Invalid("downgrade: the lock is not held".to_owned()));
        };
        if held.grant.mode == Mode::Write {
            match become_reader(&mut held) {
                Ok(fence) => {
                    let path = held.own.path().to_owned();
                    held.listening = held.listening.map(|it| it.moved_to(&path)); // 1r
                    held.grant = Grant { path, fence, mode: Mode::Read };
                }
                Err(error) => {
                    keep(held);
                    return Err(error);
                }
            }
        }
        let grant = held.grant.clone();
        keep(held);
        Ok(grant)
    }

    fn release() -> Result<(), Error> {
        match take_held() {
            Some(held) => give_back(held),
            None => Err(Error::Invalid("release: the lock is not held".to_owned())),
        }
    }

    fn contenders() -> Result<Vec<InLine>, Error> {
        let Settings { names, request, .. } = settings();
        let line = line(DIRECTORY, names.read, MOST_CONTENDERS)?;
        let owners = owners(DIRECTORY, &line)?;
        let in_line = line.iter().zip(owners).zip(holders(&names, &line));
        Ok(in_line
            .filter_map(|((contender, owner), is_holder)| {
                let mode = if names.writes(contender) { Mode::Write } else { Mode::Read };
                let path = contender.path(DIRECTORY);
                let owner = request.owner_in(&owner?).to_owned();
                Some(InLine { path, owner, mode, is_holder })
            })
            .collect())
    }

    fn revoke(path: String) -> Result<RequestOutcome, Error> {
        let is_own = |held: &Held| name_of(&held.grant.path) == name_of(&path);
        if STATE.with_borrow(|state| state.held.as_ref().is_some_and(is_own)) {
            let reason = "revoke: it is this participant's own: release it";
            return Err(Error::Invalid(reason.to_owned()));
        }
        let Settings { names, request, force_after_ms, .. } = settings();
        let asked = ask_to_give_way(DIRECTORY, &names.read, &path, request, force_after_ms)?; // 3r, 4r
        Ok(match asked {
            Asked::Stands => RequestOutcome::Asked,
            Asked::Gone => RequestOutcome::Gone,
            Asked::Forced => RequestOutcome::Forced,
        })
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
    let held = STATE.with_borrow(|state| state.held.as_ref().map(|held| held.grant.clone()));
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
    let owner = settings().request.without(&participant::owner());
    let (own, children) = Own::contend_and_list(DIRECTORY, &naming(mode), &owner)?;
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
    // Before the claim, which shares the watch then and needs no request of its own.
    let listening = listen(&own)?;
    let grant = Grant { path: own.path().to_owned(), fence: own.claim()?, mode };
    keep(Held { own, grant: grant.clone(), listening });
    Ok(grant)
}

/// Step 1r.
fn listen(own: &Own) -> Result<Option<Listening>, Error> {
    let Settings { request, consent, .. } = settings();
    if consent.is_none() {
        return Ok(None);
    }
    let look = watch_data(own.path(), REQUEST)?;
    Ok(Some(Listening::from_first_look(own.path(), request, REQUEST, look)))
}

/// A reader in the writer's place. What the writer was asked the reader is asked as well, so that no
/// request is lost that comes while the one becomes the other.
fn become_reader(held: &mut Held) -> Result<Fence, Error> {
    let Settings { names, request, .. } = settings();
    if held.listening.is_none() {
        let owner = request.without(&participant::owner());
        return held.own.become_kind(&names.read, &owner, None);
    }
    loop {
        let read = get_data(held.own.path())?;
        match held.own.become_kind(&names.read, &read.data, Some(read.stat.version)) {
            // Somebody has asked since.
            Err(Error::BadVersion) => {}
            settled => return settled,
        }
    }
}

/// Gives the lock back. Where the server refuses, as by an access list, it is still held.
fn give_back(mut held: Held) -> Result<(), Error> {
    let given_back = held.own.try_release();
    if !held.own.is_released() {
        keep(held);
    }
    given_back
}

fn take_held() -> Option<Held> {
    STATE.with_borrow_mut(|state| state.held.take())
}

fn keep(held: Held) {
    STATE.with_borrow_mut(|state| state.held = Some(held));
}

fn settings() -> Settings {
    STATE.with_borrow(|state| state.settings)
}

fn names() -> Names {
    settings().names
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
