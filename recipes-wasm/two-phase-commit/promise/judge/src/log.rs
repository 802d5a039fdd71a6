//! What became of each transaction, by the ensemble's own log.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::{Change, What};
use wok_judge::{Case, Moment, Violation};

/// The servers' stamps are whole milliseconds.
const ROUNDED_US: u64 = 1000;

/// All transactions, by their absolute paths.
#[derive(Debug, Default)]
pub(crate) struct Log<'a> {
    txs: BTreeMap<&'a str, Tx<'a>>,
}

/// A transaction.
#[derive(Debug)]
pub(crate) struct Tx<'a> {
    pub(crate) path: &'a str,
    pub(crate) created: Moment,
    /// The session that created it.
    pub(crate) session: i64,
    /// The earliest moment at which its creation may have been stamped. The leader stamps a write when the
    /// request comes, and the log's moment is when most servers have it: much later, where the leader is cut
    /// off. It cannot be before the call.
    stamped_us: u64,
    pub(crate) within_us: u64,
    pub(crate) sites: Vec<&'a str>,
    pub(crate) payload: Option<&'a [u8]>,
    /// What was written to the sites' znodes, in order.
    pub(crate) votes: Vec<Vote<'a>>,
    /// What was written as the decision, in order: its word, and the reason.
    pub(crate) decisions: Vec<Decision<'a>>,
    /// The sites that had registered, and whose participants went before they had voted, or withdrew the
    /// `register` while it was under way.
    deaths: Vec<(Moment, &'a str)>,
    /// The entries at which a participant registered for a site.
    registrations: Vec<(usize, &'a str)>,
    /// The entries at which a site's mark of presence came or went, and whether it came.
    marks: Vec<(usize, &'a str, bool)>,
    pub(crate) deleted: Option<Moment>,
    /// The entries at which something of it changed.
    pub(crate) changes: Vec<usize>,
}

/// A decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision<'a> {
    pub(crate) when: Moment,
    pub(crate) word: &'a str,
    pub(crate) reason: &'a str,
}

/// A vote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vote<'a> {
    pub(crate) when: Moment,
    pub(crate) session: i64,
    pub(crate) site: &'a str,
    pub(crate) word: &'a str,
    /// The earliest moment at which it may have been stamped.
    stamped_us: u64,
}

impl<'a> Tx<'a> {
    fn of(path: &'a str, data: &'a [u8], created: Moment, session: i64) -> Option<Self> {
        let mut lines = std::str::from_utf8(data).ok()?.split('\n');
        let within = lines.next()?.strip_prefix("within ")?.strip_suffix(" ms")?;
        let within_us = within.parse::<u64>().ok()?.saturating_mul(1000);
        Some(Tx {
            path,
            created,
            session,
            stamped_us: created.us,
            within_us,
            sites: lines.collect(),
            payload: None,
            votes: Vec::new(),
            decisions: Vec::new(),
            deaths: Vec::new(),
            registrations: Vec::new(),
            marks: Vec::new(),
            deleted: None,
            changes: Vec::new(),
        })
    }

    /// When its time is over at the latest, by the servers' clock.
    pub(crate) fn deadline_us(&self) -> u64 {
        self.created.us.saturating_add(self.within_us)
    }

    /// Whether its time may be over then, by the servers' clock.
    pub(crate) fn may_be_over(&self, us: u64) -> bool {
        us.saturating_add(ROUNDED_US) >= self.stamped_us.saturating_add(self.within_us)
    }

    /// Whether the vote was stamped when the time was over, whenever in their spans the two stamps were made.
    pub(crate) fn is_late(&self, vote: &Vote<'_>) -> bool {
        vote.stamped_us >= self.deadline_us().saturating_add(ROUNDED_US)
    }

    /// Whether it may have been.
    pub(crate) fn may_be_late(&self, vote: &Vote<'_>) -> bool {
        self.may_be_over(vote.when.us)
    }

    /// The decision, if it is made.
    pub(crate) fn decision(&self) -> Option<(Moment, &'a str)> {
        self.decisions.first().map(|made| (made.when, made.word))
    }

    /// Whether it was decided by that entry.
    pub(crate) fn is_decided_by(&self, at: usize) -> bool {
        self.decision().is_some_and(|(decided, _)| decided.at <= at)
    }

    /// Whether the site had voted by that entry.
    pub(crate) fn has_voted_by(&self, site: &str, at: usize) -> bool {
        self.vote(site).is_some_and(|vote| vote.when.at <= at)
    }

