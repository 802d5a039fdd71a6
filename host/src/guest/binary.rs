//! What is seen of a file before it is compiled, and which of the two kinds of component it is.

use wasmtime::Engine;
use wasmtime::component::Component;

/// What follows an error of the engine's about bytes that begin as a component's.
pub(super) const DAMAGED: &str =
    "was it copied as a whole? if so, build it anew with `wok build` of this version";

/// The interface that a judge exports, and a recipe does not.
const JUDGE: &str = "wok:judge/judge";

/// Why the bytes are no component of at most so many bytes, if they are none. `maker` is the command that
/// makes one.
pub(super) fn no_component(bytes: &[u8], most: usize, maker: &str) -> Option<String> {
    match bytes.get(..8) {
        Some([0, b'a', b's', b'm', _, 0, 1, 0]) if bytes.len() > most => Some(format!(
            "{} bytes, and at most {most} are loaded: build it for release",
            bytes.len()
        )),
        Some([0, b'a', b's', b'm', _, 0, 1, 0]) => None,
        Some([0, b'a', b's', b'm', ..]) => {
            Some(format!("a core module: make a component with `{maker}`"))
        }
        _ => Some(format!("not WebAssembly: make a component with `{maker}`")),
    }
}

/// Whether it is the judge of a promise.
pub(super) fn is_judge(component: &Component, engine: &Engine) -> bool {
    let is_judges = |name: &str| name.split('@').next() == Some(JUDGE);
    component.component_type().exports(engine).any(|(name, _)| is_judges(name))
}
