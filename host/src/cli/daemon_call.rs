//! A call of an operation by a participant of the daemon's, and what comes of it.

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::exit::Failure;
use super::joining::{self, stopping};
use super::output::Printer;
use super::stdout::{self, Reader};
use super::typed_text::TypedText;
use crate::api::LONGEST_TIMEOUT;
use crate::client::{Client, ClientError, Event, HostError, Join, Joined, Purpose, Told, path};
use crate::config::spell_duration;
use crate::guest::values;
use crate::modules::stock_names;
use crate::near::near;
use crate::session::Held;

/// What is called.
#[derive(Debug)]
pub(super) struct DaemonCall {
    pub(super) recipe: String,
    pub(super) operation: String,
    pub(super) arguments: TypedText,
    pub(super) wait: Option<Duration>,
    /// When `wait` is over, and the daemon has had the time to say so.
    pub(super) until: Option<Instant>,
    /// How long to try while the daemon has no session.
    pub(super) connect_timeout: Duration,
    pub(super) owner: Option<String>,
}

/// How long a daemon has to say that `--wait` is over. One that is stopped says nothing.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// How often a daemon without a session is asked again: it answers from its memory.
const AGAIN: Duration = Duration::from_millis(200);

/// A claim that is held.
pub(super) struct Claim {
    pub(super) held: Held,
    /// The line that says so, with all that the daemon says of it.
    pub(super) told: Told,
}

/// What comes of a call. All else that is told is printed.
pub(super) enum Came {
    /// A claim is held.
    Held(Box<Claim>),
    /// It is given up.
    Released,
    /// None is held, and none comes.
    Idle,
    /// The operation has answered.
    Answered {
        value: Value,
        /// Whether a claim may still come of it; it is not known of older daemons.
        goes_on: Option<bool>,
    },
}

impl DaemonCall {
    /// What is called, in words.
    pub(super) fn in_words(&self) -> String {
        format!("{} {}", self.recipe, self.operation)
    }

    /// Joins the recipe and has the operation called, as soon as the daemon has a session. A signal
    /// withdraws it.
    pub(super) async fn join(
        &self,
        client: &Client,
        purpose: Purpose,
        signals: &mut mpsc::Receiver<Signal>,
        printer: &Printer,
    ) -> Result<Joined, Failure> {
        // Of a join that is dropped nothing is left.
        tokio::select! {
            joined = self.join_when_connected(client, purpose, printer) => joined,
            signal = stopping(signals) => Err(joining::signalled(signal)),
            () = reached(self.until) => Err(self.unanswered()),
        }
    }

    /// Joins, and tries for `--connect-timeout` while the daemon has no session, or none that is not in
    /// doubt. Says once that it waits.
    async fn join_when_connected(
        &self,
        client: &Client,
        purpose: Purpose,
        printer: &Printer,
    ) -> Result<Joined, Failure> {
        let (start, mut is_told, mut had_session) = (Instant::now(), false, false);
        loop {
            let left = self.left();
            if left == Some(Duration::ZERO) {
                return Err(self.unanswered());
            }
            let joined = async {
                let arguments = self.arguments_for(client).await?;
                client.join(&self.as_join(arguments, purpose, left)).await
            };
            let error = match joined.await {
                Ok(joined) => return Ok(joined),
                Err(error) => error,
            };
            if !is_unavailable(&error) {
                return Err(self.not_joined(client, error).await);
            }
            let Some(lack) = lacks_session(client).await else {
                // It came in between, unless the daemon refuses for another reason.
                if had_session {
                    return Err(error.into());
                }
                had_session = true;
                continue;
            };
            had_session = false;
            let trying = self.connect_timeout.saturating_sub(start.elapsed());
            if trying.is_zero() {
                return Err(self.given_up(lack));
            }
            if !is_told {
                printer.connecting(lack, self.connect_timeout);
                is_told = true;
            }
            tokio::time::sleep(left.unwrap_or(AGAIN).min(AGAIN).min(trying)).await;
        }
    }

