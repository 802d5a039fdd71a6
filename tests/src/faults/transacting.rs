//! Plays about transactions, which commit at all of their sites or at none.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::party::{Member, Operation, Recipe};
use super::stage::Stage;

/// Longer than any play takes: no deadline decides.
const LONG_MS: u64 = 600_000;

fn recipe() -> Recipe {
    Recipe { name: "two-phase-commit", config: json!({}) }
}

fn begin() -> Operation {
    ("begin", json!({ "sites": ["a", "b"], "payload": "x", "within-ms": LONG_MS }))
}

fn vote(transaction: &Value, site: &str, choice: &str) -> Operation {
    ("vote", json!({ "transaction": transaction, "site": site, "choice": choice }))
}

fn about(operation: &'static str, transaction: &Value) -> Operation {
    (operation, json!({ "transaction": transaction }))
}

async fn begun(by: &Member) -> Result<Value> {
    by.has_done(&begin()).await?.value.ok().context("a transaction")
}

async fn is_decided(by: &Member, transaction: &Value, decision: &str) -> Result<()> {
    let outcome = by.has_done(&about("outcome", transaction)).await?;
    let told = outcome.value.as_ref().ok().and_then(|told| told.get("decision"));
    ensure!(told == Some(&json!(decision)), "not decided to {decision}: {outcome:?}");
    Ok(())
}

/// A site votes and is struck: its vote is cast once, by itself or when it is repeated.
pub(super) async fn voting(mut stage: Stage) -> Result<()> {
    let (other, struck) = (stage.other(&recipe()).await?, stage.struck(&recipe()).await?);
    let transaction = begun(&other).await?;
    stage.until_broken().await?;
    let voting = struck.begin(&vote(&transaction, "a", "commit"))?;
    stage.until_mended().await?;
    voting.ended().await?;
    for site in ["a", "b"] {
        let answer = other.has_done(&vote(&transaction, site, "commit")).await?;
        ensure!(answer.value.is_ok(), "{site} votes: {answer:?}");
    }
    is_decided(&other, &transaction, "commit").await?;
    struck.leaves().await?;
    other.leaves().await?;
    stage.nothing_is_left().await
}

/// Who waits for the outcome is struck.
pub(super) async fn awaiting(mut stage: Stage) -> Result<()> {
    let (other, struck) = (stage.other(&recipe()).await?, stage.struck(&recipe()).await?);
    let transaction = begun(&other).await?;
    let waiting = struck.begin(&about("outcome", &transaction))?;
    stage.until_broken().await?;
    stage.until_mended().await?;
    let is_told = waiting.is_over() && !struck.has_ended();
    ensure!(!is_told, "nobody has voted, and the wait is over");
    for site in ["a", "b"] {
        other.has_done(&vote(&transaction, site, "commit")).await?;
    }
    waiting.ended().await?;
    is_decided(&other, &transaction, "commit").await?;
    struck.leaves().await?;
    other.leaves().await?;
    stage.nothing_is_left().await
}

/// Who asks for something else is struck; the transaction is decided all the same.
pub(super) async fn asking(mut stage: Stage, operation: &'static str) -> Result<()> {
    let (other, struck) = (stage.other(&recipe()).await?, stage.struck(&recipe()).await?);
    let transaction = begun(&other).await?;
    let asks = match operation {
        "begin" => begin(),
        "transactions" => (operation, json!({ "site": "a" })),
        "register" => (operation, json!({ "transaction": transaction, "site": "a" })),
        _ => about(operation, &transaction),
    };
    if operation == "forget" {
        other.has_done(&vote(&transaction, "b", "abort")).await?;
    }
    stage.until_broken().await?;
    let asked = struck.begin(&asks)?;
    stage.until_mended().await?;
    asked.ended().await?;
    struck.leaves().await?;
    if operation != "forget" {
        // Refused if a site that had registered and left has decided it.
        other.begin(&vote(&transaction, "b", "abort"))?.ended().await?;
        is_decided(&other, &transaction, "abort").await?;
    }
    other.leaves().await?;
    stage.nothing_is_left().await
}
