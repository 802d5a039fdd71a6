//! A run as people read it: who did what, and what was done to them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::{CallId, Change, Entry, HostId, Outcome, ParticipantId, Told, What};
use super::judges::Violation;
use super::servers::FOREIGN_SESSION;

/// How many lines are shown of the beginning, which tells who takes part where.
const FIRST_LINES: usize = 12;

/// How many lines are shown before what was broken. Those that the violation speaks of are shown
/// wherever they are.
const LAST_LINES: usize = 40;

/// How many calls are shown wherever they are: the newest one of each participant. There are more
/// participants than that where hosts were killed again and again.
const MOST_CALLS: usize = 20;

/// The part of a run that leads to a violation, one line for each thing that happened: when it did,
/// the number of its entry, by which violations speak of it, and who did what. `>` marks the line at
/// which it is broken, `*` those that led there.
pub fn around(history: &[Entry], violation: &Violation) -> Vec<String> {
    let mut scribe = Scribe::default();
    let mut calls = Calls::default();
    let mut lines = Vec::new();
    for (index, entry) in history.iter().enumerate().take(violation.at.saturating_add(1)) {
        let is_involved = violation.involved.contains(&index);
        let told = scribe.tell(&entry.what);
        let told = told.or_else(|| is_involved.then(|| scribe.spell(&entry.what)));
        let Some((who, text)) = told else { continue };
        calls.read(&entry.what, lines.len());
        let mark = match (index == violation.at, is_involved) {
            (true, _) => ">",
            (false, true) => "*",
            (false, false) => " ",
        };
        let at_s = seconds(entry.at_us);
        let line = format!("{mark} {at_s:>9.3} s  {index:>6}  {who:<17} {text}");
        lines.push((line, is_involved));
    }
    let calls = calls.lines();
    let end = lines.len().saturating_sub(LAST_LINES);
    let mut shown = Vec::new();
    let mut left_out = 0;
    for (number, (line, is_involved)) in lines.into_iter().enumerate() {
        let is_within = (FIRST_LINES..end).contains(&number);
        if is_within && !is_involved && !calls.contains(&number) {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            shown.push(left_out_line(left_out));
            left_out = 0;
        }
        shown.push(line);
    }
    shown
}

/// A sentence with names as the lines have them: paths as the component sees them, and of each UUID
/// only the beginning.
pub fn in_short(history: &[Entry], sentence: &str) -> String {
    let mount = history.iter().find_map(|entry| match &entry.what {
        What::Joined { mount, .. } => Some(mount.clone()),
        _ => None,
    });
    Scribe { mount: mount.unwrap_or_default(), ..Scribe::default() }.short(sentence)
}

fn left_out_line(count: usize) -> String {
    format!("  … {count} {} left out", if count == 1 { "line" } else { "lines" })
}

fn seconds(at_us: u64) -> f64 {
    at_us as f64 / 1e6
}

/// What each participant is at: the call that is under way, or else the one that was answered last.
/// Of a component that goes round in a circle it is the only line that says what for.
#[derive(Debug, Default)]
struct Calls {
    newest: BTreeMap<ParticipantId, NewestCall>,
}

#[derive(Debug)]
struct NewestCall {
    call: CallId,
    line: usize,
    is_answered: bool,
}

impl Calls {
    /// Reads an entry that is told in that line.
    fn read(&mut self, what: &What, line: usize) {
        match what {
            What::Invoked { participant, call, .. } => {
                let newest = self.newest.get(participant);
                // What is called while another call is under way is refused.
                if newest.is_none_or(|newest| newest.is_answered) {
                    let newest = NewestCall { call: *call, line, is_answered: false };
                    self.newest.insert(*participant, newest);
                }
            }
            What::Returned { participant, call, .. } => {
                let newest = self.newest.get_mut(participant);
                if let Some(newest) = newest.filter(|newest| newest.call == *call) {
                    newest.is_answered = true;
                }
            }
            _ => {}
        }
    }

    /// The lines that tell of these calls, the latest at most.
    fn lines(&self) -> BTreeSet<usize> {
        let lines: BTreeSet<usize> = self.newest.values().map(|newest| newest.line).collect();
        lines.into_iter().rev().take(MOST_CALLS).collect()
    }
}

/// Knows the names of things.
#[derive(Debug, Default)]
pub(super) struct Scribe {
    mount: String,
    host_calls: BTreeMap<u64, (String, String)>,
}

