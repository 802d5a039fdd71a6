//! What is refused as a module, and why.

use serde_json::json;

use super::*;
use crate::guest::{CompileCache, DocState, EngineOptions, Pace};

fn engine() -> Engine {
    Engine::new(&EngineOptions {
        participants: 2,
        memory: 1 << 20,
        table_elements: 100,
        cache: CompileCache::Off,
        pace: Pace::Clock,
    })
    .unwrap()
}

fn load(text: &str) -> Result<Module, ModuleError> {
    Module::load(&engine(), "./mine.wasm", &wat::parse_str(text).unwrap())
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    assert_eq!(load(text).unwrap_err().to_string(), expected);
}

/// A component that exports these functions, given as `(name, core results, type)`.
fn exporting(functions: &[(&str, &str, &str)]) -> String {
    let mut core = String::new();
    let mut lifts = String::new();
    let mut exports = String::new();
    for (name, signature, ty) in functions {
        core += &format!(r#"(func (export "{name}") {signature} unreachable)"#);
        lifts += &format!(
            r#"(func ${name} {ty} (canon lift (core func $i "{name}")
                (memory (core memory $i "memory"))
                (realloc (core func $i "realloc"))))"#
        );
        exports += &format!(r#"(export "{name}" (func ${name}))"#);
    }
    format!(
        r#"(component
            (core module $m (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable) {core})
            (core instance $i (instantiate $m))
            {lifts}
            (instance $it {exports})
            (export "my:recipe/mine@0.1.0" (instance $it)))"#
    )
}

const PLAIN: (&str, &str, &str) = ("ping", "", "");

#[test]
fn what_is_no_component_is_told_apart() {
    let engine = engine();
    let refused = |bytes: &[u8]| Module::load(&engine, "m", bytes).unwrap_err().to_string();
    let remedy = "make a component with `wok build`";
    assert_eq!(refused(b"[package]"), format!("module m: not WebAssembly: {remedy}"));
    assert_eq!(refused(b""), format!("module m: not WebAssembly: {remedy}"));
    let core = wat::parse_str("(module)").unwrap();
    assert_eq!(refused(&core), format!("module m: a core module: {remedy}"));
    let mut broken = wat::parse_str(exporting(&[PLAIN])).unwrap();
    broken.truncate(broken.len() - 3);
    assert!(matches!(Module::load(&engine, "m", &broken), Err(ModuleError::Invalid { .. })));
    let told = refused(&broken);
    assert!(told.ends_with(
        "; was it copied as a whole? if so, build it anew with `wok build` of this version"
    ));
}

#[test]
fn a_judge_is_no_recipe_and_says_what_takes_it() {
    check_refused(
        r#"(component (instance $it) (export "wok:judge/judge@0.1.0" (instance $it)))"#,
        "module ./mine.wasm: the judge of a promise, and no recipe: `wok test` takes it with --judge",
    );
}

#[test]
fn imports_from_outside_the_contract_are_named() {
    check_refused(
        r#"(component
            (import "wasi:cli/environment@0.2.0" (instance))
            (import "wok:recipe/zookeeper@0.1.0" (instance))
            (import "wasi:io/poll@0.2.0" (instance)))"#,
        "module ./mine.wasm: imports wasi:cli/environment@0.2.0, wasi:io/poll@0.2.0, and a recipe \
         is given nothing but wok:recipe (no WASI: a tool chain that needs it has stubs for it)",
    );
}

#[test]
fn composed_components_are_refused_with_the_remedy() {
    let refused = "module ./mine.wasm: composed of parts with 2 memories, and a recipe has one: link \
                   the parts into one core module instead of composing components";
    // The text goes from one memory to the other, so wasmtime makes a module that has both.
    check_refused(
        r#"(component
            (component $inner
                (core module $m (memory (export "memory") 1)
                    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0)
                    (func (export "say") (param i32 i32)))
                (core instance $i (instantiate $m))
                (func (export "say") (param "text" string) (canon lift (core func $i "say")
                    (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
            (component $outer
                (import "say" (func $say (param "text" string)))
                (core module $libc (memory (export "memory") 1))
                (core instance $libc (instantiate $libc))
                (core func $say (canon lower (func $say) (memory (core memory $libc "memory"))))
                (core module $m (import "" "say" (func $say (param i32 i32)))
                    (func (export "ping") (call $say (i32.const 0) (i32.const 0))))
                (core instance $i
                    (instantiate $m (with "" (instance (export "say" (func $say))))))
                (func $ping (canon lift (core func $i "ping")))
                (instance $it (export "ping" (func $ping)))
                (export "my:recipe/mine@0.1.0" (instance $it)))
            (instance $inner (instantiate $inner))
            (instance $outer (instantiate $outer (with "say" (func $inner "say"))))
            (export "my:recipe/mine@0.1.0" (instance $outer "my:recipe/mine@0.1.0")))"#,
        refused,
    );
    // Two memories of one core module: the pool's own limit.
    let two =
        r#"(component (core module $m (memory 1) (memory 1)) (core instance (instantiate $m)))"#;
    let refused = load(two).unwrap_err();
    assert!(matches!(refused, ModuleError::Invalid { .. }), "{refused}");
}

#[test]
fn another_version_of_the_contract_is_named_even_if_it_is_compatible() {
    for version in ["0.2.0", "0.1.1"] {
        check_refused(
            &format!(r#"(component (import "wok:recipe/zookeeper@{version}" (instance)))"#),
            &format!(
                "module ./mine.wasm: imports wok:recipe/zookeeper@{version}: built for contract \
                 {version}, this host serves 0.1.0; build it with the wok-sdk of this host"
            ),
        );
    }
}

#[test]
fn an_import_of_another_type_does_not_fit() {
    let text = r#"(component (import "wok:recipe/time-and-chance@0.1.0"
        (instance (export "now-ms" (func (result string))))))"#;
    let refused = load(text).unwrap_err();
    assert!(matches!(refused, ModuleError::Contract { .. }), "{refused}");
    assert!(refused.to_string().contains("time-and-chance"), "{refused}");
}

#[test]
fn a_recipe_exports_exactly_one_interface() {
    let rule = "a recipe exports exactly one interface of its own";
    check_refused("(component)", &format!("module ./mine.wasm: exports no interface; {rule}"));
    check_refused(
        r#"(component (instance $a) (export "my:a/a" (instance $a)) (export "my:b/b" (instance $a)))"#,
        &format!("module ./mine.wasm: exports my:a/a, my:b/b; {rule}"),
    );
    check_refused(
        r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
            (func (export "run") (canon lift (core func $i "f"))))"#,
        &format!("module ./mine.wasm: exports run outside an interface; {rule}"),
    );
}

