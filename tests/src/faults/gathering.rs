//! Plays about those who wait for each other, and about what is counted.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::claiming::plain;
use super::party::Recipe;
use super::stage::Stage;

/// Who waits at a barrier is struck.
pub(super) async fn barrier(mut stage: Stage) -> Result<()> {
    let recipe = Recipe { name: "barrier", config: json!({}) };
    let (other, struck) = (stage.other(&recipe).await?, stage.struck(&recipe).await?);
    other.has_done(&plain("raise")).await?;
    let waiting = struck.begin(&plain("wait"))?;
    stage.until_broken().await?;
    stage.until_mended().await?;
    let passed = waiting.is_over() && !struck.has_ended();
    ensure!(!passed, "the barrier is up, and the wait is over");
    other.has_done(&plain("lower")).await?;
    waiting.ended().await?;
    other.has_done(&plain("wait")).await?;
    stage.nothing_is_left().await
}

/// Who waits for the last count is struck.
pub(super) async fn latch(mut stage: Stage) -> Result<()> {
    let recipe = Recipe { name: "count-down-latch", config: json!({ "count": 2 }) };
    let (other, struck) = (stage.other(&recipe).await?, stage.struck(&recipe).await?);
    other.has_done(&("count-down", json!({ "id": "first" }))).await?;
    let waiting = struck.begin(&plain("wait"))?;
    stage.until_broken().await?;
    stage.until_mended().await?;
    let passed = waiting.is_over() && !struck.has_ended();
    ensure!(!passed, "one is missing, and the wait is over");
    other.has_done(&("count-down", json!({ "id": "second" }))).await?;
    waiting.ended().await?;
    other.has_done(&plain("wait")).await?;
    stage.nothing_is_left().await
}

/// Who counts is struck: whatever it was answered, it counts once.
pub(super) async fn counting_down(mut stage: Stage) -> Result<()> {
    let recipe = Recipe { name: "count-down-latch", config: json!({ "count": 2 }) };
    let (other, struck) = (stage.other(&recipe).await?, stage.struck(&recipe).await?);
    let count = |id: &str| ("count-down", json!({ "id": id }));
    stage.until_broken().await?;
    let counting = struck.begin(&count("first"))?;
    stage.until_mended().await?;
    counting.ended().await?;
    other.has_done(&count("first")).await?;
    let remaining = other.has_done(&plain("remaining")).await?;
    ensure!(remaining.value == Ok(json!(1)), "one of two has counted: {remaining:?}");
    other.has_done(&count("second")).await?;
    other.has_done(&plain("wait")).await?;
    stage.nothing_is_left().await
}

fn of_two() -> Recipe {
    Recipe { name: "double-barrier", config: json!({ "size": 2 }) }
}

/// Who waits for the other one to enter is struck.
pub(super) async fn entering(mut stage: Stage) -> Result<()> {
    let (struck, other) = (stage.struck(&of_two()).await?, stage.other(&of_two()).await?);
    let waiting = struck.begin(&plain("enter"))?;
    stage.until_children("gen-1", 1).await?;
    stage.until_broken().await?;
    stage.until_mended().await?;
    let entering = other.begin(&plain("enter"))?;
    let entered = waiting.ended().await?.is_some_and(|answer| answer.value.is_ok());
    let instead = stage.other(&of_two()).await?;
    if !entered {
        // A place that is left by a session that is gone is nobody's: another one takes it.
        instead.has_done(&plain("enter")).await?;
    }
    entering.done().await?;
    struck.leaves().await?;
    instead.leaves().await?;
    other.has_done(&plain("leave")).await?;
    stage.nothing_is_left().await
}

/// One of two that are inside is struck while it leaves.
pub(super) async fn leaving(mut stage: Stage) -> Result<()> {
    let (struck, other) = (stage.struck(&of_two()).await?, stage.other(&of_two()).await?);
    let entering = struck.begin(&plain("enter"))?;
    other.has_done(&plain("enter")).await?;
    entering.done().await?;
    stage.until_broken().await?;
    let leaving = struck.begin(&plain("leave"))?;
    stage.until_mended().await?;
    other.has_done(&plain("leave")).await?;
    leaving.ended().await?;
    struck.leaves().await?;
    stage.nothing_is_left().await
}

/// Who adds is struck: what was acknowledged is in the counter once, and no more than was asked for.
pub(super) async fn adding(mut stage: Stage) -> Result<()> {
    let recipe = Recipe { name: "counter", config: json!({}) };
    let (struck, other) = (stage.struck(&recipe).await?, stage.other(&recipe).await?);
    let add = ("add", json!({ "by": 1 }));
    other.has_done(&add).await?;
    let (mut acknowledged, mut asked) = (1, 1);
    stage.until_broken().await?;
    let mut adding = Some(struck.begin(&add)?);
    stage.until_mended().await?;
    for _ in 0..3 {
        let begun = adding.take().map_or_else(|| struck.begin(&add), Ok)?;
        asked += 1;
        let answer = begun.ended().await?;
        acknowledged += i64::from(answer.is_some_and(|answer| answer.value.is_ok()));
    }
    other.has_done(&add).await?;
    (acknowledged, asked) = (acknowledged + 1, asked + 1);
    let value = other.has_done(&plain("get")).await?.value.ok();
    let value = value.and_then(|it| it.as_i64()).context("a number")?;
    ensure!((acknowledged..=asked).contains(&value), "{acknowledged} <= {value} <= {asked}");
    struck.leaves().await?;
    other.leaves().await?;
    stage.nothing_is_left().await
}
