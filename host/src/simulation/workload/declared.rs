//! A workload that is declared: what it says, drawn as the steps of a plan.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toml::Spanned;

use super::GIVES_UP_MS;
use super::check::check;
use super::error::WorkloadError;
use super::file::{self, Amount, AwaitClaim, Call, Draw, File, Role, Work};
use super::generic;
use crate::guest::Module;
use crate::simulation::chance::Chance;
use crate::simulation::plan::Step;

/// How long a step takes that goes on for good: for longer than any run.
const FOR_GOOD_MS: u64 = 600_000;

/// A text in which this stands has the application's number in its place.
pub(super) const APPLICATION: &str = "$application";

/// A declared workload that fits its module.
#[derive(Debug, Clone)]
pub struct Declared {
    file: File,
    /// What it was read from.
    origin: String,
    text: String,
}

impl Declared {
    /// Reads a workload and checks it against the module that it is for. `origin` is what an error
    /// calls the text.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn read(module: &Module, origin: &str, text: &str) -> Result<Self, WorkloadError> {
        let file: File =
            toml::from_str(text).map_err(|error| WorkloadError::of_toml(origin, text, &error))?;
        check(&file, module)
            .map_err(|wrong| WorkloadError::at(origin, text, wrong.at, &wrong.problem))?;
        Ok(Declared { file, origin: origin.to_owned(), text: text.to_owned() })
    }

    /// How many applications take part in a run at least.
    pub(super) fn fewest(&self) -> u64 {
        self.file.applications.get_ref().low
    }

    /// Draws how many applications there are.
    pub(super) fn applications(&self, chance: &mut Chance) -> u64 {
        self.file.applications.get_ref().draw(chance)
    }

    /// Draws how many rounds an application goes through.
    pub(super) fn rounds(&self, chance: &mut Chance) -> u64 {
        self.file.rounds.get_ref().draw(chance)
    }

    /// Draws how long an application rests after a round.
    pub(super) fn rest_ms(&self, chance: &mut Chance) -> u64 {
        self.file.rest_ms.draw(chance)
    }

    /// The settings of an application: those of its role, and over them those of the run.
    pub(super) fn config(&self, application: u64, of_run: Option<&Value>) -> Option<Value> {
        match self.role(application) {
            Some(role) => laid_over(role, of_run),
            None => of_run.cloned(),
        }
    }

    /// The settings of each role, over them those of the run.
    pub(in crate::simulation) fn configs(&self, of_run: Option<&Value>) -> Vec<Option<Value>> {
        self.file.roles.get_ref().iter().map(|role| laid_over(role, of_run)).collect()
    }

    /// That the module does not take the settings of the role of that number, with those of the run over
    /// them; none if the role has no settings.
    pub(in crate::simulation) fn wrong_config(
        &self,
        role: usize,
        of_run: Option<&Value>,
        problem: &str,
    ) -> Option<WorkloadError> {
        let role = self.file.roles.get_ref().get(role)?;
        let at = role.config.as_ref()?.span().start;
        let over = if of_run.is_some() { ", with --config over it," } else { "" };
        let name = role.name.get_ref();
        let problem =
            format!("the config of the role {name}{over} does not fit the module: {problem}");
        Some(WorkloadError::at(&self.origin, &self.text, at, &problem))
    }

    /// The znodes that another program creates in some runs.
    pub(super) fn foreign(&self) -> impl Iterator<Item = &str> {
        self.file.foreign.iter().map(|path| path.get_ref().as_str())
    }

    /// Draws a round of an application.
    pub(super) fn round(&self, application: u64, chance: &mut Chance, steps: &mut Vec<Step>) {
        let Some(role) = self.role(application) else { return };
        Drawing { file: &self.file, application, chance, steps }.draw(&role.round);
    }

    /// The operations that some application may call.
    pub(super) fn operations(&self) -> BTreeSet<&str> {
        let (walked, found) = (BTreeSet::new(), BTreeSet::new());
        let mut all = Collecting { file: &self.file, walked, found };
        self.file.roles.get_ref().iter().for_each(|role| all.collect(&role.round));
        all.found
    }

    /// Roles are dealt in the file's order, by their shares.
    fn role(&self, application: u64) -> Option<&Role> {
        let roles = self.file.roles.get_ref();
        let shares: u64 = roles.iter().map(|role| u64::from(role.share)).sum();
        let mut place = application.checked_rem(shares)?;
        roles.iter().find(|role| {
            let share = u64::from(role.share);
            let is_dealt = place < share;
            place = place.saturating_sub(share);
            is_dealt
        })
    }
}

fn laid_over(role: &Role, of_run: Option<&Value>) -> Option<Value> {
    let of_role = role.config.as_ref().map(Spanned::get_ref).filter(|config| !config.is_empty());
    let Some(of_role) = of_role else { return of_run.cloned() };
    match of_run {
        Some(Value::Object(of_run)) => {
            let mut config = of_role.clone();
            config.extend(of_run.clone());
            Some(Value::Object(config))
        }
        Some(other) => Some(other.clone()),
        None => Some(Value::Object(of_role.clone())),
    }
}

/// The operations that steps call.
struct Collecting<'a> {
    file: &'a File,
    /// The lists with a name that were walked: once is enough.
    walked: BTreeSet<&'a str>,
    found: BTreeSet<&'a str>,
}

