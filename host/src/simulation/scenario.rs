//! A scenario: a plan as its author writes it in TOML. An error is told with its line and column, be it found
//! as the text is read, as the plan is checked, or as the plan is run.

use toml::de::{DeTable, DeValue};

use super::plan::Plan;
use super::workload::WorkloadError;
use super::world::PlanError;

/// A scenario, and the text that it was read from.
#[derive(Debug, Clone)]
pub struct Scenario {
    name: String,
    text: String,
    plan: Plan,
}

impl Scenario {
    /// Reads a scenario. `name` is what an error calls the text.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read(name: &str, text: &str) -> Result<Self, WorkloadError> {
        let of_toml = |error| WorkloadError::of_toml(name, text, &error);
        let plan: Plan = toml::from_str(text).map_err(of_toml)?;
        let document = DeTable::parse(text).map_err(of_toml)?;
        if let Some((at, problem)) = strange_key(document.get_ref(), &plan) {
            return Err(WorkloadError::at(name, text, at, &problem));
        }
        Ok(Scenario { name: name.to_owned(), text: text.to_owned(), plan })
    }

    /// What its text is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is wrong with the plan, where that stands in the text.
    pub fn wrong(&self, error: &PlanError) -> WorkloadError {
        let document = DeTable::parse(&self.text);
        let at = document.map_or(0, |document| start_of(document.get_ref(), &error.place));
        WorkloadError::at(&self.name, &self.text, at, &error.to_string())
    }
}

/// A key that means nothing to its fault, and where the key stands. It is refused, as its author expects
/// something of it.
fn strange_key(document: &DeTable<'_>, plan: &Plan) -> Option<(usize, String)> {
    let DeValue::Array(written) = document.get("faults")?.get_ref() else { return None };
    written.iter().zip(&plan.faults).find_map(|(written, fault)| {
        let DeValue::Table(table) = written.get_ref() else { return None };
        let keys = fault.keys();
        let strange = table.keys().find(|key| !keys.contains(&key.get_ref().as_ref()))?;
        let (key, name) = (strange.get_ref(), fault.fault.name());
        let problem = match &**key {
            "host" => format!("`{name}` at a time happens to no host"),
            key => format!("`{name}` has no `{key}`"),
        };
        Some((strange.span().start, format!("{problem}; its keys are {}", keys.join(", "))))
    })
}

/// Where in the text the key of a place such as `faults[0].when.nth` stands. Where the text does not have that
/// key, the answer is where the table stands that lacks it.
fn start_of(document: &DeTable<'_>, place: &str) -> usize {
    let (mut start, mut table) = (0, Some(document));
    for segment in place.split('.') {
        let (key, index) = segment.split_once('[').unwrap_or((segment, ""));
        let Some((name, value)) = table.and_then(|table| table.get_key_value(key)) else { break };
        start = name.span().start;
        let index = index.trim_end_matches(']').parse::<usize>().ok();
        let value = match (value.get_ref(), index) {
            (DeValue::Array(items), Some(index)) => match items.get(index) {
                Some(item) => {
                    start = item.span().start;
                    item.get_ref()
                }
                None => break,
            },
            (value, _) => value,
        };
        table = match value {
            DeValue::Table(table) => Some(table),
            _ => None,
        };
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::history::FaultKind;

    const TEXT: &str = "seed = 1
servers = 3
[[applications]]
host = 0
config = { permits = 1 }
steps = [{ rest = { ms = 1 } }, \"leave\"]

[[faults]]
fault = \"pause\"
when = { request = { nth = 0 } }
ms = 1
";

    #[track_caller]
    fn check(place: &str, expected: &str) {
        let scenario = Scenario::read("s.toml", TEXT).unwrap();
        let error = PlanError { place: place.to_owned(), problem: "so".to_owned() };
        let told = scenario.wrong(&error).to_string();
        assert_eq!(told, format!("s.toml:{expected}: {place}: so"));
    }

    #[test]
    fn what_is_wrong_with_a_plan_is_told_with_its_line_and_column() {
        check("servers", "2:1");
        check("applications[0].config", "5:1");
        check("applications[0].steps[1]", "6:33");
        check("faults[0].ms", "11:1");
        // The key is one level deeper.
        check("faults[0].when.nth", "10:1");
        // It is left out, and three by default.
        check("hosts", "1:1");
        check("faults[0].host", "8:1");
    }

    /// What is said of a fault with these keys.
    #[track_caller]
    fn check_fault(keys: &str, expected: Result<(), &str>) {
        let text = format!("seed = 1\nfaults = [{{ {keys} }}]\n");
        let told = Scenario::read("s.toml", &text).map(drop).map_err(|error| error.to_string());
        assert_eq!(told.as_ref().map_err(String::as_str), expected.as_ref().map_err(|it| *it));
    }

    #[test]
    fn a_key_that_means_nothing_to_its_fault_is_refused() {
        let at = "when = { at = { ms = 1 } }";
        for kind in FaultKind::ALL {
            let (name, is_cut) = (kind.name(), kind.is_between_servers());
            let of_no_host = matches!(kind, FaultKind::LeaderChange | FaultKind::LeaderCut);
            let plain = format!("fault = \"{name}\", {at}");
            check_fault(&plain, Ok(()));
            let mut keys = vec!["fault", "when"];
            keys.extend((!of_no_host).then_some("host"));
            let has_ms = kind.needs_time()
                || matches!(
                    kind,
                    FaultKind::Move
                        | FaultKind::LeaderChange
                        | FaultKind::HostKill
                        | FaultKind::ClockJump
                );
            keys.extend(has_ms.then_some("ms"));
            keys.extend(is_cut.then_some("way"));
            let column = "faults = [{ ".len() + plain.len() + ", ".len() + 1;
            for (key, value) in [("host", "1"), ("ms", "1"), ("way", "\"in\"")] {
                let text = format!("{plain}, {key} = {value}");
                let what = match key {
                    "host" => "at a time happens to no host".to_owned(),
                    key => format!("has no `{key}`"),
                };
                let told =
                    format!("s.toml:2:{column}: `{name}` {what}; its keys are {}", keys.join(", "));
                check_fault(&text, if keys.contains(&key) { Ok(()) } else { Err(&told) });
            }
        }
        // It waits for a request of that host's.
        check_fault(
            "fault = \"leader-cut\", when = { request = { nth = 2 } }, host = 1, ms = 9",
            Ok(()),
        );
        let both = "fault = \"pause\", when = { at = { ms = 1, nth = 1 } }";
        let told = "s.toml:2:54: unexpected keys in table: nth, available keys: ms";
        check_fault(both, Err(told));
    }

    #[test]
    fn what_is_no_plan_is_told_with_its_line_and_column() {
        for (wrong, expected) in [
            (TEXT.replace("pause", "puase"), "s.toml:9:9: unknown variant `puase`"),
            (
                TEXT.replace("ms = 1 }", "m = 1 }"),
                "s.toml:6:21: unexpected keys in table: m, available keys: ms",
            ),
            (TEXT.replace("seed = 1", "seed ="), "s.toml:1:"),
        ] {
            let told = Scenario::read("s.toml", &wrong).unwrap_err().to_string();
            assert!(told.starts_with(expected), "{told} is not {expected}");
        }
    }
}
