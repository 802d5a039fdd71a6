//! The line that `contenders` answers: did it stand so at a moment of the call?

use std::ops::Range;

use serde_json::Value;

use crate::history::{Change, Outcome, What};
use crate::people::{Call, Person};
use crate::revoking::asks;
use crate::truth::Contender;
use crate::{Case, Moment, Violation};

/// The operation that tells of a line.
const OPERATION: &str = "contenders";

/// One that an answer tells of.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The contender.
    pub contender: &'a Contender<'a>,
    /// Whether the answer says that nobody is in its way.
    pub is_free: bool,
}

/// `contenders` answers the line as it stood at one moment of the call: the same contenders in the same order,
/// each with the owner that its znode names, and each as a holder if nobody was in its way, or not if somebody
/// was. A contender that had gone before the answer may be missing. Where an answer says what each wants, as
/// `mode`, it says so by the contender's name.
pub fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mount = |person: &Person<'_>, _: &Call<'_>| Some(person.mount.to_owned());
    check_of(case, id, "is-holder", mount, found);
}

/// The same of a recipe with several lines, which says under `free` that nobody is in somebody's way. The
/// directory of the line that a call asks for is what `directory` answers.
pub fn check_of(
    case: &Case<'_>,
    id: &'static str,
    free: &str,
    directory: impl Fn(&Person<'_>, &Call<'_>) -> Option<String>,
    found: &mut Vec<Violation>,
) {
    let objection = |person: &Person<'_>, call: &Call<'_>, answered: Moment, told: &[Value]| {
        let directory = directory(person, call)?;
        let those = match shown(case, person, answered, told, free) {
            Ok(those) => those,
            Err(why) => return Some(why),
        };
        let within = within(case, call, answered);
        let (from, until) = (within.start, within.end);
        let stood_so = |at: usize| stood_so(case, (&directory, at), until, &those);
        let was_so = moments(case, &[&directory], within).into_iter().any(stood_so);
        (!was_so).then(|| format!("the line stood so at no moment since entry {from}"))
    };
    check_answers(case, id, objection, found);
}

/// What is wrong with the answers of `contenders`, by an objection to each.
pub fn check_answers(
    case: &Case<'_>,
    id: &'static str,
    objection: impl Fn(&Person<'_>, &Call<'_>, Moment, &[Value]) -> Option<String>,
    found: &mut Vec<Violation>,
) {
    for call in case.people.calls().iter().filter(|call| call.operation == OPERATION) {
        let Some((answered, Outcome::Ok { value, .. })) = call.answered else { continue };
        let told = value.as_array().zip(case.people.person(call.who));
        let Some((told, person)) = told else { continue };
        if let Some(why) = objection(person, call, answered, told) {
            let who = call.who;
            let sentence = format!("`contenders` answered participant {who} a line, but {why}");
            let violation = Violation::new(id, answered.at, sentence);
            found.push(violation.involving([call.invoked.at]).by([who]));
        }
    }
}

/// Those that an answer tells of, each as its znode is. `free` is what the answer calls those that nobody is
/// in the way of.
///
/// # Errors
/// What the answer says of one of them that is not so.
pub fn shown<'a>(
    case: &'a Case<'_>,
    person: &Person<'_>,
    answered: Moment,
    told: &[Value],
    free: &str,
) -> Result<Vec<Shown<'a>>, String> {
    let one = |it: &Value| -> Result<Shown<'a>, String> {
        let text = |key: &str| it.get(key).and_then(Value::as_str);
        let path = text("path").ok_or("one of its contenders has no path")?;
        let path = [person.mount.trim_end_matches('/'), path].concat();
        let contender = case.truth.find(&path, case.end_of(answered));
        let contender = contender.ok_or_else(|| format!("{path} never stood in line"))?;
        let owner = owner(case, contender);
        if text("owner") != owner.as_deref() {
            return Err(format!("the owner of {path} is {}", owner.unwrap_or_default()));
        }
        let mode = if contender.is_shared { "read" } else { "write" };
        if text("mode").is_some_and(|told| told != mode) {
            return Err(format!("{path} is there to {mode}"));
        }
        let is_free = it.get(free).and_then(Value::as_bool);
        let is_free = is_free.ok_or_else(|| format!("it does not say whether {path} {free}"))?;
        Ok(Shown { contender, is_free })
    };
    told.iter().map(one).collect()
}

/// The entries after which an answer may show what was the case.
pub fn within(case: &Case<'_>, call: &Call<'_>, answered: Moment) -> Range<usize> {
    case.known_to_server(call, answered)..case.end_of(answered)
}

/// The first of these entries, and those after which a line in one of the directories was another one: it
/// changes only where somebody comes or goes.
pub fn moments(case: &Case<'_>, directories: &[&str], within: Range<usize>) -> Vec<usize> {
    let of_lines = case.truth.contenders().iter().filter(|it| directories.contains(&it.parent));
    let changes = of_lines.flat_map(|it| [Some(it.created), it.deleted_at()]).flatten();
    let changes = changes.map(|change| change.at).filter(|at| within.contains(at));
    let mut moments: Vec<usize> = changes.chain([within.start]).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// Whether those are the line, in its order. A contender that had gone before the answer, at `until`, may be
/// left out, because its owner could not be read any more.
pub fn is_line(line: &[&Contender<'_>], told: &[Shown<'_>], until: usize) -> bool {
    let mut told = told.iter().peekable();
    let is_so = line.iter().all(|it| {
        told.next_if(|next| next.contender.id == it.id).is_some()
            || it.deleted_at().is_some_and(|deleted| deleted.at < until)
    });
    is_so && told.next().is_none()
}

/// Whether the line stood so after an entry.
fn stood_so(
    case: &Case<'_>,
    (directory, at): (&str, usize),
    until: usize,
    told: &[Shown<'_>],
) -> bool {
    let line = case.truth.line_at(directory, at);
    let is_free = |it: &Contender<'_>| {
        !line.iter().take_while(|ahead| ahead.id != it.id).any(|ahead| ahead.excludes(it))
    };
    is_line(&line, told, until) && told.iter().all(|it| it.is_free == is_free(it.contender))
}

/// What a contender's znode says of its owner: the data it was created with. A request to give way is written
/// behind that text and is no part of it; a downgrade copies both into the new znode.
pub fn owner(case: &Case<'_>, contender: &Contender<'_>) -> Option<String> {
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
