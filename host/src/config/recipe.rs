//! `[recipes.<name>]`: a named use of a module.

use std::fmt;
use std::path::Path;

use super::activity::{self, Called, Run};
use super::allow::{self, Allow};
use super::json;
use super::limits::{self, Limits};
use super::mounts::{self, Mounted};
use super::quantity::BadValue;
use super::report::Report;
use super::section::{Entry, Key, Section};
use super::session_timeout::SessionTimeout;
use super::sha256::Sha256;
use super::zookeeper::read_path;
use crate::modules::ModuleSource;
use crate::znode_path::ZnodePath;

/// Names stand in URLs, logs and metrics.
const MAX_NAME: usize = 64;

/// Every watch on a znode of the mount carries the mount's path, and a session can watch 100 KiB of
/// paths in all.
const MAX_MOUNT: usize = 512;

// tidy: an example for people, who know that recipe; no code depends on it.
const MODULE: Key = Key::new("module", "\"lock\"");
const SHA256: Key = Key::new("sha256", "\"<64 hexadecimal digits>\"");
const MOUNT: Key = Key::new("mount", "\"/locks/orders\"");
const CONFIG: Key = Key::new("config", "{ key = \"value\" }");
const LIMITS: Key = Key::new("limits", "{ memory = \"16MiB\" }");
const RUN: Key = Key::new("run", "{ call = \"volunteer\" }");
const ALLOW: Key = Key::new("allow", "{ uids = [1000] }");
const WHILE_HELD: Key = Key::new("while-held", "{ exec = [\"./scheduler\"] }");

/// A named use of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// Its name.
    pub name: RecipeName,
    /// What implements it.
    pub module: ModuleSource,
    /// The digest that the module must have, if it is pinned.
    pub sha256: Option<Sha256>,
    /// The subtree that it sees as `/`.
    pub mount: MountPath,
    /// What the module's `configure` gets, an object. Only the module can tell whether it is good.
    pub config: serde_json::Value,
    /// What each participant may use.
    pub limits: Limits,
    /// Which other users may take part through the API.
    pub allow: Allow,
    /// The participant that the daemon keeps by itself, if it does.
    pub run: Option<Run>,
}

/// What of a recipe only its module can judge. In a file with errors, this is as much of it as can
/// be understood: of a part that is none, the errors tell.
#[derive(Debug, Clone, PartialEq)]
pub struct ForModule {
    /// The recipe's name, as the file has it.
    pub recipe: String,
    /// What implements it.
    pub module: ModuleSource,
    /// The digest that the module must have, if it is pinned.
    pub sha256: Option<Sha256>,
    /// What the module's `configure` gets.
    pub config: Option<serde_json::Value>,
    /// The operation that the daemon calls.
    pub call: Option<String>,
    /// Its arguments.
    pub arguments: Option<serde_json::Value>,
}

/// A recipe's name: lower case letters, digits and hyphens, beginning with a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecipeName(String);

