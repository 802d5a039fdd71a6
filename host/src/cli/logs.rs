//! `wok logs`: the running daemon's log.

use std::io;
use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use super::api::Daemon;
use super::colour::{Colour, Paint};
use super::daemon_call::unknown_recipe;
use super::events::one_line;
use super::exit::Failure;
use super::output::{Output, Printer};
use super::stdout::{self, Reader};
use crate::client::{Client, ClientError};

/// Show the log of the running daemon, whatever its standard error leads to.
///
/// Only root and the daemon's user may see it. What the daemon logs is said by its WOK_LOG.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok logs\n  wok logs -f -n 20\n  \
    wok logs -f --recipe orders\n  wok logs --output json -n 1000")]
pub(super) struct Arguments {
    /// Go on with what comes, until Ctrl-C.
    #[arg(long, short)]
    follow: bool,

    /// With how many of the last lines to begin. The daemon keeps the last 1000.
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 100)]
    lines: u32,

    /// Only what is said of this recipe, among those lines.
    #[arg(long, value_name = "NAME")]
    recipe: Option<String>,

    #[command(flatten)]
    daemon: Daemon,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let Arguments { follow, lines, recipe, daemon } = self;
        let path = format!("/v1/logs?lines={lines}&follow={follow}");
        daemon.ask(async |client| {
            if let Some(recipe) = &recipe
                && let Some(what) = unknown_recipe(&client, recipe).await
            {
                return Err(Failure::Usage(what));
            }
            match show(&client, &path, recipe.as_deref(), printer).await? {
                // What is followed ends only with the daemon, or with who reads.
                Reader::There if follow => {
                    Err(ClientError::Stopped { socket: client.socket().clone() }.into())
                }
                Reader::There | Reader::Gone => Ok(ExitCode::SUCCESS),
            }
        })
    }
}

/// Shows the lines to the last one. Says whether anybody reads them.
async fn show(
    client: &Client,
    path: &str,
    recipe: Option<&str>,
    printer: &Printer,
) -> Result<Reader, Failure> {
    let (mut lines, paint) = (client.lines(path).await?, Paint::of(&io::stdout()));
    let mut unread = pin!(stdout::until_unread());
    loop {
        // Both are cancel-safe: a line stays queued, and a reader that has gone does not come back.
        let line = tokio::select! {
            line = lines.next() => line?,
            () = &mut unread => return Ok(Reader::Gone),
        };
        let Some(line) = line else { return Ok(Reader::There) };
        let line: Map<String, Value> = serde_json::from_slice(&line).map_err(|error| {
            ClientError::NotOurs { socket: client.socket().clone(), what: error.to_string() }
        })?;
        let is_wanted = match recipe {
            None => is_of_the_log(&line),
            Some(recipe) => line.get("recipe").and_then(Value::as_str) == Some(recipe),
        };
        if !is_wanted {
            continue;
        }
        let shown = match printer.output() {
            Output::Json => Value::Object(line).to_string(),
            Output::Text => in_words(line, paint),
        };
        if printer.line(&shown) == Reader::Gone {
            return Ok(Reader::Gone);
        }
    }
}

/// A stream that goes on says now and then that it is alive.
fn is_of_the_log(line: &Map<String, Value>) -> bool {
    line.get("event").and_then(Value::as_str) != Some("alive")
}

/// A line for people, as the daemon itself would have written it.
fn in_words(mut line: Map<String, Value>, paint: Paint) -> String {
    line.remove("event");
    let mut take = |key: &str| match line.remove(key) {
        Some(Value::String(text)) => one_line(&text),
        Some(other) => one_line(&other.to_string()),
        None => String::new(),
    };
    let [at, level, target, message] = ["at", "level", "target", "message"].map(&mut take);
    let level = level.to_uppercase();
    let colour = match &*level {
        "ERROR" => Colour::Red,
        "WARN" => Colour::Yellow,
        "INFO" => Colour::Green,
        _ => Colour::Faint,
    };
    // As wide as the longest of them.
    let level = paint.paint(colour, &format!("{level:>5}"));
    let (at, target) =
        (paint.paint(Colour::Faint, &at), paint.paint(Colour::Faint, &format!("{target}:")));
    let mut text = format!("{at} {level} {target} {message}");
    for (key, value) in &line {
        let value = match value {
            Value::String(value) if !value.contains([' ', '"']) => value.clone(),
            value => value.to_string(),
        };
        text.push_str(&format!(" {}={}", one_line(key), one_line(&value)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_looks_as_the_daemon_writes_it() {
        let line = serde_json::json!({
            "event": "log", "level": "warn", "target": "wok::holding", "message": "lost\u{1b}[2J",
            "recipe": "orders", "fence": 7, "loss": "it \u{9b} expired", "at": "now",
        });
        let Value::Object(line) = line else { panic!("{line}") };
        let expected = "now  WARN wok::holding: lost\\u{1b}[2J fence=7 loss=\"it \\u{9b} expired\" \
                        recipe=orders";
        assert_eq!(in_words(line.clone(), Paint::Plain), expected);
        assert!(in_words(line, Paint::Coloured).contains("\x1b[33m WARN\x1b[0m"));
    }

    #[test]
    fn a_line_of_a_newer_daemon_is_shown_as_well() {
        let Value::Object(line) = serde_json::json!({ "level": 3, "mood": ["good"] }) else {
            panic!("no object");
        };
        assert_eq!(in_words(line, Paint::Plain), "     3 :  mood=[\"good\"]");
    }
}
