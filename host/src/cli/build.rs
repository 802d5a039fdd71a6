//! `wok build`: a recipe's sources to a component.

use std::error::Error as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use wok_build::{Builder, Component, Error, JUDGE_DIRECTORY, WORKLOAD_FILE};

use super::exit::Failure;
use super::inspect;
use super::next::{Next, module_word};
use super::output::Printer;
use crate::base::user_cache;
use crate::guest::{Judge, Module, carried_judge};
use crate::simulation::workload::Workload;

/// Build a recipe into a component, and check that this wok can run it.
///
/// The judge of what it promises, a crate in promise/judge, is built with it and travels in it.
///
/// A crate needs Rust, and for WebAssembly either rustup's target wasm32-unknown-unknown or Debian's
/// packages rustc-web and rust-web-src; WOK_GUEST_TOOLCHAIN=target or debian takes one of them only.
/// A directory with src/*.c needs clang with lld and wasi-libc, and one with package.json Node.js and
/// what `npm ci` brings.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok build\n  wok build my-lock\n  \
    wok build my-lock --to /etc/wok/my-lock.wasm\n\n\
    Exits with 78 if it cannot be built, or is no recipe that this wok can run.")]
pub(super) struct Arguments {
    /// The recipe's directory.
    #[arg(default_value = ".")]
    directory: PathBuf,

    /// The directory is that of a judge, for `wok test --judge`, and not that of a recipe.
    #[arg(long)]
    judge: bool,

    /// Where to write the component. Default: into the recipe's directory, with its name.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Where the compiler works. Default: `target` in the recipe's directory.
    #[arg(long, value_name = "DIRECTORY", env = "CARGO_TARGET_DIR")]
    target_dir: Option<PathBuf>,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let target_dir = self.target_dir.unwrap_or_else(|| self.directory.join("target"));
        let kind = if self.judge { Kind::Judge } else { Kind::Recipe };
        let component = build(&self.directory, kind, &target_dir.join("wok"), printer)
            .map_err(|error| Failure::Config(in_words(&error)))?;
        // What the host would refuse is told here, where its author is.
        match kind {
            Kind::Judge => check_judge(&component.package, &component.wasm)?,
            Kind::Recipe => {
                let module = inspect::load(&component.package, &component.wasm)?;
                check_workload(&self.directory, &module)?;
                if let Some(judge) = carried_judge(&component.wasm) {
                    check_judge(&component.package, judge)?;
                }
            }
        }
        let file = self.to.unwrap_or_else(|| {
            let name = format!("{}.wasm", component.package);
            if self.directory == Path::new(".") { name.into() } else { self.directory.join(name) }
        });
        component.write(&file).map_err(|error| Failure::Config(in_words(&error)))?;
        report(kind, &component, &file, printer);
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Recipe,
    Judge,
}

/// Builds a recipe, which carries the judge of its promise along if one stands beside it, or a judge.
fn build(
    directory: &Path,
    kind: Kind,
    target_dir: &Path,
    printer: &Printer,
) -> Result<Component, Error> {
    let progress = |line: &str| printer.progress(line);
    let builder = Builder::new(target_dir).progress(progress);
    let judge = directory.join(JUDGE_DIRECTORY);
    let builder = match kind {
        Kind::Judge => builder.judge(directory),
        Kind::Recipe if judge.join("Cargo.toml").is_file() => builder.guest(directory).judge(judge),
        Kind::Recipe => builder.guest(directory),
    };
    let mut built = builder.build()?.into_iter();
    let component = built.next();
    let mut component = component.ok_or_else(|| Error::NoRecipe {
        path: directory.to_owned(),
        reason: "nothing was built".to_owned(),
    })?;
    if let Some(judge) = built.next() {
        component.carry_judge(&judge);
    }
    Ok(component)
}

fn check_judge(name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let judge = Judge::load(name, bytes, &user_cache());
    judge.map(drop).map_err(|error| Failure::Config(error.to_string()))
}

/// Refuses a workload that the component does not fit: `wok test` would.
fn check_workload(directory: &Path, module: &Module) -> Result<(), Failure> {
    let file = directory.join(WORKLOAD_FILE);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::Config(format!("{}: {error}", file.display()))),
    };
    Workload::declared(module, &file.display().to_string(), &text)
        .map(drop)
        .map_err(|error| Failure::Config(error.to_string()))
}

fn report(kind: Kind, component: &Component, file: &Path, printer: &Printer) {
    let word = module_word(file);
    let next = match kind {
        Kind::Recipe => Next::new([format!("wok inspect {word}"), format!("wok test {word}")]),
        Kind::Judge => Next::new([format!("wok test my-recipe.wasm --judge {word}")]),
    };
    let (size, sha256) = (component.wasm.len(), component.sha256());
    let text = format!("{}\n  {size} bytes, sha256 {sha256}\n{}", file.display(), next.text());
    let report = json!({
        "path": file.to_string_lossy(),
        "package": component.package,
        "size": size,
        "sha256": sha256,
        "next": next.json(),
    });
    printer.report(&text, &report);
}

/// The error, its causes, and what helps.
fn in_words(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{}: {cause}", text.trim_end());
        source = cause.source();
    }
    match error {
        Error::Run { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            format!("{text}; install Rust first, as https://rustup.rs says")
        }
        _ => text,
    }
}
