//! What `wok test` tries a module by: who judges it, and who says what its users do.

use serde_json::{Value, json};

use crate::base::user_cache;
use crate::cli::exit::Failure;
use crate::cli::promise;
use crate::guest::{Judge, Module};
use crate::modules::ModuleSource;
use crate::simulation::judges;
use crate::simulation::subject::{Origin, own_workload};

/// The judge and the workload of a module.
pub(super) struct Promised {
    judge: Option<Judge>,
    workload: Origin,
}

impl Promised {
    /// Those that `wok test` takes without options.
    pub(super) fn of(
        source: &ModuleSource,
        bytes: &[u8],
        module: &Module,
    ) -> Result<Self, Failure> {
        let cache = user_cache();
        let judge = match promise::judge(None, source, bytes, &cache)? {
            Some(beside) => Some(beside),
            None => judges::promised(module.name(), bytes, module.interface(), &cache)
                .map_err(|error| promise::of_judge(&error))?,
        };
        let workload = match promise::workload(source) {
            Some(beside) => Origin::File(beside.display().to_string()),
            None => {
                let own = own_workload(module, bytes);
                own.map_err(|error| Failure::Config(error.to_string()))?.1
            }
        };
        Ok(Promised { judge, workload })
    }

    /// For people.
    pub(super) fn text(&self) -> Vec<String> {
        let mut lines = match &self.judge {
            Some(judge) => {
                let told = format!("judged by {}, sha256 {}", judge.name(), judge.digest());
                let invariants = judge.invariants().iter();
                let invariants = invariants.map(|(id, meaning)| format!("    {id}: {meaning}"));
                std::iter::once(told).chain(invariants).collect()
            }
            None => vec!["judged by nobody but for what every recipe owes".to_owned()],
        };
        lines.push(match &self.workload {
            Origin::Nowhere => {
                "used at random in simulation, as nobody has written a workload".to_owned()
            }
            workload => format!("used in simulation as {workload} says"),
        });
        lines
    }

    /// For programs.
    pub(super) fn judge_json(&self) -> Value {
        let invariant = |(id, meaning): &(String, String)| json!({ "id": id, "meaning": meaning });
        self.judge.as_ref().map_or(Value::Null, |judge| {
            json!({
                "name": judge.name(),
                "sha256": judge.digest(),
                "invariants": judge.invariants().iter().map(invariant).collect::<Vec<_>>(),
            })
        })
    }

    /// For programs.
    pub(super) fn workload_json(&self) -> Value {
        match &self.workload {
            Origin::Component => json!({ "from": "component" }),
            Origin::Stock(name) => json!({ "from": "stock", "name": name }),
            Origin::File(name) => json!({ "from": "file", "name": name }),
            Origin::Nowhere => Value::Null,
        }
    }
}
