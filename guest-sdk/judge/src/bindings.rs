//! The judge's WIT, bound.
#![allow(unsafe_code, missing_docs, unreachable_pub, unused, reason = "generated")]
#![allow(clippy::all, clippy::indexing_slicing, clippy::mem_forget, reason = "generated")]

wit_bindgen::generate!({
    path: "wit",
    world: "wok:judge/promise",
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "wok_judge::bindings",
});
