//! Asked to give way: who is asked hears it, consents by itself, and is forced only as was agreed.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::history::{Change, Outcome, ParticipantId, Told, What};
use crate::people::{Call, Person};
use crate::truth::Contender;
use crate::{Case, Moment, Violation};

/// The event that tells a participant that it is asked.
const REQUESTED: &str = "revoke-requested";

/// The last line of a znode that asks: Curator's word, and that of ZooKeeper's page of recipes.
const WORDS: [&[u8]; 2] = [b"__REVOKE__", b"unlock"];

/// How long a request may be on its way to a host whose connection stands.
const ON_ITS_WAY_US: u64 = 1_000_000;

/// And to one whose connection did not, beyond a session timeout without faults.
const AFTER_A_FAULT_US: u64 = 2_000_000;

/// How long one that consents at once may take after it was told: it may have to write its owner back first.
const AT_ONCE_US: u64 = 3_000_000;

/// Whether a participant gives way as soon as it is asked, by its settings `revocable` and `consent`.
fn consents_at_once(person: &Person<'_>) -> bool {
    let consent = person.config.get("consent").and_then(Value::as_str);
    is_revocable(person) && consent.is_none_or(|consent| consent == "at-once")
}

/// Whether a participant listens for requests, by its setting `revocable`.
fn is_revocable(person: &Person<'_>) -> bool {
    person.config.get("revocable").and_then(Value::as_bool).unwrap_or_default()
}

/// When a participant may force what it asks for, by its setting `force-after-ms`; none if it may not.
fn force_after_ms(person: &Person<'_>) -> Option<u64> {
    person.config.get("force-after-ms").and_then(Value::as_u64)
}

/// Who was asked to give way, and who was struck.
#[derive(Debug)]
pub struct Revoking<'a> {
    case: &'a Case<'a>,
    /// When each contender was asked first, by its number.
    asked: BTreeMap<usize, Moment>,
    /// The attempts to delete another participant's contender.
    strikes: Vec<Strike<'a>>,
    /// Writes that left another owner's text, or none.
    overwritten: Vec<(Moment, &'a Contender<'a>)>,
    /// Deletions in which neither the participant's session nor its end had a part.
    deleted_by_others: Vec<(Moment, &'a Contender<'a>)>,
}

/// An attempt of one participant to delete the contender of another one.
#[derive(Debug)]
struct Strike<'a> {
    who: ParticipantId,
    when: Moment,
    contender: &'a Contender<'a>,
}

impl<'a> Revoking<'a> {
    /// Of a history. Who listens for requests, and who may force when, is what the participants' configs
    /// say of `revocable` and `force-after-ms`.
    pub fn of(case: &'a Case<'a>) -> Self {
        let (strikes, overwritten, deleted_by_others) = (Vec::new(), Vec::new(), Vec::new());
        let asked = BTreeMap::new();
        let mut it = Revoking { case, asked, strikes, overwritten, deleted_by_others };
        let mut owners: BTreeMap<usize, &[u8]> = BTreeMap::new();
        for (at, entry) in case.history.iter().enumerate() {
            let now = Moment::of(at, entry);
            match &entry.what {
                What::HostCall { participant, name, paths, .. } if name == "delete" => {
                    it.strike(now, *participant, paths);
                }
                What::Txn { session, changes, .. } => {
                    for change in changes {
                        it.change(now, *session, change, changes, &mut owners);
                    }
                }
                _ => {}
            }
        }
        it
    }

    fn strike(&mut self, when: Moment, who: ParticipantId, paths: &[String]) {
        for contender in paths.iter().filter_map(|path| self.case.truth.find(path, when.at)) {
            // Of one whose participant died before it heard of it, nobody can tell whose it was.
            let is_anothers = self.case.people.asker(contender).is_none_or(|asker| asker.id != who);
            if is_anothers && contender.lives_at(when.at) {
                self.strikes.push(Strike { who, when, contender });
            }
        }
    }