    /// The arguments, by what the daemon says that the operation takes. It is asked only where that
    /// matters.
    async fn arguments_for(&self, client: &Client) -> Result<Value, ClientError> {
        if !self.arguments.needs_types() {
            return Ok(self.arguments.as_read().clone());
        }
        let recipe: Value = client.get(&path(["recipes", &self.recipe])).await?;
        Ok(match schema_of(&recipe, &self.operation) {
            Some(schema) => self.arguments.fitted(schema),
            // The daemon says what is wrong when it is to call the operation.
            None => self.arguments.as_read().clone(),
        })
    }

    fn as_join(&self, arguments: Value, purpose: Purpose, left: Option<Duration>) -> Join {
        Join {
            recipe: self.recipe.clone(),
            operation: self.operation.clone(),
            arguments,
            // The daemon takes no longer timeout, and none of zero; `until` limits the wait all the same.
            timeout: left
                .filter(|left| *left <= LONGEST_TIMEOUT)
                .map(|left| left.max(Duration::from_millis(1))),
            owner: self.owner.clone(),
            purpose,
        }
    }

    /// What is left of `wait`.
    fn left(&self) -> Option<Duration> {
        let over = self.until? - GRACE;
        Some(over.saturating_duration_since(Instant::now()))
    }

    fn given_up(&self, lack: &str) -> Failure {
        let tried = match self.connect_timeout {
            Duration::ZERO => String::new(),
            limit => {
                format!("; tried for {}: wait longer with --connect-timeout", spell_duration(limit))
            }
        };
        Failure::Unreachable(format!("{lack}, and `wok logs` says why{tried}"))
    }

    /// Why the daemon refuses, or that it is not there.
    async fn not_joined(&self, client: &Client, error: ClientError) -> Failure {
        match self.unknown(client, &error).await {
            Some(what) => Failure::Usage(format!(
                "{what}; a module is named together with --mount and --connect"
            )),
            None => self.without_daemon(error),
        }
    }

    /// Who names a stock recipe where nobody listens may have meant a session of its own.
    fn without_daemon(&self, error: ClientError) -> Failure {
        match error {
            ClientError::NobodyListens { .. } if stock_names().any(|it| it == self.recipe) => {
                Failure::Unreachable(format!(
                    "{error}; for a session of one's own, name the servers and a part of the tree, as \
                     `--connect 127.0.0.1:2181 --mount /{}`",
                    self.recipe
                ))
            }
            error => error.into(),
        }
    }

    /// Whether its caller has said how long it waits.
    pub(super) fn is_limited(&self) -> bool {
        self.wait.is_some()
    }

    fn unanswered(&self) -> Failure {
        let why = match self.wait {
            Some(_) => "no answer within --wait",
            None => "somebody else has cancelled it",
        };
        Failure::NotAcquired(format!("{}: {why}", self.in_words()))
    }

    /// That the daemon has no such recipe, if that is what was wrong.
    async fn unknown(&self, client: &Client, error: &ClientError) -> Option<String> {
        match error {
            ClientError::Host(HostError { kind, .. }) if kind == "not-found" => {
                unknown_recipe(client, &self.recipe).await
            }
            _ => None,
        }
    }

    /// What comes of it next. Cancel-safe, and so is nothing that is told lost.
    ///
    /// # Errors
    /// Nothing comes of it any more.
    pub(super) async fn next(
        &self,
        joined: &mut Joined,
        signals: &mut mpsc::Receiver<Signal>,
        printer: &Printer,
    ) -> Result<Came, Failure> {
        loop {
            let told = self.told(joined, self.until, signals, printer).await?;
            if let Some(came) = self.came(&told)? {
                return Ok(came);
            }
            match told.event {
                Event::Joined { .. } | Event::Alive { .. } | Event::Leaving { .. } => {}
                _ => printer.told(&told),
            }
        }
    }

