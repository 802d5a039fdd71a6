//! A participant of the daemon's that lives as long as its stream is open.

use std::time::Duration;

use hyper::Method;
use serde_json::{Map, Value, json};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::ClientError;
use super::event::{Event, Told};
use super::http::{Client, PROMPT, path};
use super::lines::Lines;
use super::tenure::{LEASE, RENEW, Tenure};
use crate::clock::Boottime;
use crate::config::{parse_duration, spell_duration};
use crate::session::Timing;

/// How often the daemon is to say until when what is held may be relied on. A command is killed so
/// much earlier than its session would allow, where the daemon falls silent.
const ALIVE: Duration = Duration::from_millis(500);

/// How long a client waits at least for the daemon's word that a participant has ended. Where the daemon was
/// stopped for longer than the lease, nothing of the lease is left to wait for.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The host's error where there is no place for a request.
const UNAVAILABLE: &str = "unavailable";

/// What is asked for with a join.
#[derive(Debug, Clone)]
pub struct Join {
    /// The recipe, by its name in the daemon's config.
    pub recipe: String,
    /// The operation that is called.
    pub operation: String,
    /// Its arguments, an object.
    pub arguments: Value,
    /// How long the operation may take.
    pub timeout: Option<Duration>,
    /// What other contenders are told.
    pub owner: Option<String>,
    /// Whether something will depend on what is held.
    pub purpose: Purpose,
}

/// What a participant is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The operation's answer.
    Answer,
    /// Something that runs while a claim is held, and must be gone before the claim is given up.
    Hold,
}

/// A participant, and what the daemon tells of it. Dropping it closes the stream, which ends the
/// participant.
#[derive(Debug)]
pub struct Joined {
    client: Client,
    id: String,
    lines: Lines,
    tenure: Tenure,
    keeping: Keeping,
    timing: Option<Timing>,
    has_ended: bool,
    _renewing: DropGuard,
}

/// Who sees to it that what depends on a claim is gone before the claim is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// The daemon: it waits until it is told that nothing depends on the claim, or what it told as
    /// the deadline has passed.
    Daemon,
    /// Nobody: what the daemon gives up may be somebody else's at once.
    Nobody,
}

impl Client {
    /// Joins a recipe and calls an operation. What comes of that is told by the stream.
    ///
    /// # Errors
    /// The daemon cannot be asked, or refuses; it may have joined if the connection was lost, and then
    /// it leaves.
    ///
    /// # Cancellation
    /// Nothing is left of the participant.
    pub async fn join(&self, join: &Join) -> Result<Joined, ClientError> {
        let sent = Boottime::now();
        let (path, body) = join.request();
        let mut lines = self.stream(Method::POST, &path, Some(&body)).await?;
        let silent = |_| ClientError::Silent { socket: self.socket().clone(), limit: PROMPT };
        let first = tokio::time::timeout(PROMPT, lines.next()).await.map_err(silent)??;
        let first = first.ok_or_else(|| ClientError::Gone { socket: self.socket().clone() })?;
        let told = Told::read(&first).map_err(|error| lines.not_ours(error))?;
        let Event::Joined { dependent, session_timeout } = &told.event else {
            return Err(lines.not_ours(format!("it begins with {:?}", told.text("event"))));
        };
        let timing = match session_timeout.as_deref().map(parse_duration).transpose() {
            Ok(timeout) => timeout.map(Timing::new),
            Err(error) => return Err(lines.not_ours(error.message)),
        };
        let keeping = if *dependent { Keeping::Daemon } else { Keeping::Nobody };
        let (id, tenure) = (told.text("participant").to_owned(), Tenure::new(sent));
        let renewing = self.renew(&id, &tenure);
        let (client, has_ended) = (self.clone(), false);
        Ok(Joined { client, id, lines, tenure, keeping, timing, has_ended, _renewing: renewing })
    }

    /// Renews the lease for as long as the answer is kept. In a task of its own, so that nothing that
    /// a module says, and nobody who reads it, can delay it.
    fn renew(&self, id: &str, tenure: &Tenure) -> DropGuard {
        let (client, tenure) = (self.clone(), tenure.clone());
        let path = path(["participants", id, "lease"]);
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        self.tasks().spawn("lease", async move {
            let mut ticks = tokio::time::interval(RENEW);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // The first one is due at once, and the join has begun the lease.
            ticks.tick().await;
            let mut was_turned_away = false;
            while ended.run_until_cancelled(ticks.tick()).await.is_some() {
                let sent = Boottime::now();
                let renewal = client.command(Method::PUT, &path);
                match tokio::time::timeout(LEASE, renewal).await {
                    Ok(Ok(())) => {
                        tenure.renewed(sent);
                        was_turned_away = false;
                    }
                    // Only this says why the lease ends. What else is wrong shows in the stream.
                    Ok(Err(ClientError::Host(error))) if error.kind == UNAVAILABLE => {
                        if !was_turned_away {
                            tracing::warn!(%error, "the lease is not renewed; trying again");
                        }
                        was_turned_away = true;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "the lease is not renewed"),
                    Err(_elapsed) => {}
                }
            }
        });
        guard
    }
}

