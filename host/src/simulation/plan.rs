//! All that decides a run: who does what, and what is done to them. A plan follows from a seed, or
//! from a scenario file; a failing one is made smaller by leaving things out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::history::{Data, FaultKind, HostId};

/// All that decides a run, besides the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plan {
    /// For everything that is left to chance: delays, lags, names.
    pub seed: u64,
    /// The servers of the ensemble.
    #[serde(default = "three")]
    pub servers: usize,
    /// The hosts.
    #[serde(default = "three_hosts")]
    pub hosts: HostId,
    /// The sessions' timeout.
    #[serde(default = "session_timeout")]
    pub session_timeout_ms: u64,
    /// Where the counter of the mount's children begins; a server counts to 2147483647 and no further.
    #[serde(default)]
    pub counter: i32,
    /// The applications.
    #[serde(default)]
    pub applications: Vec<Application>,
    /// What is done to them.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// What another program creates among the recipe's znodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<Foreign>,
}

fn three() -> usize {
    3
}

fn three_hosts() -> HostId {
    3
}

fn session_timeout() -> u64 {
    4_000
}

impl Plan {
    /// The same as a file can have it: with this config where an application has none of its own, and without
    /// nulls, which TOML does not have.
    #[must_use]
    pub fn for_a_file(mut self, config: Option<&Value>) -> Self {
        for application in &mut self.applications {
            let own = application.config.take().or_else(|| config.cloned());
            application.config = own.map(without_nulls);
            for step in &mut application.steps {
                if let Step::Call { arguments, .. } = step {
                    *arguments = without_nulls(std::mem::take(arguments));
                }
            }
        }
        self
    }
}

/// Without the fields that are null, as which they count where they are missing.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let there = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(there.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// An application: a process on a host that does one thing after another through one participant.
/// When that ends, it joins again and goes on with its next step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Application {
    /// On which host.
    pub host: HostId,
    /// The module's config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// What it does.
    pub steps: Vec<Step>,
}

/// Something that an application does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Calls an operation, and waits for the answer.
    Call {
        /// Which.
        operation: String,
        /// Its arguments, as the body of an API request. The text `$item.path` stands for the field
        /// `path` of the answer that an earlier call bound as `item`; without such an answer the
        /// call is left out.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        arguments: Value,
        /// After how long it gives up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline_ms: Option<u64>,
        /// What the answer is called in later arguments, if it is of use there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bind: Option<String>,
    },
    /// If it holds a claim: works for a while, and writes to what the claim guards.
    Work {
        /// How long.
        ms: u64,
    },
    /// Waits until it holds a claim, but no longer than this. Only if the participant's last call was
    /// answered, and not by an error.
    AwaitClaim {
        /// How long at most.
        ms: u64,
    },
    /// Does nothing.
    Rest {
        /// How long.
        ms: u64,
    },
    /// Ends its participant.
    Leave,
}

impl Step {
    /// The operation that it calls, if it calls one.
    pub fn operation(&self) -> Option<&str> {
        match self {
            Step::Call { operation, .. } => Some(operation),
            _ => None,
        }
    }
}

