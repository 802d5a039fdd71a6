//! A scenario: a plan as its author writes it in TOML. What is wrong with it is told with its line and
//! column, whoever finds that.

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
        let plan =
            toml::from_str(text).map_err(|error| WorkloadError::of_toml(name, text, &error))?;
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

/// Where a place stands, as `faults[0].when.nth`; of one that is left out, what it is left out of.
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
