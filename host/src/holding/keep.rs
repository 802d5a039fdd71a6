//! Keeping one participant in a recipe.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::acquire::{Acquire, Attempt, Seen, acquire};
use super::command::{CommandEnd, run_while_held};
use super::guarded::Instruction;
use super::told::log_notice;
use crate::backoff::Backoff;
use crate::config::{Restart, WhileHeld, longest_stop, spell_duration};
use crate::epochs::{Epochs, JoinError, Joined};
use crate::guardian::{GuardedCommand, Outcome};
use crate::guest::Arguments;
use crate::participant::{Ending, Follower, Participant};
use crate::session::{Held, LeftBehind};

/// A participant that lived for this long was well: the next pause is a short one again.
const WELL: std::time::Duration = std::time::Duration::from_secs(30);

/// What is left to do for a recipe when a participant's life is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Afterwards {
    /// Another participant is to follow.
    Again,
    /// Its command has done what it was to do.
    Done,
}

/// A recipe in which a participant is kept, and what it does there.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The recipe's name.
    pub recipe: String,
    /// The operation to call, and its arguments.
    pub arguments: Arguments,
    /// What to run while it holds.
    pub while_held: Option<WhileHeld>,
}

/// Keeps a participant in one recipe. There is one of these at a time for a recipe, so a command
/// starts only when nothing is left of the one before.
#[derive(Debug)]
pub struct Keep {
    epochs: Arc<Epochs>,
    kept: Kept,
    backoff: Backoff,
    /// By all the participants that it has kept there.
    left_behind: LeftBehind,
}

impl Keep {
    /// For a recipe of those that are loaded.
    pub fn new(epochs: Arc<Epochs>, kept: Kept) -> Self {
        let (backoff, left_behind) = (Backoff::default(), LeftBehind::default());
        Keep { epochs, kept, backoff, left_behind }
    }

    /// Keeps a participant on one of the sessions, starting it afresh whenever it ends, until no
    /// other session comes or its command is done. When its session is over, its command is stopped
    /// and the participant leaves, before another session is looked at.
    pub async fn run(mut self) {
        while self.epochs.until_open().await {
            let began = Instant::now();
            let (afterwards, hurry) = self.join().await;
            if afterwards == Afterwards::Done {
                return;
            }
            if began.elapsed() >= WELL {
                self.backoff.reset();
            }
            let pause = self.backoff.next();
            hurry.run_until_cancelled(tokio::time::sleep(pause)).await;
        }
    }

    /// Answers what is to follow, and what ends the pause before it: that the participant's session
    /// is over, as there is nothing wrong with the recipe then.
    async fn join(&self) -> (Afterwards, CancellationToken) {
        let recipe = self.kept.recipe.as_str();
        match self.epochs.join_again(recipe, &self.left_behind).await {
            Ok(Joined { participant, mut follower, epoch }) => {
                let session = format!("{:#x}", epoch.session.id());
                tracing::debug!(recipe, session, "joined");
                let afterwards = self.live(&participant, &mut follower, &epoch.over).await;
                participant.leave();
                while follower.next().await.is_some() {}
                return (afterwards, epoch.over);
            }
            // It was lost in this very moment.
            Err(JoinError::NoSession) => {}
            Err(error) => tracing::error!(recipe, %error, "cannot join"),
        }
        (Afterwards::Again, self.epochs.stopping().clone())
    }

