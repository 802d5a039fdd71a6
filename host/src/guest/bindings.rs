//! The contract's imports as Rust traits and types. Generated, and nothing else lives here.
#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../guest-sdk/wit",
    world: "wok:recipe/imports",
    imports: { default: async | trappable },
    with: {
        "wok:recipe/zookeeper.watch": crate::guest::state::OwnedWatch,
        "wok:recipe/zookeeper.children": crate::guest::child_list::ChildList,
    },
});
