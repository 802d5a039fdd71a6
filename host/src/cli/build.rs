//! `wok build`: a recipe's sources to a component.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use wok_build::{Builder, Component, Error};

use super::exit::Failure;
use super::inspect;
use super::next::{Next, module_word};
use super::output::Printer;

/// Build a recipe into a component, and check that this wok can run it.
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
        let component = build(&self.directory, &target_dir.join("wok"), printer)
            .map_err(|error| Failure::Config(in_words(&error)))?;
        // What the host would refuse is told here, where its author is.
        inspect::load(&component.package, &component.wasm)?;
        let file = self.to.unwrap_or_else(|| {
            let name = format!("{}.wasm", component.package);
            if self.directory == Path::new(".") { name.into() } else { self.directory.join(name) }
        });
        component.write(&file).map_err(|error| Failure::Config(in_words(&error)))?;
        report(&component, &file, printer);
        Ok(ExitCode::SUCCESS)
    }
}

fn build(directory: &Path, target_dir: &Path, printer: &Printer) -> Result<Component, Error> {
    let progress = |line: &str| printer.progress(line);
    let built = Builder::new(target_dir).guest(directory).progress(progress).build()?;
    built.into_iter().next().ok_or_else(|| Error::NoRecipe {
        path: directory.to_owned(),
        reason: "nothing was built".to_owned(),
    })
}

fn report(component: &Component, file: &Path, printer: &Printer) {
    let word = module_word(file);
    let next = Next::new([format!("wok inspect {word}"), format!("wok test {word}")]);
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
