//! Makes a failing plan small: leaves out whatever is not needed to break the same invariant.

use std::sync::atomic::{AtomicBool, Ordering};

use super::plan::{Plan, Step};
use super::subject::Subject;
use super::verdict::Verdict;

/// In calm every call is answered.
const W1: &str = "W1";

/// How many smaller plans are tried. Each takes a few hundredths of a second.
const ATTEMPTS: usize = 600;

/// The smallest failing run found until somebody sets `is_stopped`; the one given if none is smaller.
pub fn shrink(
    subject: &Subject,
    failing: Verdict,
    invariant: &str,
    is_stopped: &AtomicBool,
) -> Verdict {
    let needs_faults = invariant == W1 && !is_broken_without_faults(subject, &failing.plan);
    let smallest = failing;
    let mut shrinking =
        Shrinking { subject, invariant, needs_faults, smallest, left: ATTEMPTS, is_stopped };
    // What one pass leaves out may make room for another.
    loop {
        let size = size(&shrinking.smallest.plan);
        shrinking.drop_faults();
        shrinking.drop_foreign();
        shrinking.drop_applications();
        shrinking.drop_steps();
        if size == self::size(&shrinking.smallest.plan) || shrinking.left == 0 {
            return shrinking.smallest;
        }
    }
}

/// What there is to leave out.
fn size(plan: &Plan) -> usize {
    let steps: usize = plan.applications.iter().map(|application| application.steps.len()).sum();
    plan.faults.len() + plan.foreign.len() + plan.applications.len() + steps
}

/// Whether somebody waits for ever though nothing is done to the run.
fn is_broken_without_faults(subject: &Subject, plan: &Plan) -> bool {
    let calm = Plan { faults: Vec::new(), ..plan.clone() };
    Verdict::of(subject, calm).is_ok_and(|verdict| verdict.breaks(W1))
}

struct Shrinking<'a> {
    subject: &'a Subject,
    invariant: &'a str,
    /// Whether it takes a fault. Without those who would have woken it somebody waits in a smaller run as
    /// well, which says nothing of why it was not woken in this one.
    needs_faults: bool,
    smallest: Verdict,
    left: usize,
    is_stopped: &'a AtomicBool,
}

impl Shrinking<'_> {
    /// Whether a smaller plan fails as well; it is then the smallest.
    fn fails(&mut self, plan: Plan) -> bool {
        if self.is_stopped.load(Ordering::Relaxed) {
            self.left = 0;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        if self.needs_faults && is_broken_without_faults(self.subject, &plan) {
            return false;
        }
        match Verdict::of(self.subject, plan) {
            Ok(verdict) if verdict.breaks(self.invariant) => {
                self.smallest = verdict;
                true
            }
            _ => false,
        }
    }

    /// Leaves out runs of items, the longest first: `without` makes the plan that lacks those from
    /// `at` on.
    fn drop_runs(
        &mut self,
        count: impl Fn(&Plan) -> usize,
        without: impl Fn(&mut Plan, usize, usize),
    ) {
        let mut length = count(&self.smallest.plan);
        while length > 0 {
            let mut at = 0;
            while at < count(&self.smallest.plan) {
                let mut plan = self.smallest.plan.clone();
                without(&mut plan, at, length);
                if !self.fails(plan) {
                    at += length;
                }
            }
            length /= 2;
        }
    }

    fn drop_faults(&mut self) {
        self.drop_runs(
            |plan| plan.faults.len(),
            |plan, at, length| cut(&mut plan.faults, at, length),
        );
    }

    fn drop_foreign(&mut self) {
        self.drop_runs(
            |plan| plan.foreign.len(),
            |plan, at, length| cut(&mut plan.foreign, at, length),
        );
    }

    fn drop_applications(&mut self) {
        self.drop_runs(
            |plan| plan.applications.len(),
            |plan, at, length| cut(&mut plan.applications, at, length),
        );
    }

    fn drop_steps(&mut self) {
        for number in 0..self.smallest.plan.applications.len() {
            let steps = |plan: &Plan| plan.applications.get(number).map_or(0, |it| it.steps.len());
            self.drop_runs(steps, |plan, at, length| {
                if let Some(application) = plan.applications.get_mut(number) {
                    cut(&mut application.steps, at, length);
                }
            });
        }
        // What is left waits no longer than it must.
        for number in 0..self.smallest.plan.applications.len() {
            let mut plan = self.smallest.plan.clone();
            if let Some(application) = plan.applications.get_mut(number) {
                application.steps.retain(|step| !matches!(step, Step::Rest { .. }));
            }
            if plan != self.smallest.plan {
                self.fails(plan);
            }
        }
    }
}

fn cut<T>(items: &mut Vec<T>, at: usize, length: usize) {
    let end = at.saturating_add(length).min(items.len());
    items.drain(at.min(end)..end);
}
