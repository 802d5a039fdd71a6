//! Feeds a history to a judge: every text once, and a number wherever it stands.

use std::collections::{BTreeMap, HashMap};

use wok_judge::Violation;

use crate::guest::{Judge, JudgeError, judged as wit};
use crate::simulation::history::{
    CallId, Change, Entry, FaultKind, Left, Outcome, Told, Watches, What,
};

/// What a judge says of a history.
pub(super) fn ask(
    judge: &Judge,
    config: &str,
    history: &[Entry],
) -> Result<Vec<Violation>, JudgeError> {
    let mut feed = Feed::default();
    let entries: Vec<wit::Entry> = history.iter().map(|entry| feed.entry(entry)).collect();
    let found = judge.verdict(config, &feed.texts, &entries)?;
    found.into_iter().map(|violation| raised(judge, violation, history.len())).collect()
}

/// Takes a violation over, if it makes sense.
fn raised(
    judge: &Judge,
    violation: wit::Violation,
    entries: usize,
) -> Result<Violation, JudgeError> {
    let wit::Violation { invariant, sentence, at, involved, participants } = violation;
    if !judge.names(&invariant) {
        return Err(
            judge.failed(format!("it tells of {invariant:?}, which is none of its invariants"))
        );
    }
    let mut numbers = Vec::new();
    for number in [at].into_iter().chain(involved) {
        let number = usize::try_from(number).ok().filter(|number| *number < entries);
        let number = number.ok_or_else(|| {
            judge
                .failed(format!("{invariant} is broken at an entry beyond the {entries} there are"))
        })?;
        numbers.push(number);
    }
    let at = numbers.first().copied().unwrap_or_default();
    Ok(Violation::new(invariant, at, sentence).involving(numbers).by(participants))
}

/// The texts so far, and where each stands.
#[derive(Debug, Default)]
struct Feed<'a> {
    texts: Vec<String>,
    known: HashMap<&'a str, u32>,
}

impl<'a> Feed<'a> {
    fn text(&mut self, text: &'a str) -> u32 {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let number = self.add(text.to_owned());
        self.known.insert(text, number);
        number
    }

