//! What commands say: text for people, or one flat JSON object per line for programs.
//!
//! Both go to standard error where a command runs under a claim, since standard output is that
//! command's; reports that are asked for, as `inspect`, go to standard output.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::events::one_line;
use super::exit::{Failure, LossInWords};
use super::stdout::Reader;
use super::{stderr, stdout, told};
use crate::client::{ClientError, Event, Told, Whole};
use crate::config::spell_duration;
use crate::guest::values::unsigned;
use crate::participant::{Notice, detail_as_json};
use crate::plain_text;
use crate::session::Held;

/// How to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Prints reports.
#[derive(Debug, Clone)]
pub(super) struct Printer {
    output: Output,
}

impl Printer {
    pub(super) fn new(output: Output) -> Self {
        Printer { output }
    }

    /// How it reports.
    pub(super) fn output(&self) -> Output {
        self.output
    }

    /// For a command that something depends on, as a session or a claim: from now on it waits for
    /// nobody who reads standard error.
    pub(super) fn never_wait(&self) {
        stderr::begin(match self.output {
            Output::Text => |count| format!("wok: {}", dropped(count, "standard error")),
            Output::Json => |count| dropped_as_json(count, "standard error"),
        });
    }

    /// The same of standard output, for a command that prints what it is told.
    pub(super) fn never_wait_to_follow(&self) {
        stdout::begin(match self.output {
            Output::Text => |count| dropped(count, "standard output"),
            Output::Json => |count| dropped_as_json(count, "standard output"),
        });
    }

    /// An event of a participant, on standard error.
    pub(super) fn event(&self, event: &str, fields: &[(&str, Value)], text: &str) {
        match self.output {
            Output::Text => self.err(&format!("wok: {text}")),
            Output::Json => {
                let mut object = Map::new();
                object.insert("event".to_owned(), json!(event));
                for (name, value) in fields {
                    object.insert((*name).to_owned(), value.clone());
                }
                let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
                object.insert("at".to_owned(), json!(now));
                self.err(&Value::Object(object).to_string());
            }
        }
    }

    /// Tells that there is no session yet, and for how long wok goes on trying.
    pub(super) fn connecting(&self, reason: &str, limit: Duration) {
        let limit = spell_duration(limit);
        let fields = [("message", json!(reason)), ("connect-timeout", json!(limit))];
        let text = format!("{reason}; trying for {limit} (--connect-timeout)");
        self.event("connecting", &fields, &text);
    }

    /// Tells that the daemon, which is waited for, says nothing.
    pub(super) fn silent(&self, silence: &ClientError) {
        let text = format!("{silence}; waiting on");
        self.event("silent", &[("message", json!(silence.to_string()))], &text);
    }

    /// A notice of a participant that is not the end of something, on standard error.
    pub(super) fn notice(&self, recipe: &str, notice: &Notice) {
        let base = |more: &[(&str, Value)]| -> Vec<(String, Value)> {
            let mut fields = vec![("recipe".to_owned(), json!(recipe))];
            fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            fields
        };
        let (event, fields, text) = match notice {
            Notice::Waiting { path } => {
                ("waiting", base(&[("path", json!(path))]), told::waiting(path))
            }
            Notice::Suspended => ("suspended", base(&[]), told::SUSPENDED.to_owned()),
            Notice::Resumed => ("resumed", base(&[]), told::RESUMED.to_owned()),
            Notice::Emitted { event, detail } => {
                let detail = detail_as_json(detail);
                let text = format!("{event} {}", Value::Object(detail.clone()));
                let fields = base(&[("name", json!(event)), ("detail", Value::Object(detail))]);
                ("recipe-event", fields, text)
            }
            // The commands that act on the other notices tell them.
            _ => return,
        };
        let fields: Vec<(&str, Value)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        self.event(event, &fields, &text);
    }

    /// A claim that is held.
    pub(super) fn held(&self, recipe: &str, held: &Held) {
        let Held { path, fence } = held;
        self.event(
            "held",
            &[("recipe", json!(recipe)), ("path", json!(path)), ("fence", unsigned(*fence))],
            &told::held(path, *fence),
        );
    }

    /// What the daemon tells of a participant, on standard error: as it came, for programs.
    pub(super) fn told(&self, told: &Told) {
        match self.output {
            Output::Json => self.err(&Value::Object(told.line.clone()).to_string()),
            Output::Text => {
                if let Some(text) = told::in_words(told) {
                    self.err(&format!("wok: {text}"));
                }
            }
        }
    }

