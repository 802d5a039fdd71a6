//! The configuration room: a TOML file in, validated types out.
//!
//! A pass reports everything it finds, each finding with its place, what is wrong and the remedy,
//! and reads nothing but files: nothing connects before the whole file is known to be good.
//!
//! Code map: [`Config::load`] reads the file into a `document`, its `section`s are taken apart by
//! `zookeeper`, `engine`, `api` and `recipe`, and what they find goes to a `report`.
//!
//! Deliberately absent: environment interpolation, includes, and secrets in the file itself.

mod activity;
mod allow;
mod api;
mod connect_string;
mod credentials;
mod document;
mod engine;
mod file;
mod finding;
mod json;
mod limits;
mod mounts;
mod quantity;
mod recipe;
mod report;
mod restart;
mod section;
mod session_timeout;
mod sha256;
mod zookeeper;

use std::io::Read;
use std::path::Path;

use document::{Document, Positions, Source};
use report::Report;
use section::{Key, Section};

pub use activity::{Run, StopSignal, WhileHeld};
pub use allow::Allow;
pub use api::{Api, Http};
pub use connect_string::{Connect, ConnectString};
pub use credentials::parse_login;
#[cfg(feature = "command-line")]
pub(crate) use credentials::{OTHER_KEY, check_pem};
pub use engine::Engine;
pub use finding::{ConfigErrors, Finding, Severity};
pub use limits::Limits;
pub(crate) use quantity::spell_duration;
pub use quantity::{BadValue, parse_duration, parse_size};
pub use recipe::{ForModule, MountPath, Recipe, RecipeName};
pub use restart::Restart;
pub use session_timeout::{SessionTimeout, check_stop, longest_stop};
pub use sha256::Sha256;
pub(crate) use zookeeper::DEFAULT_SESSIONS;
pub use zookeeper::ZooKeeper;

/// A configuration is written by hand; a file beyond this is not one, and is not read whole.
const MAX_BYTES: u64 = 1024 * 1024;

const ZOOKEEPER: Key = Key::new("zookeeper", "{ connect = \"zk1:2181\" }");
const API: Key = Key::new("api", "{ socket = \"/run/wok/wok.sock\" }");
const ENGINE: Key = Key::new("engine", "{ participants = 10000 }");
const RECIPES: Key =
    // tidy: an example for people, who know that recipe; no code depends on it.
    Key::new("recipes", "{ orders = { module = \"lock\", mount = \"/locks/orders\" } }");

/// Everything the file says, validated.
#[derive(Debug, Clone)]
pub struct Config {
    /// How to reach the ensemble, and who we are there.
    pub zookeeper: ZooKeeper,
    /// What the process sets aside for guests.
    pub engine: Engine,
    /// Where apps reach the host, if they can.
    pub api: Option<Api>,
    /// The recipes in the order of the file.
    pub recipes: Vec<Recipe>,
}

/// A configuration, and where in the file its parts stand.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What works but deserves a look.
    pub warnings: Vec<Finding>,
    /// Where its parts stand.
    pub places: Places,
}

/// A configuration with errors, as far as it can be understood: so that what only another room can
/// check of it is found in the same pass.
#[derive(Debug, Clone)]
pub struct Damaged {
    /// The errors.
    pub errors: ConfigErrors,
    /// What of the recipes only their modules can judge.
    pub recipes: Vec<ForModule>,
    /// Where the parts of the file stand.
    pub places: Places,
}

/// Where in a file the parts of a configuration stand.
#[derive(Debug, Clone)]
pub struct Places {
    source: Source,
    positions: Positions,
}

impl Config {
    /// Reads and validates a file. Paths of files in it are relative to its directory.
    ///
    /// # Errors
    /// Every error of the pass.
    pub fn load(path: &Path) -> Result<Loaded, Box<Damaged>> {
        let file_name = path.display().to_string();
        match read(path) {
            Ok(text) => Config::check(&text, path),
            Err(finding) => {
                let places = Places::none(Source::new(file_name, ""));
                Err(Damaged::unreadable(ConfigErrors::from(vec![*finding]), places))
            }
        }
    }

    /// Validates a text. Paths of files in it are relative to the directory of `file_name`, which
    /// is otherwise only a name for messages.
    ///
    /// # Errors
    /// Every error of the pass. A text that is no TOML is not looked into further.
    pub fn parse(text: &str, file_name: &Path) -> Result<Loaded, ConfigErrors> {
        Config::check(text, file_name).map_err(|damaged| damaged.errors)
    }