impl Scribe {
    /// Who it is about, and what there is to say of it; nothing for what nobody needs to know.
    pub(super) fn tell(&mut self, what: &What) -> Option<(String, String)> {
        let (who, text) = match what {
            What::Txn { zxid, session, changes } => {
                return self
                    .txn(*zxid, *session, changes)
                    .map(|text| ("ensemble".to_owned(), text));
            }
            What::SessionOpened { host, session, .. } => {
                (host_name(*host), format!("opens session {session:#x}"))
            }
            What::SessionLost { host, why, .. } => {
                (host_name(*host), format!("gives its session up: {why}"))
            }
            What::Joined { participant, host, mount, .. } => {
                self.mount.clone_from(mount);
                (name(*participant), format!("joins on host {host}"))
            }
            What::Invoked { participant, operation, arguments, .. } => {
                let arguments = match arguments {
                    Value::Null => String::new(),
                    Value::Object(none) if none.is_empty() => String::new(),
                    arguments => self.short(&format!(" {arguments}")),
                };
                (name(*participant), format!("is asked to {operation}{arguments}"))
            }
            What::Returned { participant, outcome, .. } => {
                (name(*participant), format!("answers {}", self.outcome(outcome)))
            }
            What::Withdrawn { participant, .. } => {
                (name(*participant), "its caller gives up".to_owned())
            }
            What::Leaving { participant } => (name(*participant), "is asked to leave".to_owned()),
            What::Told { participant, notice } => (name(*participant), self.told(notice)),
            What::Wrote { participant, fence, accepted } => {
                let how = if *accepted { "taken" } else { "refused" };
                (name(*participant), format!("writes under fence {fence}: {how}"))
            }
            What::HostCall { number, name, paths, .. } => {
                let paths: Vec<String> = paths.iter().map(|path| self.short(path)).collect();
                self.host_calls.insert(*number, (name.clone(), paths.join(" ")));
                return None;
            }
            What::HostCallAnswered { participant, number, answer, created } => {
                let (call, about) = self.host_calls.remove(number)?;
                let created = created.as_deref().map(|path| format!(" {}", self.short(path)));
                let created = created.unwrap_or_default();
                (name(*participant), format!("  {call} {about} -> {answer}{created}"))
            }
            What::Event { host, event, path, .. } => {
                (host_name(*host), format!("  event: {} {event}", self.short(path)))
            }
            What::Woken { participant, tags } => {
                (name(*participant), format!("  is woken: {tags:?}"))
            }
            What::Fault { fault, host, struck, cut } => {
                let struck = match struck.as_slice() {
                    [] => String::new(),
                    calls => format!(", in the middle of {}", calls.join(", ")),
                };
                let who = struck_name(*host);
                let cut = cut.as_deref().map(|cut| format!(": {cut}")).unwrap_or_default();
                (who, format!("*** {}{cut}{struck}", fault.name()))
            }
            What::Healed { fault, host } => {
                (struck_name(*host), format!("*** {} is over", fault.name()))
            }
            What::Calm => ("everybody".to_owned(), "no faults from here on".to_owned()),
            What::Final { .. } => ("everybody".to_owned(), "all is over".to_owned()),
            What::Request { .. } => return None,
        };
        Some((who, text))
    }

    /// What is so ordinary that it is told only where something was broken by it.
    pub(super) fn spell(&self, what: &What) -> (String, String) {
        match what {
            What::Txn { zxid, session, .. } => {
                let text = format!("txn {zxid}, which changes nothing, of session {session:#x}");
                ("ensemble".to_owned(), text)
            }
            What::HostCall { participant, name: call, paths, .. } => {
                (name(*participant), format!("  asks: {call} {}", self.short(&paths.join(" "))))
            }
            What::HostCallAnswered { participant, answer, .. } => {
                (name(*participant), format!("  is answered {answer}"))
            }
            What::Request { host, name, path, .. } => {
                (host_name(*host), format!("  sends {name} {}", self.short(path)))
            }
            _ => ("somebody".to_owned(), "does what has no words".to_owned()),
        }
    }

    /// What a txn changed, in words.
    pub(super) fn changes(&self, changes: &[Change]) -> Vec<String> {
        let told = changes.iter().filter_map(|change| match change {
            Change::Created { path, .. } => Some(format!("creates {}", self.short(path))),
            Change::Deleted { path } => Some(format!("deletes {}", self.short(path))),
            Change::DataSet { path, .. } => Some(format!("sets {}", self.short(path))),
            Change::SessionClosed { session } => Some(format!("ends session {session:#x}")),
            Change::SessionCreated { .. } => None,
        });
        told.collect()
    }

    fn txn(&self, zxid: i64, session: i64, changes: &[Change]) -> Option<String> {
        let told = self.changes(changes);
        let by = match session {
            0 => String::new(),
            FOREIGN_SESSION => " for another program".to_owned(),
            session => format!(" for session {session:#x}"),
        };
        (!told.is_empty()).then(|| format!("txn {zxid}: {}{by}", told.join(", ")))
    }

