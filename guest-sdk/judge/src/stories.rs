//! Histories made by hand, told in a few words each: what the tests of judges are made of.
#![allow(clippy::indexing_slicing, reason = "used by tests alone")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::history::{
    CallId, Change, Data, Entry, FaultKind, HostId, Left, Outcome, ParticipantId, Told, Watches,
    What,
};

/// All sessions have this timeout.
pub const TIMEOUT_MS: u64 = 10_000;

/// Where everybody is mounted.
pub const MOUNT: &str = "/mounts/a";

/// A history in the making. Each entry is a millisecond later than the one before.
#[derive(Debug, Default)]
pub struct Story {
    /// The entries so far.
    pub entries: Vec<Entry>,
    us: u64,
    zxid: i64,
    calls: CallId,
    host_calls: u64,
    roles: BTreeMap<ParticipantId, Role>,
}

/// A participant without a config joins at [`MOUNT`].
pub fn joined(participant: ParticipantId, host: HostId, session: i64) -> What {
    let (mount, config) = (MOUNT.to_owned(), Value::Null);
    What::Joined { participant, host, session, mount, config }
}

/// A history whose participants all have this config.
pub fn configured(history: &[Entry], config: &Value) -> Vec<Entry> {
    let mut configured = history.to_vec();
    for entry in &mut configured {
        if let What::Joined { config: own, .. } = &mut entry.what {
            *own = config.clone();
        }
    }
    configured
}

/// What the story knows of a participant.
#[derive(Debug, Default)]
struct Role {
    host: HostId,
    contender: String,
    fence: u64,
    call: CallId,
}

impl Story {
    /// Three participants, each on a host of its own number.
    pub fn new() -> Self {
        let mut story = Story { zxid: 100, ..Story::default() };
        for number in 1..=3 {
            story.join(number, number);
        }
        story
    }

    /// A participant joins on a host, with a session of its own.
    pub fn join(&mut self, participant: ParticipantId, host: HostId) -> &mut Self {
        let session = session(participant);
        self.commit(session, vec![Change::SessionCreated { session }]);
        self.push(What::SessionOpened { host, session, timeout_ms: TIMEOUT_MS });
        self.roles.insert(participant, Role { host, ..Role::default() });
        self.push(joined(participant, host, session))
    }

    /// Something happens, a millisecond later.
    pub fn push(&mut self, what: What) -> &mut Self {
        self.us += 1000;
        self.entries.push(Entry { at_us: self.us, what });
        self
    }

    /// Time passes.
    pub fn wait(&mut self, ms: u64) -> &mut Self {
        self.us += ms * 1000;
        self
    }

    /// What comes next comes in the same instant as what was last.
    pub fn at_once(&mut self) -> &mut Self {
        self.us -= 1000;
        self
    }

    /// The ensemble commits a txn.
    pub fn commit(&mut self, session: i64, changes: Vec<Change>) -> &mut Self {
        self.zxid += 1;
        self.push(What::Txn { zxid: self.zxid, session, changes })
    }

    /// The zxid of the txn that the ensemble committed last.
    pub fn newest_zxid(&self) -> i64 {
        self.zxid
    }

    fn role(&mut self, participant: ParticipantId) -> &mut Role {
        self.roles.get_mut(&participant).expect("the participant has joined")
    }

    /// The path of the participant's contender.
    pub fn contender(&self, participant: ParticipantId) -> String {
        self.roles[&participant].contender.clone()
    }

    /// The `czxid` of the participant's contender.
    pub fn fence(&self, participant: ParticipantId) -> u64 {
        self.roles[&participant].fence
    }

    /// The participant's newest call.
    pub fn call(&self, participant: ParticipantId) -> CallId {
        self.roles[&participant].call
    }

    /// It is called.
    pub fn invoke(&mut self, participant: ParticipantId, operation: &str) -> &mut Self {
        self.invoke_with(participant, operation, Value::Null)
    }

    /// It is called with arguments.
    pub fn invoke_with(
        &mut self,
        participant: ParticipantId,
        operation: &str,
        arguments: Value,
    ) -> &mut Self {
        self.calls += 1;
        let call = self.calls;
        self.role(participant).call = call;
        let operation = operation.to_owned();
        self.push(What::Invoked { participant, call, operation, arguments })
    }

