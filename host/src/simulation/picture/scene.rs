//! What there is to see in a run: who did what from when to when.

use std::collections::{BTreeMap, BTreeSet};

use wok_judge::people::Over;
use wok_judge::truth::{Truth, split};
use wok_judge::{Case, Promise};

use crate::simulation::history::{
    Change, Entry, FaultKind, HostId, Outcome, ParticipantId, Told, What,
};
use crate::simulation::judges::Violation;
use crate::simulation::timeline::Scribe;

/// How much of an answer is written beside its call.
const ANSWER: usize = 48;

/// Something that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) from_us: u64,
    pub(super) until_us: u64,
    pub(super) text: String,
    pub(super) kind: Kind,
}

/// What a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call, until it is answered.
    Call,
    /// A znode that stands in line behind others.
    InLine,
    /// A znode that is the first of its line.
    First,
    /// A claim, as its holder was told.
    Holds,
    /// What the simulator does.
    Fault,
}

/// A moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) at_us: u64,
    pub(super) text: String,
    pub(super) kind: Moment,
}

/// What happens in a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// A component asks the host for something.
    Asks,
    /// It is woken, or a wait of its ends.
    Wakes,
    /// An application shows its fence to what the claim guards.
    Writes,
    /// The same, and is refused.
    IsRefused,
    /// It says something of its own.
    Says,
    /// It loses what it held, or fails.
    Loses,
    /// The ensemble commits something.
    Commits,
}

/// A participant.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) id: ParticipantId,
    pub(super) joined_us: u64,
    pub(super) ended_us: u64,
    pub(super) calls: Vec<Bar>,
    pub(super) asks: Vec<Point>,
    pub(super) places: Vec<Bar>,
    pub(super) wakes: Vec<Point>,
    pub(super) claims: Vec<Bar>,
    pub(super) deeds: Vec<Point>,
    /// Whether the break is about it.
    pub(super) is_blamed: bool,
}

/// A host and its participants.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// None is the ensemble.
    pub(super) host: Option<HostId>,
    pub(super) faults: Vec<Bar>,
    pub(super) points: Vec<Point>,
    pub(super) lanes: Vec<Lane>,
}

/// An entry that a violation speaks of.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) at_us: u64,
    pub(super) who: Who,
    /// As the time line has it.
    pub(super) line: String,
}

/// Where a mark belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Participant(ParticipantId),
    Host(HostId),
    Ensemble,
}

/// A run.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) groups: Vec<Group>,
    pub(super) marks: Vec<Mark>,
    /// When it broke.
    pub(super) broken_us: Option<u64>,
    /// All times at which something can be seen, in order.
    pub(super) moments: Vec<u64>,
}

impl Scene {
    /// Of a run, to where it broke, if it did.
    pub(super) fn of(history: &[Entry], violation: Option<&Violation>) -> Self {
        let broken = violation.and_then(|it| history.get(it.at)).map(|entry| entry.at_us);
        let until_us = broken.or(history.last().map(|entry| entry.at_us)).unwrap_or(1);
        // What came in the instant of the break is seen as well.
        let seen = history.partition_point(|entry| entry.at_us <= until_us);
        let history = history.get(..seen).unwrap_or(history);
        let truth = Truth::of(history);
        let case = Case::of(history, &truth, &Promise::NONE);
        let involved = violation.map_or(&[][..], |it| it.involved.as_slice());
        let mut reader = Reader::new(&case, involved, until_us);
        for (at, entry) in history.iter().enumerate() {
            reader.read(at, entry);
        }
        let marks = reader.marks();
        let mut groups = reader.into_groups(violation);
        groups.retain(|group| !group.is_empty());
        let mut scene = Scene { groups, marks, broken_us: broken, moments: Vec::new() };
        scene.moments = scene.all_moments();
        scene.moments.extend([until_us]);
        scene.moments.sort_unstable();
        scene
    }

    fn all_moments(&self) -> Vec<u64> {
        let mut moments: Vec<u64> = self.marks.iter().map(|mark| mark.at_us).collect();
        for group in &self.groups {
            let lanes = group.lanes.iter();
            let bars = lanes.clone().flat_map(|it| [&it.calls, &it.places, &it.claims]);
            let bars = bars.flatten().chain(&group.faults);
            moments.extend(bars.flat_map(|bar| [bar.from_us, bar.until_us]));
            let points = lanes.clone().flat_map(|it| [&it.asks, &it.wakes, &it.deeds]);
            moments.extend(points.flatten().chain(&group.points).map(|point| point.at_us));
            moments.extend(lanes.flat_map(|lane| [lane.joined_us, lane.ended_us]));
        }
        moments
    }
}

impl Group {
    fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.points.is_empty() && self.lanes.is_empty()
    }
}

/// Goes through a history once.
struct Reader<'a> {
    case: &'a Case<'a>,
    until_us: u64,
    scribe: Scribe,
    involved: &'a [usize],
    told: BTreeMap<usize, (u64, Who, String)>,
    lanes: BTreeMap<ParticipantId, Lane>,
    hosts: BTreeMap<Option<HostId>, Group>,
    /// Host calls that wait for a watch.
    waits: BTreeSet<u64>,
    open_faults: Vec<(FaultKind, Option<HostId>, usize)>,
}

