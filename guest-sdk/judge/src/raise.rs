//! A history as the host hands it over becomes one with texts and JSON in place.

use serde_json::Value;

use crate::bindings::wok::judge::history as wit;
use crate::history::{Change, Entry, FaultKind, Left, Outcome, Told, Watches, What};

/// The texts so far.
#[derive(Debug, Default)]
pub(crate) struct Raising {
    texts: Vec<String>,
}

impl Raising {
    pub(crate) fn learn(&mut self, texts: Vec<String>) {
        self.texts.extend(texts);
    }

    pub(crate) fn entry(&self, entry: wit::Entry) -> Entry {
        Entry { at_us: entry.at_us, what: self.what(entry.what) }
    }

    #[allow(clippy::panic, reason = "the host hands every text over before its number")]
    fn text(&self, number: wit::Text) -> String {
        let text = usize::try_from(number).ok().and_then(|number| self.texts.get(number));
        text.unwrap_or_else(|| panic!("there is no text {number}")).clone()
    }

    fn texts(&self, numbers: Vec<wit::Text>) -> Vec<String> {
        numbers.into_iter().map(|number| self.text(number)).collect()
    }

    #[allow(clippy::panic, reason = "the host hands JSON over")]
    fn json(&self, number: wit::Text) -> Value {
        let text = self.text(number);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn what(&self, what: wit::What) -> What {
        match what {
            wit::What::Txn(wit::Txn { zxid, session, changes }) => {
                let changes = changes.into_iter().map(|change| self.change(change)).collect();
                What::Txn { zxid, session, changes }
            }
            wit::What::SessionOpened(wit::SessionOpened { host, session, timeout_ms }) => {
                What::SessionOpened { host, session, timeout_ms }
            }
            wit::What::Joined(wit::Joined { participant, host, session, mount, config }) => {
                let (mount, config) = (self.text(mount), self.json(config));
                What::Joined { participant, host, session, mount, config }
            }
            wit::What::Invoked(wit::Invoked { participant, call, operation, arguments }) => {
                let (operation, arguments) = (self.text(operation), self.json(arguments));
                What::Invoked { participant, call, operation, arguments }
            }
            wit::What::Returned(wit::Returned { participant, call, outcome }) => {
                What::Returned { participant, call, outcome: self.outcome(outcome) }
            }
            wit::What::Withdrawn(wit::Withdrawn { participant, call }) => {
                What::Withdrawn { participant, call }
            }
            wit::What::Leaving(participant) => What::Leaving { participant },
            wit::What::Told(wit::Told { participant, notice }) => {
                What::Told { participant, notice: self.notice(notice) }
            }
            wit::What::Wrote(wit::Wrote { participant, fence, accepted }) => {
                What::Wrote { participant, fence, accepted }
            }
            wit::What::HostCall(wit::HostCall { participant, number, name, paths }) => {
                let (name, paths) = (self.text(name), self.texts(paths));
                What::HostCall { participant, number, name, paths }
            }
            wit::What::HostCallAnswered(answered) => self.answered(answered),
            wit::What::Event(wit::Event { host, session, event, path }) => {
                What::Event { host, session, event: self.text(event), path: self.text(path) }
            }
            wit::What::Request(wit::Request { host, session, name, path }) => {
                What::Request { host, session, name: self.text(name), path: self.text(path) }
            }
            wit::What::Woken(wit::Woken { participant, tags }) => What::Woken { participant, tags },
            wit::What::Fault(wit::Fault { fault, host, struck, cut }) => {
                let (struck, cut) = (self.texts(struck), cut.map(|cut| self.text(cut)));
                What::Fault { fault: kind(fault), host, struck, cut }
            }
            wit::What::Healed(wit::Healed { fault, host }) => {
                What::Healed { fault: kind(fault), host }
            }
            wit::What::SessionLost(wit::SessionLost { host, session, why }) => {
                What::SessionLost { host, session, why: self.text(why) }
            }
            wit::What::Calm => What::Calm,
            wit::What::Final(end) => self.end(end),
        }
    }

    fn answered(&self, answered: wit::HostCallAnswered) -> What {
        let wit::HostCallAnswered { participant, number, answer, created } = answered;
        let (answer, created) = (self.text(answer), created.map(|path| self.text(path)));
        What::HostCallAnswered { participant, number, answer, created }
    }

    fn end(&self, end: wit::Final) -> What {
        let left = |left: wit::Left| {
            let wit::Left { path, czxid, ephemeral_owner } = left;
            (self.text(path), Left { czxid, ephemeral_owner })
        };
        let watches = |(host, count): (u32, u32)| Watches {
            host,
            count: usize::try_from(count).unwrap_or(usize::MAX),
        };
        What::Final {
            znodes: end.znodes.into_iter().map(left).collect(),
            blocked: end.blocked,
            watches: end.watches.into_iter().map(watches).collect(),
        }
    }

    fn change(&self, change: wit::Change) -> Change {
        match change {
            wit::Change::Created(wit::Created { path, ephemeral_owner, data }) => {
                Change::Created { path: self.text(path), ephemeral_owner, data: data.into() }
            }
            wit::Change::Deleted(path) => Change::Deleted { path: self.text(path) },
            wit::Change::DataSet(wit::DataSet { path, version, data }) => {
                Change::DataSet { path: self.text(path), version, data: data.into() }
            }
            wit::Change::SessionCreated(session) => Change::SessionCreated { session },
            wit::Change::SessionClosed(session) => Change::SessionClosed { session },
        }
    }

    fn outcome(&self, outcome: wit::Outcome) -> Outcome {
        match outcome {
            wit::Outcome::Ok(wit::Answer { value, holds }) => {
                Outcome::Ok { value: self.json(value), holds }
            }
            wit::Outcome::Err(wit::Answer { value, holds }) => {
                Outcome::Err { value: self.json(value), holds }
            }
            wit::Outcome::Cancelled => Outcome::Cancelled,
            wit::Outcome::Ended => Outcome::Ended,
            wit::Outcome::Busy => Outcome::Busy,
        }
    }

    fn notice(&self, notice: wit::Notice) -> Told {
        match notice {
            wit::Notice::Waiting(path) => Told::Waiting { path: self.text(path) },
            wit::Notice::Held(wit::Held { path, fence }) => {
                Told::Held { path: self.text(path), fence }
            }
            wit::Notice::Released(path) => Told::Released { path: self.text(path) },
            wit::Notice::Suspended => Told::Suspended,
            wit::Notice::Resumed => Told::Resumed,
            wit::Notice::Emitted(wit::Emitted { event, detail }) => {
                let detail = detail.into_iter().map(|(name, it)| (self.text(name), self.text(it)));
                Told::Emitted { event: self.text(event), detail: detail.collect() }
            }
            wit::Notice::Lost(reason) => Told::Lost { reason: self.text(reason) },
            wit::Notice::Ended(wit::Ended { how, fault }) => {
                Told::Ended { how: self.text(how), fault: fault.map(|fault| self.text(fault)) }
            }
        }
    }
}

fn kind(fault: wit::FaultKind) -> FaultKind {
    match fault {
        wit::FaultKind::LostBefore => FaultKind::LostBefore,
        wit::FaultKind::LostAfter => FaultKind::LostAfter,
        wit::FaultKind::Delay => FaultKind::Delay,
        wit::FaultKind::HalfOpen => FaultKind::HalfOpen,
        wit::FaultKind::Expiry => FaultKind::Expiry,
        wit::FaultKind::Move => FaultKind::Move,
        wit::FaultKind::Lag => FaultKind::Lag,
        wit::FaultKind::LeaderChange => FaultKind::LeaderChange,
        wit::FaultKind::LinkCut => FaultKind::LinkCut,
        wit::FaultKind::HostCut => FaultKind::HostCut,
        wit::FaultKind::ServerCut => FaultKind::ServerCut,
        wit::FaultKind::LeaderCut => FaultKind::LeaderCut,
        wit::FaultKind::ServerPause => FaultKind::ServerPause,
        wit::FaultKind::Pause => FaultKind::Pause,
        wit::FaultKind::HostKill => FaultKind::HostKill,
        wit::FaultKind::GuestKill => FaultKind::GuestKill,
        wit::FaultKind::Cancel => FaultKind::Cancel,
        wit::FaultKind::ClockJump => FaultKind::ClockJump,
    }
}