    /// What is told to who follows a participant, on standard output: as the daemon tells it, for programs.
    /// Says whether anybody still reads.
    pub(super) fn follow(&self, told: &Told) -> Reader {
        let line = || Value::Object(told.line.clone()).to_string();
        match (&told.event, self.output) {
            // Of these nothing has happened; the failure of the command tells what has been refused.
            (
                Event::Joined { .. }
                | Event::Alive { dropped: None | Some(Whole(0)) }
                | Event::Refused { .. }
                | Event::TimedOut,
                _,
            ) => Reader::There,
            (Event::Answered { value, .. }, Output::Text) => self.answer(value),
            (Event::Answered { .. }, Output::Json) => stdout::answer(&line()),
            (_, Output::Json) => stdout::say(&line()),
            (_, Output::Text) => match told::in_words(told) {
                Some(text) => stdout::say(&one_line(&text)),
                None => Reader::There,
            },
        }
    }

    /// Tells that a claim was over before its command. `whose` has the fields that name the claim.
    pub(super) fn lost(&self, whose: &[(&str, Value)], loss: &LossInWords) {
        let mut fields = whose.to_vec();
        fields.extend([
            ("reason", json!(loss.reason)),
            ("cause", json!(loss.cause)),
            ("message", json!(loss.message)),
        ]);
        self.event(
            "lost",
            &fields,
            &format!("lost: {loss}; nothing of the command is left running"),
        );
    }

    /// Why a command failed, on standard error.
    pub(super) fn failure(&self, failure: &Failure) {
        match self.output {
            Output::Text => self.err(&format!("wok: {failure}")),
            Output::Json => {
                let mut object = serde_json::Map::new();
                object.insert("error".to_owned(), json!(failure.kind()));
                object.insert("message".to_owned(), json!(failure.to_string()));
                if let Some(loss) = failure.loss() {
                    object.insert("reason".to_owned(), json!(loss.reason));
                    object.insert("cause".to_owned(), json!(loss.cause));
                }
                self.err(&serde_json::Value::Object(object).to_string());
            }
        }
    }

    /// A report that was asked for and tells of errors: for people on standard error.
    pub(super) fn report_failure(&self, text: &str, json: &Value) {
        match self.output {
            Output::Text => self.err(text.trim_end()),
            Output::Json => self.out(&json.to_string()),
        }
    }

    /// The answer of an operation, as JSON for both: on one line for programs. Says whether anybody reads.
    pub(super) fn answer(&self, answer: &Value) -> Reader {
        let text = match self.output {
            Output::Text => plain_text::json(&format!("{answer:#}")),
            Output::Json => answer.to_string(),
        };
        let reader = stdout::answer(&text);
        // The operation has done what it does, and may answer something else when it is called again.
        if stdout::failure().is_some() {
            self.err(&text);
        }
        reader
    }

    /// A report that was asked for, on standard output.
    pub(super) fn report(&self, text: &str, json: &Value) {
        match self.output {
            Output::Text => self.out(text.trim_end()),
            Output::Json => self.out(&json.to_string()),
        }
    }

    /// A line of a report that goes on, on standard output; nothing that a terminal obeys may come
    /// from elsewhere. Says whether anybody still reads.
    pub(super) fn line(&self, line: &str) -> Reader {
        stdout::say(line)
    }

    /// Something that is done all the same, and that somebody should look at, on standard error.
    pub(super) fn warning(&self, text: &str) {
        self.event("warning", &[("message", json!(text))], text);
    }

    /// Something for people only, on standard error.
    pub(super) fn remark(&self, text: &str) {
        if self.output == Output::Text {
            self.err(&format!("wok: {text}"));
        }
    }

    /// A line of another program that works for us: for people only, on standard error.
    pub(super) fn progress(&self, line: &str) {
        if self.output == Output::Text {
            self.err(line);
        }
    }

    fn err(&self, line: &str) {
        stderr::say(&self.shown(line));
    }

    fn out(&self, line: &str) {
        stdout::say(&self.shown(line));
    }

    fn shown<'a>(&self, line: &'a str) -> Cow<'a, str> {
        match self.output {
            Output::Text => plain_text::lines(line),
            Output::Json => Cow::Borrowed(line),
        }
    }
}

fn dropped(lines: u64, stream: &str) -> String {
    format!("{lines} lines were dropped here: {stream} is not read fast enough")
}

fn dropped_as_json(lines: u64, stream: &str) -> String {
    json!({ "event": "dropped", "lines": lines, "message": dropped(lines, stream) }).to_string()
}