    /// Its newest call is answered.
    pub fn answer(&mut self, participant: ParticipantId, outcome: Outcome) -> &mut Self {
        let call = self.call(participant);
        self.push(What::Returned { participant, call, outcome })
    }

    /// Its newest call succeeds with that value, and the participant holds nothing.
    pub fn answer_value(&mut self, participant: ParticipantId, value: Value) -> &mut Self {
        self.answer(participant, Outcome::Ok { value, holds: false })
    }

    /// Its newest call fails with that error, and the participant holds nothing.
    pub fn answer_error(&mut self, participant: ParticipantId, value: Value) -> &mut Self {
        self.answer(participant, Outcome::Err { value, holds: false })
    }

    /// It is called while another call is under way.
    pub fn refuse(&mut self, who: ParticipantId) -> &mut Self {
        let under_way = self.call(who);
        self.invoke(who, "contenders").answer(who, Outcome::Busy);
        self.role(who).call = under_way;
        self
    }

    /// Its component makes a host call.
    pub fn ask(&mut self, who: ParticipantId, name: &str, path: &str) -> &mut Self {
        self.ask_all(who, name, vec![path.to_owned()])
    }

    /// Its component makes a host call that names all these paths, as a `multi` does.
    pub fn ask_all(&mut self, who: ParticipantId, name: &str, paths: Vec<String>) -> &mut Self {
        self.host_calls += 1;
        let (number, name) = (self.host_calls, name.to_owned());
        self.push(What::HostCall { participant: who, number, name, paths })
    }

    /// The newest host call is answered.
    pub fn answer_ask(&mut self, who: ParticipantId, created: Option<&str>) -> &mut Self {
        let (number, answer) = (self.host_calls, "ok".to_owned());
        let created = created.map(str::to_owned);
        self.push(What::HostCallAnswered { participant: who, number, answer, created })
    }

    /// It tells its follower something.
    pub fn tell(&mut self, participant: ParticipantId, notice: Told) -> &mut Self {
        self.push(What::Told { participant, notice })
    }

    /// The participant's contender comes into being, with that counter.
    pub fn stand(&mut self, who: ParticipantId, counter: u32) -> &mut Self {
        self.stand_as(who, "-lock-", counter)
    }

    /// The same, with that before the counter.
    pub fn stand_as(&mut self, who: ParticipantId, kind: &str, counter: u32) -> &mut Self {
        let uuid = format!("{:08x}-0000-4000-8000-{who:012x}", self.calls);
        let path = format!("{MOUNT}/_c_{uuid}{kind}{counter:010}");
        self.ask(who, "contend", MOUNT);
        let ephemeral_owner = session(who);
        self.commit(ephemeral_owner, vec![created(&path, ephemeral_owner)]);
        let fence = self.zxid.unsigned_abs();
        let role = self.role(who);
        role.fence = fence;
        role.contender.clone_from(&path);
        self.answer_ask(who, Some(&path));
        self.tell(who, Told::Waiting { path })
    }

    /// Its contender is replaced by another one, in one txn.
    pub fn replace(&mut self, who: ParticipantId, path: &str) -> &mut Self {
        let (old, ephemeral_owner) = (self.contender(who), session(who));
        let changes = vec![created(path, ephemeral_owner), Change::Deleted { path: old }];
        self.ask(who, "multi", path).commit(ephemeral_owner, changes).answer_ask(who, None);
        let fence = self.zxid.unsigned_abs();
        let role = self.role(who);
        role.fence = fence;
        path.clone_into(&mut role.contender);
        self
    }

    /// It asks to watch another one's contender.
    pub fn watch(&mut self, who: ParticipantId, other: ParticipantId) -> &mut Self {
        let path = self.contender(other);
        self.ask(who, "watch-data", &path).answer_ask(who, None)
    }

    /// An event of a path reaches its host.
    pub fn event(&mut self, who: ParticipantId, event: &str, path: &str) -> &mut Self {
        let host = self.role(who).host;
        let (event, path) = (event.to_owned(), path.to_owned());
        self.push(What::Event { host, session: session(who), event, path })
    }

