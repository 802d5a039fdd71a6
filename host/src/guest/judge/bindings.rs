//! The judge's exports as Rust functions and types. Generated, and nothing else lives here.
#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../guest-sdk/judge/wit",
    world: "wok:judge/promise",
});
