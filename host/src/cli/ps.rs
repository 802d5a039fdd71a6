//! `wok ps`: who takes part in the recipes of the running daemon.

mod table;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::json;

use super::api::Daemon;
use super::colour::{Colour, Paint};
use super::exit::Failure;
use super::output::{Output, Printer};
use super::stdout::Reader;
use crate::client::{Listed, Participants, path};
use table::{Cell, Table};

/// How much of an id is shown: enough to tell a thousand participants apart.
pub(super) const SHORT_ID: usize = 8;

/// How much of a znode's name is shown, from its end, where its number is.
const SHORT_NAME: usize = 24;

/// How much is shown of what an app says of itself.
const SHORT_TEXT: usize = 40;

/// List the participants of the running daemon: what they hold, what they wait for, and behind whom.
///
/// Root and the daemon's user see all of them, others see their own. STATE is `joined`, `waiting` (in
/// line, or for what its operation waits for), `held`, `suspended` (contact with ZooKeeper is in
/// doubt), `leaving` (it is giving up a claim on which something may still depend) or `ended`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok ps\n  wok ps --long\n  \
    wok ps --output json --socket /run/wok/wok.sock")]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,

    /// Show ids, paths and texts whole, and the znodes and sessions as well.
    #[arg(long, short)]
    long: bool,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let listed: Participants =
            self.daemon.ask(async |client| Ok(client.get(&path(["participants"])).await?))?;
        let participants = listed.read().map_err(|error| {
            Failure::Unreachable(format!("the daemon lists what is no participant: {error}"))
        })?;
        if participants.is_empty() {
            printer.remark("nobody takes part: `wok hold <recipe> <operation> -- command` does");
        }
        if printer.output() == Output::Json {
            printer.report("", &json!({ "participants": listed.participants }));
            return Ok(ExitCode::SUCCESS);
        }
        let length = if self.long { Length::Whole } else { Length::Short };
        if !participants.is_empty() {
            let table = table(&participants, length, SystemTime::now());
            for line in table.lines(Paint::of(&io::stdout())) {
                if printer.line(&line) == Reader::Gone {
                    break;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// How much of everything is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Short,
    Whole,
}

fn table(participants: &[Listed], length: Length, now: SystemTime) -> Table {
    let mut head = vec!["RECIPE", "PARTICIPANT", "STATE", "FENCE", "SINCE", "APP", "BEHIND"];
    if length == Length::Whole {
        head.extend(["PATH", "SESSION"]);
    }
    let mut table = Table::new(&head);
    for it in participants {
        let (held, waiting) = (it.held.as_ref(), it.waiting.as_ref());
        let mut row = vec![
            Cell::plain(&it.recipe),
            Cell::plain(length.of_id(&it.participant)),
            Cell::coloured(&it.state, colour(&it.state)),
            Cell::plain(&held.map(|held| held.fence.0.to_string()).unwrap_or_default()),
            Cell::plain(&age(&it.since, now)),
            Cell::plain(&length.of_text(it.app.as_deref().unwrap_or_default())),
            Cell::plain(&behind(it, length)),
        ];
        if length == Length::Whole {
            let path = held.map(|it| &it.path).or(waiting.map(|it| &it.path));
            row.push(Cell::plain(path.map_or("", String::as_str)));
            row.push(Cell::plain(&it.session));
        }
        table.push(row);
    }
    table
}

fn colour(state: &str) -> Option<Colour> {
    match state {
        "held" => Some(Colour::Green),
        "suspended" | "leaving" => Some(Colour::Yellow),
        "ended" => Some(Colour::Faint),
        _ => None,
    }
}

/// Who is before a participant in line: the znode, and its owner's words.
fn behind(participant: &Listed, length: Length) -> String {
    let waiting = participant.waiting.as_ref();
    let Some(behind) = waiting.and_then(|it| it.behind.as_ref()) else { return String::new() };
    let path = length.of_path(&behind.path);
    match &behind.owner {
        Some(owner) => format!("{path} ({})", length.of_text(owner)),
        None => path,
    }
}

impl Length {
    fn of_id(self, id: &str) -> &str {
        match self {
            Length::Whole => id,
            Length::Short => short_id(id),
        }
    }

    fn of_path(self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or_default();
        let count = name.chars().count();
        match self {
            Length::Whole => path.to_owned(),
            Length::Short if count <= SHORT_NAME => name.to_owned(),
            Length::Short => "…".chars().chain(name.chars().skip(count - SHORT_NAME + 1)).collect(),
        }
    }

    fn of_text(self, text: &str) -> String {
        match self {
            Length::Short if text.chars().count() > SHORT_TEXT => {
                text.chars().take(SHORT_TEXT - 1).chain("…".chars()).collect()
            }
            Length::Short | Length::Whole => text.to_owned(),
        }
    }
}

/// The beginning of an id.
pub(super) fn short_id(id: &str) -> &str {
    id.char_indices().nth(SHORT_ID).and_then(|(end, _)| id.get(..end)).unwrap_or(id)
}

/// How long ago that was, in the largest unit that fits.
fn age(since: &str, now: SystemTime) -> String {
    let Ok(since) = humantime::parse_rfc3339_weak(since) else { return "?".to_owned() };
    // A clock that was set back meanwhile.
    let age = now.duration_since(since).unwrap_or(Duration::ZERO).as_secs();
    match age {
        0..60 => format!("{age}s"),
        60..3_600 => format!("{}m", age / 60),
        3_600..86_400 => format!("{}h", age / 3_600),
        _ => format!("{}d", age / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn listed() -> Vec<Listed> {
        let holder = json!({
            "participant": "0123456789abcdef0123456789abcdef", "recipe": "orders", "app": "billing",
            "uid": 0, "pid": 7, "owner": "o", "session": "0x1", "since": "2026-01-02T03:04:05.678Z",
            "state": "held", "waiting": null, "held": { "path": "/l/_c_1-lock-01", "fence": "12" },
            "operation": null, "lease": "10s", "by": "app", "mood": { "of": "a newer daemon" },
        });
        let waiter = json!({
            "participant": "fedcba98", "recipe": "orders\u{1b}[2J", "app": null, "since": "soon",
            "state": "waiting", "waiting": {
                "path": "/l/_c_2-lock-02",
                "behind": {
                    "path": "/l/_c_550e8400-e29b-41d4-a716-446655440000-lock-0000000007",
                    "owner": "the\nnightly job",
                },
            },
        });
        let list: Vec<Value> = vec![holder, waiter];
        Participants { participants: list }.read().unwrap()
    }

    fn shown(length: Length) -> String {
        let now = humantime::parse_rfc3339("2026-01-02T05:10:00Z").unwrap();
        table(&listed(), length, now).lines(Paint::Plain).join("\n")
    }

    #[test]
    fn a_table_has_a_line_for_each_and_nothing_that_a_terminal_obeys() {
        let expected = "\
RECIPE           PARTICIPANT  STATE    FENCE  SINCE  APP      BEHIND
orders           01234567     held     12     2h     billing
orders\\u{1b}[2J  fedcba98     waiting         ?               …5440000-lock-0000000007 (the\\nnightly job)";
        assert_eq!(shown(Length::Short), expected);
    }

    #[test]
    fn the_long_table_shows_all() {
        let whole = shown(Length::Whole);
        for part in ["0123456789abcdef0123456789abcdef", "/l/_c_1-lock-01", "0x1", "/l/_c_550e8400"]
        {
            assert!(whole.contains(part), "{part} is not in {whole}");
        }
    }

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(short_id("äöüäöüäöüä"), "äöüäöüäö");
        assert_eq!(short_id("abc"), "abc");
        let text = Length::Short.of_text(&"ä".repeat(50));
        assert_eq!(text.chars().count(), SHORT_TEXT);
    }

    #[test]
    fn the_help_tells_every_state_of_the_openapi_document() {
        let document = crate::api::openapi::document(std::iter::empty());
        let states = document.pointer("/components/schemas/participant/properties/state/enum");
        let states = states.and_then(Value::as_array).unwrap();
        let command = Arguments::augment_args(clap::Command::new("ps"));
        let help = command.get_long_about().unwrap().to_string();
        assert!(states.len() > 5);
        for state in states {
            let state = format!("`{}`", state.as_str().unwrap());
            assert!(help.contains(&state), "{state} is not in {help}");
        }
    }

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        let start = humantime::parse_rfc3339("2026-01-02T03:04:05Z").unwrap();
        for (seconds, expected) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (7_199, "1h"), (86_400, "1d"), (900_000, "10d")]
        {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(age("2026-01-02T03:04:05Z", now), expected);
        }
        assert_eq!(age("2027-01-02T03:04:05Z", start), "0s");
        assert_eq!(age("", start), "?");
    }
}
