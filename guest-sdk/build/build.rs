//! Does nothing, and depends on `wok-toolchain`, so that cargo asks that package early for the
//! compiler of the guests.
//!
//! Cargo starts first what most other parts of a build wait for. Only the packages of this workspace
//! wait for `wok-toolchain`; with this script, they are more parts than those that wait for the
//! compiler in wasmtime, which is what takes minutes.

fn main() {
    // Otherwise cargo would run this whenever any file of the package changes.
    directive("rerun-if-changed=build.rs");
}

#[allow(clippy::print_stdout, reason = "it is how a build script speaks to cargo")]
fn directive(text: &str) {
    println!("cargo::{text}");
}