    fn add(&mut self, text: String) -> u32 {
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text);
        number
    }

    fn json(&mut self, value: &'a serde_json::Value) -> u32 {
        match value {
            serde_json::Value::Null => self.text("null"),
            value => self.add(value.to_string()),
        }
    }

    fn all(&mut self, texts: &'a [String]) -> Vec<u32> {
        texts.iter().map(|text| self.text(text)).collect()
    }

    fn perhaps(&mut self, text: Option<&'a String>) -> Option<u32> {
        text.map(|text| self.text(text))
    }

    fn entry(&mut self, entry: &'a Entry) -> wit::Entry {
        wit::Entry { at_us: entry.at_us, what: self.what(&entry.what) }
    }

    fn what(&mut self, what: &'a What) -> wit::What {
        match *what {
            What::Txn { zxid, session, ref changes } => {
                let changes = changes.iter().map(|change| self.change(change)).collect();
                wit::What::Txn(wit::Txn { zxid, session, changes })
            }
            What::SessionOpened { host, session, timeout_ms } => {
                wit::What::SessionOpened(wit::SessionOpened { host, session, timeout_ms })
            }
            What::Joined { participant, host, session, ref mount, ref config } => {
                let (mount, config) = (self.text(mount), self.json(config));
                wit::What::Joined(wit::Joined { participant, host, session, mount, config })
            }
            What::Invoked { participant, call, ref operation, ref arguments } => {
                let (operation, arguments) = (self.text(operation), self.json(arguments));
                wit::What::Invoked(wit::Invoked { participant, call, operation, arguments })
            }
            What::Returned { participant, call, ref outcome } => {
                let outcome = self.outcome(outcome);
                wit::What::Returned(wit::Returned { participant, call, outcome })
            }
            What::Withdrawn { participant, call } => {
                wit::What::Withdrawn(wit::Withdrawn { participant, call })
            }
            What::Leaving { participant } => wit::What::Leaving(participant),
            What::Told { participant, ref notice } => {
                let notice = self.notice(notice);
                wit::What::Told(wit::Told { participant, notice })
            }
            What::Wrote { participant, fence, accepted } => {
                wit::What::Wrote(wit::Wrote { participant, fence, accepted })
            }
            What::HostCall { participant, number, ref name, ref paths } => {
                let (name, paths) = (self.text(name), self.all(paths));
                wit::What::HostCall(wit::HostCall { participant, number, name, paths })
            }
            What::HostCallAnswered { participant, number, ref answer, ref created } => {
                let (answer, created) = (self.text(answer), self.perhaps(created.as_ref()));
                let answered = wit::HostCallAnswered { participant, number, answer, created };
                wit::What::HostCallAnswered(answered)
            }
            What::Woken { participant, ref tags } => {
                wit::What::Woken(wit::Woken { participant, tags: tags.clone() })
            }
            What::Event { host, session, ref event, ref path } => {
                let (event, path) = (self.text(event), self.text(path));
                wit::What::Event(wit::Event { host, session, event, path })
            }
            What::Request { host, session, ref name, ref path } => {
                let (name, path) = (self.text(name), self.text(path));
                wit::What::Request(wit::Request { host, session, name, path })
            }
            What::Fault { fault, host, ref struck, ref cut } => {
                let (struck, cut) = (self.all(struck), self.perhaps(cut.as_ref()));
                wit::What::Fault(wit::Fault { fault: kind(fault), host, struck, cut })
            }
            What::Healed { fault, host } => {
                wit::What::Healed(wit::Healed { fault: kind(fault), host })
            }
            What::SessionLost { host, session, ref why } => {
                wit::What::SessionLost(wit::SessionLost { host, session, why: self.text(why) })
            }
            What::Calm => wit::What::Calm,
            What::Final { ref znodes, ref blocked, ref watches } => {
                wit::What::Final(self.end(znodes, blocked, watches))
            }
        }
    }

    fn end(
        &mut self,
        znodes: &'a BTreeMap<String, Left>,
        blocked: &[CallId],
        watches: &[Watches],
    ) -> wit::Final {
        let left = |(path, left): (&'a String, &Left)| wit::Left {
            path: self.text(path),
            czxid: left.czxid,
            ephemeral_owner: left.ephemeral_owner,
        };
        let znodes = znodes.iter().map(left).collect();
        let count = |it: &Watches| (it.host, u32::try_from(it.count).unwrap_or(u32::MAX));
        let watches = watches.iter().map(count).collect();
        wit::Final { znodes, blocked: blocked.to_vec(), watches }
    }

    fn change(&mut self, change: &'a Change) -> wit::Change {
        match change {
            Change::Created { path, ephemeral_owner, data } => {
                let (path, data) = (self.text(path), data.bytes().to_vec());
                let ephemeral_owner = *ephemeral_owner;
                wit::Change::Created(wit::Created { path, ephemeral_owner, data })
            }
            Change::Deleted { path } => wit::Change::Deleted(self.text(path)),
            Change::DataSet { path, version, data } => {
                let (path, data) = (self.text(path), data.bytes().to_vec());
                wit::Change::DataSet(wit::DataSet { path, version: *version, data })
            }
            Change::SessionCreated { session } => wit::Change::SessionCreated(*session),
            Change::SessionClosed { session } => wit::Change::SessionClosed(*session),
        }
    }

    fn outcome(&mut self, outcome: &'a Outcome) -> wit::Outcome {
        match outcome {
            Outcome::Ok { value, holds } => {
                wit::Outcome::Ok(wit::Answer { value: self.json(value), holds: *holds })
            }
            Outcome::Err { value, holds } => {
                wit::Outcome::Err(wit::Answer { value: self.json(value), holds: *holds })
            }
            Outcome::Cancelled => wit::Outcome::Cancelled,
            Outcome::Ended => wit::Outcome::Ended,
            Outcome::Busy => wit::Outcome::Busy,
        }
    }

    fn notice(&mut self, notice: &'a Told) -> wit::Notice {
        match notice {
            Told::Waiting { path } => wit::Notice::Waiting(self.text(path)),
            Told::Held { path, fence } => {
                wit::Notice::Held(wit::Held { path: self.text(path), fence: *fence })
            }
            Told::Released { path } => wit::Notice::Released(self.text(path)),
            Told::Suspended => wit::Notice::Suspended,
            Told::Resumed => wit::Notice::Resumed,
            Told::Emitted { event, detail } => {
                let event = self.text(event);
                let detail = detail.iter().map(|(name, it)| (self.text(name), self.text(it)));
                wit::Notice::Emitted(wit::Emitted { event, detail: detail.collect() })
            }
            Told::Lost { reason } => wit::Notice::Lost(self.text(reason)),
            Told::Ended { how, fault } => {
                let (how, fault) = (self.text(how), self.perhaps(fault.as_ref()));
                wit::Notice::Ended(wit::Ended { how, fault })
            }
        }
    }
}

fn kind(fault: FaultKind) -> wit::FaultKind {
    match fault {
        FaultKind::LostBefore => wit::FaultKind::LostBefore,
        FaultKind::LostAfter => wit::FaultKind::LostAfter,
        FaultKind::Delay => wit::FaultKind::Delay,
        FaultKind::HalfOpen => wit::FaultKind::HalfOpen,
        FaultKind::Expiry => wit::FaultKind::Expiry,
        FaultKind::Move => wit::FaultKind::Move,
        FaultKind::Lag => wit::FaultKind::Lag,
        FaultKind::LeaderChange => wit::FaultKind::LeaderChange,
        FaultKind::LinkCut => wit::FaultKind::LinkCut,
        FaultKind::HostCut => wit::FaultKind::HostCut,
        FaultKind::ServerCut => wit::FaultKind::ServerCut,
        FaultKind::LeaderCut => wit::FaultKind::LeaderCut,
        FaultKind::ServerPause => wit::FaultKind::ServerPause,
        FaultKind::Pause => wit::FaultKind::Pause,
        FaultKind::HostKill => wit::FaultKind::HostKill,
        FaultKind::GuestKill => wit::FaultKind::GuestKill,
        FaultKind::Cancel => wit::FaultKind::Cancel,
        FaultKind::ClockJump => wit::FaultKind::ClockJump,
    }
}