    /// One participant's life.
    async fn live(
        &self,
        participant: &Participant,
        follower: &mut Follower,
        over: &CancellationToken,
    ) -> Afterwards {
        let recipe = self.kept.recipe.as_str();
        let attempt = Acquire {
            arguments: self.kept.arguments.clone(),
            deadline: None,
            withdrawn: over.child_token(),
        };
        let operation = self.kept.arguments.operation();
        let observe = |seen: Seen<'_>| match seen {
            Seen::Notice(notice) => log_notice(recipe, notice),
            // As an observer's, which never holds, or a candidate's, which does not yet.
            Seen::GoesOn(answer) => {
                tracing::info!(recipe, operation, %answer, "goes on without a claim");
            }
        };
        match acquire(participant, follower, attempt, observe).await {
            Attempt::Held { claim: held, .. } => {
                tracing::info!(recipe, path = held.path, fence = held.fence, "held");
                match &self.kept.while_held {
                    Some(WhileHeld { command, restart }) => {
                        let command = fitting(recipe, command.clone(), participant);
                        let ended = self.hold(command, participant, follower, &held, over).await;
                        return afterwards(recipe, *restart, ended);
                    }
                    None => follow(recipe, follower, over).await,
                }
            }
            Attempt::NotHeld(answer) if self.kept.while_held.is_some() => {
                tracing::error!(
                    recipe,
                    operation,
                    %answer,
                    "the operation ended without a claim, so the command of `while-held` does not \
                     run: let `run` call an operation that holds; `wok inspect` tells them"
                );
                follow(recipe, follower, over).await;
            }
            // It takes part without a claim, as an observer does.
            Attempt::NotHeld(answer) => {
                tracing::info!(recipe, %answer, "runs without a claim");
                follow(recipe, follower, over).await;
            }
            // As above, but something might have come of it.
            Attempt::Idle(_) if self.kept.while_held.is_none() => {
                tracing::warn!(recipe, operation, "waits for nothing any more, and holds nothing");
                follow(recipe, follower, over).await;
            }
            Attempt::Cancelled | Attempt::Ended(Ending::Left) => {}
            Attempt::Ended(Ending::Lost(loss)) => {
                let (reason, cause) = (loss.reason(), loss.cause());
                tracing::warn!(recipe, reason, cause, outcome = %loss, "not held");
            }
            Attempt::Ended(Ending::Failed(fault)) => {
                tracing::warn!(recipe, cause = fault.kind(), outcome = %fault, "not held");
            }
            other => tracing::warn!(recipe, outcome = %other, "not held"),
        }
        Afterwards::Again
    }

    /// Runs the command until nothing is left of it; answers how it ended by itself, if it did.
    async fn hold(
        &self,
        command: GuardedCommand,
        participant: &Participant,
        follower: &mut Follower,
        held: &Held,
        over: &CancellationToken,
    ) -> Option<Outcome> {
        let recipe = self.kept.recipe.as_str();
        let program = command.words.first().map(|it| it.to_string_lossy().into_owned());
        let (instruct, instructions) = mpsc::channel(1);
        let stopping = async {
            over.cancelled().await;
            // A full or closed channel: it is being stopped, or has ended.
            instruct.try_send(Instruction::Stop).ok();
            std::future::pending().await
        };
        let command = run_while_held(
            self.epochs.base().tasks(),
            participant,
            follower,
            held,
            command,
            instructions,
            |notice| log_notice(recipe, notice),
        );
        // Cancel-safe: the command is awaited to its end.
        let ended = tokio::select! {
            ended = command => ended,
            never = stopping => never,
        };
        match ended {
            Ok(CommandEnd::Ended(outcome)) if over.is_cancelled() => {
                tracing::info!(recipe, %outcome, "command stopped");
            }
            Ok(CommandEnd::Ended(outcome)) => {
                if outcome.is_not_started() {
                    // The program is the first word of `exec` of `while-held`.
                    tracing::error!(recipe, program, %outcome, "command of `exec` not started");
                }
                return Some(outcome);
            }
            Ok(CommandEnd::Lost(loss)) => {
                let (reason, cause) = (loss.reason(), loss.cause());
                tracing::warn!(recipe, reason, cause, %loss, "lost; command killed");
            }
            Ok(CommandEnd::Killed(reason)) => tracing::warn!(recipe, %reason, "command killed"),
            Ok(CommandEnd::Released) => tracing::info!(recipe, "released; command stopped"),
            Err(error) => tracing::error!(recipe, %error, "command not started"),
        }
        None
    }
}

/// The command, with less time to stop where a server has granted a shorter session than the config asks for:
/// with more than fits, the command would be stopped between two heartbeats.
fn fitting(recipe: &str, command: GuardedCommand, participant: &Participant) -> GuardedCommand {
    let longest = longest_stop(participant.session().timing());
    if command.stop_timeout <= longest {
        return command;
    }
    let (asked, granted) = (spell_duration(command.stop_timeout), spell_duration(longest));
    tracing::warn!(
        recipe,
        "`stop-timeout` is {asked}, and {granted} fit into the session timeout that the server has granted: \
         the command has {granted} to stop"
    );
    GuardedCommand { stop_timeout: longest, ..command }
}

/// What follows when a command has ended by itself, or was ended.
fn afterwards(recipe: &str, restart: Restart, ended: Option<Outcome>) -> Afterwards {
    let Some(outcome) = ended else {
        return Afterwards::Again;
    };
    let is_success = outcome == Outcome::Exited(0);
    let is_done = match restart {
        Restart::Always => false,
        Restart::OnFailure => is_success,
        Restart::Never => true,
    };
    let then = match is_done {
        true => "leaving for good",
        false => "leaving, to join again",
    };
    match is_success {
        true => tracing::info!(recipe, %outcome, then, "command ended"),
        false => tracing::warn!(recipe, %outcome, then, "command failed"),
    }
    match is_done {
        true => Afterwards::Done,
        false => Afterwards::Again,
    }
}

/// Follows a participant that needs nothing of us.
async fn follow(recipe: &str, follower: &mut Follower, over: &CancellationToken) {
    while let Some(Some(notice)) = over.run_until_cancelled(follower.next()).await {
        log_notice(recipe, &notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_done_when_its_command_has_ended_as_the_config_wants() {
        let success = Outcome::Exited(0);
        let failures = [
            Outcome::Exited(1),
            Outcome::Signaled(9),
            Outcome::NotStarted(rustix::io::Errno::NOENT),
        ];
        for failure in failures {
            assert_eq!(afterwards("r", Restart::Always, Some(failure)), Afterwards::Again);
            assert_eq!(afterwards("r", Restart::OnFailure, Some(failure)), Afterwards::Again);
            assert_eq!(afterwards("r", Restart::Never, Some(failure)), Afterwards::Done);
        }
        assert_eq!(afterwards("r", Restart::Always, Some(success)), Afterwards::Again);
        assert_eq!(afterwards("r", Restart::OnFailure, Some(success)), Afterwards::Done);
        assert_eq!(afterwards("r", Restart::Never, Some(success)), Afterwards::Done);
        assert_eq!(afterwards("r", Restart::Never, None), Afterwards::Again, "the claim ended");
    }
}
