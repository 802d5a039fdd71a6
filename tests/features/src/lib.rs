//! What tests ask of crates that wok has as well.
//!
//! Cargo compiles a crate again when another selection of packages asks for other features of it, and
//! with it all that depends on it: wasmtime takes minutes. `cargo xtask run` builds `wok` together with
//! this package, and so compiles what the tests need later, and nothing that only they need. A test in
//! `xtask` compares the two builds.
