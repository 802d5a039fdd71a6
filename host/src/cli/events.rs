//! `wok events`: what the participants of the running daemon tell, as it happens.

use std::io;
use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;

use super::api::Daemon;
use super::colour::{Colour, Paint};
use super::exit::Failure;
use super::output::{Output, Printer};
use super::ps::short_id;
use super::stdout::{self, Reader};
use super::told;
use crate::client::{Client, ClientError, Event, Participants, Told, path};
use crate::plain_text;

/// Follow what participants of the running daemon tell: who joins, waits, holds, loses and leaves.
///
/// Without a participant all that you may see are followed, from now on. With one it begins with where
/// that participant stands, and ends with it; `wok ps` shows where all of them stand.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok events\n  wok events 3f2a91c0\n  \
    wok events --output json | jq 'select(.event == \"lost\")'")]
pub(super) struct Arguments {
    /// Only this participant, by its id or the beginning of it, as `wok ps` shows it.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    participant: Option<String>,

    /// Changes nothing: events are always followed. It is there because `wok logs` has it.
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    daemon: Daemon,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let Arguments { participant, daemon, follow: _ } = self;
        daemon.ask(async |client| match participant {
            None => follow(&client, &path(["events"]), Until::DaemonEnds, printer).await,
            Some(participant) => {
                let id = whole_id(&client, &participant).await?;
                let path = path(["participants", &id, "events"]);
                follow(&client, &path, Until::ParticipantEnds, printer).await
            }
        })
    }
}

/// The participant whose id begins like this.
async fn whole_id(client: &Client, beginning: &str) -> Result<String, Failure> {
    let listed: Participants = client.get(&path(["participants"])).await?;
    let ids = listed.participants.iter().filter_map(|it| it.get("participant")?.as_str());
    matching(ids, beginning).map(str::to_owned)
}

fn matching<'a>(ids: impl Iterator<Item = &'a str>, beginning: &str) -> Result<&'a str, Failure> {
    let mut found = ids.filter(|id| id.starts_with(beginning));
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => Err(Failure::Usage(format!(
            "there is no participant {beginning}: `wok ps` lists those that you may see"
        ))),
        (Some(_), Some(_)) => Err(Failure::Usage(format!(
            "several participants begin with {beginning}: give more of the id, as \
             `wok ps --long` shows it"
        ))),
    }
}

/// What a stream ends with, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// With the last word of the participant that is followed.
    ParticipantEnds,
    /// With the daemon.
    DaemonEnds,
}

async fn follow(
    client: &Client,
    path: &str,
    until: Until,
    printer: &Printer,
) -> Result<ExitCode, Failure> {
    let (mut lines, paint) = (client.lines(path).await?, Paint::of(&io::stdout()));
    let (mut has_ended, mut unread) = (false, pin!(stdout::until_unread()));
    loop {
        // Both are cancel-safe: a line stays queued, and a reader that has gone does not come back.
        let line = tokio::select! {
            line = lines.next() => line?,
            () = &mut unread => return Ok(ExitCode::SUCCESS),
        };
        let Some(line) = line else { break };
        let told = Told::read(&line).map_err(|error| ClientError::NotOurs {
            socket: client.socket().clone(),
            what: error.to_string(),
        })?;
        has_ended = matches!(told.event, Event::Ended { .. });
        let shown = match printer.output() {
            Output::Json => Some(Value::Object(told.line).to_string()),
            Output::Text => in_words(&told, paint),
        };
        if shown.is_some_and(|line| printer.line(&line) == Reader::Gone) {
            return Ok(ExitCode::SUCCESS);
        }
    }
    match until {
        Until::ParticipantEnds if has_ended => Ok(ExitCode::SUCCESS),
        Until::ParticipantEnds => Err(ClientError::Gone { socket: client.socket().clone() }.into()),
        Until::DaemonEnds => Err(ClientError::Stopped { socket: client.socket().clone() }.into()),
    }
}

/// A line for people: when, who, what.
fn in_words(told: &Told, paint: Paint) -> Option<String> {
    let what = told::in_words(told)?;
    let colour = match told.event {
        Event::Held { .. } => Some(Colour::Green),
        Event::Lost(_) | Event::Refused { .. } => Some(Colour::Red),
        Event::Suspended | Event::TimedOut | Event::Leaving { .. } => Some(Colour::Yellow),
        _ => None,
    };
    let who = [told.text("recipe"), short_id(told.text("participant"))];
    let who: Vec<String> = who.iter().filter(|it| !it.is_empty()).map(|it| one_line(it)).collect();
    let what = one_line(&what);
    Some(format!(
        "{} {} {}",
        paint.paint(Colour::Faint, &one_line(told.text("at"))),
        who.join(" "),
        colour.map_or(what.clone(), |colour| paint.paint(colour, &what))
    ))
}

/// A text as one line with nothing in it that a terminal obeys.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    text.chars().for_each(|character| plain_text::push(&mut line, character));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_who_and_what() {
        let line = r#"{"event":"held","recipe":"orders","participant":"0123456789ab","at":"now",
            "path":"/a\u001b","fence":7}"#;
        let told = Told::read(line.as_bytes()).unwrap();
        let expected = "now orders 01234567 holding /a\\u{1b} with fence 7";
        assert_eq!(in_words(&told, Paint::Plain).as_deref(), Some(expected));
        let coloured = in_words(&told, Paint::Coloured).unwrap();
        assert!(coloured.contains("\x1b[32mholding /a\\u{1b} with fence 7\x1b[0m"), "{coloured:?}");
    }

    #[test]
    fn a_participant_is_named_by_the_beginning_of_its_id() {
        let ids = ["abc1", "abd2", "xyz3"];
        assert_eq!(matching(ids.into_iter(), "x").unwrap(), "xyz3");
        assert_eq!(matching(ids.into_iter(), "abc1").unwrap(), "abc1");
        for (beginning, told) in [("ab", "several"), ("q", "no participant"), ("", "several")] {
            let failure = matching(ids.into_iter(), beginning).unwrap_err().to_string();
            assert!(failure.contains(told), "{failure}");
        }
    }
}