    fn told(&self, notice: &Told) -> String {
        match notice {
            Told::Waiting { path } => format!("waits as {}", self.short(path)),
            Told::Held { path, fence } => format!("HOLDS {} with fence {fence}", self.short(path)),
            Told::Released { path } => format!("gives up {}", self.short(path)),
            Told::Suspended => "is in doubt".to_owned(),
            Told::Resumed => "is in doubt no more".to_owned(),
            Told::Emitted { event, detail } => {
                let detail: Vec<String> = detail
                    .iter()
                    .map(|(key, value)| format!("{key}={}", self.short(value)))
                    .collect();
                format!("says {event} {}", detail.join(" "))
            }
            Told::Lost { reason } => format!("LOST what it held: {reason}"),
            Told::Ended { how, fault } => {
                let fault = fault.as_deref().map(|fault| format!(": {fault}"));
                format!("has ended ({how}{})", fault.unwrap_or_default())
            }
        }
    }

    pub(super) fn outcome(&self, outcome: &Outcome) -> String {
        match outcome {
            Outcome::Ok { value, .. } => self.short(&format!("ok {value}")),
            Outcome::Err { value, .. } => self.short(&format!("error {value}")),
            Outcome::Cancelled => "cancelled".to_owned(),
            Outcome::Ended => "nothing: it has ended".to_owned(),
            Outcome::Busy => "busy".to_owned(),
        }
    }

    /// Paths as the component sees them, and of each UUID only the beginning.
    pub(super) fn short(&self, text: &str) -> String {
        let text = match self.mount.as_str() {
            "" => text.to_owned(),
            mount if text == mount => "/".to_owned(),
            mount => text.replace(mount, ""),
        };
        let mut short = String::with_capacity(text.len());
        let mut digits = String::new();
        for character in text.chars() {
            if character.is_ascii_hexdigit() || (character == '-' && !digits.is_empty()) {
                digits.push(character);
                continue;
            }
            flush(&mut digits, &mut short);
            short.push(character);
        }
        flush(&mut digits, &mut short);
        short
    }
}

/// Of something as long as a UUID the first four digits stay, and what stands behind the UUID.
fn flush(digits: &mut String, short: &mut String) {
    const UUID: usize = 32;
    if digits.chars().filter(char::is_ascii_hexdigit).count() >= UUID {
        let length = if digits.contains('-') { UUID + 4 } else { UUID };
        short.extend(digits.chars().take(4));
        short.push('…');
        short.extend(digits.chars().skip(length));
    } else {
        short.push_str(digits);
    }
    digits.clear();
}

fn name(participant: ParticipantId) -> String {
    format!("participant {participant}")
}

/// Whom a fault strikes.
fn struck_name(host: Option<HostId>) -> String {
    host.map_or_else(|| "ensemble".to_owned(), host_name)
}

fn host_name(host: HostId) -> String {
    format!("host {host}")
}

#[cfg(test)]
mod tests {
    use wok_judge::stories::Story;

    use super::*;

    /// The lines of a run that breaks something at its end.
    fn lines(story: &Story) -> Vec<String> {
        let at = story.entries.len() - 1;
        around(&story.entries, &Violation::new("L1", at, "it goes on and on".to_owned()))
    }

    fn circle(story: &mut Story, rounds: usize) {
        for _ in 0..rounds {
            story.ask(2, "exists", "/somewhere").answer_ask(2, None);
        }
    }

    #[test]
    fn of_a_run_that_goes_round_in_a_circle_the_beginning_and_the_calls_are_shown() {
        let mut story = Story::new();
        story.acquire(1, 0).win(1);
        circle(&mut story, 100);
        story.invoke(2, "acquire");
        circle(&mut story, 100);
        story.refuse(2).invoke(3, "contenders");
        circle(&mut story, 5_000);
        let shown = lines(&story);
        let most = FIRST_LINES + LAST_LINES + 2 * 3 + 1;
        assert!(shown.len() <= most, "{} lines: {shown:#?}", shown.len());
        assert!(shown[0].contains("host 1") && shown[0].contains("opens session"), "{shown:#?}");
        let asked = |who: &str, to: &str| {
            shown.iter().filter(|line| line.contains(who) && line.contains(to)).count()
        };
        assert_eq!(asked("participant 1 ", "is asked to acquire"), 1, "{shown:#?}");
        assert_eq!(asked("participant 2 ", "is asked to acquire"), 1, "{shown:#?}");
        assert_eq!(asked("participant 3 ", "is asked to contenders"), 1, "{shown:#?}");
        assert_eq!(asked("participant 2 ", "is asked to contenders"), 0, "{shown:#?}");
        let left_out = shown.iter().filter(|line| line.ends_with("lines left out")).count();
        assert_eq!(left_out, 3, "{shown:#?}");
        assert!(shown.last().unwrap().starts_with('>'), "{shown:#?}");
    }

    #[test]
    fn of_a_short_run_nothing_is_left_out() {
        let mut story = Story::new();
        story.acquire(1, 0).win(1);
        let shown = lines(&story);
        assert!(!shown.iter().any(|line| line.contains("left out")), "{shown:#?}");
    }
}
