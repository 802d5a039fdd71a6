//! Builds the stock recipes and embeds them, with their sources and those of what `wok new` writes
//! beside them. Their names are those of their directories.

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

fn embed() -> Result<(), wok_build::Error> {
    wok_build::embed(wok_build::Embedding {
        crates: "../recipes-wasm",
        table: "recipes.rs",
        ready_made: "WOK_RECIPES_DIR",
    })?;
    wok_build::embed_sources("recipe_sources.rs", "../recipes-wasm/*")?;
    wok_build::embed_sources("template_sources.rs", "../guest-sdk/templates/*")?;
    wok_build::embed_sources("sdk_sources.rs", "../guest-sdk")
}

/// Half a megabyte of the program's memory are relocations of pointers into itself, read at its
/// start. Where the C library knows the packed form, they take a twentieth of that.
fn pack_relocations() {
    let is_packable = || {
        let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
        let version = String::from_utf8(told.stdout).ok()?;
        let (major, minor) = version.trim().strip_prefix("glibc ")?.split_once('.')?;
        let version: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        Some(version >= (2, 36) && env::var("HOST").ok()? == env::var("TARGET").ok()?)
    };
    // Anywhere else nothing is lost but that half megabyte.
    if is_packable().unwrap_or(false) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
