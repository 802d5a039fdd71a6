//! Whether votes are those that were asked for.

use wok_judge::Violation;
use wok_judge::history::Outcome;

use crate::Made;
use crate::log::{self, Log};

/// C1: a vote is cast on the request of its participant, and one that is acknowledged is cast.
pub(super) fn check(
    calls: &[Made<'_, '_>],
    log: &Log<'_>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for tx in log.all() {
        for vote in &tx.votes {
            let asks = |made: &&Made<'_, '_>| {
                made.call.operation == "vote"
                    && made.tx.path == tx.path
                    && (made.site, made.choice) == (Some(vote.site), Some(vote.word))
                    && made.session == vote.session
                    && made.call.invoked.at < vote.when.at
            };
            if !calls.iter().any(|made| asks(&made)) {
                let what = format!("has a vote of {} that nobody asked for", vote.site);
                found.push(log::wrong(id, vote.when, tx, &what));
            }
        }
    }
    for made in calls.iter().filter(|made| made.call.operation == "vote") {
        let (Some((answered, Outcome::Ok { .. })), Some(site)) = (made.call.answered, made.site)
        else {
            continue;
        };
        let cast = made.tx.vote(site).filter(|vote| vote.when.at < answered.at);
        if cast.map(|vote| vote.word) != made.choice {
            let what = format!("does not have the vote of {site} that was acknowledged");
            found.push(log::wrong(id, answered, made.tx, &what).by([made.call.who]));
        }
    }
}
