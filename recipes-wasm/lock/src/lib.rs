//! The lock of ZooKeeper's recipes.
//!
//! The numbers in the code are the steps of the published pseudo-code:
//!
//! 1. Create an ephemeral sequential znode in the lock's directory, with a GUID in its name.
//! 2. List the directory, without a watch.
//! 3. The contender with the lowest counter has the lock.
//! 4. Watch the contender with the next lowest counter. (The text says `exists`; reading the data
//!    leaves no watch behind where the znode is already gone.)
//! 5. Once it is gone, go to 2. (Unless it was the first, as it was if it had claimed its znode: then
//!    the lock is ours without a look.)
//!
//! Unlock: delete the znode of step 1.
//!
//! Steps 1 and 2 are sent together: ZooKeeper carries them out in their order.
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

use bindings::exports::wok::lock::lock::{
    Config, Consent, Contender as InLine, Grant, Guest, RequestOutcome,
};
use decide::{Step, Then, decide};
use settings::Settings;
use wok_sdk::participant::{Level, log};
use wok_sdk::zookeeper::{Children, Error, get_children, watch_data};
use wok_sdk::{
    Asked, Gone, Heard, Listening, Own, ask_to_give_way, line, line_up, name_of, owners,
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
pub struct Lock;

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

impl Guest for Lock {
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

    fn acquire() -> Result<Grant, Error> {
        if let Some(grant) = held() {
            return Ok(grant);
        }
        let (own, mut step) = contend()?; // 1, 2
        loop {
            match step {
                Step::Hold => return hold(own), // 3
                Step::Gone => return Err(Error::NoNode),
                Step::WaitFor { predecessor, then } => {
                    let gone = wait_until_gone(&path(&predecessor))?; // 4
                    if then == Then::Hold || gone == Gone::AsClaim {
                        return hold(own);
                    }
                }
            }
            step = look(&own)?; // 5, 2
        }
    }

    fn try_acquire() -> Result<Option<Grant>, Error> {
        if let Some(grant) = held() {
            return Ok(Some(grant));
        }
        let (own, step) = contend()?; // 1, 2
        match step {
            Step::Hold => hold(own).map(Some), // 3
            Step::Gone => Err(Error::NoNode),
            Step::WaitFor { .. } => own.release().map(|()| None),
        }
    }

    fn release() -> Result<(), Error> {
        match take_held() {
            Some(held) => give_back(held),
            None => Err(Error::Invalid("release: the lock is not held".to_owned())),
        }
    }

    fn contenders() -> Result<Vec<InLine>, Error> {
        let Settings { naming, request, .. } = settings();
        let line = line(DIRECTORY, naming, MOST_CONTENDERS)?;
        let owners = owners(DIRECTORY, &line)?;
        let in_line = line.iter().zip(owners).enumerate();
        Ok(in_line
            .filter_map(|(ahead, (contender, owner))| {
                let owner = request.owner_in(&owner?).to_owned();
                Some(InLine { path: path(&contender.name), owner, is_holder: ahead == 0 })
            })
            .collect())
    }

    fn revoke(path: String) -> Result<RequestOutcome, Error> {
        if held().is_some_and(|own| name_of(&own.path) == name_of(&path)) {
            let reason = "revoke: it is this participant's own: release it";
            return Err(Error::Invalid(reason.to_owned()));
        }
        let Settings { naming, request, force_after_ms, .. } = settings();
        let asked = ask_to_give_way(DIRECTORY, &naming, &path, request, force_after_ms)?; // 3r, 4r
        Ok(match asked {
            Asked::Stands => RequestOutcome::Asked,
            Asked::Gone => RequestOutcome::Gone,
            Asked::Forced => RequestOutcome::Forced,
        })
    }
}

/// Steps 1 and 2. The host makes the GUID and finds the znode again if the reply is lost.
fn contend() -> Result<(Own, Step), Error> {
    let Settings { naming, request, .. } = settings();
    let owner = request.without(&participant::owner());
    let (own, children) = Own::contend_and_list(DIRECTORY, &naming, &owner)?;
    let step = step(&own, &children);
    Ok((own, step))
}

/// Step 2, once more.
fn look(own: &Own) -> Result<Step, Error> {
    Ok(step(own, &get_children(DIRECTORY)?))
}

fn step(own: &Own, children: &Children) -> Step {
    decide(own.contender(), &line_up(children, settings().naming))
}

/// Step 3: from here the host watches the znode, and nobody else decides whether it still stands.
fn hold(own: Own) -> Result<Grant, Error> {
    // Before the claim, which shares the watch then and needs no request of its own.
    let listening = listen(&own)?;
    let grant = Grant { path: own.path().to_owned(), fence: own.claim()? };
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

fn held() -> Option<Grant> {
    STATE.with_borrow(|state| state.held.as_ref().map(|held| held.grant.clone()))
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

fn path(name: &str) -> String {
    [DIRECTORY, name].concat()
}
