//! What the daemon tells of a participant: one flat object a line.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::{Map, Value};

use crate::session::Held;

/// A line of a stream.
#[derive(Debug, Clone)]
pub struct Told {
    /// What it says.
    pub event: Event,
    /// All of it, as it came.
    pub line: Map<String, Value>,
}

/// What a line says, as far as a client knows what to make of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// It has joined.
    Joined {
        /// Whether the daemon keeps what is held until the app says that nothing depends on it.
        #[serde(default)]
        dependent: bool,
        /// Of the session that it belongs to, negotiated; as `10s`. A daemon of an older wok does not say.
        #[serde(default)]
        session_timeout: Option<String>,
    },
    /// It stands in line.
    Waiting {
        /// Its contender znode.
        path: String,
    },
    /// It holds a claim.
    Held {
        /// The claim's znode.
        path: String,
        /// The fencing token.
        fence: Whole,
    },
    /// The operation has answered.
    Answered {
        /// What.
        #[serde(default)]
        value: Value,
        /// Whether the module goes on by itself, so that a claim may still come of it.
        #[serde(default)]
        goes_on: Option<bool>,
    },
    /// The operation has answered an error of its own.
    Refused {
        /// Which.
        #[serde(default)]
        error: Value,
    },
    /// The operation's timeout has passed.
    TimedOut,
    /// Contact with ZooKeeper is in doubt.
    Suspended,
    /// The doubt is over.
    Resumed,
    /// The module gives the claim up. The claim's znode may still stand.
    Released {
        /// The claim's znode.
        #[serde(default)]
        path: String,
    },
    /// It holds nothing, and nothing comes of it unless an operation is called.
    Idle,
    /// The participant is asked to end, and waits for what depends on its claim.
    Leaving {
        /// By whom or why, for people.
        #[serde(default)]
        message: String,
    },
    /// What was held is gone.
    Lost(LossTold),
    /// The module speaks.
    RecipeEvent {
        /// The event's name.
        #[serde(default)]
        name: String,
        /// Its details.
        #[serde(default)]
        detail: Value,
    },
    /// The daemon is there.
    Alive {
        /// Notices that this stream has missed.
        #[serde(default)]
        dropped: Option<Whole>,
    },
    /// Nothing of the participant is left.
    Ended {
        /// `left`, `lost` or `failed`.
        #[serde(default)]
        how: String,
        /// For people.
        #[serde(default)]
        message: String,
    },
    /// Something that this client does not know.
    #[serde(other)]
    Unknown,
}

/// What was lost, and why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LossTold {
    /// The reason in one word.
    #[serde(default)]
    pub reason: String,
    /// What is behind it, in one word.
    #[serde(default)]
    pub cause: String,
    /// For people.
    #[serde(default)]
    pub message: String,
}

/// A number, or a decimal string beyond what every reader of JSON knows exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole(pub u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = match &value {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        };
        number.map(Whole).ok_or_else(|| D::Error::custom(format!("{value} is no whole number")))
    }
}

impl Told {
    /// Reads a line.
    ///
    /// # Errors
    /// It is no object, or lacks what an event of its name has.
    pub fn read(line: &[u8]) -> Result<Self, serde_json::Error> {
        let line: Map<String, Value> = serde_json::from_slice(line)?;
        let event = Event::deserialize(Value::Object(line.clone()))?;
        Ok(Told { event, line })
    }

    /// The text of one of the line's keys.
    pub fn text(&self, key: &str) -> &str {
        self.line.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Until when what is held may be relied on without hearing more, on `CLOCK_BOOTTIME`, if it says
    /// so.
    pub fn deadline_ms(&self) -> Option<u64> {
        let deadline = self.line.get("deadline-boottime-ms")?;
        Whole::deserialize(deadline).ok().map(|Whole(deadline)| deadline)
    }

    /// The claim that it tells of, if it does.
    pub fn held(&self) -> Option<Held> {
        match &self.event {
            Event::Held { path, fence } => Some(Held { path: path.clone(), fence: fence.0 }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Event) {
        assert_eq!(Told::read(line.as_bytes()).unwrap().event, expected);
    }

    #[test]
    fn events_are_read_whatever_else_is_in_them() {
        check(
            r#"{"event":"joined","session":"0x1"}"#,
            Event::Joined { dependent: false, session_timeout: None },
        );
        check(
            r#"{"event":"held","path":"/a","fence":"9007199254740993","deadline-boottime-ms":7}"#,
            Event::Held { path: "/a".into(), fence: Whole(9_007_199_254_740_993) },
        );
        let alive = r#"{"event":"alive","at":"now","mood":["good"]}"#;
        check(alive, Event::Alive { dropped: None });
        check(r#"{"event":"timed-out","operation":"acquire"}"#, Event::TimedOut);
        check(r#"{"event":"moved","to":{"a":1}}"#, Event::Unknown);
    }

    #[test]
    fn any_line_may_say_until_when_a_claim_holds() {
        let deadline = |line: &str| Told::read(line.as_bytes()).unwrap().deadline_ms();
        assert_eq!(deadline(r#"{"event":"alive","deadline-boottime-ms":7}"#), Some(7));
        assert_eq!(deadline(r#"{"event":"resumed","deadline-boottime-ms":"8"}"#), Some(8));
        assert_eq!(deadline(r#"{"event":"alive","deadline-boottime-ms":"soon"}"#), None);
        assert_eq!(deadline(r#"{"event":"alive"}"#), None);
    }

    #[test]
    fn a_loss_is_a_loss_whatever_it_lacks() {
        let loss = LossTold { reason: String::new(), cause: String::new(), message: String::new() };
        check(r#"{"event":"lost"}"#, Event::Lost(loss));
    }

    #[test]
    fn what_lacks_the_essential_is_no_event() {
        for line in [
            r#"{"event":"held","path":"/a"}"#,
            r#"{"event":"held","path":"/a","fence":-1}"#,
            r#"{"event":7}"#,
            r#"{"held":true}"#,
            r#"["held"]"#,
            "held",
            "{",
            "",
        ] {
            assert!(Told::read(line.as_bytes()).is_err(), "{line}");
        }
    }
}