    /// Prints all that is told, until the participant has ended, a signal comes, or nobody reads any more.
    ///
    /// # Errors
    /// It has ended, or has not answered and does not.
    pub(super) async fn follow(
        &self,
        joined: &mut Joined,
        signals: &mut mpsc::Receiver<Signal>,
        printer: &Printer,
    ) -> Result<ExitCode, Failure> {
        let (mut until, mut has_answered) = (self.until, false);
        let mut unread = pin!(stdout::until_unread());
        let failed = |failure: Failure, has_answered: bool| match has_answered {
            true => failure,
            false => failure.of_unanswered(),
        };
        loop {
            // Both are cancel-safe: what is told stays queued, and a reader that has gone does not come back.
            let told = tokio::select! {
                told = self.told(joined, until, signals, printer) => told,
                () = &mut unread => return Ok(ExitCode::SUCCESS),
            };
            let told = match told {
                Ok(told) => told,
                // So ends what has no end of its own.
                Err(ended @ Failure::Signalled(_)) if has_answered => return Ok(ended.code()),
                Err(failure) => return Err(failed(failure, has_answered)),
            };
            let reader = printer.follow(&told);
            let came = self.came(&told).map_err(|failure| failed(failure, has_answered))?;
            if let Some(Came::Answered { .. }) = came {
                // `--wait` was for the answer.
                (until, has_answered) = (None, true);
            }
            if reader == Reader::Gone {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// What the daemon tells next. Cancel-safe, and so is nothing that is told lost.
    async fn told(
        &self,
        joined: &mut Joined,
        until: Option<Instant>,
        signals: &mut mpsc::Receiver<Signal>,
        printer: &Printer,
    ) -> Result<Told, Failure> {
        let silent = joined.until_silent();
        let silence = async {
            printer.silent(&silent.await);
            std::future::pending().await
        };
        // All are cancel-safe: lines and signals stay queued, and each line begins the silence anew.
        let told = tokio::select! {
            biased;
            told = joined.next() => told?,
            signal = stopping(signals) => return Err(joining::signalled(signal)),
            () = reached(until) => return Err(self.unanswered()),
            never = silence => never,
        };
        told.ok_or_else(|| {
            Failure::Unreachable(format!("{}: the daemon said no more of it", self.in_words()))
        })
    }

    /// What has come of the call by what is told, if anything.
    fn came(&self, told: &Told) -> Result<Option<Came>, Failure> {
        if let Some(held) = told.held() {
            return Ok(Some(Came::Held(Box::new(Claim { held, told: told.clone() }))));
        }
        let what = self.in_words();
        Ok(Some(match &told.event {
            Event::Released { .. } => Came::Released,
            Event::Idle => Came::Idle,
            Event::Answered { value, goes_on } => {
                Came::Answered { value: value.clone(), goes_on: *goes_on }
            }
            Event::Refused { error } => {
                let error = values::error_in_words(error);
                return Err(Failure::Module(format!("{what}: {error}")));
            }
            Event::TimedOut => return Err(self.unanswered()),
            Event::Lost(loss) => return Err(Failure::Lost { what, loss: loss.clone().into() }),
            Event::Ended { how, message } => {
                let why = if message.is_empty() { how } else { message };
                return Err(match how.as_str() {
                    "failed" => Failure::Module(format!("{what}: {why}")),
                    // Asked to by the daemon, or by somebody through it.
                    _ => Failure::Unreachable(format!("{what}: the daemon ended it: {why}")),
                });
            }
            _ => return Ok(None),
        }))
    }
}

/// What is said while the daemon has no session.
const NO_SESSION: &str = "the daemon has no session with ZooKeeper";

/// What is said while it has lost contact on those that it has.
const IN_DOUBT: &str = "the daemon's session with ZooKeeper is in doubt";

/// Whether the daemon cannot serve the call now: it has no session, only one in doubt or no place, or it is
/// ending. Nothing was done then.
fn is_unavailable(error: &ClientError) -> bool {
    matches!(error, ClientError::Host(HostError { kind, .. }) if kind == "unavailable")
}

/// Why the daemon has no session to join on, if it has none. One that does not say so is not waited for.
async fn lacks_session(client: &Client) -> Option<&'static str> {
    let host: Value = client.get(&path(["host"])).await.ok()?;
    lack(host.get("sessions")?.as_array()?)
}

/// The same, of the sessions that a daemon tells.
fn lack(sessions: &[Value]) -> Option<&'static str> {
    let is_any = |wanted| sessions.iter().any(|it| it.get("state") == Some(&json!(wanted)));
    match (is_any("connected"), is_any("suspended")) {
        (true, _) => None,
        (false, true) => Some(IN_DOUBT),
        (false, false) => Some(NO_SESSION),
    }
}

/// The JSON Schema of what an operation takes, by what a daemon says of its recipe.
fn schema_of<'a>(recipe: &'a Value, operation: &str) -> Option<&'a Value> {
    let operations = recipe.get("operations")?.as_array()?;
    let called = operations.iter().find(|it| it.get("operation") == Some(&json!(operation)))?;
    called.get("arguments")
}

