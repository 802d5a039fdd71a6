//! A config, checked against the modules that it names.

use std::collections::BTreeMap;

use crate::api::Served;
use crate::base::{self, Base, BaseOptions, LoadError, Sessions};
use crate::config::{self, ConfigErrors, Damaged, Finding, ForModule, Loaded, Places, Recipe};
use crate::epochs::Epochs;
use crate::guest::values::{Segment, ValueErrors, error_in_words};
use crate::guest::{
    Arguments, Configuration, Engine, EngineError, EngineOptions, Limits, Module, Mount, Pace,
    config_refusal,
};
use crate::holding::Kept;
use crate::modules::{ModuleSource, SourceError};
use crate::participant::Join;

/// A config whose modules are loaded and agree with it.
#[derive(Debug)]
pub struct Prepared {
    /// All recipes, those without a `run` as well.
    pub(super) epochs: Epochs,
    /// Those with one.
    pub(super) kept: Vec<Kept>,
    /// Where apps reach the host, if they can.
    pub(super) api: Option<config::Api>,
    /// All recipes, as apps may use them.
    pub(super) served: BTreeMap<String, Served>,
}

/// Why a config cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The file does not agree with its modules.
    #[error("{0}")]
    Config(ConfigErrors),
    /// The host cannot start.
    #[error(transparent)]
    Host(#[from] EngineError),
}

impl Prepared {
    /// Loads every module, checks everything that the config says of it, and asks the module whether it
    /// takes its own config. Connects to nothing.
    ///
    /// # Errors
    /// Every error of the file, or what the host lacks.
    ///
    /// # Cancellation
    /// Nothing is left.
    pub async fn new(loaded: &Loaded) -> Result<Self, PrepareError> {
        let config = &loaded.config;
        let base = Base::new(BaseOptions {
            participants: config.engine.participants,
            memory: config.recipes.iter().map(|recipe| recipe.limits.memory).max().unwrap_or(0),
            cache: base::user_cache(),
            connect: config.zookeeper.connect_options(),
            sessions: Sessions::at_most(config.zookeeper.sessions),
        })?;
        let mut prepared = Prepared {
            epochs: Epochs::new(base),
            kept: Vec::new(),
            api: config.api.clone(),
            served: config.recipes.iter().map(served).collect(),
        };
        let mut findings = Vec::new();
        for recipe in &config.recipes {
            let name = recipe.name.as_str();
            let base = prepared.epochs.base();
            let load_by = |source: &ModuleSource, pin: Option<&_>| base.load(source, pin);
            let module = load(&loaded.places, name, &recipe.module, &recipe.sha256, load_by);
            let agreed = match module {
                Ok(module) => agree(&loaded.places, recipe, module).await,
                Err(wrong) => Err(wrong),
            };
            match agreed {
                Ok((join, kept)) => {
                    prepared.epochs.load(join);
                    prepared.kept.extend(kept);
                }
                Err(wrong) => findings.extend(wrong),
            }
        }
        match findings.is_empty() {
            true => Ok(prepared),
            false => Err(PrepareError::Config(ConfigErrors::from(findings))),
        }
    }

    /// Names the servers, where the config could not: those of an embedded one.
    pub fn connect_to(&mut self, hosts: String) {
        self.epochs.connect_to(hosts);
    }

    /// The recipes alone, for a program that joins them by itself.
    pub fn into_epochs(self) -> Epochs {
        self.epochs
    }

    /// How many recipes have a `run`.
    pub fn kept_count(&self) -> usize {
        self.kept.len()
    }

    /// Whether apps can reach it.
    pub fn serves_apps(&self) -> bool {
        self.api.is_some()
    }

    /// The names of the recipes without a `run`.
    pub fn idle(&self) -> impl Iterator<Item = &str> {
        let names = self.epochs.recipes().map(|join| join.recipe.as_str());
        names.filter(|name| self.kept.iter().all(|kept| kept.recipe != *name))
    }
}

/// A recipe, as apps may use it.
fn served(recipe: &Recipe) -> (String, Served) {
    let (allow, runs) = (recipe.allow.clone(), recipe.run.is_some());
    (recipe.name.as_str().to_owned(), Served { allow, runs })
}

/// What is wrong between a config with errors and its modules, as far as the config can be
/// understood. Errors of its own do not hide these.
///
/// # Errors
/// The host lacks something.
///
/// # Cancellation
/// Nothing is left.
pub async fn findings_about_modules(damaged: &Damaged) -> Result<Vec<Finding>, EngineError> {
    let Damaged { recipes, places, .. } = damaged;
    if recipes.is_empty() {
        return Ok(Vec::new());
    }
    let limits = Limits::default();
    let engine = Engine::new(&EngineOptions {
        participants: 1,
        memory: limits.memory,
        table_elements: limits.table_elements,
        cache: base::user_cache(),
        pace: Pace::Clock,
    })?;
    let mut wrong = Vec::new();
    for recipe in recipes {
        let load_by = |source: &ModuleSource, pin: Option<&_>| base::load(&engine, source, pin);
        match load(places, &recipe.recipe, &recipe.module, &recipe.sha256, load_by) {
            Ok(module) => wrong.extend(disagreements(places, recipe, &module).await),
            Err(findings) => wrong.extend(findings),
        }
    }
    Ok(wrong)
}

