//! `wok validate`: checks a config without connecting to anything.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::exit::{self, Failure};
use super::output::Printer;
use super::run::load;

/// Check a config file and the modules it names, without connecting to anything.
///
/// Each module is asked whether it takes its config. Reports every error at once, with line and column.
/// Exits with 78 if there is one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok validate wok.toml\n  wok validate --output json wok.toml")]
pub(super) struct Arguments {
    /// The config.
    #[arg(default_value = "wok.toml")]
    config: PathBuf,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let runtime = super::run::runtime()?;
        let _entered = runtime.enter();
        let loading = load(&self.config, printer);
        let Some((loaded, prepared)) = runtime.block_on(loading)? else {
            return Ok(ExitCode::from(exit::CONFIG));
        };
        let recipes: Vec<&str> =
            loaded.config.recipes.iter().map(|recipe| recipe.name.as_str()).collect();
        let text = format!(
            "{} is valid: {} ({} kept by the daemon)\nnext: wok run {}",
            self.config.display(),
            match recipes.len() {
                1 => "1 recipe".to_owned(),
                count => format!("{count} recipes"),
            },
            prepared.kept_count(),
            self.config.display(),
        );
        printer.report(&text, &json!({ "valid": true, "recipes": recipes }));
        Ok(ExitCode::SUCCESS)
    }
}
