//! Those whom `contenders` tells of: did they hold permits, and wait, at moments of the call?

use serde_json::Value;
use wok_judge::lines::{Shown, check_answers, is_line, moments, shown, within};
use wok_judge::people::{Call, Person};
use wok_judge::truth::Contender;
use wok_judge::{Case, Moment, Violation};

use crate::log::{is_leases_of, is_queue_of};

/// C1: `contenders` answers the leases, in any order, and behind them the queue in its order. The two are
/// read one after the other, so that somebody who is granted permits in between is in neither; and the queue
/// is not that of an earlier moment. What had gone before the answer may be missing.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let objection = |person: &Person<'_>, call: &Call<'_>, answered: Moment, told: &[Value]| {
        objection(case, person, call, answered, told)
    };
    check_answers(case, id, objection, found);
}

fn objection(
    case: &Case<'_>,
    person: &Person<'_>,
    call: &Call<'_>,
    answered: Moment,
    told: &[Value],
) -> Option<String> {
    let those = match shown(case, person, answered, told, "is-holder") {
        Ok(those) => those,
        Err(why) => return Some(why),
    };
    let (holders, waiting) = those.split_at(those.iter().take_while(|it| it.is_free).count());
    let stray = holders.iter().find(|it| !is_leases_of(it.contender.parent, person.mount));
    if let Some(it) = stray {
        return Some(format!("{} is no lease", it.contender.path));
    }
    let stray =
        waiting.iter().find(|it| it.is_free || !is_queue_of(it.contender.parent, person.mount));
    if let Some(it) = stray {
        return Some(format!("{} is no place in the queue, or before a lease", it.contender.path));
    }
    let mount = person.mount.trim_end_matches('/');
    let [leases, queue] = ["/leases", "/locks"].map(|name| [mount, name].concat());
    let within = within(case, call, answered);
    let (from, until) = (within.start, within.end);
    let moments = moments(case, &[&leases, &queue], within);
    let mut later = moments
        .iter()
        .skip_while(|at| !are_leases(&case.truth.line_at(&leases, **at), holders, until))
        .peekable();
    if later.peek().is_none() {
        return Some(format!("the leases were so at no moment since entry {from}"));
    }
    let was_so = later.any(|at| is_line(&case.truth.line_at(&queue, *at), waiting, until));
    (!was_so).then(|| "the queue was so at no moment of the leases, or later".to_owned())
}

/// Whether those are the leases, but for those that had gone before the answer, at `until`.
fn are_leases(leases: &[&Contender<'_>], told: &[Shown<'_>], until: usize) -> bool {
    let is_told = |lease: &Contender<'_>| {
        told.iter().filter(|it| it.contender.id == lease.id).count() == 1
            || lease.deleted_at().is_some_and(|deleted| deleted.at < until)
    };
    let is_there =
        |it: &Shown<'_>| leases.iter().filter(|lease| lease.id == it.contender.id).count() == 1;
    leases.iter().all(|lease| is_told(lease)) && told.iter().all(is_there)
}
