//! Fails where nothing can compile a guest.
//!
//! The build script of the host asks for that compiler when the long part of a build is over, and a
//! build that could not succeed took minutes to say so. This script needs no other crate and is asked
//! early: see the build script of `wok-build`.

use std::env;
use std::path::Path;
use std::process::ExitCode;

#[allow(dead_code, unreachable_pub, reason = "the library, of which this needs a part")]
#[path = "src/lib.rs"]
mod toolchain;

use toolchain::{TOOLCHAIN_VARIABLE, Toolchain};

/// The host's variable for recipes that are built already: then no guest is compiled.
const READY_MADE: &str = "WOK_RECIPES_DIR";

#[allow(clippy::print_stdout, reason = "it is how a build script speaks to cargo")]
fn main() -> ExitCode {
    for file in ["build.rs", "src/lib.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    for variable in [TOOLCHAIN_VARIABLE, READY_MADE] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if env::var_os(READY_MADE).is_some_and(|directory| !directory.is_empty()) {
        return ExitCode::SUCCESS;
    }
    // A build script runs in its package, where the same `rust-toolchain.toml` applies as to guests.
    match Toolchain::find(Path::new(".")) {
        Ok(_) => ExitCode::SUCCESS,
        Err(missing) => {
            println!("cargo::error=stock recipes: {missing}");
            ExitCode::FAILURE
        }
    }
}
