//! What a simulation did not look at: told first, and no pass.

use serde_json::{Map, Value, json};

use crate::simulation::called::Called;
use crate::simulation::subject::Subject;
use crate::simulation::workload::Workload;

/// What was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Many seeds.
    Search,
    /// One seed or one scenario.
    One,
    /// An exhaustive run, which is small.
    Small,
    /// What a scenario says.
    Scenario,
}

impl Extent {
    /// How somebody comes to see what was not called, and another seed may call.
    fn remedy(self) -> &'static str {
        match self {
            Extent::Search => "a workload says how (promise/workload.toml)",
            Extent::One => "--seeds runs many seeds",
            Extent::Small => "--first-seed takes others, and --seeds runs many",
            Extent::Scenario => {
                "the scenario has them: what their `$` names was never answered, or the run was over before"
            }
        }
    }
}

/// What nobody judged or called.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The interface that no judge knows.
    unjudged: Option<String>,
    never_called: Vec<String>,
    /// Not in what was run; another seed may call them.
    not_called: Option<(Extent, Vec<String>)>,
    /// Called, and answered errors only.
    only_failed: Vec<String>,
    /// Who wrote the scenario has left them out, and knows.
    left_out_on_purpose: Vec<String>,
}

impl Gaps {
    /// Of runs: what was called in none of them.
    pub(super) fn of(subject: &Subject, extent: Extent, called: &Called) -> Self {
        let mut gaps = Gaps::of_any(subject);
        let not_made = subject.operations().filter(|operation| called.made(operation) == 0);
        let not_made: Vec<String> = not_made.map(str::to_owned).collect();
        let is_scenario = matches!(subject.workload(), Workload::Scenario(_));
        if is_scenario {
            let is_left_out = |operation: &String| gaps.left_out_on_purpose.contains(operation);
            let here = not_made.into_iter().filter(|operation| !is_left_out(operation)).collect();
            gaps.not_called = Some((Extent::Scenario, here));
        } else if extent == Extent::Search {
            gaps.never_called = not_made;
        } else {
            let is_known = |operation: &String| gaps.never_called.contains(operation);
            let here = not_made.into_iter().filter(|operation| !is_known(operation)).collect();
            gaps.not_called = Some((extent, here));
        }
        // In one run of a scenario a call may have been made to fail on purpose.
        if !is_scenario || extent == Extent::Search {
            let failed = subject.operations().filter(|operation| called.only_failed(operation));
            gaps.only_failed = failed.map(str::to_owned).collect();
        }
        gaps
    }

    /// Of any run: what is called in none, whatever the seed.
    pub(super) fn of_any(subject: &Subject) -> Self {
        let left_out = subject.left_out().into_iter().map(str::to_owned).collect();
        let (never_called, left_out_on_purpose) = match subject.workload() {
            Workload::Scenario(_) => (Vec::new(), left_out),
            _ => (left_out, Vec::new()),
        };
        let unjudged = (!subject.is_judged()).then(|| subject.interface_name().to_owned());
        Gaps { unjudged, never_called, left_out_on_purpose, ..Gaps::default() }
    }

    /// Whether what was found is worth a pass.
    pub(super) fn are_none(&self) -> bool {
        self.unjudged.is_none()
            && self.never_called.is_empty()
            && self.not_called().is_none()
            && self.only_failed.is_empty()
    }

    fn not_called(&self) -> Option<(Extent, &[String])> {
        let (extent, operations) = self.not_called.as_ref()?;
        (!operations.is_empty()).then_some((*extent, operations))
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
                "NEVER CALLED: {}; {}\n",
                self.never_called.join(", "),
                Extent::Search.remedy()
            );
        }
        if let Some((extent, operations)) = self.not_called() {
            text += &format!(
                "NOT CALLED in this run: {}; {}\n",
                operations.join(", "),
                extent.remedy()
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
        add("not-called", self.not_called().map_or(&[][..], |(_, operations)| operations));
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
