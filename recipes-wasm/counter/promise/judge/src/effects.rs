//! Which call made which change.

use wok_judge::Violation;

use crate::calls::{Answer, Asked, Call};
use crate::values::{Values, Written};

/// A1: changes and calls can be paired so that every change has a call that asked for it, and every
/// call that was acknowledged a change.
///
/// Both can be had together if each can be had alone (Mendelsohn and Dulmage), so they are looked for
/// one after the other.
pub(crate) fn check(
    calls: &[&Call<'_>],
    values: &Values,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    let changes = values.written();
    let edges: Vec<Vec<usize>> = changes
        .iter()
        .map(|change| {
            let makes = |place: &usize| calls.get(*place).is_some_and(|call| makes(call, change));
            (0..calls.len()).filter(makes).collect()
        })
        .collect();
    for place in unpaired(&edges, calls.len()) {
        let Some(change) = changes.get(place) else { continue };
        let sentence = format!(
            "the counter went from {} to {}, which nobody asked for, or not so often",
            change.from, change.to
        );
        found.push(Violation::new(id, change.at, sentence));
    }

    let acknowledged: Vec<usize> = (0..calls.len())
        .filter(|place| calls.get(*place).is_some_and(|call| is_acknowledged(call)))
        .collect();
    let edges: Vec<Vec<usize>> = acknowledged
        .iter()
        .map(|call| {
            (0..edges.len())
                .filter(|it| edges.get(*it).is_some_and(|calls| calls.contains(call)))
                .collect()
        })
        .collect();
    for place in unpaired(&edges, changes.len()) {
        let call = acknowledged.get(place).and_then(|place| calls.get(*place));
        let Some((call, (answered, _))) = call.and_then(|call| Some((call, call.returned?))) else {
            continue;
        };
        let sentence = format!(
            "the `{}` of participant {} was acknowledged, and the counter shows nothing of it",
            call.asked.name(),
            call.who
        );
        let violation = Violation::new(id, answered, sentence);
        found.push(violation.involving([call.invoked.0]).by([call.who]));
    }
}

fn is_acknowledged(call: &Call<'_>) -> bool {
    match call.asked {
        Asked::Get => false,
        Asked::Add(_) => matches!(call.answer, Answer::Value(_) | Answer::Nonsense(_)),
        Asked::CompareAndSet(..) => matches!(call.answer, Answer::Set | Answer::Nonsense(_)),
    }
}

/// Whether the call may have made the change.
fn makes(call: &Call<'_>, change: &Written) -> bool {
    // What nobody was told of may still happen when the caller has gone.
    let until = match call.answer {
        Answer::Unknown => None,
        _ => call.returned,
    };
    let is_in_time = call.invoked.0 < change.at && until.is_none_or(|(at, _)| change.at < at);
    let is_its_own = match (call.asked, call.answer) {
        (Asked::Add(by), Answer::Value(sum)) => {
            sum == change.to && change.from.checked_add(by) == Some(sum)
        }
        (Asked::Add(by), Answer::Unknown) => change.from.checked_add(by) == Some(change.to),
        (Asked::CompareAndSet(expected, value), Answer::Set | Answer::Unknown) => {
            (expected, value) == (change.from, change.to)
        }
        _ => false,
    };
    call.session == change.session && is_in_time && is_its_own
}

/// The left ones that have no partner when as many as possible have one, by augmenting paths.
/// `edges` has the possible partners of each, which are numbers below `count`.
fn unpaired(edges: &[Vec<usize>], count: usize) -> Vec<usize> {
    let mut partners: Vec<Option<usize>> = vec![None; count];
    let mut alone = Vec::new();
    for left in 0..edges.len() {
        if !pair(left, edges, &mut partners, &mut vec![false; count]) {
            alone.push(left);
        }
    }
    alone
}

/// Finds a partner for `left`, and another one for the holder that has to make way. As deep as
/// there are calls of one session that may have made one change.
fn pair(
    left: usize,
    edges: &[Vec<usize>],
    partners: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    let candidates = edges.get(left).map(Vec::as_slice).unwrap_or_default();
    for candidate in candidates {
        if tried.get_mut(*candidate).is_none_or(|tried| std::mem::replace(tried, true)) {
            continue;
        }
        let holder = partners.get(*candidate).copied().flatten();
        if holder.is_none_or(|holder| pair(holder, edges, partners, tried)) {
            if let Some(partner) = partners.get_mut(*candidate) {
                *partner = Some(left);
            }
            return true;
        }
    }
    false
}
