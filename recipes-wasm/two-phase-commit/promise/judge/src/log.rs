//! What became of each transaction, by the ensemble's own log.

use std::collections::BTreeMap;

use wok_judge::history::{Change, Entry, What};
use wok_judge::{Moment, Violation};

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
    pub(crate) within_us: u64,
    pub(crate) sites: Vec<&'a str>,
    /// What was written to the sites' znodes, in order.
    pub(crate) votes: Vec<Vote<'a>>,
    /// What was written as the decision, in order, and its word.
    pub(crate) decisions: Vec<(Moment, &'a str)>,
    /// The sites that had registered, and whose participants went before they had voted.
    pub(crate) deaths: Vec<(Moment, &'a str)>,
    pub(crate) deleted: Option<Moment>,
    /// The entries at which something of it changed.
    pub(crate) changes: Vec<usize>,
}

/// A vote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vote<'a> {
    pub(crate) when: Moment,
    pub(crate) session: i64,
    pub(crate) site: &'a str,
    pub(crate) word: &'a str,
}

impl<'a> Tx<'a> {
    fn of(path: &'a str, data: &'a [u8], created: Moment) -> Option<Self> {
        let mut lines = std::str::from_utf8(data).ok()?.split('\n');
        let within = lines.next()?.strip_prefix("within ")?.strip_suffix(" ms")?;
        let within_us = within.parse::<u64>().ok()?.saturating_mul(1000);
        Some(Tx {
            path,
            created,
            within_us,
            sites: lines.collect(),
            votes: Vec::new(),
            decisions: Vec::new(),
            deaths: Vec::new(),
            deleted: None,
            changes: Vec::new(),
        })
    }

    /// When its time is over, by the servers' clock.
    pub(crate) fn deadline_us(&self) -> u64 {
        self.created.us.saturating_add(self.within_us)
    }

    /// The decision, if it is made.
    pub(crate) fn decision(&self) -> Option<(Moment, &'a str)> {
        self.decisions.first().copied()
    }

    /// The vote of a site.
    pub(crate) fn vote(&self, site: &str) -> Option<&Vote<'a>> {
        self.votes.iter().find(|vote| vote.site == site)
    }

    /// When it could be decided, without its time being over.
    pub(crate) fn decidable(&self) -> Option<Moment> {
        let aborts = self.votes.iter().filter(|vote| vote.word == "abort").map(|vote| vote.when);
        let deaths = self.deaths.iter().map(|(when, _)| *when);
        let all: Option<Vec<Moment>> =
            self.sites.iter().map(|site| self.vote(site).map(|vote| vote.when)).collect();
        let full = all.and_then(|all| all.into_iter().max());
        aborts.chain(deaths).chain(full).min()
    }

    fn note(&mut self, below: &'a str, change: &'a Change, when: Moment, session: i64) {
        match (below.split_once('/'), change) {
            (Some(("sites", site)), Change::DataSet { data, .. }) => {
                let word = std::str::from_utf8(data.bytes()).unwrap_or_default();
                self.votes.push(Vote { when, session, site, word });
            }
            (None, Change::DataSet { data, .. }) if below == "decision" => {
                let text = std::str::from_utf8(data.bytes()).unwrap_or_default();
                let word = text.split_once('\n').map_or(text, |(word, _)| word);
                self.decisions.push((when, word));
            }
            (Some(("present", site)), Change::Deleted { .. }) => self.deaths.push((when, site)),
            _ => {}
        }
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
    pub(crate) fn of(history: &'a [Entry]) -> Self {
        let mut log = Log::default();
        for (at, entry) in history.iter().enumerate() {
            let What::Txn { session, changes, .. } = &entry.what else { continue };
            let when = Moment::of(at, entry);
            for change in changes {
                log.note(change, when, *session);
            }
        }
        log.txs.values_mut().for_each(Tx::settle);
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
                let made = Tx::of(tx, data.bytes(), when);
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