    /// A heartbeat of its session, in the very moment of what comes next.
    fn beat(&mut self, who: ParticipantId) -> &mut Self {
        self.zxid += 1;
        let what = What::Txn { zxid: self.zxid, session: session(who), changes: Vec::new() };
        self.entries.push(Entry { at_us: self.us + 1000, what });
        self
    }

    /// It claims its contender and is told that it holds it.
    pub fn hold(&mut self, who: ParticipantId) -> &mut Self {
        self.beat(who).hold_unheard(who)
    }

    /// The same, without a heartbeat.
    pub fn hold_unheard(&mut self, who: ParticipantId) -> &mut Self {
        let (path, fence) = (self.contender(who), self.fence(who));
        self.ask(who, "claim", &path).answer_ask(who, None);
        self.tell(who, Told::Held { path, fence })
    }

    /// As `hold`, and its call is answered with the grant.
    pub fn win(&mut self, who: ParticipantId) -> &mut Self {
        let value = json!({ "path": self.contender(who), "fence": self.fence(who) });
        self.hold(who).answer(who, Outcome::Ok { value, holds: true })
    }

    /// It calls for the lock and stands in line.
    pub fn acquire(&mut self, who: ParticipantId, counter: u32) -> &mut Self {
        self.invoke(who, "acquire").stand(who, counter)
    }

    /// It becomes a candidate.
    pub fn volunteer(&mut self, who: ParticipantId, counter: u32) -> &mut Self {
        self.invoke(who, "volunteer").stand(who, counter);
        let value = json!({ "path": self.contender(who), "fence": null });
        self.answer_value(who, value)
    }

    /// Its contender is deleted, and only that.
    pub fn delete(&mut self, who: ParticipantId) -> &mut Self {
        let path = self.contender(who);
        self.commit(session(who), vec![Change::Deleted { path }])
    }

    /// It gives back what it holds, by calling `operation`.
    pub fn give_up(&mut self, who: ParticipantId, operation: &str) -> &mut Self {
        let path = self.contender(who);
        self.invoke(who, operation).tell(who, Told::Released { path: path.clone() });
        self.ask(who, "release", &path).delete(who).answer_ask(who, None);
        self.event(who, "deleted", &path);
        self.answer_value(who, Value::Null)
    }

    /// Its application writes to the guarded resource.
    pub fn write(&mut self, who: ParticipantId, accepted: bool) -> &mut Self {
        self.beat(who).write_unheard(who, accepted)
    }

    /// The same, without a heartbeat.
    pub fn write_unheard(&mut self, who: ParticipantId, accepted: bool) -> &mut Self {
        let fence = self.fence(who);
        self.push(What::Wrote { participant: who, fence, accepted })
    }

    /// A fault strikes a host.
    pub fn fault(&mut self, fault: FaultKind, host: HostId) -> &mut Self {
        self.push(What::Fault { fault, host: Some(host), struck: Vec::new(), cut: None })
    }

    /// A fault of a host is over.
    pub fn heal(&mut self, fault: FaultKind, host: HostId) -> &mut Self {
        self.push(What::Healed { fault, host: Some(host) })
    }

    /// The ensemble closes its session, and its contender goes with it.
    pub fn expire(&mut self, who: ParticipantId) -> &mut Self {
        let (path, session) = (self.contender(who), session(who));
        let changes = vec![Change::Deleted { path }, Change::SessionClosed { session }];
        self.commit(session, changes)
    }

    /// Its host gives the session up, and it ends.
    pub fn lose(&mut self, who: ParticipantId) -> &mut Self {
        let host = self.role(who).host;
        self.push(What::SessionLost { host, session: session(who), why: "it expired".to_owned() });
        self.tell(who, Told::Lost { reason: "session".to_owned() });
        self.tell(who, Told::Ended { how: "lost".to_owned(), fault: None })
    }

    /// It is asked to end, and does.
    pub fn leave(&mut self, who: ParticipantId) -> &mut Self {
        self.push(What::Leaving { participant: who });
        self.tell(who, Told::Ended { how: "left".to_owned(), fault: None })
    }

    /// It is told who leads.
    pub fn news(&mut self, who: ParticipantId, fence: u64) -> &mut Self {
        let detail = BTreeMap::from([("fence".to_owned(), fence.to_string())]);
        self.tell(who, Told::Emitted { event: "leader-changed".to_owned(), detail })
    }

