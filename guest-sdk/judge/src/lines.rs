//! The line that `contenders` answers: did it stand so at a moment of the call?

use serde_json::Value;

use crate::history::{Change, Outcome, What};
use crate::people::Call;
use crate::revoking::asks;
use crate::truth::Contender;
use crate::{Case, Moment, Violation};

/// The operation that tells of a line.
const OPERATION: &str = "contenders";

/// `contenders` answers the line as it stood at one moment of the call: the same contenders in the same order,
/// each with the owner that its znode names, and each as a holder if nobody was in its way, or not if somebody
/// was. A contender that had gone before the answer may be missing.
pub fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for call in case.people.calls().iter().filter(|call| call.operation == OPERATION) {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let Some(told) = value.as_array() else { continue };
        if let Some(why) = objection(case, call, answered, told) {
            let who = call.who;
            let sentence = format!("`contenders` answered participant {who} a line, but {why}");
            let violation = Violation::new(id, answered.at, sentence);
            found.push(violation.involving([call.invoked.at]).by([who]));
        }
    }
}

fn objection(case: &Case<'_>, call: &Call<'_>, answered: Moment, told: &[Value]) -> Option<String> {
    let mount = case.people.person(call.who)?.mount;
    let until = case.end_of(answered);
    let mut those = Vec::with_capacity(told.len());
    for it in told {
        let Some(path) = it.get("path").and_then(Value::as_str) else {
            return Some("one of its contenders has no path".to_owned());
        };
        let path = [mount.trim_end_matches('/'), path].concat();
        let Some(contender) = case.truth.find(&path, until) else {
            return Some(format!("{path} never stood in line"));
        };
        let owner = owner(case, contender);
        if it.get("owner").and_then(Value::as_str) != owner.as_deref() {
            return Some(format!("the owner of {path} is {}", owner.unwrap_or_default()));
        }
        let Some(is_holder) = it.get("is-holder").and_then(Value::as_bool) else {
            return Some(format!("it does not say whether {path} holds"));
        };
        those.push((contender, is_holder));
    }
    let from = case.known_to_server(call, answered);
    // It changes only where somebody comes or goes.
    let of_line = case.truth.contenders().iter().filter(|it| it.parent == mount);
    let changes = of_line.flat_map(|it| [Some(it.created), it.deleted_at()]).flatten();
    let mut moments = changes.map(|change| change.at).chain([from]);
    let was_so =
        moments.any(|at| (from..until).contains(&at) && stood_so(case, (mount, at), until, &those));
    (!was_so).then(|| format!("the line stood so at no moment since entry {from}"))
}

/// Whether the line stood so after an entry. A contender that had gone before the answer may be left out,
/// because its owner could not be read any more.
fn stood_so(
    case: &Case<'_>,
    (mount, at): (&str, usize),
    until: usize,
    told: &[(&Contender<'_>, bool)],
) -> bool {
    let line = case.truth.line_at(mount, at);
    let mut told = told.iter().peekable();
    let is_so = line.iter().enumerate().all(|(place, it)| {
        let Some((_, is_holder)) = told.next_if(|(next, _)| next.id == it.id) else {
            return it.deleted_at().is_some_and(|deleted| deleted.at < until);
        };
        let is_free = !line.iter().take(place).any(|ahead| ahead.excludes(it));
        *is_holder == is_free
    });
    is_so && told.next().is_none()
}

/// What a contender's znode says of its owner: the data it was created with. A request to give way is written
/// behind that text and is no part of it; a downgrade copies both into the new znode.
fn owner(case: &Case<'_>, contender: &Contender<'_>) -> Option<String> {
    let What::Txn { changes, .. } = &case.history.get(contender.created.at)?.what else {
        return None;
    };
    changes.iter().find_map(|change| match change {
        Change::Created { path, data, .. } if path == contender.path => {
            let owner = asks(data.bytes()).unwrap_or(data.bytes());
            Some(String::from_utf8_lossy(owner).into_owned())
        }
        _ => None,
    })
}