    fn change(
        &mut self,
        now: Moment,
        session: i64,
        change: &'a Change,
        changes: &[Change],
        owners: &mut BTreeMap<usize, &'a [u8]>,
    ) {
        let (path, data) = match change {
            Change::Created { path, data, .. } | Change::DataSet { path, data, .. } => (path, data),
            Change::Deleted { path } => {
                let gone = self.case.truth.find(path, now.at);
                let is_by_another = |it: &&Contender<'_>| {
                    let ended = Change::SessionClosed { session: it.owner };
                    it.owner != session && !changes.contains(&ended)
                };
                self.deleted_by_others.extend(gone.filter(is_by_another).map(|it| (now, it)));
                return;
            }
            _ => return,
        };
        let Some(contender) = self.case.truth.find(path, now.at) else { return };
        let request = asks(data.bytes());
        let owner = request.unwrap_or(data.bytes());
        if request.is_some() {
            self.asked.entry(contender.id).or_insert(now);
        }
        if *owners.entry(contender.id).or_insert(owner) != owner {
            self.overwritten.push((now, contender));
        }
    }

    /// V1: a request is no more than that. What is deleted is deleted by its own participant, or by one
    /// that has asked it and may force it.
    pub fn check_consent(&self, id: &'static str, found: &mut Vec<Violation>) {
        for Strike { who, when, contender } in &self.strikes {
            let why = match self.asked.get(&contender.id) {
                None => "which nobody had asked to give way",
                Some(asked) if asked.at > when.at => "which nobody had asked to give way",
                Some(_) if self.may_force(*who).is_none() => "and may force nobody",
                Some(_) => continue,
            };
            let sentence = format!("participant {who} deletes {}, {why}", contender.path);
            let owner = self.case.people.asker(contender).map(|person| person.id);
            let violation = Violation::new(id, when.at, sentence);
            found.push(violation.involving([contender.created.at]).by([*who]).by(owner));
        }
        for (when, contender) in &self.deleted_by_others {
            let is_struck = |it: &Strike<'_>| it.contender.id == contender.id && it.when < *when;
            if self.strikes.iter().any(is_struck) {
                continue;
            }
            let sentence =
                format!("{} was deleted by a session that is not its own", contender.path);
            let owner = self.case.people.asker(contender).map(|person| person.id);
            let violation = Violation::new(id, when.at, sentence);
            found.push(violation.involving([contender.created.at]).by(owner));
        }
    }

    fn may_force(&self, who: ParticipantId) -> Option<u64> {
        self.case.people.person(who).and_then(force_after_ms)
    }

    /// V2: who holds, listens and is asked is told, whether it was asked before its turn or after, and unless it
    /// gives way first.
    pub fn check_told(&self, id: &'static str, found: &mut Vec<Violation>) {
        for (number, asked) in &self.asked {
            let Some(contender) = self.case.truth.contender(*number) else { continue };
            let asker = self.case.people.asker(contender);
            let Some(person) = asker.filter(|person| is_revocable(person)) else { continue };
            let Some(belief) = self.case.people.granted(contender) else { continue };
            let from = (*asked).max(belief.since);
            let due = self
                .due(person, contender, from)
                .and_then(|due| Some((due, self.case.first_after(due)?)));
            let handed_on =
                contender.replaced_by.is_some_and(|next| self.asked.contains_key(&next));
            let told = self.told(person, contender, *asked);
            let replaced = contender.replaced_by.and_then(|next| self.case.truth.contender(next));
            let at = match (due, replaced) {
                // Nobody can be told of a request that did not come along.
                (_, Some(next)) if asked.at < next.created.at && !handed_on && told.is_none() => {
                    next.created.at
                }
                (Some((due, at)), _)
                    if belief.lasts_after(due) && told.is_none_or(|told| told.us > due) =>
                {
                    at
                }
                _ => continue,
            };
            let sentence = format!(
                "participant {} has {} with {}, which was asked to give way, and was not told",
                person.id, self.case.promise.noun, contender.path
            );
            let entries = [asked.at, belief.since.at];
            found.push(Violation::new(id, at, sentence).involving(entries).by([person.id]));
        }
    }

    /// V2 of what follows: who holds, is told that it is asked and consents at once gives back what it holds,
    /// and does not wait until its application does.
    pub fn check_gives_way(&self, id: &'static str, found: &mut Vec<Violation>) {
        for (number, asked) in &self.asked {
            let Some(contender) = self.case.truth.contender(*number) else { continue };
            let asker = self.case.people.asker(contender);
            let Some(person) = asker.filter(|person| consents_at_once(person)) else { continue };
            let Some(belief) = self.case.people.granted(contender) else { continue };
            let Some(told) = self.told(person, contender, *asked) else { continue };
            let late = || {
                let due = self.given_back_by(person, contender, told)?;
                self.case.first_after(due).filter(|_| belief.lasts_after(due))
            };
            let Some(at) = self.goes_on(person, contender, *asked, told).or_else(late) else {
                continue;
            };
            let sentence = format!(
                "participant {} still has {} with {}, though it was told that it is asked for it, \
                 and consents at once",
                person.id, self.case.promise.noun, contender.path
            );
            let entries = [asked.at, told.at];
            found.push(Violation::new(id, at, sentence).involving(entries).by([person.id]));
        }
    }

    /// Where one that was told answers the next call, and has not begun to give its contender back. A
    /// component that is woken does so before it comes to that call.
    fn goes_on(
        &self,
        person: &Person<'_>,
        contender: &Contender<'_>,
        asked: Moment,
        told: Moment,
    ) -> Option<usize> {
        let answered = |call: &Call<'_>| match call.answered {
            Some((answered, Outcome::Ok { .. } | Outcome::Err { .. })) => Some(answered.at),
            _ => None,
        };
        let calls = self.case.people.calls().iter();
        let mut next = calls.filter(|call| call.who == person.id && call.invoked.at > told.at);
        let answered = next.find_map(answered)?;
        let mut meanwhile = self.case.history.iter().take(answered).skip(asked.at);
        // The application may hear of the request after that.
        let gives_back = meanwhile.any(|entry| match &entry.what {
            What::HostCall { participant, name, paths, .. } => {
                let deletes = matches!(name.as_str(), "release" | "delete" | "multi" | "pipeline");
                *participant == person.id && deletes && paths.iter().any(|it| it == contender.path)
            }
            _ => false,
        });
        (!gives_back).then_some(answered)
    }

    /// When one that was told at that moment must have given back what it holds.
    fn given_back_by(
        &self,
        person: &Person<'_>,
        contender: &Contender<'_>,
        told: Moment,
    ) -> Option<u64> {
        let (faults, timeout) = (&self.case.faults, self.case.truth.timeout_us(contender.owner));
        let soon = told.us.saturating_add(AT_ONCE_US);
        if faults.spared(person.host, told.us, soon, timeout) {
            return Some(soon);
        }
        faults.due(person.host, told.us, timeout.saturating_add(AT_ONCE_US))
    }

    /// When a holder must have been told of what it is asked from that moment on. One whose component
    /// is busy then is told when the operation is over.
    fn due(&self, person: &Person<'_>, contender: &Contender<'_>, from: Moment) -> Option<u64> {
        let due = self.heard_by(person, contender, from)?;
        let at = self.case.first_after(due)?;
        match self.case.people.call_at(person.id, at).filter(|call| call.invoked.us <= due) {
            Some(busy) => self.heard_by(person, contender, busy.answered?.0),
            None => Some(due),
        }
    }

    /// When its host must have heard of it, if it was on its way from that moment on.
    fn heard_by(
        &self,
        person: &Person<'_>,
        contender: &Contender<'_>,
        from: Moment,
    ) -> Option<u64> {
        let (faults, timeout) = (&self.case.faults, self.case.truth.timeout_us(contender.owner));
        let soon = from.us.saturating_add(ON_ITS_WAY_US);
        if faults.spared(person.host, from.us, soon, timeout) {
            return Some(soon);
        }
        faults.due(person.host, from.us, timeout.saturating_add(AFTER_A_FAULT_US))
    }

    /// When the participant was told of a request on its contender.
    fn told(
        &self,
        person: &Person<'_>,
        contender: &Contender<'_>,
        asked: Moment,
    ) -> Option<Moment> {
        let relative = contender.path.strip_prefix(person.mount.trim_end_matches('/'))?;
        let later = self.case.history.iter().enumerate().skip(asked.at);
        let tells = |what: &What| match what {
            What::Told { participant, notice: Told::Emitted { event, detail } } => {
                let path = detail.get("path").map(String::as_str);
                *participant == person.id && event == REQUESTED && path == Some(relative)
            }
            _ => false,
        };
        let mut told = later.filter(|(_, entry)| tells(&entry.what));
        told.next().map(|(at, entry)| Moment::of(at, entry))
    }

    /// V3: nobody is forced before its time, which begins when it was asked and the one that forces it
    /// was called.
    pub fn check_force(&self, id: &'static str, found: &mut Vec<Violation>) {
        for Strike { who, when, contender } in &self.strikes {
            let Some(force_after_ms) = self.may_force(*who) else { continue };
            let Some(asked) = self.asked.get(&contender.id) else { continue };
            let called = self.case.people.call_at(*who, when.at).map(|call| call.invoked);
            let from = called.map_or(*asked, |called| called.max(*asked));
            let given = when.us.saturating_sub(from.us);
            if given >= force_after_ms.saturating_mul(1000) {
                continue;
            }
            let sentence = format!(
                "participant {who} deletes {} {} ms after it was asked to give way, and it has \
                 {force_after_ms} ms",
                contender.path,
                given / 1000
            );
            let owner = self.case.people.asker(contender).map(|person| person.id);
            let violation = Violation::new(id, when.at, sentence);
            found.push(violation.involving([from.at]).by([*who]).by(owner));
        }
    }

    /// V4: the znode of a contender that is asked goes on telling whose it is.
    pub fn check_owners(&self, id: &'static str, found: &mut Vec<Violation>) {
        for (when, contender) in &self.overwritten {
            let sentence =
                format!("{} does not say any more whose it is, or says another", contender.path);
            let owner = self.case.people.asker(contender).map(|person| person.id);
            let violation = Violation::new(id, when.at, sentence);
            found.push(violation.involving([contender.created.at]).by(owner));
        }
    }

    /// V5: what `revoke` answers is so. After `asked` the request is on the znode, after `gone` the contender
    /// has gone, after `forced` this caller has deleted it, and `no-node` is answered only if the
    /// contender was not there at one moment of the call.
    pub fn check_answers(&self, id: &'static str, found: &mut Vec<Violation>) {
        for call in self.case.people.calls().iter().filter(|call| call.operation == "revoke") {
            let Some((answered, outcome)) = call.answered else { continue };
            let (Outcome::Ok { value, .. } | Outcome::Err { value, .. }) = outcome else {
                continue;
            };
            let (Some(word), Some(path)) = (value.as_str(), self.revoked(call)) else { continue };
            let Some(why) = self.objection(call, answered, &path, word) else { continue };
            let who = call.who;
            let sentence =
                format!("the `revoke` of participant {who} was answered {word}, but {path} {why}");
            let violation = Violation::new(id, answered.at, sentence);
            found.push(violation.involving([call.invoked.at]).by([who]));
        }
    }

    /// The path of the contender that a call names by any path that ends with its name.
    fn revoked(&self, call: &Call<'_>) -> Option<String> {
        let name = self.case.arguments(call)?.get("path")?.as_str()?.rsplit('/').next()?;
        let mount = self.case.people.person(call.who)?.mount;
        Some([mount.trim_end_matches('/'), "/", name].concat())
    }

    fn objection(
        &self,
        call: &Call<'_>,
        answered: Moment,
        path: &str,
        word: &str,
    ) -> Option<&'static str> {
        // What happens in the instant of the call, or of the answer, may be taken down on either side of it.
        let contender = self.case.truth.find(path, answered.at);
        let deleted = contender.and_then(Contender::deleted_at);
        let is_gone = deleted.is_some_and(|deleted| deleted.us <= answered.us);
        match word {
            "asked" => {
                let asked = contender.and_then(|it| self.asked.get(&it.id));
                let was_there = deleted.is_none_or(|deleted| deleted.us >= call.invoked.us);
                let is_asked = asked.is_some_and(|asked| asked.us <= answered.us);
                (!is_asked || !was_there).then_some("was asked nothing meanwhile")
            }
            "gone" => (!is_gone).then_some("is still there"),
            "forced" => {
                let is_struck = |it: &Strike<'_>| {
                    it.who == call.who
                        && Some(it.contender.id) == contender.map(|contender| contender.id)
                };
                let is_forced = is_gone && self.strikes.iter().any(is_struck);
                (!is_forced).then_some("was not deleted by it")
            }
            "no-node" => {
                let was_there =
                    contender.is_some_and(|it| it.created.us < call.invoked.us && !is_gone);
                was_there.then_some("was there all the time")
            }
            _ => None,
        }
    }

    /// Whether a participant that was called had its contender deleted by another one meanwhile.
    pub fn was_forced(&self, call: &Call<'_>) -> bool {
        self.strikes.iter().any(|strike| {
            let asker = self.case.people.asker(strike.contender);
            asker.is_some_and(|asker| asker.id == call.who)
                && strike.contender.created.at >= call.invoked.at
                && strike.when.at >= call.invoked.at
        })
    }
}

/// What stands before a request, if the data ends with one.
pub(crate) fn asks(data: &[u8]) -> Option<&[u8]> {
    WORDS.iter().find_map(|word| match data.strip_suffix(*word)? {
        [] => Some(&[][..]),
        before => before.strip_suffix(b"\n"),
    })
}
