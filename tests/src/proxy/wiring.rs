//! What the proxy's thread and the test share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::fault::{Action, Cut, Fault, Match, Pending};
use super::gate::{Direction, Gate};
use super::rate::Rate;
use super::record::{Answer, Seen};
use crate::frames::{ConnectResponse, ReplyHeader, RequestHead, SessionKey};

/// What is said on the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// What clients and servers say to each other, unless it is evidently something else.
    Frames,
    /// Nothing that is understood here.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Wiring {
    pub(super) upstream: SocketAddr,
    pub(super) language: Language,
    /// Of all connections, present and new.
    pub(super) gate: Gate,
    /// Of all connections together.
    pub(super) rate: Rate,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_refusing: bool,
    refused: usize,
    releases: Releases,
    pending: Vec<Pending>,
    log: Vec<Seen>,
    /// How many entries of the log were forgotten: places stay what they were.
    forgotten: usize,
    sessions: Vec<SessionKey>,
    lines: BTreeMap<u64, Arc<Line>>,
    last_line: u64,
}

/// One connection, as the test can reach it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) id: u64,
    pub(super) gate: Gate,
    cut: watch::Sender<Option<Cut>>,
}

impl Line {
    pub(super) async fn is_cut(&self) -> Cut {
        let mut cut = self.cut.subscribe();
        let cut = cut.wait_for(Option::is_some).await.map(|cut| *cut);
        cut.ok().flatten().unwrap_or(Cut::Fin)
    }
}

/// Where a request stands in the log, and what is to be done about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    pub(super) place: usize,
    pub(super) action: Option<Action>,
    /// How often all was released before.
    pub(super) releases: Releases,
}

/// How often all that was held back was released.
pub(super) type Releases = u64;

impl Wiring {
    pub(super) fn new(upstream: SocketAddr, language: Language) -> Self {
        Wiring {
            upstream,
            language,
            gate: Gate::new(),
            rate: Rate::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn inject(&self, when: Match, action: Action) -> Fault {
        let (pending, fault) = Pending::new(when, action);
        self.state().pending.push(pending);
        fault
    }

    pub(super) fn forget_faults(&self) {
        self.state().pending.clear();
    }

    pub(super) fn release(&self) {
        let mut state = self.state();
        state.releases += 1;
        for line in state.lines.values() {
            line.gate.open();
        }
        self.gate.open();
    }

    /// Holds a connection's bytes back, as a fault has it that struck when there were so many
    /// releases. A release since then was meant for it, too: nobody would let its bytes go later.
    pub(super) fn stall_line(&self, line: &Line, direction: Direction, releases: Releases) {
        let state = self.state();
        if state.releases == releases {
            line.gate.close(direction);
        }
    }

    pub(super) fn stall(&self, direction: Direction) {
        self.gate.close(direction);
    }

    pub(super) fn silence(&self, direction: Direction) {
        self.gate.seal(direction);
    }

    pub(super) fn refuse(&self, is_refusing: bool) {
        self.state().is_refusing = is_refusing;
    }

    pub(super) fn refused(&self) -> usize {
        self.state().refused
    }

    pub(super) fn cut_all(&self, cut: Cut) {
        for line in self.state().lines.values() {
            line.cut.send_replace(Some(cut));
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.state().lines.len()
    }

    pub(super) fn log(&self) -> Vec<Seen> {
        self.state().log.clone()
    }

    pub(super) fn clear_log(&self) {
        let mut state = self.state();
        state.forgotten += state.log.len();
        state.log.clear();
    }

    pub(super) fn sessions(&self) -> Vec<SessionKey> {
        self.state().sessions.clone()
    }

    /// A new connection, unless they are refused.
    pub(super) fn line(&self) -> Option<Arc<Line>> {
        let mut state = self.state();
        if state.is_refusing {
            state.refused += 1;
            return None;
        }
        state.last_line += 1;
        let id = state.last_line;
        let line = Arc::new(Line { id, gate: Gate::new(), cut: watch::Sender::new(None) });
        state.lines.insert(id, Arc::clone(&line));
        Some(line)
    }

    pub(super) fn hang_up(&self, line: &Line) {
        self.state().lines.remove(&line.id);
    }

    pub(super) fn saw_session(&self, response: ConnectResponse) {
        let mut state = self.state();
        if !response.is_refusal() && !state.sessions.contains(&response.session) {
            state.sessions.push(response.session);
        }
    }

    pub(super) fn saw_request(&self, line: &Line, head: RequestHead, length: usize) -> Verdict {
        let RequestHead { xid, opcode, path } = head;
        let at = Instant::now();
        let seen = Seen { connection: line.id, xid, opcode, path, length, at, answer: None };
        let mut state = self.state();
        let picked: Vec<usize> = (state.pending.iter_mut().enumerate())
            .filter_map(|(index, pending)| pending.counts(&seen).then_some(index))
            .collect();
        // The one that was asked for first strikes; later ones that pick the same request have
        // counted it and wait in vain, which their `struck` tells.
        let action = picked.first().map(|&index| state.pending.remove(index).strike(&seen));
        state.log.push(seen);
        let place = state.forgotten + state.log.len() - 1;
        Verdict { place, action, releases: state.releases }
    }

    pub(super) fn saw_answer(&self, place: usize, header: ReplyHeader) {
        let mut state = self.state();
        let place = place.checked_sub(state.forgotten);
        if let Some(seen) = place.and_then(|place| state.log.get_mut(place)) {
            let ReplyHeader { zxid, error, .. } = header;
            seen.answer = Some(Answer { zxid, error, at: Instant::now() });
        }
    }
}