    /// Whether it asked the site for its vote at that entry.
    pub(crate) fn asks_at(&self, site: &str, at: usize) -> bool {
        let is_there = self.created.at <= at && self.deleted.is_none_or(|deleted| deleted.at > at);
        is_there
            && self.sites.contains(&site)
            && !self.is_decided_by(at)
            && !self.has_voted_by(site, at)
    }

    /// The first of these entries and those at which something of it changed, as long as it was there: it is
    /// the same from each of them to the next.
    pub(crate) fn moments(&self, within: Range<usize>) -> impl Iterator<Item = usize> {
        let there = self.created.at..self.deleted.map_or(usize::MAX, |deleted| deleted.at);
        let from = within.start;
        let changes = self.changes.iter().copied().filter(move |at| within.contains(at));
        [from].into_iter().chain(changes).filter(move |at| there.contains(at))
    }

    /// Whether the site counted as one that has died at that entry: it had registered, was not there any more,
    /// and had not voted.
    pub(crate) fn is_dead_at(&self, site: &str, at: usize) -> bool {
        let mut before = self.marks.iter().filter(|(when, of, _)| *of == site && *when <= at);
        let is_gone = before.next_back().is_some_and(|(_, _, came)| !came);
        is_gone && !self.has_voted_by(site, at)
    }

    /// By the servers' clock, when its creation may have been stamped: the earliest and the latest time of the
    /// history, in milliseconds.
    pub(crate) fn stamped_ms(&self) -> RangeInclusive<u64> {
        self.stamped_us / 1000..=self.created.us / 1000
    }

    /// The vote of a site.
    pub(crate) fn vote(&self, site: &str) -> Option<&Vote<'a>> {
        self.votes.iter().find(|vote| vote.site == site)
    }

    /// Whether a site had died by that entry, and had no vote.
    pub(crate) fn has_lost_a_site(&self, at: usize) -> bool {
        self.deaths.iter().any(|(when, site)| {
            when.at < at && self.vote(site).is_none_or(|vote| vote.when.at > at)
        })
    }

    /// Whether somebody had registered for the site by that entry.
    pub(crate) fn was_registered(&self, site: &str, by: usize) -> bool {
        self.registrations.iter().any(|(at, of)| *of == site && *at < by)
    }

    /// When it could be decided, without its time being over. A site that died and came back before
    /// anybody had decided is as one that had not died.
    pub(crate) fn decidable(&self) -> Option<Moment> {
        let aborts = self.votes.iter().filter(|vote| vote.word == "abort").map(|vote| vote.when);
        let is_back = |died: usize, site: &str| {
            let registered = |(at, of): &(usize, &str)| *of == site && *at > died;
            self.vote(site).is_some() || self.registrations.iter().any(registered)
        };
        let deaths = self.deaths.iter().filter(|(when, site)| !is_back(when.at, site));
        let deaths = deaths.map(|(when, _)| *when);
        let all: Option<Vec<Moment>> =
            self.sites.iter().map(|site| self.vote(site).map(|vote| vote.when)).collect();
        let full = all.and_then(|all| all.into_iter().max());
        aborts.chain(deaths).chain(full).min()
    }

    fn note(&mut self, below: &'a str, change: &'a Change, when: Moment, session: i64) {
        match (below.split_once('/'), change) {
            (Some(("sites", site)), Change::DataSet { data, .. }) => {
                let word = std::str::from_utf8(data.bytes()).unwrap_or_default();
                self.votes.push(Vote { when, session, site, word, stamped_us: when.us });
            }
            (None, Change::DataSet { data, .. }) if below == "decision" => {
                let text = std::str::from_utf8(data.bytes()).unwrap_or_default();
                let (word, reason) = text.split_once('\n').unwrap_or((text, ""));
                self.decisions.push(Decision { when, word, reason });
            }
            (None, Change::Created { data, .. }) if below == "payload" => {
                self.payload = Some(data.bytes());
            }
            (Some(("present", site)), Change::Created { .. }) => {
                self.registrations.push((when.at, site));
                self.marks.push((when.at, site, true));
            }
            (Some(("present", site)), Change::Deleted { .. }) => {
                self.deaths.push((when, site));
                self.marks.push((when.at, site, false));
            }
            _ => {}
        }
    }

    fn stamp(&mut self, case: &Case<'_>) {
        let within_us = self.within_us;
        self.stamped_us = first_us(case, "begin", self.session, self.created, |arguments| {
            let within_ms = arguments.get("within-ms").and_then(fence_of);
            within_ms.map(|ms| ms.saturating_mul(1000)) == Some(within_us)
        });
        for vote in &mut self.votes {
            let Vote { site, when, session, .. } = *vote;
            vote.stamped_us = first_us(case, "vote", session, when, |arguments| {
                arguments.get("site").and_then(Value::as_str) == Some(site)
                    && arguments
                        .get("transaction")
                        .and_then(Value::as_str)
                        .is_some_and(|of| self.path.ends_with(of))
            });
        }
    }

    /// How long a site was in doubt, at least and at most, by the servers' clock. Its vote and the decision
    /// may have been stamped before the log has them; the decision after every vote before it was asked for.
    pub(crate) fn in_doubt_ms(&self, vote: &Vote<'_>, decided: Moment) -> RangeInclusive<u64> {
        let before = self.votes.iter().filter(|vote| vote.when.at < decided.at);
        let earliest_us = before.map(|vote| vote.stamped_us).max().unwrap_or_default();
        let least_us = earliest_us.saturating_sub(vote.when.us + ROUNDED_US);
        let most_us = decided.us.saturating_sub(vote.stamped_us) + ROUNDED_US;
        least_us / 1000..=most_us / 1000
    }

    /// A mark of presence that went with the vote, or after it or the decision, is no death.
    fn settle(&mut self) {
        let decided = self.decision().map(|(when, _)| when.at);
        let votes = &self.votes;
        self.deaths.retain(|(when, site)| {
            let has_voted = votes.iter().any(|vote| vote.site == *site && vote.when.at <= when.at);
            !has_voted && decided.is_none_or(|at| when.at < at)
        });
    }
}

