//! `wok new`: a recipe's crate that stands alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::exit::Failure;
use super::next::{Next, path_word};
use super::output::Printer;
use crate::scaffold::{self, Change, Origin, Refreshed, ScaffoldError};

/// Write a new recipe's crate, as a fork of a stock recipe or from a template.
///
/// It brings the SDK, the contract and a lock file along, and builds on its own anywhere. What it
/// promises is yours as well: promise/workload.toml says what its users do when `wok test` runs them,
/// and promise/judge judges what came of it; a fork begins with those of the stock recipe.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok new my-lock --from lock\n  wok new my-recipe\n  \
    wok new my-lock --refresh-sdk")]
pub(super) struct Arguments {
    /// Where to write it; the crate has the directory's name.
    directory: PathBuf,

    /// Fork this stock recipe.
    #[arg(long, value_name = "RECIPE", conflicts_with_all = ["template", "refresh_sdk"])]
    from: Option<String>,

    /// Start from this template.
    #[arg(long, value_name = "TEMPLATE", default_value = "minimal")]
    template: String,

    /// Replace the SDK and the contract of the recipe that is there by those of this wok, and
    /// nothing else.
    #[arg(long, conflicts_with = "template")]
    refresh_sdk: bool,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        if self.refresh_sdk {
            refresh(&self.directory, printer)?;
        } else {
            let origin = match self.from {
                Some(recipe) => Origin::Stock(recipe),
                None => Origin::Template(self.template),
            };
            create(&self.directory, &origin, printer)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn create(directory: &Path, origin: &Origin, printer: &Printer) -> Result<(), Failure> {
    let created = scaffold::create(directory, origin).map_err(failure)?;
    let (what, from) = match origin {
        Origin::Stock(name) => (format!("a fork of the stock recipe {name}"), name),
        Origin::Template(name) => (format!("from the template {name}"), name),
    };
    let next = Next::new([format!("wok build {}", path_word(directory))]);
    let text = format!(
        "made {}, {what}:\n  \
         README.md      what it promises\n  \
         wit/           what it offers\n  \
         src/decide.rs  decides; `cargo test` tests it\n  \
         src/lib.rs     reads, decides, acts\n  \
         promise/       what `wok test` has its users do, and the judge of what it promises\n  \
         wok-sdk/       the SDK and the contract of this wok\n{}",
        directory.display(),
        next.text()
    );
    let report = json!({
        "directory": directory.to_string_lossy(),
        "package": created.package.to_string(),
        "from": from,
        "files": created.files,
        "next": next.json(),
    });
    printer.report(&text, &report);
    Ok(())
}

fn refresh(directory: &Path, printer: &Printer) -> Result<(), Failure> {
    let refreshed = scaffold::refresh(directory).map_err(failure)?;
    let next = Next::new([format!("wok build {}", path_word(directory))]);
    let changes: Vec<_> = refreshed
        .changed
        .iter()
        .map(|it| json!({ "path": it.path, "change": in_a_word(it.change) }))
        .collect();
    let report = json!({
        "directory": directory.to_string_lossy(),
        "changed": changes,
        "contract-before": refreshed.contract_before,
        "contract": refreshed.contract,
        "next": next.json(),
    });
    printer.report(&format!("{}\n{}", in_words(&refreshed), next.text()), &report);
    Ok(())
}

fn in_words(refreshed: &Refreshed) -> String {
    if refreshed.changed.is_empty() {
        return format!("the SDK is this wok's already, its contract {}", refreshed.contract);
    }
    let mut lines: Vec<String> = refreshed
        .changed
        .iter()
        .map(|it| format!("{:<8} {}", in_a_word(it.change), it.path))
        .collect();
    lines.push(match &refreshed.contract_before {
        Some(before) if *before != refreshed.contract => {
            format!("the contract was {before} and is {}", refreshed.contract)
        }
        _ => format!("the contract is {}", refreshed.contract),
    });
    lines.push(
        "Cargo.lock is as it was; cargo changes it if the SDK asks for other versions".to_owned(),
    );
    lines.join("\n")
}

fn in_a_word(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Replaced => "replaced",
        Change::Removed => "removed",
    }
}

/// What the command line asks for and cannot be is wrong usage.
fn failure(error: ScaffoldError) -> Failure {
    match error {
        ScaffoldError::File { .. } | ScaffoldError::NoSdk { .. } => {
            Failure::Config(error.to_string())
        }
        _ => Failure::Usage(error.to_string()),
    }
}
