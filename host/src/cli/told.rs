//! What the daemon tells, in words.

use serde_json::Value;

use crate::client::{Event, Told, Whole};
use crate::guest::values;

/// What a participant says that stands in line.
pub(super) fn waiting(path: &str) -> String {
    format!("standing in line as {path}")
}

/// What a participant says that holds a claim.
pub(super) fn held(path: &str, fence: u64) -> String {
    format!("holding {path} with fence {fence}")
}

/// What is said of a session without contact …
pub(super) const SUSPENDED: &str =
    "contact with ZooKeeper is in doubt; what is held stands until its loss is told";

/// … and with contact again.
pub(super) const RESUMED: &str = "in contact with ZooKeeper again";

/// What is said of a participant of which nothing comes any more.
pub(super) const IDLE: &str = "holds nothing, and waits for nothing any more";

/// A line for people; none for one that says no more than that the daemon is there.
pub(super) fn in_words(told: &Told) -> Option<String> {
    let operation = told.text("operation");
    Some(match &told.event {
        Event::Joined { .. } => match told.text("app") {
            "" => "joined".to_owned(),
            app => format!("joined, for {app}"),
        },
        Event::Waiting { path } => waiting(path),
        Event::Held { path, fence } => held(path, fence.0),
        Event::Answered { value, .. } => format!("{operation} answered {value}"),
        Event::Refused { error } => {
            format!("{operation} answered the error {}", values::error_in_words(error))
        }
        Event::TimedOut => format!("{operation} did not answer within its timeout"),
        Event::Suspended => SUSPENDED.to_owned(),
        Event::Resumed => RESUMED.to_owned(),
        // Its znode may still stand.
        Event::Released { path } => format!("giving up {path}"),
        Event::Idle => IDLE.to_owned(),
        Event::Leaving { message } => with("asked to end", message),
        Event::Lost(loss) => with("lost", &loss.message),
        Event::RecipeEvent { name, detail } => format!("{name} {detail}"),
        Event::Alive { dropped: Some(Whole(dropped @ 1..)) } => {
            format!("{dropped} notices were dropped here: the stream is not read fast enough")
        }
        Event::Alive { .. } => return None,
        Event::Ended { how, message } => {
            with("ended", if message.is_empty() { how } else { message })
        }
        _ => unknown(told),
    })
}

fn with(what: &str, message: &str) -> String {
    match message {
        "" => what.to_owned(),
        message => format!("{what}: {message}"),
    }
}

/// An event of a newer daemon: its name and what it has beyond what every line has.
fn unknown(told: &Told) -> String {
    let mut rest = told.line.clone();
    for key in ["event", "recipe", "participant", "at"] {
        rest.remove(key);
    }
    format!("{} {}", told.text("event"), Value::Object(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let told = Told::read(line.as_bytes()).unwrap();
        assert_eq!(in_words(&told).as_deref(), expected);
    }

    #[test]
    fn lines_are_told_in_words() {
        check(r#"{"event":"joined","app":"billing"}"#, Some("joined, for billing"));
        check(r#"{"event":"waiting","path":"/a"}"#, Some("standing in line as /a"));
        let held = r#"{"event":"held","path":"/a","fence":7,"deadline-boottime-ms":9}"#;
        check(held, Some("holding /a with fence 7"));
        let answered = r#"{"event":"answered","operation":"contenders","value":[]}"#;
        check(answered, Some("contenders answered []"));
        let refused = r#"{"event":"refused","operation":"put","error":{"full":"no room"}}"#;
        check(refused, Some("put answered the error full: no room"));
        let lost =
            r#"{"event":"lost","reason":"session","cause":"expired","message":"it expired"}"#;
        check(lost, Some("lost: it expired"));
        check(r#"{"event":"ended","how":"left"}"#, Some("ended: left"));
        check(r#"{"event":"alive"}"#, None);
        check(r#"{"event":"alive","dropped":0}"#, None);
        let dropped = "3 notices were dropped here: the stream is not read fast enough";
        check(r#"{"event":"alive","dropped":3}"#, Some(dropped));
    }

    #[test]
    fn an_event_of_a_newer_daemon_is_shown_as_it_is() {
        let line = r#"{"event":"moved","recipe":"orders","participant":"p","at":"now","to":"/b"}"#;
        check(line, Some("moved {\"to\":\"/b\"}"));
    }
}
