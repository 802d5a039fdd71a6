//! The two-phased commit of ZooKeeper's recipes. The text has no numbers; its sentences are these steps:
//!
//! 1. The coordinator creates a znode for the transaction, and a child of undefined content for each
//!    site. It propagates the transaction by writing it in there. Each site reads and watches.
//! 2. Each site votes by writing to its znode.
//! 3. As soon as a site has all votes, it decides; it may decide to abort earlier.
//! 4. To save messages only the coordinator is told of votes, and tells the sites what it decided.
//! 5. To show its failure each site creates an ephemeral znode of its own.
//!
//! Here a decision is written down, once, by whoever comes first: so all read the same, whatever each
//! of them saw (`decision` has version 0 until then, and every vote checks that).

mod bindings;
mod decide;
mod desk;
mod inbox;
mod replies;
mod terms;
mod transaction;

use std::cell::RefCell;

use bindings::exports::wok::two_phase_commit::two_phase_commit::{
    Choice as Vote, Config, Decision, Guest, Notify as NotifySetting, Progress, Standing,
    Transaction, Verdict as Outcome,
};
use decide::{Choice, Site, Verdict};
use desk::{Desk, MOST_FOLLOWED, Mark, Notify, Role, TRANSACTIONS};
use inbox::{ARRIVALS, Inbox, Letter};
use terms::Terms;
use transaction::{Ballot, Deleted, Done, Paths, invalid};
use wok_sdk::Named;
use wok_sdk::participant::id;
use wok_sdk::time_and_chance::wall_ms;
use wok_sdk::zookeeper::{Error, Owner};

/// One participant in transactions, of any number of them, as coordinator or for any site.
#[derive(Debug)]
pub struct TwoPhaseCommit;

struct State {
    desk: Desk,
    inbox: Option<Inbox>,
    /// How many transactions this participant has begun: a part of the next one's name.
    begun: u64,
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { desk: Desk::new(Notify::AllSites), inbox: None, begun: 0 }) };
}

impl Guest for TwoPhaseCommit {
    fn configure(config: Config) -> Result<(), String> {
        let notify = match config.notify.unwrap_or(NotifySetting::AllSites) {
            NotifySetting::AllSites => Notify::AllSites,
            NotifySetting::Coordinator => Notify::Coordinator,
        };
        STATE.with_borrow_mut(|state| state.desk = Desk::new(notify));
        Ok(())
    }

    fn wake(fired: Vec<u64>) {
        STATE.with_borrow_mut(|state| {
            if fired.contains(&TRANSACTIONS) {
                state.desk.serve(None);
            }
            if fired.contains(&ARRIVALS) {
                state.inbox = state.inbox.take().map(Inbox::wake);
            }
        });
    }

    fn begin(sites: Vec<String>, payload: Vec<u8>, within_ms: u64) -> Result<String, Error> {
        let terms = Terms::new(sites, &payload, within_ms).map_err(Error::Invalid)?;
        STATE.with_borrow_mut(|state| {
            state.begun += 1;
            let paths = Paths::new(&id(), state.begun);
            let own = transaction::create(&paths, &terms, &payload)?; // 1
            state.desk.follow(&paths, terms, Role::Coordinator, Some(own));
            state.desk.serve(None);
            Ok(paths.transaction().to_owned())
        })
    }

    fn transactions(site: String) -> Result<Vec<Transaction>, Error> {
        STATE.with_borrow_mut(|state| {
            let (letters, inbox) = Inbox::open(site)?; // 1
            state.inbox = Some(inbox);
            Ok(letters.into_iter().map(shown).collect())
        })
    }

    fn register(transaction: String, site: String) -> Result<(), Error> {
        let paths = of_site("register", &transaction, &site)?;
        STATE.with_borrow_mut(|state| {
            if state.desk.is_registered(&paths, &site) {
                return Ok(());
            }
            if !state.desk.has_room_for(&paths) {
                let text = format!(
                    "register: {MOST_FOLLOWED} transactions of this participant are not decided"
                );
                return Err(Error::OverLimit(text));
            }
            loop {
                let ballot = transaction::ballot(&paths, &site)?;
                refuse_if_decided("register", &transaction, &ballot)?;
                if let Some(vote) = ballot.vote {
                    return Err(has_voted("register", &transaction, &site, vote));
                }
                if ballot.present.is_some() {
                    return Err(Error::NodeExists);
                }
                // Guarded from before the request: if the caller withdraws, the znode goes. The mark that
                // somebody has registered stays, so the site then counts as one that has died. If the
                // znode stayed, the participant would hold what its caller does not want, and nobody
                // would look after it.
                let own = Named::of(paths.presence(&site));
                match transaction::register(&paths, &site, &ballot)? {
                    Done::Yes => {
                        state.desk.follow(&paths, ballot.terms, Role::Site, Some(own)); // 5
                        state.desk.serve(None);
                        return Ok(());
                    }
                    // Nothing was created.
                    Done::LookAgain => drop(own.gone()),
                }
            }
        })
    }

