//! The transactions that a participant follows: it looks at them again when something happened, and
//! writes down what can be decided.

use wok_sdk::participant::{Level, emit, log};
use wok_sdk::time_and_chance::{alarm, now_ms, wall_ms};
use wok_sdk::zookeeper::{Error, Watch, wait};
use wok_sdk::{Named, reason};

use crate::decide::{Step, Time, Verdict, decide};
use crate::replies::Replies;
use crate::terms::Terms;
use crate::transaction::{self, Done, Paths, Stamps, look, look_for_decision, watch_data};

/// The tag of the watches on transactions.
pub(crate) const TRANSACTIONS: u64 = 1;

/// How many transactions one participant follows. Each takes two watches, and a participant has 64 where
/// its host's settings do not say otherwise. Those beyond are decided by others, or by `outcome`.
pub(crate) const MOST_FOLLOWED: usize = 24;

/// How long a participant that could not look at a transaction waits before it looks again. Not a poll:
/// the host has already retried what reconnecting mends, and what is left is a spent limit.
const LOOK_AGAIN_MS: u64 = 1000;

/// Who is told of votes and deaths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notify {
    AllSites,
    Coordinator,
}

/// Why a transaction is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// This participant has begun it.
    Coordinator,
    /// It has registered for a site of it, or voted.
    Site,
    /// Its outcome is asked for.
    Onlooker,
}

/// What a vote has made of the mark of presence that this participant has at the site, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The vote has taken it away.
    Taken,
    /// The vote was found to be cast. It may be another participant's, which did not see this one register.
    MayBeThere,
}

/// A transaction that is followed.
#[derive(Debug)]
struct Follow {
    paths: Paths,
    terms: Terms,
    role: Role,
    /// Whether it is left to the coordinator, as long as that is there.
    is_left: bool,
    /// Own znodes that go when it is over.
    marks: Vec<Named>,
    /// When its time is over, by the server's clock, once it was looked at.
    deadline_ms: Option<u64>,
    /// When its time is over at the latest, on the clock that never goes back.
    latest_ms: u64,
    /// One of them has to fire before it is looked at again; with none it is looked at now.
    watches: Vec<Watch>,
}

impl Follow {
    /// How much time is left. The clock of this host may be ahead of the server's, and then the
    /// transaction is aborted early. It may be behind, and then the clock that never goes back says when
    /// the time is over.
    fn left_ms(&self) -> u64 {
        let longest = self.latest_ms.saturating_sub(now_ms());
        let left = self.deadline_ms.map_or(longest, |end| end.saturating_sub(wall_ms()));
        left.min(longest)
    }

    /// Goes by the server's stamps: at the time of the last vote, so much of the time was over. That was
    /// before now, so what is left of it now is no more than the rest.
    fn see(&mut self, stamps: Stamps) {
        let rest_ms = self.terms.within_ms.saturating_sub(stamps.passed_ms);
        self.latest_ms = self.latest_ms.min(now_ms().saturating_add(rest_ms));
        self.deadline_ms = Some(stamps.deadline_ms);
    }

    fn time(&self) -> Time {
        if self.left_ms() == 0 { Time::IsOver } else { Time::IsLeft }
    }

    fn is_due(&self) -> bool {
        let has_fired = |watch: &Watch| watch.fired().is_some();
        self.watches.is_empty() || self.watches.iter().any(has_fired) || self.time() == Time::IsOver
    }

    /// Whether it is followed after that. After a limit that is spent, say, it is looked at again; what is
    /// over, is not there, or was damaged by others stays as it is.
    fn goes_on_after(&mut self, end: &Result<Verdict, Error>) -> bool {
        let Err(error) = end else { return false };
        if matches!(error, Error::NoNode) {
            return false;
        }
        let text = ["look at ", self.paths.transaction(), ": ", reason(error)].concat();
        log(Level::Warn, &text);
        self.watches.clear();
        !matches!(error, Error::Other(_))
    }

    /// Looks at it, and decides if it can be decided. None if it is not.
    fn attend(&mut self) -> Result<Option<Verdict>, Error> {
        if self.is_left {
            let left = look_for_decision(&self.paths, &self.terms, TRANSACTIONS)?;
            self.see(left.stamps);
            self.watches = left.watches;
            if left.verdict.is_some() || (left.has_coordinator && self.time() == Time::IsLeft) {
                return Ok(left.verdict);
            }
            self.is_left = false;
        }
        loop {
            let found = look(&self.paths, &self.terms, Some(TRANSACTIONS))?;
            self.see(found.stamps);
            self.watches = found.watches;
            if let Some((verdict, _)) = found.end {
                return Ok(Some(verdict));
            }
            // 3. As soon as all votes are there, it can be decided; an abort may be earlier.
            match decide(&found.sites, self.time()) {
                Step::Wait => return Ok(None),
                Step::Decide { verdict, grounds } => {
                    match transaction::decide(&self.paths, &self.terms, &verdict, &grounds)? {
                        Done::Yes => return Ok(Some(verdict)),
                        Done::LookAgain => {}
                    }
                }
            }
        }
    }
}

/// All transactions that a participant follows.
#[derive(Debug)]
pub(crate) struct Desk {
    notify: Notify,
    follows: Vec<Follow>,
    /// Fires when the time of one of them is over, or one has to be looked at again.
    alarm: Option<Watch>,
}

impl Desk {
    pub(crate) const fn new(notify: Notify) -> Self {
        Desk { notify, follows: Vec::new(), alarm: None }
    }

