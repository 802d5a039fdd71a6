//! What a status shows.

use std::ops::Range;

use serde_json::Value;
use wok_judge::grants::fence_of;
use wok_judge::history::Outcome;
use wok_judge::{Case, Violation};

use crate::Made;
use crate::log::{self, Tx};

/// T5: what a status shows was so at a moment of the call. A server that is behind may show what was so
/// before, but nothing from before what the session itself has written.
pub(super) fn check(
    case: &Case<'_>,
    calls: &[Made<'_, '_>],
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for Made { call, tx, .. } in calls.iter().filter(|made| made.call.operation == "status") {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let within = case.known_to_server(call, answered)..case.end_of(answered);
        if let Some(what) = misshown(tx, value, within) {
            let what = format!("was shown {what}");
            let violation = log::wrong(id, answered, tx, &what).by([call.who]);
            found.push(violation.involving([call.invoked.at]));
        }
    }
}

/// What is shown that was not so.
fn misshown(tx: &Tx<'_>, shown: &Value, within: Range<usize>) -> Option<String> {
    let sites = shown.get("sites")?.as_array()?;
    let names: Vec<_> = sites.iter().filter_map(|it| it.get("site")?.as_str()).collect();
    if names != tx.sites {
        return Some(format!("with the sites {names:?}"));
    }
    let end = shown.get("outcome").filter(|end| !end.is_null());
    if let Some(what) = wrong_end(tx, end, &within) {
        return Some(what);
    }
    let mut wrong =
        sites.iter().zip(names).filter_map(|(site, name)| wrong_site(tx, site, name, end, &within));
    wrong.next()
}

/// What is wrong with the end that is shown, or with its absence. That the decision is another one is T1's.
fn wrong_end(tx: &Tx<'_>, end: Option<&Value>, within: &Range<usize>) -> Option<String> {
    let Some(end) = end else {
        return tx.is_decided_by(within.start).then(|| "as not decided, and was".to_owned());
    };
    let reason = end.get("reason").and_then(Value::as_str);
    let is_so = reason.is_none_or(|reason| tx.decisions.iter().any(|made| made.reason == reason));
    (!is_so).then(|| format!("with the reason {reason:?}, which is not the decision's"))
}

/// What is wrong with what is shown of a site.
fn wrong_site(
    tx: &Tx<'_>,
    site: &Value,
    name: &str,
    end: Option<&Value>,
    within: &Range<usize>,
) -> Option<String> {
    let cast = tx.vote(name).filter(|vote| vote.when.at < within.end);
    let vote = site.get("vote").and_then(Value::as_str);
    if vote.is_some() && vote != cast.map(|vote| vote.word) {
        return Some(format!("with a vote of {name} that was not cast"));
    }
    if vote.is_none() && tx.has_voted_by(name, within.start) {
        return Some(format!("without the vote of {name}, which was cast"));
    }
    if let Some(is_dead) = site.get("is-dead").and_then(Value::as_bool) {
        let mut moments = tx.moments(within.clone());
        if !moments.any(|at| tx.is_dead_at(name, at) == is_dead) {
            return Some(format!("with {name} dead: {is_dead}, which it was at no moment"));
        }
    }
    let is_over = end.is_some() && vote == Some("commit");
    let Some(in_doubt) = site.get("in-doubt-ms").and_then(fence_of) else {
        return is_over.then(|| format!("without how long {name} was in doubt"));
    };
    let Some((decided, cast)) = tx.decision().zip(cast).filter(|_| is_over) else {
        return Some(format!("with {name} in doubt for {in_doubt} ms, and still is, or never was"));
    };
    let was = tx.in_doubt_ms(cast, decided.0);
    let (least, most) = (was.start(), was.end());
    (!was.contains(&in_doubt))
        .then(|| format!("with {name} in doubt for {in_doubt} ms, not {least} to {most}"))
}
