//! Following participants, and the log.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, Path, State};
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use super::body::Asked;
use super::caller::Caller;
use super::connection::LAST_WORDS;
use super::desk::{Desk, may_see};
use super::lines::{Happening, Line, StreamOptions, lines, ticks};
use super::problem::Problem;
use super::routes::only;
use crate::logbook::Logbook;
use crate::registry::{Member, Told, Word};

/// `GET /v1/participants/{id}/events`
pub(super) async fn of_participant(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path((id, part)): Path<(String, String)>,
    Asked(options): Asked<StreamOptions>,
) -> Result<Response, Problem> {
    only("events", &desk, &id, &part)?;
    let alive = options.interval()?;
    let member = desk.member(&id, &caller.credentials)?;
    let (lines, response) = lines();
    desk.tasks.spawn("follower", follow(Arc::clone(&desk), member, lines, alive));
    Ok(response)
}

async fn follow(desk: Arc<Desk>, member: Arc<Member>, lines: mpsc::Sender<Line>, alive: Duration) {
    let Member { presence, recipe, .. } = &*member;
    let mut follower = presence.follow();
    let session = format!("{:#x}", presence.session());
    let mut next = Some(Happening::new("joined").with("session", session));
    let mut alive = ticks(alive);
    let mut given_up = std::pin::pin!(until_given_up(&desk));
    let mut is_over = false;
    while !is_over || next.is_some() {
        // Cancel-safe: what is next is kept until there is a place for it, notices stay queued.
        tokio::select! {
            biased;
            () = lines.closed() => return,
            place = lines.reserve(), if next.is_some() => {
                let (Ok(place), Some(happening)) = (place, next.take()) else { return };
                if let Some(happening) = happening.told_now(|| desk.deadline(presence)) {
                    place.send(Box::new(happening.line(recipe, presence.id())));
                }
            }
            // Ahead of the notices: one that reads slowly is to learn what was dropped, and the deadline.
            _ = alive.tick(), if next.is_none() => {
                next = Some(Happening::alive(follower.dropped()));
            }
            notice = follower.next(), if next.is_none() => match notice {
                Some(notice) => next = Some(Happening::of(&notice, presence.why())),
                None => is_over = true,
            },
            // The last to be told is the end, unless somebody does not read.
            () = &mut given_up, if next.is_some() => return,
        }
    }
}

/// Completes some time after the daemon has begun to end: a caller that has not read by then is told no
/// more.
async fn until_given_up(desk: &Desk) {
    desk.stopping.cancelled().await;
    tokio::time::sleep(LAST_WORDS).await;
}

/// Completes when the daemon is ending and its participants have ended, so that they tell no more.
async fn until_all_ended(desk: &Desk) {
    desk.stopping.cancelled().await;
    desk.epochs.registry().until_empty().await;
}

/// Completes when a caller that reads has been told all of that.
async fn until_all_told(desk: &Desk) {
    until_all_ended(desk).await;
    tokio::time::sleep(LAST_WORDS).await;
}

/// `GET /v1/events`
pub(super) async fn of_all(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Asked(options): Asked<StreamOptions>,
) -> Result<Response, Problem> {
    let alive = options.interval()?;
    let (lines, response) = lines();
    let told = desk.epochs.registry().follow();
    let ours = Arc::clone(&desk);
    desk.tasks.spawn("follower of all", async move {
        tokio::select! {
            () = follow_all(&ours, told, &caller, alive, &lines) => {}
            () = lines.closed() => {}
            () = until_all_told(&ours) => {}
        }
    });
    Ok(response)
}

async fn follow_all(
    desk: &Desk,
    mut told: broadcast::Receiver<Told>,
    caller: &Caller,
    alive: Duration,
    lines: &mpsc::Sender<Line>,
) {
    let mut alive = ticks(alive);
    let mut dropped = 0;
    loop {
        let line = tokio::select! {
            biased;
            _ = alive.tick() => Happening::alive(dropped).line_of_all(),
            told = told.recv() => match told {
                Ok(Told { member, word }) if may_see(&caller.credentials, &member) => {
                    line_of(&member, &word)
                }
                Ok(_) => continue,
                Err(RecvError::Lagged(missed)) => {
                    // Told at once, because lines are missing between the one before and the next one.
                    dropped += missed;
                    Happening::alive(dropped).line_of_all()
                }
                Err(RecvError::Closed) => return,
            },
            () = until_all_ended(desk) => return,
        };
        if lines.send(Box::new(line)).await.is_err() {
            return;
        }
    }
}

fn line_of(member: &Member, word: &Word) -> Bytes {
    let happening = match word {
        Word::Joined => {
            Happening::new("joined").with("session", format!("{:#x}", member.presence.session()))
        }
        Word::Notice(notice) => Happening::of(notice, member.presence.why()),
    };
    happening.line(&member.recipe, member.presence.id())
}

/// What stands behind the question mark.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct LogOptions {
    #[serde(default = "last_lines")]
    lines: usize,
    #[serde(default)]
    follow: bool,
}

/// A screen, and what was before it.
fn last_lines() -> usize {
    100
}

/// `GET /v1/logs`
pub(super) async fn log(
    State(desk): State<Arc<Desk>>,
    Extension(caller): Extension<Arc<Caller>>,
    Asked(options): Asked<LogOptions>,
) -> Result<Response, Problem> {
    if !caller.credentials.is_owner() {
        let message = "the log is for root and the user that wok runs as";
        return Err(Problem::forbidden(message));
    }
    let (lines, response) = lines();
    let ours = Arc::clone(&desk);
    desk.tasks.spawn("log", async move {
        tokio::select! {
            () = read_log(&ours, &options, &lines) => {}
            () = lines.closed() => {}
            () = until_all_told(&ours) => {}
        }
    });
    Ok(response)
}

async fn read_log(desk: &Desk, options: &LogOptions, lines: &mpsc::Sender<Line>) {
    let (last, mut next) = desk.logbook.read(options.lines);
    for line in last {
        if lines.send(Box::new(line)).await.is_err() {
            return;
        }
    }
    if !options.follow {
        return;
    }
    loop {
        let line = tokio::select! {
            biased;
            logged = next.recv() => match logged {
                Ok(line) => line,
                Err(RecvError::Lagged(missed)) => Logbook::gap(missed),
                Err(RecvError::Closed) => return,
            },
            () = until_all_ended(desk) => return,
        };
        if lines.send(Box::new(line)).await.is_err() {
            return;
        }
    }
}