    /// Follows a transaction from here on, until it is decided.
    pub(crate) fn follow(&mut self, paths: &Paths, terms: Terms, role: Role, mark: Option<Named>) {
        let known = self.follows.iter_mut().find(|follow| follow.paths == *paths);
        if let Some(follow) = known {
            if follow.role == Role::Onlooker {
                follow.role = role;
            }
            follow.marks.extend(mark);
            return;
        }
        if !self.has_room_for(paths) && role != Role::Onlooker {
            let path = paths.transaction();
            let text = [path, " is decided by others: this participant follows too many"].concat();
            log(Level::Warn, &text);
            // A coordinator's mark goes now, so that no site waits for it.
            return;
        }
        self.follows.push(Follow {
            paths: paths.clone(),
            latest_ms: now_ms().saturating_add(terms.within_ms),
            terms,
            role,
            is_left: self.notify == Notify::Coordinator && role != Role::Coordinator,
            marks: mark.into_iter().collect(),
            deadline_ms: None,
            watches: Vec::new(),
        });
    }

    /// Whether the transaction is followed.
    pub(crate) fn follows(&self, paths: &Paths) -> bool {
        self.follows.iter().any(|follow| follow.paths == *paths)
    }

    /// Whether it is, or can be.
    pub(crate) fn has_room_for(&self, paths: &Paths) -> bool {
        self.follows.len() < MOST_FOLLOWED || self.follows(paths)
    }

    /// Whether this participant has registered for the site, and it has not voted.
    pub(crate) fn is_registered(&self, paths: &Paths, site: &str) -> bool {
        let mark = paths.presence(site);
        let follows = self.follows.iter().filter(|follow| follow.paths == *paths);
        follows.flat_map(|follow| &follow.marks).any(|own| own.path() == mark)
    }

    /// Guards no more what this participant has registered with, because the site has voted.
    pub(crate) fn has_voted(&mut self, paths: &Paths, site: &str, mark: Mark) {
        let path = paths.presence(site);
        for follow in self.follows.iter_mut().filter(|follow| follow.paths == *paths) {
            if let Some(place) = follow.marks.iter().position(|own| own.path() == path) {
                let own = follow.marks.swap_remove(place);
                match mark {
                    Mark::Taken => drop(own.gone()),
                    Mark::MayBeThere => drop(own),
                }
            }
        }
    }

    /// Looks at every transaction that something has happened to, and sets the alarm for the others.
    /// Answers how the awaited one ended, if it did or could not be looked at.
    pub(crate) fn serve(&mut self, awaited: Option<&Paths>) -> Option<Result<Verdict, Error>> {
        let mut answer = None;
        let mut index = 0;
        while let Some(follow) = self.follows.get_mut(index) {
            if !follow.is_due() {
                index += 1;
                continue;
            }
            let result = follow.attend();
            let is_awaited = awaited == Some(&follow.paths);
            let end = match result {
                Ok(None) => {
                    index += 1;
                    continue;
                }
                Ok(Some(verdict)) => Ok(verdict),
                Err(error) => Err(error),
            };
            if follow.goes_on_after(&end) {
                index += 1;
            } else {
                // Its marks go with it.
                let follow = self.follows.swap_remove(index);
                if let Ok(verdict) = &end
                    && follow.role != Role::Onlooker
                {
                    tell(&follow.paths, verdict);
                }
            }
            if is_awaited {
                answer = Some(end);
            }
        }
        self.set_alarm();
        answer
    }

    /// Waits until a transaction is decided, and goes on with the others meanwhile.
    pub(crate) fn outcome(&mut self, paths: &Paths) -> Result<Verdict, Error> {
        if !self.follows(paths) {
            let terms = transaction::terms(paths)?;
            self.follow(paths, terms, Role::Onlooker, None);
        }
        let outcome = loop {
            if let Some(end) = self.serve(Some(paths)) {
                break end;
            }
            if let Err(error) = self.wait(None) {
                break Err(error);
            }
        };
        self.follows.retain(|it| it.paths != *paths || it.role != Role::Onlooker);
        self.set_alarm();
        outcome
    }

    /// Waits until there is no such znode, and goes on with the transactions meanwhile: somebody else may
    /// wait for this participant in the same way.
    pub(crate) fn wait_until_gone(&mut self, path: &str) -> Result<(), Error> {
        loop {
            let mut replies = Replies::of(&[watch_data(path.to_owned(), TRANSACTIONS)]);
            let watch = match replies.data() {
                Ok(_) => replies.watch()?,
                Err(Error::NoNode) => return Ok(()),
                Err(error) => return Err(error),
            };
            while watch.fired().is_none() {
                self.serve(None);
                self.wait(Some(&watch))?;
            }
        }
    }

    fn wait(&self, other: Option<&Watch>) -> Result<(), Error> {
        let mut watches = Vec::new();
        for follow in &self.follows {
            watches.extend(&follow.watches);
        }
        watches.extend(&self.alarm);
        watches.extend(other);
        wait(&watches).map(|_| ())
    }

    fn set_alarm(&mut self) {
        let after = self.follows.iter().map(|follow| match follow.watches.is_empty() {
            true => LOOK_AGAIN_MS,
            false => follow.left_ms(),
        });
        self.alarm = after.min().map(|after| alarm(after, TRANSACTIONS));
    }
}

fn tell(paths: &Paths, verdict: &Verdict) {
    let detail = [
        ("transaction".to_owned(), paths.transaction().to_owned()),
        ("decision".to_owned(), verdict.choice.word().to_owned()),
        ("reason".to_owned(), verdict.reason.clone()),
    ];
    emit("decided", &detail);
}
