//! Those who are there as long as they live: is one that has died gone in time?

use serde_json::Value;

use crate::grants::fence_of;
use crate::history::{Change, ParticipantId, What};
use crate::people::Person;
use crate::{Case, Moment, Violation};

/// How long it may take beyond a session's timeout until the ensemble has closed the session: a tick, by which
/// ZooKeeper rounds timeouts up, and the way there.
const BEYOND_US: u64 = 2_000_000;

/// That a participant was told to be there, by a znode of its own.
#[derive(Debug, Clone)]
pub struct Presence {
    /// Who.
    pub who: ParticipantId,
    /// The znode's absolute path.
    pub path: String,
    /// Its `czxid`.
    pub fence: u64,
}

impl Presence {
    /// By an answer that has the znode's path below the mount, and its fence.
    pub fn of(person: &Person<'_>, told: &Value) -> Option<Presence> {
        let path = told.get("path")?.as_str()?;
        let path = [person.mount.trim_end_matches('/'), path].concat();
        Some(Presence { who: person.id, path, fence: fence_of(told.get("fence")?)? })
    }
}

/// Once a participant has ended, or its host was killed, its znode goes within its session's timeout, rounded
/// up to the server's tick. Faults elsewhere prolong that; a killed host need not be back.
pub fn check(
    case: &Case<'_>,
    there: impl IntoIterator<Item = Presence>,
    id: &'static str,
    found: &mut Vec<Violation>,
) {
    for Presence { who, path, fence } in there {
        let Some(person) = case.people.person(who) else { continue };
        let Some(end) = person.end else { continue };
        let Some((created, deleted)) = life(case, &path, fence) else { continue };
        let timeout = case.truth.timeout_us(person.session);
        let patience = timeout.saturating_add(BEYOND_US);
        let from = end.when().max(created);
        let Some(due) = case.faults.due_without(person.host, from.us, patience) else { continue };
        if deleted.is_some_and(|deleted| deleted.us <= due) {
            continue;
        }
        let Some(at) = case.first_after(due) else { continue };
        let seconds = due.saturating_sub(from.us) / 1_000_000;
        let sentence = format!(
            "{path} is still there, and participant {who}, whose it is, is not since {seconds} s: its \
             session may last for {} ms without it",
            timeout / 1000
        );
        let violation = Violation::new(id, at, sentence);
        found.push(violation.involving([created.at, end.when().at]).by([who]));
    }
}

/// When a znode was created, and when it went.
fn life(case: &Case<'_>, path: &str, fence: u64) -> Option<(Moment, Option<Moment>)> {
    let mut created = None;
    for (at, entry) in case.history.iter().enumerate() {
        let What::Txn { zxid, changes, .. } = &entry.what else { continue };
        let is_of_it = |change: &Change| match change {
            Change::Created { path: made, .. } => {
                created.is_none() && zxid.unsigned_abs() == fence && made == path
            }
            Change::Deleted { path: gone } => created.is_some() && gone == path,
            _ => false,
        };
        if changes.iter().any(is_of_it) {
            let now = Moment::of(at, entry);
            match created {
                None => created = Some(now),
                Some(created) => return Some((created, Some(now))),
            }
        }
    }
    created.map(|created| (created, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Promise;
    use crate::history::FaultKind;
    use crate::proofs::assert_breaks;
    use crate::stories::{MOUNT, Story, TIMEOUT_MS, created, session};
    use crate::truth::Truth;

    /// One that is there.
    fn one() -> (Story, Presence) {
        let mut story = Story::new();
        let path = format!("{MOUNT}/a");
        story.commit(session(1), vec![created(&path, session(1))]);
        let fence = story.newest_zxid().unsigned_abs();
        (story, Presence { who: 1, path, fence })
    }

    fn go(story: &mut Story) {
        let path = format!("{MOUNT}/a");
        story.commit(session(1), vec![Change::Deleted { path }]);
    }

    #[track_caller]
    fn check_story(mut story: Story, there: Presence, expected: &[&str]) {
        story.push(What::Woken { participant: 3, tags: Vec::new() });
        let truth = Truth::of(&story.entries);
        let case = Case::of(&story.entries, &truth, &Promise::NONE);
        let mut found = Vec::new();
        check(&case, [there], "X1", &mut found);
        assert_breaks(&found, expected);
    }

    #[test]
    fn who_lives_may_be_there() {
        let (mut story, there) = one();
        story.wait(9 * TIMEOUT_MS);
        check_story(story, there, &[]);
    }

    #[test]
    fn who_has_ended_is_gone_within_its_sessions_timeout() {
        for (goes_after, expected) in [(TIMEOUT_MS, &[][..]), (TIMEOUT_MS + 5000, &["X1"])] {
            let (mut story, there) = one();
            story.leave(1).wait(goes_after);
            go(&mut story);
            check_story(story, there, expected);
        }
        let (mut story, there) = one();
        story.leave(1).wait(TIMEOUT_MS + 5000);
        check_story(story, there, &["X1"]);
    }

    #[test]
    fn who_dies_with_its_host_is_gone_whether_the_host_comes_back_or_not() {
        for comes_back in [false, true] {
            let (mut story, there) = one();
            story.fault(FaultKind::HostKill, 1).wait(TIMEOUT_MS + 1000);
            if comes_back {
                story.heal(FaultKind::HostKill, 1);
            }
            story.wait(2000);
            check_story(story, there, &["X1"]);
        }
        let (mut story, there) = one();
        story.fault(FaultKind::HostKill, 1).wait(TIMEOUT_MS + 1000);
        go(&mut story);
        story.wait(5000);
        check_story(story, there, &[]);
    }

    #[test]
    fn a_fault_elsewhere_prolongs_that() {
        let (mut story, there) = one();
        story.fault(FaultKind::HostKill, 1).wait(5000).fault(FaultKind::ServerCut, 2).wait(8000);
        check_story(story, there, &[]);
        let (mut story, there) = one();
        story.fault(FaultKind::HostKill, 1).wait(5000).fault(FaultKind::ServerCut, 2).wait(8000);
        story.heal(FaultKind::ServerCut, 2).wait(TIMEOUT_MS + 3000);
        check_story(story, there, &["X1"]);
    }

    #[test]
    fn a_znode_that_comes_when_its_participant_is_gone_has_as_much_time() {
        let (mut story, _) = one();
        story.leave(1).wait(TIMEOUT_MS);
        let path = format!("{MOUNT}/b");
        story.commit(session(1), vec![created(&path, session(1))]);
        let there = Presence { who: 1, path, fence: story.newest_zxid().unsigned_abs() };
        story.wait(TIMEOUT_MS);
        check_story(story, there, &[]);
    }
}