impl Join {
    fn request(&self) -> (String, Value) {
        let mut path = path(["recipes", &self.recipe, "join"]);
        let mut body = Map::new();
        body.insert("call".to_owned(), json!({ &*self.operation: self.arguments }));
        body.insert("lease".to_owned(), json!(spell_duration(LEASE)));
        if let Some(timeout) = self.timeout {
            body.insert("timeout".to_owned(), json!(spell_duration(timeout)));
        }
        if let Some(owner) = &self.owner {
            body.insert("owner".to_owned(), json!(owner));
        }
        if self.purpose == Purpose::Hold {
            path.push_str(&format!("?alive={}&dependent=true", spell_duration(ALIVE)));
        }
        (path, Value::Object(body))
    }
}

impl Joined {
    /// The participant's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Until when what is held may be relied on, by what has been read so far.
    pub fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// The times of its session; none of a daemon of an older wok.
    pub fn timing(&self) -> Option<Timing> {
        self.timing
    }

    /// Who sees to it that what depends on the claim is gone before the claim is given up.
    pub fn keeping(&self) -> Keeping {
        self.keeping
    }

    /// What the daemon tells next. None when it has told all.
    ///
    /// # Errors
    /// The daemon is gone, or does not speak as it should. Either way what is held can be relied on
    /// no more.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Result<Option<Told>, ClientError> {
        let Some(line) = self.lines.next().await? else { return Ok(None) };
        let told = Told::read(&line).map_err(|error| self.lines.not_ours(error))?;
        if let Some(deadline) = told.deadline_ms() {
            self.tenure.told(deadline);
        }
        self.has_ended |= matches!(told.event, Event::Ended { .. });
        Ok(Some(told))
    }

    /// Completes when so much time has passed that a daemon which has said nothing meanwhile is stopped, or too
    /// busy: it says every few seconds that it is alive.
    pub fn until_silent(&self) -> impl Future<Output = ClientError> + Send + use<> {
        let socket = self.client.socket().clone();
        async move {
            tokio::time::sleep(PROMPT).await;
            ClientError::Silent { socket, limit: PROMPT }
        }
    }

    /// Says that nothing depends on the claim, has the participant end, and waits until nothing of it
    /// is left; or until it is certain to be ended without that, by its lease. Of a participant that is known
    /// to have ended nothing is asked.
    ///
    /// # Errors
    /// The daemon did not say that it is done.
    ///
    /// # Cancellation
    /// The participant ends nevertheless: its stream is closed.
    pub async fn leave(self) -> Result<(), ClientError> {
        if self.has_ended {
            return Ok(());
        }
        let Joined { client, id, tenure, keeping, mut lines, _renewing, .. } = self;
        let leaving = async {
            if keeping == Keeping::Daemon {
                let path = path(["participants", &id, "dependent"]);
                client.command(Method::DELETE, &path).await?;
            }
            client.command(Method::DELETE, &path(["participants", &id])).await
        };
        let limit = tenure.lease().remaining().max(LAST_WORD);
        match tokio::time::timeout(limit, leaving).await {
            // It has ended by itself.
            Ok(Err(ClientError::Host(error))) if ["not-found", "ended"].contains(&&*error.kind) => {
                Ok(())
            }
            Ok(Err(error @ ClientError::Host(_))) => Err(error),
            // A daemon that ends has told on the stream what became of it.
            Ok(Err(error)) => match tokio::time::timeout(LAST_WORD, ends(&mut lines)).await {
                Ok(true) => Ok(()),
                Ok(false) | Err(_) => Err(error),
            },
            Ok(Ok(())) => Ok(()),
            Err(_elapsed) => Err(ClientError::Silent { socket: client.socket().clone(), limit }),
        }
    }
}

/// Whether what is still told ends with the participant's end.
async fn ends(lines: &mut Lines) -> bool {
    while let Ok(Some(line)) = lines.next().await {
        if Told::read(&line).is_ok_and(|told| matches!(told.event, Event::Ended { .. })) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