/// What is wrong between a module and those parts of a recipe that can be understood.
async fn disagreements(places: &Places, recipe: &ForModule, module: &Module) -> Vec<Finding> {
    let ForModule { recipe: name, config, call, arguments: given, .. } = recipe;
    let config = match config {
        // Its own limits may be among what cannot be understood.
        Some(config) => configuration(places, name, config, module, Limits::default()).await.err(),
        None => None,
    };
    let arguments = call.as_ref().map(|call| match given {
        Some(given) => arguments_of(places, name, (call, given), module).err(),
        // Arguments that cannot be understood say nothing about the operation's name.
        None if module.interface().operation(call).is_some() => None,
        None => arguments_of(places, name, (call, &serde_json::Value::Null), module).err(),
    });
    [config, arguments.flatten()].into_iter().flatten().flatten().collect()
}

fn load(
    places: &Places,
    name: &str,
    source: &ModuleSource,
    pin: &Option<config::Sha256>,
    load: impl FnOnce(&ModuleSource, Option<&[u8; 32]>) -> Result<Module, LoadError>,
) -> Result<Module, Vec<Finding>> {
    let pin = pin.as_ref().map(config::Sha256::as_bytes);
    load(source, pin).map_err(|error| {
        let key = match &error {
            LoadError::Source(SourceError::Mismatch { .. }) => "sha256",
            _ => "module",
        };
        let key_path = ["recipes", name, key];
        let remedy = match &error {
            LoadError::Source(SourceError::Unknown { .. }) => {
                "write the name of a stock recipe, or a path such as \"./my-lock.wasm\""
            }
            LoadError::Source(SourceError::Unreadable { .. }) => {
                "`wok build` makes it; a path begins in the directory of this file"
            }
            _ => "see `wok inspect` for what the host makes of a module",
        };
        vec![places.error_at(&key_path, error.to_string(), remedy)]
    })
}

/// Checks what the config says of a recipe against its module. Answers what it takes to join it
/// and, for a recipe with a `run`, what is to be done with a participant of it.
async fn agree(
    places: &Places,
    recipe: &Recipe,
    module: Module,
) -> Result<(Join, Option<Kept>), Vec<Finding>> {
    let name = recipe.name.as_str();
    let limits = recipe.limits.of_guest();
    let configuration = configuration(places, name, &recipe.config, &module, limits).await;
    let arguments = recipe.run.as_ref();
    let arguments =
        arguments.map(|run| arguments_of(places, name, (&run.call, &run.arguments), &module));
    let (configuration, arguments) = match (configuration, arguments.transpose()) {
        (Ok(configuration), Ok(arguments)) => (configuration, arguments),
        (configuration, arguments) => {
            let findings = [configuration.err(), arguments.err()];
            return Err(findings.into_iter().flatten().flatten().collect());
        }
    };
    let join = join(recipe, module, configuration);
    let while_held = recipe.run.as_ref().and_then(|run| run.while_held.as_ref());
    let kept = arguments.map(|arguments| Kept {
        recipe: name.to_owned(),
        arguments,
        while_held: while_held.cloned(),
    });
    Ok((join, kept))
}

/// A config that has the types of its module, and that the module does not refuse.
async fn configuration(
    places: &Places,
    name: &str,
    config: &serde_json::Value,
    module: &Module,
    limits: Limits,
) -> Result<Configuration, Vec<Finding>> {
    let fitting = module.configuration(Some(config));
    let fitting = fitting.map_err(|errors| value_findings(places, &["recipes", name], &errors))?;
    match config_refusal(module, &fitting, limits, base::owner(name)).await {
        None => Ok(fitting),
        Some(error) => Err(vec![refused(places, name, &error_in_words(&error))]),
    }
}

/// What a module says of a config that it refuses.
fn refused(places: &Places, name: &str, why: &str) -> Finding {
    // Stock recipes, and recipes made after them, begin with the key that is wrong. Where it is no key,
    // the place is that of the config.
    let (key, _) = why.split_once(':').unwrap_or_default();
    let message = format!("`recipes.{name}.config`: the module refuses it: {why}");
    let remedy = "see `wok inspect` for what the module takes";
    places.error_at(&["recipes", name, "config", key], message, remedy)
}

/// The arguments of a call: an operation, and what is given to it.
fn arguments_of(
    places: &Places,
    name: &str,
    (call, given): (&str, &serde_json::Value),
    module: &Module,
) -> Result<Arguments, Vec<Finding>> {
    module.arguments(call, given).map_err(|errors| {
        let is_known = module.interface().operation(call).is_some();
        let key = if is_known { "arguments" } else { "call" };
        value_findings(places, &["recipes", name, "run", key], &errors)
    })
}

fn value_findings(places: &Places, base: &[&str], errors: &ValueErrors) -> Vec<Finding> {
    let finding = |error: &crate::guest::values::ValueError| {
        let inside: Vec<String> = error
            .path
            .iter()
            .map(|segment| match segment {
                Segment::Key(key) => key.clone(),
                Segment::Index(index) => index.to_string(),
            })
            .collect();
        let inside = inside.iter().map(String::as_str);
        let path: Vec<&str> = base.iter().copied().chain(inside).collect();
        let remedy = "see `wok inspect` for what the module takes";
        places.error_at(&path, error.to_string(), remedy)
    };
    errors.errors.iter().map(finding).collect()
}

fn join(recipe: &Recipe, module: Module, config: Configuration) -> Join {
    Join {
        recipe: recipe.name.as_str().to_owned(),
        module,
        mount: Mount::from(recipe.mount.path().clone()),
        config,
        limits: recipe.limits.of_guest(),
        seat: recipe.limits.of_seat(),
        owner: base::owner(recipe.name.as_str()),
        witness: None,
    }
}