    fn vote(transaction: String, site: String, vote: Vote) -> Result<(), Error> {
        let paths = of_site("vote", &transaction, &site)?;
        let choice = match vote {
            Vote::Commit => Choice::Commit,
            Vote::Abort => Choice::Abort,
        };
        STATE.with_borrow_mut(|state| {
            let (terms, mark) = cast(&paths, &site, choice)?; // 2
            state.desk.has_voted(&paths, &site, mark);
            state.desk.follow(&paths, terms, Role::Site, None);
            state.desk.serve(None); // 3
            Ok(())
        })
    }

    fn outcome(transaction: String) -> Result<Outcome, Error> {
        let paths = Paths::of(&transaction)?;
        STATE.with_borrow_mut(|state| state.desk.outcome(&paths)).map(outcome)
    }

    fn status(transaction: String) -> Result<Progress, Error> {
        let paths = Paths::of(&transaction)?;
        let terms = transaction::terms(&paths)?;
        let found = transaction::look(&paths, &terms, None)?;
        let decided_ms = found.end.as_ref().map(|(_, at_ms)| *at_ms);
        let sites = found.sites.into_iter().zip(found.voted_ms);
        Ok(Progress {
            outcome: found.end.map(|(verdict, _)| outcome(verdict)),
            deadline_ms: found.stamps.deadline_ms,
            sites: sites.map(|(site, voted_ms)| standing(site, voted_ms, decided_ms)).collect(),
        })
    }

    fn forget(transaction: String) -> Result<(), Error> {
        let paths = Paths::of(&transaction)?;
        let (terms, is_decided) = transaction::is_decided(&paths)?;
        if !is_decided {
            return Err(invalid(&["forget: ", &transaction, " is not decided"]));
        }
        // What this participant has there itself goes with its hearing of the decision.
        STATE.with_borrow_mut(|state| match state.desk.follows(&paths) {
            true => state.desk.outcome(&paths).map(drop),
            false => Ok(()),
        })?;
        let mut what_is_there = false;
        loop {
            match transaction::delete_all(&paths, &terms, what_is_there) {
                Ok(Deleted::Yes) => return Ok(()),
                Ok(Deleted::NotBefore(mark)) => {
                    STATE.with_borrow_mut(|state| state.desk.wait_until_gone(&mark))?;
                }
                Ok(Deleted::LookAgain) => what_is_there = true,
                // It was there, and somebody has deleted it; or this has, and its reply was lost.
                Err(Error::NoNode) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Casts the site's vote, or finds that it was cast. Answers whom the transaction asks, and what became of
/// the site's mark of presence.
fn cast(paths: &Paths, site: &str, choice: Choice) -> Result<(Terms, Mark), Error> {
    let transaction = paths.transaction();
    loop {
        let ballot = transaction::ballot(paths, site)?;
        match ballot.vote {
            Some(vote) if vote == choice => return Ok((ballot.terms, Mark::MayBeThere)),
            Some(vote) => return Err(has_voted("vote", transaction, site, vote)),
            None => refuse_if_decided("vote", transaction, &ballot)?,
        }
        // Who has registered votes, and nobody else: its mark goes with its vote.
        if ballot.present == Some(Owner::Other) {
            return Err(Error::NodeExists);
        }
        // Said here for the voter's sake, where its clock is right. What keeps a late vote from counting is
        // the server's stamp on it: the participant that decides compares that with the deadline.
        if choice == Choice::Commit && wall_ms() >= ballot.deadline_ms {
            return Err(invalid(&["vote: the time of ", transaction, " is over"]));
        }
        match transaction::cast(paths, site, choice, &ballot)? {
            Done::Yes if ballot.present.is_some() => return Ok((ballot.terms, Mark::Taken)),
            Done::Yes => return Ok((ballot.terms, Mark::MayBeThere)),
            Done::LookAgain => {}
        }
    }
}

fn of_site(operation: &str, transaction: &str, site: &str) -> Result<Paths, Error> {
    terms::check_name(site).map_err(|text| invalid(&[operation, ": ", &text]))?;
    Paths::of(transaction)
}

fn refuse_if_decided(operation: &str, transaction: &str, ballot: &Ballot) -> Result<(), Error> {
    match &ballot.verdict {
        None => Ok(()),
        Some(Verdict { choice, reason }) => {
            let word = choice.word();
            Err(invalid(&[operation, ": ", transaction, " is decided, to ", word, ": ", reason]))
        }
    }
}

fn has_voted(operation: &str, transaction: &str, site: &str, vote: Choice) -> Error {
    invalid(&[operation, ": ", site, " has voted to ", vote.word(), " in ", transaction])
}

fn shown(letter: Letter) -> Transaction {
    let Letter { path, payload, deadline_ms } = letter;
    Transaction { path, payload, deadline_ms }
}

fn outcome(verdict: Verdict) -> Outcome {
    let decision = match verdict.choice {
        Choice::Commit => Decision::Commit,
        Choice::Abort => Decision::Abort,
    };
    Outcome { decision, reason: verdict.reason }
}

fn standing(site: Site, voted_ms: u64, decided_ms: Option<u64>) -> Standing {
    let in_doubt = decided_ms.filter(|_| site.vote == Some(Choice::Commit));
    Standing {
        is_dead: site.is_dead(),
        vote: site.vote.map(|vote| match vote {
            Choice::Commit => Vote::Commit,
            Choice::Abort => Vote::Abort,
        }),
        in_doubt_ms: in_doubt.map(|decided| decided.saturating_sub(voted_ms)),
        site: site.name,
    }
}
