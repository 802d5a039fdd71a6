//! A command that runs while a participant's claim is held, and not a moment longer.

use futures_util::{FutureExt, stream};
use tokio::sync::mpsc;

use super::guarded::{EndsBy, Instruction, Terms, run_guarded};
use crate::guardian::{GuardedCommand, GuardianError, KillReason, Outcome};
use crate::participant::{Ending, Follower, Loss, Notice, Participant};
use crate::session::{Held, SessionLoss};
use crate::tasks::Tasks;

/// How a command that ran under a claim ended. Nothing of it is left.
#[derive(Debug, Clone)]
pub enum CommandEnd {
    /// By itself, or because it was asked to; the claim is still held.
    Ended(Outcome),
    /// It was killed though wok had not ordered that, and nothing is known of a loss.
    Killed(KillReason),
    /// It was ended because the claim was lost.
    Lost(Loss),
    /// It was ended, or not even started, because the module gave the claim up.
    Released,
}

/// Runs a command until it ends or the claim does, with `WOK_FENCE` and `WOK_CLAIM_PATH` in its
/// environment. While the command runs, this host does not delete the claim's znodes, so that the
/// next holder finds nothing of the command alive.
///
/// The guardian is told the deadline by one of `tasks`: it waits for nobody else. `observe` sees every
/// notice that leaves the command running, and must not wait either.
///
/// # Errors
/// The command was not started.
///
/// # Cancellation
/// Kills the command at once. The claim's znodes are not deleted by this host before nothing of it is left.
pub async fn run_while_held(
    tasks: &Tasks,
    participant: &Participant,
    follower: &mut Follower,
    held: &Held,
    command: GuardedCommand,
    instructions: mpsc::Receiver<Instruction>,
    mut observe: impl FnMut(&Notice),
) -> Result<CommandEnd, GuardianError> {
    // Before the start: a claim that is being given up waits for what depends on it.
    let Some(dependent) = participant.depend(held) else {
        return Ok(ended_before(follower, &mut observe));
    };
    let terms = Terms { deadline: participant.deadline(), tenure: participant.tenure() };
    let ends = stream::unfold((follower, observe), async |(follower, mut observe)| {
        loop {
            if let Some(end) = end_of_claim(follower.next().await, &mut observe) {
                return Some((end, (follower, observe)));
            }
        }
    });
    let running = run_guarded(tasks, command, held, terms, instructions, ends, dependent);
    let (ended_by, outcome) = running.await?;
    Ok(match (ended_by, outcome) {
        (Some(end), _) => end,
        // The guardian knows no other deadline than the session's.
        (None, Outcome::Killed(KillReason::Deadline)) => {
            CommandEnd::Lost(Loss::Session(SessionLoss::Deadline))
        }
        (None, Outcome::Killed(reason)) => CommandEnd::Killed(reason),
        (None, outcome) => CommandEnd::Ended(outcome),
    })
}

/// How the claim ended, if the notice says that it did. `observe` sees every other notice.
fn end_of_claim(
    notice: Option<Notice>,
    observe: &mut impl FnMut(&Notice),
) -> Option<(EndsBy, CommandEnd)> {
    Some(match notice {
        Some(Notice::Released { .. } | Notice::Ended(Ending::Left)) => {
            (EndsBy::Stop, CommandEnd::Released)
        }
        Some(Notice::Lost(loss @ Loss::Fault(_))) => (EndsBy::Stop, CommandEnd::Lost(loss)),
        Some(Notice::Lost(loss) | Notice::Ended(Ending::Lost(loss))) => {
            (EndsBy::Kill, CommandEnd::Lost(loss))
        }
        Some(Notice::Ended(Ending::Failed(fault))) => {
            (EndsBy::Kill, CommandEnd::Lost(Loss::Fault(fault)))
        }
        // The follower was told of the end before this command was asked for.
        None => (EndsBy::Kill, CommandEnd::Released),
        Some(other) => {
            observe(&other);
            return None;
        }
    })
}

/// How the claim of a command that was not started ended, by the notices so far. A loss goes before a
/// release, as where the command runs.
fn ended_before(follower: &mut Follower, observe: &mut impl FnMut(&Notice)) -> CommandEnd {
    let mut ended = CommandEnd::Released;
    while let Some(notice) = follower.next().now_or_never() {
        match end_of_claim(notice, observe) {
            Some((EndsBy::Kill, end)) => return end,
            Some((EndsBy::Stop, end)) => ended = end,
            None => {}
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::participant::Line;

    #[track_caller]
    fn check(told: impl IntoIterator<Item = Notice>, is_lost: bool) {
        let line = Line::default();
        let mut follower = line.follower(Weak::new());
        told.into_iter().for_each(|notice| line.tell(notice));
        let end = ended_before(&mut follower, &mut |_| {});
        assert_eq!(matches!(end, CommandEnd::Lost(_)), is_lost, "{end:?}");
    }

    #[test]
    fn a_loss_that_comes_while_a_claim_is_given_up_is_told_as_a_loss() {
        let released = || Notice::Released { path: "/a".to_owned() };
        let loss = || Loss::Session(SessionLoss::Expired);
        check([], false);
        check([released()], false);
        check([released(), Notice::Ended(Ending::Left)], false);
        check([released(), Notice::Lost(loss())], true);
        check([released(), Notice::Lost(loss()), Notice::Ended(Ending::Lost(loss()))], true);
        check([released(), Notice::Ended(Ending::Lost(loss()))], true);
    }
}
