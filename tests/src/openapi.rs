//! OpenAPI documents, checked by validators that are not ours.
//!
//! ```no_run
//! use serde_json::json;
//! use wok_tests::openapi::{self, Exchange};
//!
//! # fn example() -> anyhow::Result<()> {
//! let document = openapi::of_stock_recipes()?;
//! let answer = json!({ "status": "ok" });
//! let exchange = Exchange::new("GET", "/healthz", 200).answered(answer);
//! let problems = openapi::exchange_problems(&document, &[exchange])?;
//! assert!(problems.iter().all(Vec::is_empty), "{problems:#?}");
//! # Ok(())
//! # }
//! ```

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, anyhow, ensure};
use serde_json::{Map, Value, json};
use wok::api::openapi::document;
use wok::base::user_cache;
use wok::guest::{Engine, EngineOptions, Interface, Limits, Module, Mount, Pace, ValueType};
use wok::modules::{ModuleSource, stock_names};
use wok::participant::Join;
use wok::session::SeatLimits;

use crate::python::Environment;
use crate::scratch;

const PACKAGES: [&str; 2] = ["openapi-spec-validator==0.9.0", "openapi-schema-validator==0.9.0"];

/// What was asked, and what was answered. Of a stream, each line is an exchange of its own.
#[derive(Clone, Debug)]
pub struct Exchange {
    method: String,
    path: String,
    request: Option<Value>,
    status: u16,
    answer: Option<Value>,
}

impl Exchange {
    /// A method on a path and the answer's status. The path is that of the request or the template of
    /// the document.
    pub fn new(method: &str, path: &str, status: u16) -> Self {
        Exchange {
            method: method.to_owned(),
            path: path.to_owned(),
            request: None,
            status,
            answer: None,
        }
    }

    /// With the body of the request, which must be as the document has it.
    #[must_use]
    pub fn asked(self, body: Value) -> Self {
        Exchange { request: Some(body), ..self }
    }

    /// With the body of the answer, or with a line of it.
    #[must_use]
    pub fn answered(self, body: Value) -> Self {
        Exchange { answer: Some(body), ..self }
    }

    fn as_json(&self) -> Value {
        let mut json = json!({ "method": self.method, "path": self.path, "status": self.status });
        let bodies = [("request", &self.request), ("answer", &self.answer)];
        for (key, body) in bodies {
            if let (Some(object), Some(body)) = (json.as_object_mut(), body) {
                object.insert(key.to_owned(), body.clone());
            }
        }
        json
    }
}

/// What is wrong with a document.
///
/// # Errors
/// If Python or a package is missing, or the check itself fails.
pub fn document_problems(document: &Value) -> Result<Vec<String>> {
    let mut problems = check(document, &[])?;
    ensure!(problems.len() == 1, "check.py answered {problems:?}");
    Ok(problems.remove(0))
}

/// What is wrong with each of these exchanges by a document. One process checks all of them.
///
/// # Errors
/// As [`document_problems`].
pub fn exchange_problems(document: &Value, exchanges: &[Exchange]) -> Result<Vec<Vec<String>>> {
    if exchanges.is_empty() {
        return Ok(Vec::new());
    }
    let problems = check(document, exchanges)?;
    ensure!(problems.len() == exchanges.len(), "check.py answered {problems:?}");
    let tell = |(exchange, problems): (&Exchange, Vec<String>)| {
        let Exchange { method, path, status, .. } = exchange;
        problems.iter().map(|problem| format!("{method} {path}, {status}: {problem}")).collect()
    };
    Ok(exchanges.iter().zip(problems).map(tell).collect())
}

/// The lines that the checker answers.
fn check(document: &Value, exchanges: &[Exchange]) -> Result<Vec<Vec<String>>> {
    let environment = Environment::install("openapi", &PACKAGES)?;
    let directory = scratch::dir()?;
    let asked = directory.path().join("asked");
    let mut lines = BufWriter::new(File::create(&asked)?);
    writeln!(lines, "{document}")?;
    for exchange in exchanges {
        writeln!(lines, "{}", exchange.as_json())?;
    }
    lines.flush()?;
    let output = Command::new(environment.python())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/check.py"))
        .stdin(File::open(asked)?)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "check.py: {said}");
    let answers = String::from_utf8(output.stdout)?;
    answers.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// The document of a host that has loaded all stock recipes, each of the name of its module.
///
/// # Errors
/// If one of them cannot be loaded.
pub fn of_stock_recipes() -> Result<Value> {
    Ok(document(joins_of_stock_recipes()?.iter()))
}

/// The tables of a config with all stock recipes, each of the name of its module.
///
/// # Errors
/// If one of them cannot be loaded.
pub fn config_of_stock_recipes() -> Result<String> {
    let tables = joins_of_stock_recipes()?.into_iter().map(|join| {
        let settings = needed(join.module.interface());
        let settings = settings.as_object().into_iter().flatten();
        let settings: Vec<_> = settings.map(|(key, value)| format!("{key} = {value}")).collect();
        let (name, settings) = (join.recipe, settings.join(", "));
        format!(
            "[recipes.{name}]\nmodule = \"{name}\"\nmount = \"/{name}\"\nconfig = {{ {settings} }}\n"
        )
    });
    Ok(tables.collect())
}

fn joins_of_stock_recipes() -> Result<Vec<Join>> {
    let limits = Limits::default();
    let engine = Engine::new(&EngineOptions {
        participants: 1,
        memory: limits.memory,
        table_elements: limits.table_elements,
        cache: user_cache(),
        pace: Pace::Clock,
    })?;
    let joins = stock_names().map(|name| -> Result<Join> {
        let bytes = ModuleSource::Stock(name.to_owned()).read(None)?;
        let module = Module::load(&engine, name, &bytes)?;
        let config = module.configuration(Some(&needed(module.interface())));
        Ok(Join {
            recipe: name.to_owned(),
            mount: Mount::new(&format!("/{name}"))?,
            config: config.map_err(|errors| anyhow!("{name}: {errors}"))?,
            module,
            limits: Limits::default(),
            seat: SeatLimits::default(),
            owner: "a test".to_owned(),
            witness: None,
        })
    });
    joins.collect()
}

/// The settings that a module cannot do without. All of the stock recipes' are numbers.
fn needed(interface: &Interface) -> Value {
    let fields = interface.configure.iter().flat_map(|config| &config.fields);
    let needed = fields.filter(|field| !matches!(field.ty, ValueType::Option(_)));
    Value::Object(needed.map(|field| (field.name.clone(), json!(1))).collect::<Map<_, _>>())
}
