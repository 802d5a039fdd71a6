//! Whether a workload is whole and fits its module.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use toml::Spanned;

use super::declared::{APPLICATION, number, put};
use super::file::{Amount, Call, Draw, File, Role, Step};
use crate::guest::Module;
use crate::simulation::references::{missing_part, references, stand_in};
use crate::simulation::world::check_foreign;

/// Applications of one run: each is a participant, and those count that are just ending.
const MOST_APPLICATIONS: u64 = 24;

/// Rounds of an application, and steps of a round: a run is over after 40 seconds.
const MOST_ROUNDS: u64 = 100;
const MOST_STEPS: u64 = 200;

/// How deep lists of steps lead into each other by their names.
const MOST_DEEP: usize = 50;

/// The longest text that is drawn.
const MOST_LETTERS: u64 = 4_096;

/// What is wrong, and at which byte.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) problem: String,
}

fn wrong<T, U>(place: &Spanned<T>, problem: String) -> Result<U, Wrong> {
    Err(Wrong { at: place.span().start, problem })
}

/// Checks all that its types do not.
pub(super) fn check(file: &File, module: &Module) -> Result<(), Wrong> {
    within("applications", &file.applications, MOST_APPLICATIONS)?;
    within("rounds", &file.rounds, MOST_ROUNDS)?;
    for operation in file.live.iter().flatten() {
        if module.interface().operation(operation.get_ref()).is_none() {
            let problem = format!("{} has no operation {}", module.name(), operation.get_ref());
            return wrong(operation, problem);
        }
    }
    for path in &file.foreign {
        if let Err(problem) = check_foreign(path.get_ref()) {
            return wrong(path, problem);
        }
    }
    let roles = file.roles.get_ref();
    if roles.iter().all(|role| role.share == 0) {
        return wrong(
            &file.roles,
            "nobody does anything: there is no role with a share".to_owned(),
        );
    }
    let (mut names, mut before) = (BTreeSet::new(), 0);
    let most = file.applications.get_ref().high;
    for role in roles {
        if role.share > 0 && before >= most {
            let name = role.name.get_ref();
            let problem = format!(
                "nobody ever is a {name}: the shares before it make {before}, and there are at most {most} \
                 applications; raise `applications`, or lower those shares"
            );
            return wrong(&role.name, problem);
        }
        before = before.saturating_add(u64::from(role.share));
        if !names.insert(role.name.get_ref()) {
            return wrong(&role.name, format!("there is a role {} already", role.name.get_ref()));
        }
        check_role(file, module, role)?;
    }
    Ok(())
}

fn within(name: &str, amount: &Spanned<Amount>, most: u64) -> Result<(), Wrong> {
    if amount.get_ref().low == 0 || amount.get_ref().high > most {
        return wrong(amount, format!("{name}: from 1 to {most}"));
    }
    Ok(())
}

fn check_role(file: &File, module: &Module, role: &Role) -> Result<(), Wrong> {
    let mut walk = Walk { file, within: Vec::new(), counted: BTreeMap::new(), calls: Vec::new() };
    let steps = walk.steps(&role.round)?;
    let name = role.name.get_ref();
    if steps == 0 {
        return wrong(&role.name, format!("a round of {name} has no steps"));
    }
    if steps > MOST_STEPS {
        let problem = format!("a round of {name} has up to {steps} steps; at most {MOST_STEPS}");
        return wrong(&role.name, problem);
    }
    let bound: BTreeMap<&str, &str> = walk
        .calls
        .iter()
        .filter_map(|call| Some((call.bind.as_ref()?.get_ref().as_str(), call)))
        .map(|(name, call)| (name, call.operation.get_ref().as_str()))
        .collect();
    walk.calls.iter().try_for_each(|call| check_call(module, call, &bound))
}

/// The way through a role's steps.
struct Walk<'a> {
    file: &'a File,
    /// The names that led here.
    within: Vec<&'a str>,
    /// How many steps a name is, of those that were walked: a list of two, each a list of two and so on,
    /// would be walked without end.
    counted: BTreeMap<&'a str, u64>,
    calls: Vec<&'a Call>,
}

impl<'a> Walk<'a> {
    /// How many steps these are at most.
    fn steps(&mut self, steps: &'a [Step]) -> Result<u64, Wrong> {
        let mut most = 0_u64;
        for step in steps {
            most = most.saturating_add(self.step(step)?);
        }
        Ok(most)
    }