    fn check(text: &str, file_name: &Path) -> Result<Loaded, Box<Damaged>> {
        let directory = file_name.parent().unwrap_or(Path::new(""));
        let source = Source::new(file_name.display().to_string(), text);
        let mut report = Report::new(&source);
        let Some(document) = Document::parse(&source, &mut report) else {
            let errors = report.into_errors();
            return Err(Damaged::unreadable(errors, Places::none(source)));
        };
        let Validated { config, recipes } = validate(document.root(), directory, &mut report);
        let positions = document.positions();
        let (config, errors) = match (config, report.finish()) {
            (Some(config), Ok(warnings)) => (Some((config, warnings)), None),
            (_, Err(errors)) => (None, Some(errors)),
            (None, Ok(_)) => (None, None),
        };
        drop(document);
        let places = Places { source, positions };
        match (config, errors) {
            (Some((config, warnings)), _) => Ok(Loaded { config, warnings, places }),
            (None, Some(errors)) => Err(Box::new(Damaged { errors, recipes, places })),
            // A part that is missing has been reported, so this is a fault of ours; it is still
            // better told than hidden.
            (None, None) => {
                let finding = Finding::of_file(
                    file_name.display().to_string(),
                    "the configuration is incomplete in a way that was not recognized",
                    "report this file as a bug",
                );
                Err(Damaged::unreadable(ConfigErrors::from(vec![finding]), places))
            }
        }
    }
}

impl Damaged {
    fn unreadable(errors: ConfigErrors, places: Places) -> Box<Self> {
        Box::new(Damaged { errors, recipes: Vec::new(), places })
    }
}

impl Places {
    fn none(source: Source) -> Self {
        Places { source, positions: Positions::default() }
    }

    /// A finding about the value at `key_path`, for what only another room can check. Array items
    /// are named by their index. Where that path is not in the file, the nearest table around it
    /// is pointed at.
    pub fn error_at(
        &self,
        key_path: &[&str],
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        let place = self.positions.nearest(key_path);
        self.source.finding(Severity::Error, &place, message.into(), remedy.into())
    }
}

/// What a pass makes of a file.
struct Validated {
    /// The whole; none if there are errors.
    config: Option<Config>,
    /// What of the recipes only their modules can judge, in any case.
    recipes: Vec<ForModule>,
}

fn validate(mut root: Section<'_>, directory: &Path, report: &mut Report<'_>) -> Validated {
    let zookeeper = root
        .require(&ZOOKEEPER)
        .and_then(|field| field.section(report))
        .map(|section| zookeeper::validate(section, directory, report))
        .unwrap_or_default();
    let engine = match root.field(&ENGINE) {
        Some(field) => field.section(report).and_then(|section| engine::validate(section, report)),
        None => Some(Engine::default()),
    };
    let api = match root.field(&API) {
        Some(field) => field
            .section(report)
            .and_then(|section| api::validate(section, directory, report))
            .map(Some),
        None => Some(None),
    };
    let surroundings = recipe::Surroundings {
        directory,
        root: zookeeper.root.as_ref(),
        session_timeout: zookeeper.session_timeout,
    };
    let recipes = match root.field(&RECIPES) {
        Some(field) => field
            .section(report)
            .map(|section| recipe::validate_all(section, &surroundings, report)),
        None => {
            report.warning(
                root.place(),
                "no recipe is configured: nothing will run",
                "add a table `[recipes.<name>]` with `module` and `mount`",
            );
            Some(Vec::new())
        }
    };
    root.finish(report);
    let is_table = recipes.is_some();
    let (whole, for_modules): (Vec<_>, Vec<_>) =
        recipes.into_iter().flatten().map(|it| (it.recipe, it.for_module)).unzip();
    let whole: Option<Vec<Recipe>> = whole.into_iter().collect();
    let config = || {
        let recipes = whole.filter(|_| is_table)?;
        Some(Config { zookeeper: zookeeper.zookeeper?, engine: engine?, api: api?, recipes })
    };
    Validated { config: config(), recipes: for_modules.into_iter().flatten().collect() }
}

fn read(path: &Path) -> Result<String, Box<Finding>> {
    let wrong = |message: String, remedy: &str| {
        Box::new(Finding::of_file(path.display().to_string(), message, remedy))
    };
    let cannot_read = |error: std::io::Error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => "create it, or name another file",
            _ => "make it a file that this user can read, or name another",
        };
        wrong(format!("cannot read the configuration: {error}"), remedy)
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot_read)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the configuration is larger than {} KiB", MAX_BYTES / 1024);
        return Err(wrong(message, "name a TOML file of wok"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let valid = String::from_utf8_lossy(valid);
        let last = valid.rsplit('\n').next().unwrap_or_default();
        let (line, column) = (valid.matches('\n').count() + 1, last.chars().count() + 1);
        let wrong = wrong("this is not UTF-8".to_owned(), "save the file as UTF-8");
        Box::new(Finding { line, column, ..*wrong })
    })
}

#[cfg(test)]
mod tests;
