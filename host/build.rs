//! Builds the stock recipes and embeds them; for the simulator the judges of their promises as well, and
//! for the command line their sources and those of what `wok new` writes beside them. Their names are
//! those of their directories.

use std::env;
use std::error::Error;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    pack_relocations();
    let Err(error) = embed() else {
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

/// The loader reads the whole table of relocations and so keeps it in memory: more than a mebibyte
/// of wasmtime's, a quarter of what `wok zookeeper` takes. Packed, it is a fortieth of that, and a C
/// library before glibc 2.36 refuses to start the program: there it stays as it is.
#[allow(clippy::print_stdout, reason = "it is how a build script speaks to cargo")]
fn pack_relocations() {
    let is_packable = || {
        let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
        let version = String::from_utf8(told.stdout).ok()?;
        let (major, minor) = version.trim().strip_prefix("glibc ")?.split_once('.')?;
        let version: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        Some(version >= (2, 36) && env::var("HOST").ok()? == env::var("TARGET").ok()?)
    };
    // Where that is not to be known, nothing is lost but memory.
    if is_packable().unwrap_or(false) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the package is built with that feature.
fn has(feature: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
}

fn embed() -> Result<(), wok_build::Error> {
    wok_build::embed(wok_build::Embedding {
        crates: "../recipes-wasm",
        table: "recipes.rs",
        ready_made: "WOK_RECIPES_DIR",
        judges: has("SIMULATION").then_some("judges.rs"),
    })?;
    if !has("COMMAND_LINE") {
        return Ok(());
    }
    wok_build::embed_sources("recipe_sources.rs", "../recipes-wasm/*")?;
    wok_build::embed_sources("template_sources.rs", "../guest-sdk/templates/*")?;
    wok_build::embed_sources("sdk_sources.rs", "../guest-sdk")?;
    wok_build::embed_sources("sdk_judge_sources.rs", "../guest-sdk/judge")
}
