//! What a simulation did not look at: told first, and no pass.

use serde_json::{Map, Value, json};

use crate::simulation::called::Called;
use crate::simulation::subject::Subject;
use crate::simulation::workload::Workload;

/// What nobody judged or called.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The interface that no judge knows.
    unjudged: Option<String>,
    never_called: Vec<String>,
    /// Called, and answered errors only.
    only_failed: Vec<String>,
    /// Who wrote the scenario has left them out, and knows.
    left_out_on_purpose: Vec<String>,
}

impl Gaps {
    /// Of many seeds: what was called in none of them.
    pub(super) fn of_search(subject: &Subject, called: &Called) -> Self {
        let mut gaps = Gaps::of_run(subject);
        if !matches!(subject.workload(), Workload::Scenario(_)) {
            let never = subject.operations().filter(|operation| called.made(operation) == 0);
            gaps.never_called = never.map(str::to_owned).collect();
        }
        let failed = subject.operations().filter(|operation| called.only_failed(operation));
        gaps.only_failed = failed.map(str::to_owned).collect();
        gaps
    }

    /// Of one run, which does not call everything: what is called in none, whatever the seed.
    pub(super) fn of_run(subject: &Subject) -> Self {
        let left_out = subject.left_out().into_iter().map(str::to_owned).collect();
        let (never_called, left_out_on_purpose) = match subject.workload() {
            Workload::Scenario(_) => (Vec::new(), left_out),
            _ => (left_out, Vec::new()),
        };
        let unjudged = (!subject.is_judged()).then(|| subject.interface_name().to_owned());
        Gaps { unjudged, never_called, only_failed: Vec::new(), left_out_on_purpose }
    }

    /// Whether what was found is worth a pass.
    pub(super) fn are_none(&self) -> bool {
        self.unjudged.is_none() && self.never_called.is_empty() && self.only_failed.is_empty()
    }

    /// The first lines of a report, each with its end.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let Some(interface) = &self.unjudged {
            text += &format!(
                "NOT JUDGED: no judge knows {interface}; what it promises was not looked at, only \
                 what every recipe owes\n"
            );
        }
        if !self.never_called.is_empty() {
            text += &format!(
                "NEVER CALLED: {}; a workload says how (promise/workload.toml)\n",
                self.never_called.join(", ")
            );
        }
        if !self.only_failed.is_empty() {
            text += &format!(
                "NEVER ANSWERED but by errors: {}; a workload says with which arguments and after \
                 what (promise/workload.toml)\n",
                self.only_failed.join(", ")
            );
        }
        if !self.left_out_on_purpose.is_empty() {
            let left_out = self.left_out_on_purpose.join(", ");
            text += &format!("not called in this scenario: {left_out}\n");
        }
        text
    }

    /// What is said of runs in which nothing was broken.
    pub(super) fn held(&self) -> &'static str {
        if self.are_none() { "every invariant held" } else { "nothing of what was judged broke" }
    }

    /// Adds it to a report for programs.
    pub(super) fn add_to(&self, report: &mut Value) {
        let Value::Object(report) = report else { return };
        let mut add = |name: &str, operations: &[String]| {
            if !operations.is_empty() {
                report.insert(name.to_owned(), json!(operations));
            }
        };
        add("never-called", &self.never_called);
        add("only-failed", &self.only_failed);
        add("left-out", &self.left_out_on_purpose);
        if let Some(interface) = &self.unjudged {
            report.insert("not-judged".to_owned(), json!(interface));
        }
        clear_pass(report, self.are_none());
    }
}

fn clear_pass(report: &mut Map<String, Value>, are_none: bool) {
    if let Some(passed) = report.get_mut("passed").filter(|_| !are_none) {
        *passed = json!(false);
    }
}
