//! What is told of runs, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::gaps::Gaps;
use crate::guest::Judge;
use crate::simulation::coverage::Coverage;
use crate::simulation::exhaustive::Exhausted;
use crate::simulation::history::FaultKind;
use crate::simulation::invariants;
use crate::simulation::judges::{Violation, gravest};
use crate::simulation::search::Findings;
use crate::simulation::subject::Subject;
use crate::simulation::timeline;
use crate::simulation::verdict::Verdict;

/// A search in which nothing was broken.
pub(super) fn passed(module: &str, findings: &Findings, gaps: &Gaps) -> (String, Value) {
    let Findings { runs, counted, operations, succeeded, grants, coverage, .. } = findings;
    let (rate, speed_up) = (findings.seeds_per_second(), findings.speed_up());
    let least = coverage.least();
    let least_text = least.map(|(fault, call, hits)| {
        format!("least: {} in the middle of {call}, {hits} times", fault.name())
    });
    let text = format!(
        "{}{module}: {} in {counted} seeds that count, of {runs}\n\
         {operations} operations, {succeeded} succeeded, {grants} grants; {:.0} simulated seconds in {:.1} s: {rate:.0} \
         seeds/s, {speed_up:.0}x\n\n\
         How often a fault struck a host call in flight:\n{}\n{}",
        gaps.text(),
        gaps.held(),
        findings.simulated.as_secs_f64(),
        findings.took.as_secs_f64(),
        coverage.table(),
        least_text.unwrap_or_default()
    );
    let mut json = json!({
        "passed": true,
        "seeds": counted,
        "runs": runs,
        "operations": operations,
        "succeeded": succeeded,
        "grants": grants,
        "seeds-per-second": rate,
        "speed-up": speed_up,
        "coverage": cells(coverage),
        "least": least.map(|(fault, call, hits)| json!({
            "fault": fault.name(), "host-call": call, "hits": hits,
        })),
    });
    gaps.add_to(&mut json);
    (text, json)
}

/// A search that was stopped before it had seen enough.
pub(super) fn stopped(
    module: &str,
    findings: &Findings,
    wanted: u64,
    gaps: &Gaps,
) -> (String, Value) {
    let Findings { runs, counted, operations, succeeded, grants, .. } = findings;
    let text = format!(
        "{}{module}: stopped after {counted} of {wanted} seeds that count; {} in {runs} runs\n\
         {operations} operations, {succeeded} succeeded, {grants} grants",
        gaps.text(),
        gaps.held(),
    );
    let mut json = json!({
        "passed": false,
        "stopped": true,
        "seeds": counted,
        "runs": runs,
        "operations": operations,
        "succeeded": succeeded,
        "grants": grants,
    });
    gaps.add_to(&mut json);
    (text, json)
}

/// An exhaustive run in which nothing was broken.
pub(super) fn exhausted(module: &str, exhausted: &Exhausted, gaps: &Gaps) -> (String, Value) {
    let Exhausted { runs, struck, coverage, .. } = exhausted;
    let text = format!(
        "{}{module}: {} in {runs} runs, {struck} of them with one fault at one moment; in the others \
         there was nothing for it to strike\n\n{}",
        gaps.text(),
        gaps.held(),
        coverage.table()
    );
    let mut json = json!({
        "passed": true,
        "runs": runs,
        "struck": struck,
        "coverage": cells(coverage),
    });
    gaps.add_to(&mut json);
    (text, json)
}

/// One run that was asked for.
pub(super) fn one(
    module: &str,
    subject: &Subject,
    verdict: &Verdict,
    gaps: &Gaps,
) -> (String, Value) {
    let violations = &verdict.violations;
    let unjudged = why_unjudged(verdict);
    let mut text = format!(
        "{}{module}: {} operations, {} succeeded, {} grants, {} of the faults struck a host \
         call, {:.1} simulated seconds\n\
         history {}\n",
        gaps.text(),
        verdict.tally.operations,
        verdict.tally.succeeded,
        verdict.tally.grants,
        verdict.tally.struck,
        verdict.simulated.as_secs_f64(),
        verdict.digest()
    );
    match gravest(violations) {
        None => text.push_str(unjudged.unwrap_or(gaps.held())),
        Some(violation) => {
            for line in timeline::around(&verdict.history, violation) {
                writeln!(text, "{line}").unwrap_or_default();
            }
            for violation in violations {
                let sentence = timeline::in_short(&verdict.history, &violation.sentence);
                writeln!(text, "{}: {sentence}", violation.invariant).unwrap_or_default();
            }
            text += &meanings(violations, subject.judge());
        }
    }
    let mut json = json!({
        "passed": violations.is_empty() && unjudged.is_none(),
        "operations": verdict.tally.operations,
        "succeeded": verdict.tally.succeeded,
        "grants": verdict.tally.grants,
        "seed": verdict.plan.seed,
        "history": verdict.digest(),
        "violations": violations,
    });
    if let Some(json) = json.as_object_mut()
        && violations.is_empty()
        && let Some(why) = unjudged
    {
        json.insert("reason".to_owned(), json!(why));
    }
    gaps.add_to(&mut json);
    (text, json)
}

/// Why nothing was judged in a run: nobody called an operation, or no call succeeded. None where one did.
pub(super) fn why_unjudged(verdict: &Verdict) -> Option<&'static str> {
    match (verdict.tally.operations, verdict.tally.succeeded) {
        (0, _) => Some("no operation was called, so that nothing was judged"),
        (_, 0) => {
            Some("none of the operations that were called succeeded, so that nothing was judged")
        }
        _ => None,
    }
}

/// How a run came to break an invariant.
pub(super) fn story(subject: &Subject, verdict: &Verdict, violation: &Violation) -> String {
    let sentence = timeline::in_short(&verdict.history, &violation.sentence);
    let mut text = format!("{}: {sentence}\n", violation.invariant);
    text += &meanings(std::slice::from_ref(violation), subject.judge());
    text.push('\n');
    for line in timeline::around(&verdict.history, violation) {
        writeln!(text, "{line}").unwrap_or_default();
    }
    text
}

/// What the invariants that were broken mean, a line for each who says it.
fn meanings(violations: &[Violation], judge: Option<&Judge>) -> String {
    let mut told: Vec<&str> = Vec::new();
    let mut text = String::new();
    for Violation { invariant, .. } in violations {
        if told.contains(&&**invariant) {
            continue;
        }
        told.push(invariant);
        for promise in invariants::promises(invariant, judge) {
            writeln!(text, "({promise})").unwrap_or_default();
        }
    }
    text
}

fn cells(coverage: &Coverage) -> Value {
    let row = |fault: FaultKind| {
        let row: serde_json::Map<String, Value> = coverage
            .calls()
            .map(|call| (call.to_owned(), json!(coverage.hits(fault, call))))
            .collect();
        (fault.name().to_owned(), Value::Object(row))
    };
    Value::Object(FaultKind::ALL.into_iter().map(row).collect())
}