impl<'a> Log<'a> {
    /// Of a history.
    pub(crate) fn of(case: &Case<'a>) -> Self {
        let mut log = Log::default();
        for (at, entry) in case.history.iter().enumerate() {
            let What::Txn { session, changes, .. } = &entry.what else { continue };
            let when = Moment::of(at, entry);
            for change in changes {
                log.note(change, when, *session);
            }
        }
        for tx in log.txs.values_mut() {
            tx.settle();
            tx.stamp(case);
        }
        log
    }

    fn note(&mut self, change: &'a Change, when: Moment, session: i64) {
        let (Change::Created { path, .. }
        | Change::Deleted { path }
        | Change::DataSet { path, .. }) = change
        else {
            return;
        };
        let Some((tx, below)) = split(path) else { return };
        match (below, change) {
            (None, Change::Created { data, .. }) => {
                let made = Tx::of(tx, data.bytes(), when, session);
                self.txs.extend(made.map(|made| (tx, made)));
            }
            (None, Change::Deleted { .. }) => {
                self.txs.get_mut(tx).into_iter().for_each(|tx| tx.deleted = Some(when));
            }
            (Some(below), _) => {
                self.txs
                    .get_mut(tx)
                    .into_iter()
                    .for_each(|tx| tx.note(below, change, when, session));
            }
            (None, _) => {}
        }
        self.txs.get_mut(tx).into_iter().for_each(|tx| tx.changes.push(when.at));
    }

    /// Every transaction.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Tx<'a>> {
        self.txs.values()
    }

    /// The transaction that a participant of that mount calls by that path.
    pub(crate) fn find(&self, mount: &str, transaction: &str) -> Option<&Tx<'a>> {
        self.txs.get([mount, transaction].concat().as_str())
    }
}

/// When somebody of that session called such an operation first; the write's own moment if nobody did.
fn first_us(
    case: &Case<'_>,
    operation: &str,
    session: i64,
    written: Moment,
    is_it: impl Fn(&Value) -> bool,
) -> u64 {
    let people = &case.people;
    let calls = people.calls().iter().filter(|call| {
        call.operation == operation
            && call.invoked.at < written.at
            && people.person(call.who).is_some_and(|person| person.session == session)
            && case.arguments(call).is_some_and(&is_it)
    });
    calls.map(|call| call.invoked.us).min().unwrap_or(written.us)
}

/// The transaction that a path is of, and what of it.
fn split(path: &str) -> Option<(&str, Option<&str>)> {
    let name = path.find("/tx-")? + 1;
    match path.get(name..)?.find('/') {
        None => Some((path, None)),
        Some(end) => Some((path.get(..name + end)?, path.get(name + end + 1..))),
    }
}

/// What is wrong with a transaction, at a moment.
pub(crate) fn wrong(id: &'static str, when: Moment, tx: &Tx<'_>, what: &str) -> Violation {
    let sentence = format!("{} {what}", tx.path);
    Violation::new(id, when.at, sentence).involving([tx.created.at])
}