impl<'a> Reader<'a> {
    fn new(case: &'a Case<'a>, involved: &'a [usize], until_us: u64) -> Self {
        let mut lanes = BTreeMap::new();
        for person in case.people.persons() {
            let ended_us = person.end.map_or(until_us, |end| end.when().us);
            lanes.insert(person.id, Lane { id: person.id, ended_us, ..Lane::default() });
        }
        let hosts = BTreeMap::from([(None, Group::default())]);
        let (scribe, told, waits) = (Scribe::default(), BTreeMap::new(), BTreeSet::new());
        let open_faults = Vec::new();
        Reader { case, until_us, scribe, involved, told, lanes, hosts, waits, open_faults }
    }

    fn lane(&mut self, participant: ParticipantId) -> &mut Lane {
        self.lanes.entry(participant).or_default()
    }

    fn group(&mut self, host: Option<HostId>) -> &mut Group {
        self.hosts.entry(host).or_insert_with(|| Group { host, ..Group::default() })
    }

    fn read(&mut self, at: usize, entry: &Entry) {
        let at_us = entry.at_us;
        let told = self.scribe.tell(&entry.what).unwrap_or_else(|| self.scribe.spell(&entry.what));
        let text = told.1.trim().to_owned();
        if self.involved.contains(&at) {
            self.told.insert(at, (at_us, about(&entry.what), text.clone()));
        }
        let point = |kind| Point { at_us, text: text.clone(), kind };
        match &entry.what {
            What::Joined { participant, host, .. } => {
                self.lane(*participant).joined_us = at_us;
                self.group(Some(*host));
            }
            What::HostCall { participant, number, name, paths } => {
                let mut asks = point(Moment::Asks);
                asks.text = format!("asks: {name} {}", self.scribe.short(&paths.join(" ")));
                self.lane(*participant).asks.push(asks);
                if name == "wait" {
                    self.waits.insert(*number);
                }
            }
            What::HostCallAnswered { participant, number, .. } if self.waits.remove(number) => {
                self.lane(*participant).wakes.push(point(Moment::Wakes));
            }
            What::Woken { participant, .. } => {
                self.lane(*participant).wakes.push(point(Moment::Wakes));
            }
            What::Wrote { participant, accepted, .. } => {
                let kind = if *accepted { Moment::Writes } else { Moment::IsRefused };
                self.lane(*participant).deeds.push(point(kind));
            }
            What::Told { participant, notice } => {
                let kind = match notice {
                    Told::Emitted { .. } => Moment::Says,
                    Told::Lost { .. } | Told::Ended { fault: Some(_), .. } => Moment::Loses,
                    _ => return,
                };
                self.lane(*participant).deeds.push(point(kind));
            }
            _ => self.read_of_hosts(at_us, &entry.what, point),
        }
    }

    /// What is of a host or of the ensemble, and of no participant.
    fn read_of_hosts(&mut self, at_us: u64, what: &What, point: impl Fn(Moment) -> Point) {
        match what {
            What::Txn { changes, .. } => {
                let is_seen = |change: &Change| {
                    !matches!(change, Change::SessionCreated { .. } | Change::SessionClosed { .. })
                };
                if changes.iter().any(is_seen) {
                    let mut commits = point(Moment::Commits);
                    commits.text = self.scribe.changes(changes).join(", ");
                    self.group(None).points.push(commits);
                }
            }
            What::SessionLost { host, .. } => {
                let host = Some(*host);
                self.group(host).points.push(point(Moment::Loses));
            }
            What::Fault { fault, host, cut, .. } => {
                let about = cut.as_deref().map(|cut| format!(": {cut}")).unwrap_or_default();
                let bar = Bar {
                    from_us: at_us,
                    until_us: at_us,
                    text: format!("{}{about}", fault.name()),
                    kind: Kind::Fault,
                };
                let group = self.group(*host);
                group.faults.push(bar);
                let index = group.faults.len() - 1;
                self.open_faults.push((*fault, *host, index));
            }
            What::Healed { fault, host } => self.heal(*fault, *host, at_us),
            What::Calm => {
                self.end_faults(at_us);
                self.group(None).points.push(point(Moment::Commits));
            }
            _ => {}
        }
    }

    /// A fault that is healed has lasted until then. Of the others nobody knows but that they came.
    fn heal(&mut self, fault: FaultKind, host: Option<HostId>, at_us: u64) {
        let is_it = |open: &&(FaultKind, Option<HostId>, usize)| open.0 == fault && open.1 == host;
        let Some((_, _, index)) = self.open_faults.iter().rev().find(is_it).copied() else {
            return;
        };
        if let Some(bar) = self.group(host).faults.get_mut(index) {
            bar.until_us = at_us;
        }
    }