/// Completes at that time, if there is one.
async fn reached(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// What is said of a recipe that the daemon does not have.
pub(super) async fn unknown_recipe(client: &Client, recipe: &str) -> Option<String> {
    // A daemon that does not list them says itself what is wrong.
    let listed: Value = client.get(&path(["recipes"])).await.ok()?;
    let listed = listed.get("recipes").and_then(Value::as_array)?;
    let names: Vec<&str> = listed.iter().filter_map(|it| it.get("recipe")?.as_str()).collect();
    (!names.contains(&recipe)).then(|| no_recipe(recipe, &names))
}

fn no_recipe(recipe: &str, names: &[&str]) -> String {
    let known = match near(recipe, names.iter().copied()) {
        Some(name) => format!("the nearest name is {name}"),
        None if names.is_empty() => "it has none for this user".to_owned(),
        None => format!("it has {}", names.join(", ")),
    };
    format!("the daemon has no recipe {recipe}: {known}")
}

/// Has the participant leave. What it held or waited for is given up before this command ends, so
/// that a second one behind it finds it free.
pub(super) async fn leave(joined: Joined) {
    if let Err(error) = joined.leave().await {
        tracing::warn!(%error, "not known to be given up; that happens when the lease has ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_in_doubt_is_none_to_join_on() {
        let told = |states: &[&str]| {
            lack(&states.iter().map(|state| json!({ "state": state })).collect::<Vec<_>>())
        };
        assert_eq!(told(&["suspended", "connected"]), None);
        assert_eq!(told(&["lost", "suspended"]), Some(IN_DOUBT));
        assert_eq!(told(&["lost"]), Some(NO_SESSION));
        assert_eq!(told(&[]), Some(NO_SESSION));
    }

    #[test]
    fn what_an_operation_takes_is_found_by_its_name() {
        let schema = json!({ "type": "object" });
        let operations =
            json!([{ "operation": "get" }, { "operation": "set", "arguments": schema }]);
        let recipe = json!({ "recipe": "mail", "operations": operations });
        assert_eq!(schema_of(&recipe, "set"), Some(&schema));
        assert_eq!(schema_of(&recipe, "get"), None);
        assert_eq!(schema_of(&recipe, "put"), None);
        assert_eq!(schema_of(&json!({}), "set"), None);
    }

    #[test]
    fn a_recipe_that_is_not_there_is_told_by_those_that_are() {
        let told = |names: &[&str]| no_recipe("ordres", names);
        assert!(told(&["jobs", "orders"]).contains("no recipe ordres: the nearest name is orders"));
        assert!(told(&["jobs", "bills"]).contains("it has jobs, bills"));
        assert!(told(&[]).contains("it has none for this user"));
    }
}
