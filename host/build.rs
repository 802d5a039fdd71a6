//! Builds the stock recipes and embeds them. Their names are those of their directories.

use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let stock = wok_build::Embedding {
        crates: "../recipes-wasm",
        table: "recipes.rs",
        ready_made: "WOK_RECIPES_DIR",
    };
    let Err(error) = wok_build::embed(stock) else {
        return ExitCode::SUCCESS;
    };
    // Printed here: what `main` returns is shown with `Debug`, which escapes every line break.
    eprintln!("stock recipes: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        eprintln!("caused by: {error}");
        source = error.source();
    }
    ExitCode::FAILURE
}