    fn step(&mut self, step: &'a Step) -> Result<u64, Wrong> {
        match step {
            Step::Call(call) => {
                self.calls.push(call);
                Ok(1)
            }
            Step::Work(work) => {
                let it = work.get_ref();
                if it.long_ms.is_some() != (it.long_percent.0 > 0) {
                    let problem = "long-ms and long-percent belong together".to_owned();
                    return wrong(work, problem);
                }
                Ok(1)
            }
            Step::AwaitClaim(_) | Step::Rest(_) | Step::Leave => Ok(1),
            Step::Do(name) => {
                let Some((known, steps)) = self.file.steps.get_key_value(name.get_ref()) else {
                    let known: Vec<&str> = self.file.steps.keys().map(String::as_str).collect();
                    let there = match known.is_empty() {
                        true => "there is no table [steps]".to_owned(),
                        false => format!("there are {}", known.join(", ")),
                    };
                    return wrong(name, format!("no steps are called {}; {there}", name.get_ref()));
                };
                if self.within.contains(&known.as_str()) {
                    return wrong(name, format!("{known} leads back to itself"));
                }
                if let Some(most) = self.counted.get(known.as_str()) {
                    return Ok(*most);
                }
                if self.within.len() == MOST_DEEP {
                    let problem = format!("more than {MOST_DEEP} lists lead here one by the other");
                    return wrong(name, problem);
                }
                self.within.push(known);
                let most = self.steps(steps)?;
                self.within.pop();
                // So that each time that it is drawn counts as a step.
                if most == 0 {
                    return wrong(name, format!("{known} has no steps"));
                }
                self.counted.insert(known, most);
                Ok(most)
            }
            Step::OneOf(choices) => {
                let all = choices.get_ref();
                if all.iter().all(|choice| choice.weight == 0) {
                    return wrong(choices, "one-of: there is nothing with a weight".to_owned());
                }
                let mut most = 0;
                for choice in all {
                    most = most.max(self.steps(&choice.steps)?);
                }
                Ok(most)
            }
            Step::Sometimes(it) => self.steps(&it.steps),
            Step::Repeat(it) => match self.steps(&it.steps)? {
                0 => wrong(&it.times, "repeat: it has no steps".to_owned()),
                most => Ok(most.saturating_mul(it.times.get_ref().high)),
            },
        }
    }
}

fn check_call(module: &Module, call: &Call, bound: &BTreeMap<&str, &str>) -> Result<(), Wrong> {
    let name = call.operation.get_ref();
    let Some(operation) = module.interface().operation(name) else {
        // Only for the words that it has for this.
        let told = module.arguments(name, &json!({})).map(drop);
        return wrong(&call.operation, told.err().map_or_else(String::new, |it| it.to_string()));
    };
    if call.deadline_percent.is_some() && call.deadline_ms.is_none() {
        let problem = "deadline-percent without deadline-ms: how long is not said".to_owned();
        return wrong(&call.operation, problem);
    }
    if let Some(bind) = &call.bind {
        let name = bind.get_ref();
        if !is_name(name) || format!("${name}") == APPLICATION {
            let problem = format!("{name:?} is no name: lower case letters, digits and hyphens");
            return wrong(bind, problem);
        }
        if let Some(problem) = missing_part(operation, &[]) {
            return wrong(bind, format!("{problem}, so that there is nothing to bind"));
        }
    }
    let given = call.arguments.as_ref().map_or_else(Map::new, |given| given.get_ref().clone());
    let mut first = Value::Object(given);
    for (name, draw) in &call.draw {
        put(&mut first, name, edges(draw)?.into_iter().next().unwrap_or_default());
    }
    number(&mut first, 0);
    let fits = |arguments: &Value| module.arguments(name, &stand_in(operation, arguments));
    if let Err(error) = fits(&first) {
        return match (&call.arguments, call.draw.values().next()) {
            (Some(given), _) => wrong(given, error.to_string()),
            (None, Some(draw)) => wrong(draw, error.to_string()),
            (None, None) => wrong(&call.operation, error.to_string()),
        };
    }
    for (name, draw) in &call.draw {
        for edge in edges(draw)? {
            let mut arguments = first.clone();
            put(&mut arguments, name, edge);
            if let Err(error) = fits(&arguments) {
                return wrong(draw, error.to_string());
            }
        }
    }
    let Some(given) = &call.arguments else { return Ok(()) };
    for reference in references(&first) {
        let name = reference.name;
        let Some(binder) = bound.get(name).and_then(|it| module.interface().operation(it)) else {
            return wrong(given, format!("${name}: no call of this role has bind = {name:?}"));
        };
        if let Some(problem) = missing_part(binder, &reference.fields) {
            return wrong(given, format!("${name}: {problem}"));
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    name.starts_with(|it: char| it.is_ascii_lowercase()) && name.chars().all(is_plain)
}

/// Values that an argument may have: if these fit, the others do.
fn edges(draw: &Spanned<Draw>) -> Result<Vec<Value>, Wrong> {
    match draw.get_ref() {
        Draw::Between(amount) => Ok(vec![json!(amount.low), json!(amount.high)]),
        Draw::OneOf(values) if values.is_empty() => {
            wrong(draw, "one-of: there is nothing to choose from".to_owned())
        }
        Draw::OneOf(values) => Ok(values.clone()),
        Draw::Text(letters) if letters.high > MOST_LETTERS => {
            wrong(draw, format!("text: at most {MOST_LETTERS} letters"))
        }
        Draw::Text(letters) => {
            let text = |letters: u64| json!("a".repeat(usize::try_from(letters).unwrap_or(0)));
            Ok(vec![text(letters.low), text(letters.high)])
        }
    }
}