/// Something that is done to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fault {
    /// What.
    pub fault: FaultKind,
    /// When.
    pub when: When,
    /// To which host, and at whose request or host call. A `leader-change` and a `leader-cut` happen to
    /// none. A `lag` is of one of the servers that follow, chosen by this number; and to such a server the
    /// host goes in a `server-pause`. A `link-cut` and a `server-cut` are of the server that the host is
    /// connected to: of the link to its leader, or to one that follows it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host: HostId,
    /// How long, where it lasts: a pause, a lag, a delay, a cut, an election, the time until a killed
    /// host is back. A clock jumps by it. A `move` goes to the server of that number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ms: u64,
    /// Which way a cut between servers is.
    #[serde(default, skip_serializing_if = "Way::is_both")]
    pub way: Way,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl Fault {
    /// The keys that mean something to it.
    pub fn keys(&self) -> Vec<&'static str> {
        let is_of_the_leader = matches!(self.fault, FaultKind::LeaderChange | FaultKind::LeaderCut);
        let has_host = !is_of_the_leader || !matches!(self.when, When::At { .. });
        let has_ms = match self.fault {
            FaultKind::LostBefore
            | FaultKind::LostAfter
            | FaultKind::HalfOpen
            | FaultKind::Expiry
            | FaultKind::GuestKill
            | FaultKind::Cancel => false,
            FaultKind::Delay
            | FaultKind::Move
            | FaultKind::Lag
            | FaultKind::LeaderChange
            | FaultKind::LinkCut
            | FaultKind::HostCut
            | FaultKind::ServerCut
            | FaultKind::LeaderCut
            | FaultKind::ServerPause
            | FaultKind::Pause
            | FaultKind::HostKill
            | FaultKind::ClockJump => true,
        };
        let has_way = self.fault.is_between_servers();
        [("fault", true), ("when", true), ("host", has_host), ("ms", has_ms), ("way", has_way)]
            .into_iter()
            .filter_map(|(key, has)| has.then_some(key))
            .collect()
    }

    /// The same, without what means nothing to it: a scenario that is written can be read.
    #[must_use]
    pub(super) fn without_strange_keys(self) -> Self {
        let keys = self.keys();
        Fault {
            host: if keys.contains(&"host") { self.host } else { 0 },
            ms: if keys.contains(&"ms") { self.ms } else { 0 },
            way: if keys.contains(&"way") { self.way } else { Way::Both },
            ..self
        }
    }
}

/// Which way a cut between servers is, as seen from the server that is cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Neither hears the other.
    #[default]
    Both,
    /// The others hear nothing of it.
    Out,
    /// It hears nothing of the others.
    In,
    /// The others hear nothing of it, and shortly before they give it up, it hears nothing of them
    /// either: it knows later than they.
    OutFirst,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 4] = [Way::Both, Way::Out, Way::In, Way::OutFirst];

    fn is_both(&self) -> bool {
        *self == Way::Both
    }
}

/// A znode that another program creates, as somebody would by hand. It stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Foreign {
    /// Where, as the recipe sees it. Nothing is created where no znode is above it by then.
    pub path: String,
    /// What it holds: a text, or a list of bytes.
    #[serde(default, skip_serializing_if = "Data::is_empty")]
    pub data: Data,
    /// Milliseconds since the run's beginning.
    pub at_ms: u64,
}

/// When a fault strikes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum When {
    /// At a time of the run.
    At {
        /// Milliseconds since its beginning.
        ms: u64,
    },
    /// When the host sends its n-th request to the ensemble, heartbeats aside, counted from 1.
    Request {
        /// Which.
        nth: u64,
    },
    /// When a component on the host makes a host call of that name for the n-th time, counted from
    /// 1 over all of them; at the request that it leads to where the fault is about one.
    HostCall {
        /// By the contract's name, as `get-children`.
        name: String,
        /// Which.
        nth: u64,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_without_arguments_and_with_the_config_of_its_run_can_be_read_from_its_file() {
        let call = |arguments| Step::Call {
            operation: "acquire".to_owned(),
            arguments,
            deadline_ms: None,
            bind: None,
        };
        let with_nulls = json!({ "max": null, "of": [{ "a": null, "b": 1 }] });
        let steps = vec![call(Value::Null), call(with_nulls)];
        let own = Some(json!({ "format": null, "revocable": true }));
        let application = |config| Application { host: 0, config, steps: steps.clone() };
        let plan = Plan {
            seed: 1,
            servers: 1,
            hosts: 1,
            session_timeout_ms: 4_000,
            counter: 0,
            applications: vec![application(None), application(own)],
            faults: Vec::new(),
            foreign: Vec::new(),
        };
        let of_run = json!({ "format": "kazoo" });
        let text = toml::to_string(&plan.for_a_file(Some(&of_run))).unwrap();
        let read: Plan = toml::from_str(&text).unwrap();
        let configs: Vec<_> = read.applications.iter().map(|it| it.config.clone()).collect();
        assert_eq!(configs, [Some(of_run), Some(json!({ "revocable": true }))]);
        let arguments = json!({ "of": [{ "b": 1 }] });
        assert_eq!(read.applications[0].steps, [call(Value::Null), call(arguments)]);
    }
}