impl<'a> Collecting<'a> {
    fn collect(&mut self, steps: &'a [file::Step]) {
        for step in steps {
            match step {
                file::Step::Call(call) => drop(self.found.insert(call.operation.get_ref())),
                file::Step::Do(name) if self.walked.insert(name.get_ref()) => {
                    let named = self.file.steps.get(name.get_ref());
                    self.collect(named.map_or(&[], Vec::as_slice));
                }
                file::Step::OneOf(choices) => {
                    choices.get_ref().iter().for_each(|choice| self.collect(&choice.steps));
                }
                file::Step::Sometimes(it) => self.collect(&it.steps),
                file::Step::Repeat(it) => self.collect(&it.steps),
                _ => {}
            }
        }
    }
}

/// Steps while they are drawn.
struct Drawing<'a> {
    file: &'a File,
    application: u64,
    chance: &'a mut Chance,
    steps: &'a mut Vec<Step>,
}

impl Drawing<'_> {
    fn draw(&mut self, steps: &[file::Step]) {
        for step in steps {
            match step {
                file::Step::Call(call) => self.call(call),
                file::Step::Work(work) => self.work(work.get_ref()),
                file::Step::AwaitClaim(wait) => self.await_claim(wait),
                file::Step::Rest(rest) => {
                    let ms = rest.ms.draw(self.chance);
                    self.steps.push(Step::Rest { ms });
                }
                file::Step::Leave => self.steps.push(Step::Leave),
                file::Step::Do(name) => {
                    let file = self.file;
                    self.draw(file.steps.get(name.get_ref()).map_or(&[], Vec::as_slice));
                }
                file::Step::OneOf(choices) => self.one_of(choices.get_ref()),
                file::Step::Sometimes(it) if self.chance.happens(it.percent.0) => {
                    self.draw(&it.steps);
                }
                file::Step::Sometimes(_) => {}
                file::Step::Repeat(it) => {
                    for _ in 0..it.times.get_ref().draw(self.chance) {
                        self.draw(&it.steps);
                    }
                }
            }
        }
    }

    fn one_of(&mut self, choices: &[file::Choice]) {
        let total = choices.iter().map(|choice| u64::from(choice.weight)).sum();
        let mut drawn = self.chance.within(1, total);
        for choice in choices {
            let weight = u64::from(choice.weight);
            if drawn <= weight {
                return self.draw(&choice.steps);
            }
            drawn -= weight;
        }
    }

    fn call(&mut self, call: &Call) {
        let operation = call.operation.get_ref().clone();
        let has_deadline = match call.deadline_percent {
            Some(percent) => self.chance.happens(percent.0),
            None => true,
        };
        let deadline = call.deadline_ms.filter(|_| has_deadline).or_else(|| {
            // Nobody asks of it that it ends by itself.
            let live = self.file.live.as_ref();
            let is_live = live.is_none_or(|live| live.iter().any(|it| *it.get_ref() == operation));
            (!is_live).then_some(Amount { low: GIVES_UP_MS.0, high: GIVES_UP_MS.1 })
        });
        let deadline_ms = deadline.map(|deadline| deadline.draw(self.chance));
        let mut arguments = Value::Object(
            call.arguments.as_ref().map_or_else(Map::new, |given| given.get_ref().clone()),
        );
        for (name, draw) in &call.draw {
            put(&mut arguments, name, drawn(draw.get_ref(), self.chance));
        }
        number(&mut arguments, self.application);
        let bind = call.bind.as_ref().map(|name| name.get_ref().clone());
        self.steps.push(Step::Call { operation, arguments, deadline_ms, bind });
    }

    fn work(&mut self, work: &Work) {
        let is_long = work.long_ms.filter(|_| self.chance.happens(work.long_percent.0));
        let ms = is_long.unwrap_or(work.ms).draw(self.chance);
        self.steps.push(Step::Work { ms });
    }

    fn await_claim(&mut self, wait: &AwaitClaim) {
        let patience = wait.ms.draw(self.chance);
        let is_for_good =
            wait.for_good_percent.0 > 0 && self.chance.happens(wait.for_good_percent.0);
        self.steps.push(Step::AwaitClaim { ms: if is_for_good { FOR_GOOD_MS } else { patience } });
    }
}

fn drawn(draw: &Draw, chance: &mut Chance) -> Value {
    match draw {
        Draw::Between(amount) => json!(amount.draw(chance)),
        Draw::OneOf(values) => chance.pick(values).cloned().unwrap_or_default(),
        Draw::Text(letters) => {
            let letters = letters.draw(chance);
            json!(generic::text(letters, chance))
        }
    }
}

/// Sets the argument of that name; dots lead into records.
pub(super) fn put(arguments: &mut Value, name: &str, value: Value) {
    let (first, rest) = name.split_once('.').map_or((name, None), |(it, rest)| (it, Some(rest)));
    if !arguments.is_object() {
        *arguments = Value::Object(Map::new());
    }
    let Value::Object(fields) = arguments else { return };
    let place = fields.entry(first).or_insert(Value::Null);
    match rest {
        Some(rest) => put(place, rest, value),
        None => *place = value,
    }
}

/// Has the application's number wherever a text asks for it: as a number where the text is nothing
/// else.
pub(super) fn number(arguments: &mut Value, application: u64) {
    match arguments {
        Value::String(text) if text == APPLICATION => *arguments = json!(application),
        Value::String(text) if !text.starts_with("$$") && text.contains(APPLICATION) => {
            *text = text.replace(APPLICATION, &application.to_string());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| number(item, application)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| number(field, application));
        }
        _ => {}
    }
}