#[test]
fn reserved_functions_have_their_types() {
    let configure = |signature, ty| exporting(&[PLAIN, ("configure", signature, ty)]);
    let unfit = |problem| format!("module ./mine.wasm: configure: it takes one record, {problem}");
    check_refused(&configure("", ""), &unfit("not nothing"));
    check_refused(&configure("(param i32)", r#"(param "config" u32)"#), &unfit("not another type"));
    check_refused(
        &configure("(param i32 i32)", r#"(param "a" u32) (param "b" u32)"#),
        &unfit("not several parameters"),
    );
    let wake = "module ./mine.wasm: wake: it is `wake: func(fired: list<u64>)` and answers nothing";
    check_refused(
        &exporting(&[PLAIN, ("wake", "(param i32 i32)", r#"(param "fired" (list u32))"#)]),
        wake,
    );
    check_refused(&exporting(&[PLAIN, ("wake", "", "")]), wake);
    check_refused(
        &exporting(&[]),
        "module ./mine.wasm: my:recipe/mine@0.1.0: it has no operation: a function besides \
         configure and wake",
    );
}

#[test]
fn an_interface_has_values_only() {
    let resource = r#"(component
        (type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core module $m (func (export "f") (result i32) unreachable))
        (core instance $i (instantiate $m))
        (func $f (result (own $r)) (canon lift (core func $i "f")))
        (component $c (import "r" (type $r (sub resource)))
            (import "f" (func $f (result (own $r))))
            (export $out "thing" (type $r))
            (export "f" (func $f) (func (result (own $out)))))
        (instance $x (instantiate $c (with "r" (type $r)) (with "f" (func $f))))
        (export "my:recipe/mine" (instance $x)))"#;
    let refused = load(resource).unwrap_err().to_string();
    assert!(refused.contains("a recipe's interface has values only"), "{refused}");
}

#[test]
fn what_has_no_wit_has_no_docs_and_says_so() {
    let module = load(&exporting(&[PLAIN])).unwrap();
    assert_eq!(module.interface().name, "my:recipe/mine@0.1.0");
    assert_eq!(module.interface().doc_state, DocState::Absent);
    assert_eq!(module.interface().operations.len(), 1);
    assert_eq!(module.digest().len(), 64);
}

#[test]
fn arguments_are_by_name_unless_one_record_is_the_body() {
    let text = exporting(&[
        PLAIN,
        ("move", "(param i32 i32 i32)", r#"(param "steps" u32) (param "fast" (option bool))"#),
    ]);
    let module = load(&text).unwrap();
    let arguments = module.arguments("move", &json!({"steps": 2})).unwrap();
    assert_eq!(*arguments.values, [Val::U32(2), Val::Option(None)]);
    module.arguments("ping", &json!(null)).unwrap();
    module.arguments("ping", &json!({})).unwrap();
    let refused = |operation, body| module.arguments(operation, &body).unwrap_err().to_string();
    assert_eq!(refused("ping", json!({"a": 1})), "a: unknown field; there are none here");
    let named_otherwise = refused("move", json!({"steps": 2, "payload": true}));
    assert_eq!(named_otherwise, "payload: unknown field; known here: steps, fast");
    assert_eq!(refused("move", json!({})), "steps: missing; expected a number");
    assert_eq!(refused("pong", json!({})), "./mine.wasm has no operation pong; did you mean ping?");
}

#[test]
fn a_config_is_for_a_module_that_takes_one() {
    let module = load(&exporting(&[PLAIN])).unwrap();
    module.configuration(None).unwrap();
    module.configuration(Some(&json!({}))).unwrap();
    let refused = module.configuration(Some(&json!({"a": 1}))).unwrap_err();
    assert_eq!(refused.to_string(), "config: ./mine.wasm takes no config");
}