impl RecipeName {
    /// The name, if it is one.
    ///
    /// # Errors
    /// It is anything else, or too long.
    pub fn parse(name: &str) -> Result<Self, BadValue> {
        if is_kebab_case(name) && name.len() <= MAX_NAME {
            return Ok(RecipeName(name.to_owned()));
        }
        let remedy = format!(
            "use lower case letters, digits and hyphens, a letter first, at most {MAX_NAME} in all"
        );
        Err(BadValue::new(format!("{name:?} is not a name for a recipe"), remedy))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RecipeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The subtree that a recipe sees as `/`: an absolute path that includes `root`, never the whole
/// ensemble.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountPath(ZnodePath);

impl MountPath {
    /// The mount that `path` names below `root`.
    ///
    /// # Errors
    /// It breaks ZooKeeper's rules, is the whole ensemble or is too long.
    pub fn parse(path: &str, root: &ZnodePath) -> Result<Self, BadValue> {
        // Judged by itself first: below a root, `/zookeeper` would be a znode like any other, but
        // everybody would take it for the ensemble's own.
        let below = read_path(path)?;
        let mount = root
            .join(below.segments())
            .map_err(|error| BadValue::new(error.fault(), error.remedy()))?;
        if mount == ZnodePath::root() {
            let remedy = "name a subtree such as \"/locks/orders\"";
            return Err(BadValue::new("a recipe cannot have the whole ensemble", remedy));
        }
        if mount.as_str().len() > MAX_MOUNT {
            let what = if *root == ZnodePath::root() { "the path" } else { "with its root it" };
            let message = format!("{what} has {} bytes", mount.as_str().len());
            return Err(BadValue::new(message, format!("use at most {MAX_MOUNT}")));
        }
        Ok(MountPath(mount))
    }

    /// The absolute path.
    pub fn path(&self) -> &ZnodePath {
        &self.0
    }
}

impl fmt::Display for MountPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What of the rest of the file a recipe depends on. `None`: invalid, and already reported.
pub(super) struct Surroundings<'a> {
    /// Where relative paths of files begin.
    pub(super) directory: &'a Path,
    /// What stands before every mount.
    pub(super) root: Option<&'a ZnodePath>,
    /// What a stop-timeout must fit into.
    pub(super) session_timeout: Option<SessionTimeout>,
}

/// What a pass makes of a recipe.
pub(super) struct Validated {
    /// The whole; none if there are errors.
    pub(super) recipe: Option<Recipe>,
    /// What its module can judge of it; none if it names none.
    pub(super) for_module: Option<ForModule>,
}

/// Every recipe of the file.
pub(super) fn validate_all(
    section: Section<'_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Vec<Validated> {
    let mut mounts = Vec::new();
    let recipes: Vec<Validated> = section
        .entries("write it as a table")
        .into_iter()
        .map(|entry| validate(&entry, surroundings, &mut mounts, report))
        .collect();
    mounts::check(&mounts, report);
    if recipes.is_empty() {
        report.warning(
            section.place(),
            "no recipe is configured: nothing will run",
            "add a table `[recipes.<name>]` with `module` and `mount`",
        );
    }
    recipes
}

fn validate<'a>(
    entry: &Entry<'a>,
    surroundings: &Surroundings<'_>,
    mounts: &mut Vec<Mounted<'a>>,
    report: &mut Report<'_>,
) -> Validated {
    let name = name(entry, report);
    let Some(mut section) = entry.field.section(report) else {
        return Validated { recipe: None, for_module: None };
    };
    let directory = surroundings.directory;
    let module = section
        .require(&MODULE)
        .and_then(|field| field.parsed_by(|text| module(text, directory), report));
    let sha256 = match section.field(&SHA256) {
        Some(field) => field.parsed(report).map(Some),
        None => Some(None),
    };
    let mount = section.require(&MOUNT).and_then(|field| {
        let Some(root) = surroundings.root else {
            // The form can be judged without the root; where that leads cannot.
            field.parsed_by(read_path, report);
            return None;
        };
        let mount = field.parsed_by(|text| MountPath::parse(text, root), report)?;
        let place = field.place();
        mounts.push(Mounted { recipe: entry.name, mount: mount.clone(), place });
        Some(mount)
    });
    let config = match section.field(&CONFIG) {
        Some(field) => json::object(&field, report),
        None => Some(serde_json::Value::Object(serde_json::Map::new())),
    };
    let limits = match section.field(&LIMITS) {
        Some(field) => field.section(report).and_then(|section| limits::validate(section, report)),
        None => Some(Limits::default()),
    };
    let allow = match section.field(&ALLOW) {
        Some(field) => field.section(report).and_then(|section| allow::validate(section, report)),
        None => Some(Allow::default()),
    };
    let called = section.field(&RUN).map(|field| match field.section(report) {
        Some(section) => activity::run(section, report),
        None => Called { call: None, arguments: None },
    });
    let run = run(called.clone(), &mut section, surroundings, report);
    section.finish(report);
    let for_module = module.clone().map(|module| ForModule {
        recipe: entry.name.to_owned(),
        module,
        sha256: sha256.flatten(),
        config: config.clone(),
        call: called.as_ref().and_then(|called| called.call.clone()),
        arguments: called.and_then(|called| called.arguments),
    });
    let whole = || {
        Some(Recipe {
            name: name?,
            module: module?,
            sha256: sha256?,
            mount: mount?,
            config: config?,
            limits: limits?,
            allow: allow?,
            run: run?,
        })
    };
    Validated { recipe: whole(), for_module }
}

/// A stock recipe's name or a path; relative paths begin at `directory`. Whether there is such a
/// recipe is not checked here.
fn module(text: &str, directory: &Path) -> Result<ModuleSource, BadValue> {
    match ModuleSource::parse(text) {
        ModuleSource::File(path) => Ok(ModuleSource::File(directory.join(path))),
        ModuleSource::Stock(name) if is_kebab_case(&name) => Ok(ModuleSource::Stock(name)),
        ModuleSource::Stock(name) => {
            let remedy =
                // tidy: an example for people, who know that recipe; no code depends on it.
                "write a stock recipe's name such as \"lock\", or a path such as \"./a.wasm\"";
            Err(BadValue::new(format!("{name:?} is neither a module's name nor a path"), remedy))
        }
    }
}

/// `run` with its `while-held`; the outer none is for what has errors.
fn run(
    called: Option<Called>,
    section: &mut Section<'_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Option<Run>> {
    let is_run = called.is_some();
    let run = match called {
        Some(called) => called.whole().map(Some),
        None => Some(None),
    };
    let Some(field) = section.field(&WHILE_HELD) else {
        return run;
    };
    if !is_run {
        let what = "nothing is ever held, because the recipe has no `run`";
        field.wrong(report, what, "add `run = { call = \"…\" }`, or leave `while-held` out");
    }
    let while_held = field.section(report).and_then(|section| {
        let Surroundings { directory, session_timeout, .. } = *surroundings;
        activity::while_held(section, directory, session_timeout, report)
    })?;
    Some(Some(Run { while_held: Some(while_held), ..run?? }))
}

fn name(entry: &Entry<'_>, report: &mut Report<'_>) -> Option<RecipeName> {
    let wrong = |bad: BadValue| report.error(entry.name_place.clone(), bad.message, bad.remedy);
    RecipeName::parse(entry.name).map_err(wrong).ok()
}

/// Words of lower case letters and digits, joined by single hyphens, each beginning with a letter:
/// a WIT identifier.
pub(super) fn is_kebab_case(text: &str) -> bool {
    text.split('-').all(|word| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    })
}
