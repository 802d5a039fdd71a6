//! What a two-phase commit promises.
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | T1 | `agreement` | somebody is told an outcome that is not the transaction's decision, or before it is made |
//! | T2 | `validity` | a transaction is not the one that was asked for, commits without the vote of each site, cast in time, or aborts without a reason |
//! | T3 | `validity` | a decision or a vote is written again, or a vote after the decision |
//! | T4 | `termination` | somebody waits on for a decision that is made, can be made, or is due |
//! | T5 | `statuses` | a status shows what was so at no moment of the call: sites, votes, who is dead, the end, its reason, the deadline or the time in doubt |
//! | T6 | `endings` | who follows a transaction is not told its end, or another reason; or one that does not follow it is told |
//! | C1 | `votes` | a vote is cast that its site has not asked for, or acknowledged and not cast |
//! | C2 | `refusals` | a call is refused, and neither a fault nor the transaction nor what it asks for is the reason; or one with wrong arguments is not refused |
//! | C3 | `arrivals` | a site is not told of a transaction that asks it |
//! | C4 | `lists` | `transactions` answers what does not ask the site, or leaves out what does; or with another payload or deadline, or in another order |
//! | H1 | `polling` | who waits asks the ensemble again and again |
//!
//! The ensemble's own log says what was voted and decided.

mod agreement;
mod arrivals;
mod deadlines;
mod endings;
mod lists;
mod log;
mod polling;
mod refusals;
mod statuses;
mod termination;
mod validity;
mod votes;

#[cfg(test)]
mod tests;

use serde_json::Value;
use wok_judge::history::Entry;
use wok_judge::people::Call;
use wok_judge::truth::Truth;
use wok_judge::{Case, Judge, Promise, Stay, Violation, first_of_each};

use log::{Log, Tx};

/// Nobody holds a transaction.
const COMMIT: Promise = Promise {
    noun: "the transaction",
    asks: &[],
    waits: &["begin", "transactions", "register", "vote", "outcome", "status", "forget"],
    stay: Stay::WithCall,
    events: &[],
    looks: &[],
};

/// The judge of transactions.
#[derive(Debug)]
pub struct CommitJudge;

impl Judge for CommitJudge {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[
        ("T1", "all who are told the outcome of a transaction are told the same"),
        (
            "T2",
            "it asks what its coordinator says, commits only if all its sites have voted so in time, and \
             aborts only for a reason",
        ),
        ("T3", "a vote and a decision are written once, and no vote comes after the decision"),
        (
            "T4",
            "who waits for the outcome learns it as soon as it can be known, and by the deadline",
        ),
        ("T5", "what a status shows was so at a moment of the call"),
        ("T6", "who follows a transaction is told how it ended and why, and nobody else is"),
        ("C1", "a vote is cast if its site asks for it, and is cast when that is acknowledged"),
        (
            "C2",
            "a call is refused where its arguments are wrong, and otherwise only where a fault or \
             the transaction is the reason",
        ),
        ("C3", "a site that has asked for transactions is told of others"),
        ("C4", "`transactions` answers those that ask the site, as they were begun"),
        ("H1", "who waits is told, and does not ask again and again"),
    ];

    fn begin(_config: &str) -> Result<Self, String> {
        Ok(CommitJudge)
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &COMMIT);
        let log = Log::of(&case);
        let calls: Vec<Made<'_, '_>> =
            (case.people.calls().iter()).filter_map(|call| Made::of(&case, &log, call)).collect();
        let mut found = Vec::new();
        agreement::check(&case, &calls, &log, "T1", &mut found);
        validity::check_terms(&case, &log, "T2", &mut found);
        validity::check_reasons(&case, &log, "T2", &mut found);
        validity::check_once(&log, "T3", &mut found);
        termination::check(&case, &calls, "T4", &mut found);
        statuses::check(&case, &calls, "T5", &mut found);
        endings::check(&case, &calls, &log, "T6", &mut found);
        votes::check(&calls, &log, "C1", &mut found);
        arrivals::check(&case, &log, "C3", &mut found);
        lists::check(&case, &log, "C4", &mut found);
        deadlines::check(&case, &calls, &log, "T5", "C4", &mut found);
        refusals::check(&case, &calls, &log, "C2", &mut found);
        polling::check(&case, &calls, "H1", &mut found);
        first_of_each(found)
    }
}

/// A call about a transaction.
pub(crate) struct Made<'c, 'a> {
    pub(crate) call: &'c Call<'a>,
    /// The host of its participant, and its session.
    pub(crate) host: u32,
    pub(crate) session: i64,
    pub(crate) tx: &'c Tx<'a>,
    /// The site and the vote that it names.
    pub(crate) site: Option<&'a str>,
    pub(crate) choice: Option<&'a str>,
}

impl<'c, 'a> Made<'c, 'a> {
    fn of(case: &'c Case<'a>, log: &'c Log<'a>, call: &'c Call<'a>) -> Option<Self> {
        let person = case.people.person(call.who)?;
        let arguments = case.arguments(call)?;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let tx = log.find(person.mount, text("transaction")?)?;
        let (host, session) = (person.host, person.session);
        Some(Made { call, host, session, tx, site: text("site"), choice: text("choice") })
    }
}

wok_judge::export!(CommitJudge);