    /// What lasts and was not healed before has lasted until then.
    fn end_faults(&mut self, at_us: u64) {
        for (fault, host, index) in std::mem::take(&mut self.open_faults) {
            let is_process = matches!(fault, FaultKind::HalfOpen | FaultKind::HostKill);
            let is_lasting = is_process || fault.needs_time();
            let bar = self.group(host).faults.get_mut(index);
            if let Some(bar) = bar.filter(|bar| is_lasting && bar.until_us == bar.from_us) {
                bar.until_us = at_us;
            }
        }
    }

    /// The entries that the violation speaks of.
    fn marks(&self) -> Vec<Mark> {
        let told = self.told.iter();
        told.map(|(at, (at_us, who, text))| {
            let line = format!("{:.3} s, entry {at}: {}: {text}", *at_us as f64 / 1e6, who.name());
            Mark { at_us: *at_us, who: *who, line }
        })
        .collect()
    }

    /// Everything, in the order in which it is drawn.
    fn into_groups(mut self, violation: Option<&Violation>) -> Vec<Group> {
        self.draw_calls();
        self.draw_places();
        self.draw_claims();
        let until_us = self.until_us;
        self.end_faults(until_us);
        for (id, mut lane) in std::mem::take(&mut self.lanes) {
            lane.is_blamed = violation.is_some_and(|it| it.participants.contains(&id));
            let host = self.case.people.person(id).map(|person| person.host);
            self.group(host).lanes.push(lane);
        }
        self.hosts.into_values().collect()
    }

    fn draw_calls(&mut self) {
        let case = self.case;
        for call in case.people.calls() {
            let answer = call.answered.map(|(_, outcome)| self.scribe.outcome(outcome));
            let answer = answer.map_or_else(|| "no answer".to_owned(), |it| brief(&it, ANSWER));
            let bar = Bar {
                from_us: call.invoked.us,
                until_us: call.answered.map_or(self.until_us, |(when, _)| when.us),
                text: format!("{}: {answer}", call.operation),
                kind: Kind::Call,
            };
            // What was refused because another one was under way would lie upon that.
            if !matches!(call.answered, Some((_, Outcome::Busy))) {
                self.lane(call.who).calls.push(bar);
            }
        }
    }

    fn draw_places(&mut self) {
        let case = self.case;
        for contender in case.truth.contenders() {
            let Some(asker) = case.people.asker(contender).map(|person| person.id) else {
                continue;
            };
            let until_us = contender.deleted_at().map_or(self.until_us, |deleted| deleted.us);
            let first_us = contender.first.map(|first| first.us);
            let name = split(contender.path).map_or(contender.path, |(_, name)| name);
            let text = format!("{}, czxid {}", self.scribe.short(name), contender.czxid);
            let lane = self.lane(asker);
            let from_us = contender.created.us;
            let waits_until = first_us.unwrap_or(until_us);
            let bar = |from_us, until_us, kind| Bar { from_us, until_us, text: text.clone(), kind };
            if first_us != Some(from_us) {
                lane.places.push(bar(from_us, waits_until, Kind::InLine));
            }
            if let Some(first_us) = first_us {
                lane.places.push(bar(first_us, until_us, Kind::First));
            }
        }
    }

    fn draw_claims(&mut self) {
        let case = self.case;
        for belief in case.people.beliefs() {
            let until_us = belief.over.map_or(self.until_us, |(over, _)| over.us);
            let how = match belief.over {
                Some((_, Over::Lost)) => ", until it was told of its loss or ended",
                Some((_, Over::Released | Over::Replaced)) | None => "",
            };
            let bar = Bar {
                from_us: belief.since.us,
                until_us,
                text: format!("holds, fence {}{how}", belief.fence),
                kind: Kind::Holds,
            };
            self.lane(belief.who).claims.push(bar);
        }
    }
}

impl Who {
    /// In words.
    pub(super) fn name(self) -> String {
        match self {
            Who::Participant(id) => format!("participant {id}"),
            Who::Host(host) => format!("host {host}"),
            Who::Ensemble => "ensemble".to_owned(),
        }
    }
}

/// Whom an entry is about.
fn about(what: &What) -> Who {
    match what {
        What::Joined { participant, .. }
        | What::Invoked { participant, .. }
        | What::Returned { participant, .. }
        | What::Withdrawn { participant, .. }
        | What::Leaving { participant }
        | What::Told { participant, .. }
        | What::Wrote { participant, .. }
        | What::HostCall { participant, .. }
        | What::HostCallAnswered { participant, .. }
        | What::Woken { participant, .. } => Who::Participant(*participant),
        What::SessionOpened { host, .. }
        | What::SessionLost { host, .. }
        | What::Event { host, .. }
        | What::Request { host, .. } => Who::Host(*host),
        What::Fault { host, .. } | What::Healed { host, .. } => {
            host.map_or(Who::Ensemble, Who::Host)
        }
        What::Txn { .. } | What::Calm | What::Final { .. } => Who::Ensemble,
    }
}

/// At most so many characters of a text.
fn brief(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
