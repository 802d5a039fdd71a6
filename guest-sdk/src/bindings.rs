//! The contract, bound.
#![allow(unsafe_code, missing_docs, unreachable_pub, reason = "generated")]
#![allow(clippy::all, clippy::indexing_slicing, clippy::mem_forget, reason = "generated")]

wit_bindgen::generate!({
    path: "wit",
    world: "wok:recipe/imports",
    generate_all,
});
