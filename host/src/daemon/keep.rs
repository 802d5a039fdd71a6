//! Keeping one participant in a recipe.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::acquire::{Acquire, Attempt, acquire};
use super::backoff::Backoff;
use super::held_command::{Held, HeldEnd, Order, run_while_held};
use super::prepare::Kept;
use super::told::log_notice;
use crate::host::Host;
use crate::participant::{Follower, Notice, Participant};
use crate::session::Session;

/// A participant that lived for this long was well: the next pause is a short one again.
const WELL: std::time::Duration = std::time::Duration::from_secs(30);

/// Keeps a participant in a recipe until `stop`, starting it afresh whenever it ends. At a stop
/// its command is stopped in order and the participant leaves, before this completes.
pub(super) async fn keep(
    host: &Host,
    session: &Arc<Session>,
    kept: &Kept,
    stop: &CancellationToken,
) {
    let recipe = kept.join.recipe.as_str();
    let mut backoff = Backoff::default();
    while !stop.is_cancelled() {
        let began = Instant::now();
        match host.join(session, kept.join.clone()) {
            Ok((participant, mut follower)) => {
                live(kept, &participant, &mut follower, stop).await;
                participant.leave();
                while follower.next().await.is_some() {}
            }
            Err(failure) => tracing::error!(recipe, %failure, "cannot join"),
        }
        if began.elapsed() >= WELL {
            backoff.reset();
        }
        let pause = backoff.next();
        stop.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
}

/// One participant's life.
async fn live(
    kept: &Kept,
    participant: &Participant,
    follower: &mut Follower,
    stop: &CancellationToken,
) {
    let recipe = kept.join.recipe.as_str();
    let attempt = Acquire {
        arguments: kept.arguments.clone(),
        deadline: None,
        withdrawn: stop.child_token(),
    };
    let observe = |notice: &Notice| log_notice(recipe, notice);
    match acquire(participant, follower, attempt, observe).await {
        Attempt::Held(held) => hold(kept, participant, follower, &held, stop).await,
        Attempt::NotHeld(answer) if kept.while_held.is_some() => {
            let operation = kept.arguments.operation();
            tracing::error!(
                recipe,
                operation,
                %answer,
                "the operation ended without a claim, so the command of `while-held` does not run: \
                 let `run` call an operation that holds; `wok inspect` tells them"
            );
            follow(recipe, follower, stop).await;
        }
        // It takes part without a claim, as an observer does.
        Attempt::NotHeld(answer) => {
            tracing::info!(recipe, %answer, "runs without a claim");
            follow(recipe, follower, stop).await;
        }
        Attempt::Cancelled => {}
        other => tracing::warn!(recipe, outcome = %other, "not held"),
    }
}

async fn hold(
    kept: &Kept,
    participant: &Participant,
    follower: &mut Follower,
    held: &Held,
    stop: &CancellationToken,
) {
    let recipe = kept.join.recipe.as_str();
    tracing::info!(recipe, path = held.path, fence = held.fence, "held");
    let Some(command) = &kept.while_held else {
        return follow(recipe, follower, stop).await;
    };
    let (order, orders) = mpsc::channel(1);
    let stopping = async {
        stop.cancelled().await;
        // A full or closed channel: it is being stopped, or has ended.
        order.try_send(Order::Stop).ok();
        std::future::pending().await
    };
    let command = run_while_held(participant, follower, held, command.clone(), orders);
    // Cancel-safe: the command is awaited to its end.
    let ended = tokio::select! {
        ended = command => ended,
        never = stopping => never,
    };
    match ended {
        Ok(HeldEnd::Ended(outcome)) => tracing::info!(recipe, %outcome, "command ended; leaving"),
        Ok(HeldEnd::Lost(loss)) => tracing::warn!(recipe, %loss, "lost; command killed"),
        Ok(HeldEnd::Released) => tracing::info!(recipe, "released; command stopped"),
        Err(error) => tracing::error!(recipe, %error, "command not started"),
    }
}

/// Follows a participant that needs nothing of us.
async fn follow(recipe: &str, follower: &mut Follower, stop: &CancellationToken) {
    while let Some(Some(notice)) = stop.run_until_cancelled(follower.next()).await {
        log_notice(recipe, &notice);
    }
}
