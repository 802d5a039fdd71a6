//! The rounds of a barrier, by the ensemble's own log.

use std::collections::BTreeMap;

use wok_judge::history::{Change, ParticipantId, What};
use wok_judge::truth::split;
use wok_judge::{Case, Moment};

/// All rounds of a history.
#[derive(Debug, Default)]
pub(super) struct Rounds<'a> {
    all: Vec<Round<'a>>,
    by_path: BTreeMap<&'a str, usize>,
    /// The persistent znodes that are there, by path. Those that get members are generations.
    created: BTreeMap<&'a str, Created>,
}

/// When a znode was created.
#[derive(Debug, Clone, Copy)]
pub(super) struct Created {
    pub(super) when: Moment,
    /// Who has asked for it, if that can be known.
    pub(super) asker: Option<ParticipantId>,
}

/// A generation: a znode whose ephemeral children are members.
#[derive(Debug)]
pub(super) struct Round<'a> {
    /// The path of the generation.
    pub(super) path: &'a str,
    /// None where the history begins later.
    pub(super) created: Option<Created>,
    /// When it went.
    pub(super) deleted: Option<Moment>,
    /// When its data were set for the first time, and what they are since.
    pub(super) opened: Option<(Moment, &'a [u8])>,
    /// Its members, in the order of their creation.
    pub(super) members: Vec<Member<'a>>,
}

/// An ephemeral child of a generation.
#[derive(Debug)]
pub(super) struct Member<'a> {
    /// The path of its znode.
    pub(super) path: &'a str,
    /// The `czxid` of its znode.
    pub(super) czxid: i64,
    /// The session that it belongs to.
    pub(super) session: i64,
    /// When it was created.
    pub(super) created: Moment,
    /// When it went.
    pub(super) deleted: Option<Moment>,
    /// Whose it is, if that can be known.
    pub(super) asker: Option<ParticipantId>,
}

impl Member<'_> {
    /// Whether it is there after that entry.
    pub(super) fn lives_at(&self, at: usize) -> bool {
        self.created.at <= at && self.deleted.is_none_or(|deleted| deleted.at > at)
    }
}

impl<'a> Round<'a> {
    /// Whether it was opened for the member.
    pub(super) fn admits(&self, member: &Member<'_>) -> bool {
        let name = split(member.path).map_or("", |(_, name)| name);
        let said = self.opened.and_then(|(_, data)| std::str::from_utf8(data).ok());
        said.is_some_and(|said| said.lines().skip(1).any(|line| line == name))
    }

    /// The members that were there when it opened.
    pub(super) fn there_when_opened(&self) -> impl Iterator<Item = &Member<'a>> {
        let opened = self.opened.map(|(opened, _)| opened.at);
        self.members.iter().filter(move |member| opened.is_some_and(|at| member.lives_at(at)))
    }
}

/// A host call under way that may create a znode.
struct Creating<'a> {
    who: ParticipantId,
    number: u64,
    session: i64,
    paths: &'a [String],
}

impl<'a> Rounds<'a> {
    /// Of a history.
    pub(super) fn of(case: &Case<'a>) -> Self {
        let mut rounds = Rounds::default();
        let mut creating: Vec<Creating<'a>> = Vec::new();
        for (at, entry) in case.history.iter().enumerate() {
            match &entry.what {
                What::HostCall { participant, number, paths, .. } => {
                    let Some(person) = case.people.person(*participant) else { continue };
                    let (who, number, session) = (*participant, *number, person.session);
                    creating.push(Creating { who, number, session, paths });
                }
                What::HostCallAnswered { number, .. } => {
                    creating.retain(|it| it.number != *number);
                }
                What::Txn { zxid, session, changes } => {
                    let now = Moment::of(at, entry);
                    rounds.commit(now, (*zxid, *session), changes, &creating);
                }
                _ => {}
            }
        }
        rounds
    }

    /// All of them, in the order of their first members.
    pub(super) fn all(&self) -> &[Round<'a>] {
        &self.all
    }

    /// The member of that path as of that entry, there or the last to have been, and its round.
    pub(super) fn find(&self, path: &str, at: usize) -> Option<(&Round<'a>, &Member<'a>)> {
        let of_path = |member: &&Member<'_>| member.path == path && member.created.at <= at;
        let has_it = |round: &&Round<'a>| round.members.iter().any(|member| of_path(&member));
        let round = self.all.iter().rev().find(has_it)?;
        Some((round, round.members.iter().rev().find(of_path)?))
    }

    fn commit(
        &mut self,
        now: Moment,
        (czxid, session): (i64, i64),
        changes: &'a [Change],
        creating: &[Creating<'_>],
    ) {
        let asker = |path: &String| {
            let mut asking =
                creating.iter().filter(|it| it.session == session && it.paths.contains(path));
            let only = asking.next().filter(|_| asking.next().is_none());
            only.map(|asking| asking.who)
        };
        for change in changes {
            match change {
                Change::Created { path, ephemeral_owner: 0, .. } => {
                    // It begins anew, whatever was there before.
                    self.by_path.remove(path.as_str());
                    self.created.insert(path, Created { when: now, asker: asker(path) });
                }
                Change::Created { path, ephemeral_owner, .. } => {
                    let Some((parent, _)) = split(path) else { continue };
                    self.round(parent).members.push(Member {
                        path,
                        czxid,
                        session: *ephemeral_owner,
                        created: now,
                        deleted: None,
                        asker: asker(path),
                    });
                }
                Change::Deleted { path } => {
                    self.created.remove(path.as_str());
                    let round = self.by_path.get(path.as_str());
                    if let Some(round) = round.and_then(|round| self.all.get_mut(*round)) {
                        round.deleted = Some(now);
                    }
                    let Some((parent, _)) = split(path) else { continue };
                    let round = self.by_path.get(parent).and_then(|round| self.all.get_mut(*round));
                    let mut members =
                        round.into_iter().flat_map(|round| round.members.iter_mut().rev());
                    if let Some(member) = members.find(|it| it.path == path) {
                        member.deleted.get_or_insert(now);
                    }
                }
                Change::DataSet { path, data, .. } => {
                    self.round(path).opened.get_or_insert((now, data.bytes()));
                }
                _ => {}
            }
        }
    }

    #[allow(clippy::indexing_slicing, reason = "the number is that of one of them")]
    fn round(&mut self, path: &'a str) -> &mut Round<'a> {
        let number = *self.by_path.entry(path).or_insert_with(|| {
            let created = self.created.get(path).copied();
            self.all.push(Round {
                path,
                created,
                deleted: None,
                opened: None,
                members: Vec::new(),
            });
            self.all.len() - 1
        });
        &mut self.all[number]
    }
}
