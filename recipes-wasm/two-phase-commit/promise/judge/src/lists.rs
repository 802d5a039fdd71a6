//! What a site is answered that asks for its transactions.

use std::ops::Range;

use serde_json::Value;
use wok_judge::history::Outcome;
use wok_judge::{Case, Violation};

use crate::log::{Log, Tx};

/// As many are answered at most.
const MOST_ANSWERED: usize = 64;

/// C4: `transactions` answers those that asked the site at a moment of the call, those that were begun first in
/// front, each with what is to be done. None is left out that asked the site all the while.
pub(super) fn check(case: &Case<'_>, log: &Log<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls().iter().filter(|call| call.operation == "transactions") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let site = case.arguments(call).and_then(|it| it.get("site")?.as_str());
        let (Some(site), Some(person), Some(listed)) =
            (site, case.people.person(call.who), value.as_array())
        else {
            continue;
        };
        let asked = Asked {
            mount: person.mount,
            site,
            within: case.known_behind_sync(call, answered)..case.end_of(answered),
        };
        if let Some(why) = asked.objection(log, listed) {
            let sentence =
                format!("`transactions` answered participant {} for {site}, but {why}", call.who);
            let violation = Violation::new(id, answered.at, sentence);
            found.push(violation.involving([call.invoked.at]).by([call.who]));
        }
    }
}

/// What was asked, and when.
struct Asked<'c> {
    mount: &'c str,
    site: &'c str,
    within: Range<usize>,
}

impl Asked<'_> {
    fn objection(&self, log: &Log<'_>, listed: &[Value]) -> Option<String> {
        let mut told: Vec<&Tx<'_>> = Vec::with_capacity(listed.len());
        for one in listed {
            let path = one.get("path").and_then(Value::as_str).unwrap_or_default();
            let tx = log.find(self.mount, path).filter(|tx| tx.created.at < self.within.end);
            let Some(tx) = tx else { return Some(format!("nobody had begun {path}")) };
            if !tx.moments(self.within.clone()).any(|at| tx.asks_at(self.site, at)) {
                return Some(format!("{path} did not ask it at any moment of the call"));
            }
            let payload = one.get("payload").and_then(Value::as_str).map(str::as_bytes);
            if payload.is_some() && tx.payload.is_some() && payload != tx.payload {
                return Some(format!("{path} has another payload"));
            }
            told.push(tx);
        }
        if !told.is_sorted_by_key(|tx| tx.created) {
            return Some("those that were begun first do not come first".to_owned());
        }
        let asks_all_the_while = |tx: &&Tx<'_>| {
            let has_begun = tx.created.at <= self.within.start;
            let is_here =
                tx.path.strip_prefix(self.mount).is_some_and(|path| path.starts_with("/tx-"));
            has_begun && is_here && tx.asks_at(self.site, self.within.end)
        };
        let mut missing = log.all().filter(asks_all_the_while);
        let missing = missing.find(|tx| !told.iter().any(|told| told.path == tx.path));
        let missing = missing.filter(|_| told.len() < MOST_ANSWERED);
        missing.map(|tx| format!("{} asked it all the while and is left out", tx.path))
    }
}
