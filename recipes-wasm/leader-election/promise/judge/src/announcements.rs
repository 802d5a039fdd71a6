//! What leaders announce: by whom and when it is written, and what stood when.

use wok_judge::history::{Change, Entry, Outcome, What};
use wok_judge::people::Person;
use wok_judge::truth::{Contender, split};
use wok_judge::{Case, Moment, Violation};

use crate::due;

/// What the znode is called.
const NAME: &str = "announcement";

/// All announcements of a history, in the order in which they were written and went.
#[derive(Debug)]
pub(super) struct Announcements<'a> {
    all: Vec<Announcement<'a>>,
}

/// What a directory's announcement was from an entry on.
#[derive(Debug)]
struct Announcement<'a> {
    /// The directory of the election.
    directory: &'a str,
    /// The entry.
    at: usize,
    /// What it holds; none if it went.
    data: Option<&'a [u8]>,
    /// Whose txn it was.
    session: i64,
}

impl<'a> Announcements<'a> {
    /// Of a history.
    pub(super) fn of(history: &'a [Entry]) -> Self {
        let mut all = Vec::new();
        for (at, entry) in history.iter().enumerate() {
            let What::Txn { session, changes, .. } = &entry.what else { continue };
            for change in changes {
                let (path, data) = match change {
                    Change::Created { path, data, .. } | Change::DataSet { path, data, .. } => {
                        (path, Some(data.bytes()))
                    }
                    Change::Deleted { path } => (path, None),
                    _ => continue,
                };
                if let Some((directory, NAME)) = split(path) {
                    all.push(Announcement { directory, at, data, session: *session });
                }
            }
        }
        Announcements { all }
    }

    /// What stood between two entries, the first one included, that the leader had announced: its own
    /// announcement, or none.
    pub(super) fn of_leader<'b>(
        &'b self,
        leader: &'b Contender<'_>,
        from: usize,
        until: usize,
    ) -> impl Iterator<Item = Option<&'a [u8]>> + 'b {
        let own = move || self.all.iter().filter(move |it| it.directory == leader.parent);
        let before = own().take_while(|it| it.at <= from).last();
        let later = own().filter(move |it| from < it.at && it.at < until);
        let data = move |it: &Announcement<'a>| {
            it.data.and_then(|data| split_data(data)).filter(|(name, _)| is_of(leader, name))
        };
        let first = before.and_then(data).map(|(_, announced)| announced);
        [first].into_iter().chain(later.map(move |it| data(it).map(|(_, announced)| announced)))
    }

    /// E5 of what is written: it names the candidate of its session that leads.
    pub(super) fn check_writes(
        &self,
        case: &Case<'_>,
        id: &'static str,
        found: &mut Vec<Violation>,
    ) {
        for it in &self.all {
            let Some(data) = it.data else { continue };
            let leads = |leader: &&Contender<'_>| {
                let is_there = leader.parent == it.directory && leader.lives_at(it.at);
                let is_first = leader.first.is_some_and(|first| first.at <= it.at);
                is_there && is_first && leader.owner == it.session
            };
            let mut leaders = case.truth.contenders().iter().filter(leads);
            if leaders.any(|leader| split_data(data).is_some_and(|(name, _)| is_of(leader, name))) {
                continue;
            }
            let sentence = format!(
                "{}/{NAME} was written by session {:#x}, and the candidate that it names did not lead \
                 then",
                it.directory.trim_end_matches('/'),
                it.session
            );
            found.push(Violation::new(id, it.at, sentence));
        }
    }

    /// E5 of what is over: an announcement goes with the candidate that it names, and at once where that one
    /// resigned and was answered. The host deletes it where the component could not.
    pub(super) fn check_ends(&self, case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
        for (number, it) in self.all.iter().enumerate() {
            let Some((name, _)) = it.data.and_then(split_data) else { continue };
            let mut later = self.all.iter().skip(number + 1);
            let next = later.find(|next| next.directory == it.directory);
            let next = next.and_then(|next| Some(Moment::of(next.at, case.history.get(next.at)?)));
            let is_it = |leader: &&Contender<'_>| {
                let is_there = leader.parent == it.directory && leader.created.at < it.at;
                is_there && leader.owner == it.session && is_of(leader, name)
            };
            let mut leaders = case.truth.contenders().iter().rev().filter(is_it);
            let Some(leader) = leaders.next() else { continue };
            let Some((gone, person)) = leader.deleted_at().zip(case.people.asker(leader)) else {
                continue;
            };
            let resigned = resigned(case, person, gone).and_then(|resigned| {
                let by = due(case, person, resigned)?;
                let is_late = next.is_none_or(|next| next.us > by);
                case.first_after(by).filter(|_| is_late)
            });
            let stays = || case.outstays(person, leader.owner, next, gone);
            let Some(at) = resigned.or_else(stays) else { continue };
            let sentence = format!(
                "{}/{NAME} is still that of {}, which has gone",
                it.directory.trim_end_matches('/'),
                leader.path
            );
            let violation = Violation::new(id, at, sentence);
            found.push(violation.involving([it.at, gone.at]).by([person.id]));
        }
    }

    /// E5 of `announce`: once it is answered, what it says stood at a moment of the call.
    pub(super) fn check_calls(
        &self,
        case: &Case<'_>,
        id: &'static str,
        found: &mut Vec<Violation>,
    ) {
        for call in case.people.calls().iter().filter(|call| call.operation == "announce") {
            let Some((answered, Outcome::Ok { .. })) = call.answered else { continue };
            // What is no text the history has in another form.
            let announced = case.arguments(call).and_then(|given| given.get("data")?.as_str());
            let Some(text) = announced else { continue };
            let is_its_own = |it: &&Contender<'_>| {
                case.people.asker(it).is_some_and(|asker| asker.id == call.who)
            };
            let mut own = case.truth.contenders().iter().filter(is_its_own);
            let (from, until) = (call.invoked.at, case.end_of(answered));
            let stood = own.any(|leader| {
                self.of_leader(leader, from, until).any(|it| it == Some(text.as_bytes()))
            });
            if stood {
                continue;
            }
            let who = call.who;
            let sentence = format!(
                "the `announce` of participant {who} was answered, and {text:?} was not announced"
            );
            let violation = Violation::new(id, answered.at, sentence);
            found.push(violation.involving([from]).by([who]));
        }
    }
}

/// When the `resign` was answered with which the participant's candidate went, if it went with one.
fn resigned(case: &Case<'_>, person: &Person<'_>, gone: Moment) -> Option<Moment> {
    case.people.calls().iter().find_map(|call| {
        let (answered, Outcome::Ok { .. }) = call.answered? else { return None };
        let is_its_own = call.who == person.id && call.operation == "resign";
        let is_meanwhile = (call.invoked.us..=answered.us).contains(&gone.us);
        (is_its_own && is_meanwhile).then_some(answered)
    })
}

/// The name of the leader, and what it announces.
fn split_data(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let (name, rest) = data.split_at_checked(end)?;
    Some((name, rest.get(1..)?))
}

fn is_of(leader: &Contender<'_>, name: &[u8]) -> bool {
    split(leader.path).is_some_and(|(_, own)| own.as_bytes() == name)
}