    /// The end, with these znodes, calls and watches left.
    pub fn end(
        &mut self,
        left: Option<(&str, i64)>,
        blocked: Vec<CallId>,
        watches: usize,
    ) -> &mut Self {
        let left = left
            .map(|(path, ephemeral_owner)| (path.to_owned(), Left { czxid: 1, ephemeral_owner }));
        let znodes = left.into_iter().collect();
        self.push(What::Final {
            znodes,
            blocked,
            watches: vec![Watches { host: 1, count: watches }],
        })
    }
}

/// An empty znode is created.
pub fn created(path: &str, ephemeral_owner: i64) -> Change {
    Change::Created { path: path.to_owned(), ephemeral_owner, data: Data::default() }
}

/// Each participant of a story has a session of its own.
pub fn session(participant: ParticipantId) -> i64 {
    0x10 + i64::from(participant)
}

/// Everything that can go right with a lock: hand-overs, a wait that is withdrawn, a session that
/// runs out while its host is stopped, a session that the ensemble is made to expire, a killed host.
pub fn good_lock() -> Story {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).write(1, true);
    // The holder may look who else comes.
    story.ask(1, "watch-children", MOUNT).answer_ask(1, None);
    let first = story.contender(1);
    story
        .acquire(2, 1)
        .watch(2, 1)
        .event(1, "children-changed", MOUNT)
        .acquire(3, 2)
        .watch(3, 2)
        .refuse(2);
    let second = story.contender(2);
    story.give_up(1, "release").event(2, "deleted", &first).win(2).write(2, true);

    // A wait that is withdrawn. Its watch on the predecessor is left to fire.
    story.acquire(1, 3).watch(1, 3);
    let call = story.call(1);
    story.push(What::Withdrawn { participant: 1, call }).delete(1).answer(1, Outcome::Cancelled);

    // The holder is stopped for longer than its session lasts, and writes when it goes on.
    story.fault(FaultKind::Pause, 2).wait(TIMEOUT_MS + 2000).expire(2);
    story.event(3, "deleted", &second).win(3).write(3, true).wait(3000);
    story.heal(FaultKind::Pause, 2).lose(2);

    // The ensemble expires a session, of which its holder hears only later.
    story.join(4, 2).acquire(4, 4).watch(4, 3);
    let third = story.contender(3);
    story.fault(FaultKind::Expiry, 3).expire(3).event(1, "deleted", &third);
    story.event(4, "deleted", &third).win(4).write(4, true).write(3, false).lose(3);

    // A host is killed, and the participant that waits goes on.
    story.acquire(1, 5).watch(1, 4);
    let fourth = story.contender(4);
    story.fault(FaultKind::HostKill, 2).wait(TIMEOUT_MS).expire(4).event(1, "deleted", &fourth);
    story.win(1).heal(FaultKind::HostKill, 2).push(What::Calm).give_up(1, "release");
    story.leave(1).wait(60_000).end(None, Vec::new(), 0);
    story
}

/// Everything that can go right with an election, and an observer of it.
pub fn good_election() -> Story {
    let mut story = Story::new();
    story.invoke(3, "observe").ask(3, "watch-children", MOUNT).answer_ask(3, None);
    story.answer_value(3, Value::Null);
    story.volunteer(1, 0).event(3, "children-changed", MOUNT).hold(1).write(1, true);
    let (path, fence) = (story.contender(1), story.fence(1));
    story.watch(3, 1).news(3, fence);
    story.volunteer(2, 1).watch(2, 1);
    story.give_up(1, "resign").event(2, "deleted", &path).event(3, "deleted", &path);
    story.hold(2).write(2, true);
    let (path, fence) = (story.contender(2), story.fence(2));
    story.watch(3, 2).news(3, fence).invoke(3, "leader");
    let path = path.replace(MOUNT, "");
    let value = json!({ "path": path, "fence": fence.to_string(), "owner": "" });
    story.answer_value(3, value).push(What::Calm);
    story.volunteer(1, 2).watch(1, 2).wait(60_000).give_up(1, "resign").give_up(2, "resign");
    for participant in 1..=3 {
        story.leave(participant);
    }
    story.wait(60_000).end(None, Vec::new(), 0);
    story
}
