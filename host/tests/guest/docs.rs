//! What a module's own WIT says of it.

use wit_parser::Resolve;
use wok::guest::{DocState, Module, ValueType};

use crate::sandbox::{bytes, engine, module};

#[test]
fn the_docs_of_a_built_module_are_read() {
    let module = module("hostile");
    let interface = module.interface();
    assert_eq!(interface.doc_state, DocState::Documented);
    assert_eq!(interface.name, "wok:hostile/hostile@0.1.0");
    let docs = interface.docs.as_deref().unwrap();
    assert!(docs.starts_with("Every operation is one attack."), "{docs}");
    assert!(interface.has_wake);
    for operation in &interface.operations {
        assert!(operation.docs.is_some(), "{}", operation.name);
    }
    let hoard = interface.operation("hoard").unwrap();
    let ValueType::Enum(handle) = &hoard.parameters[0].ty else { panic!("{hoard:?}") };
    assert_eq!(handle.name.as_ref().map(|it| it.name.as_str()), Some("handle"));
    assert_eq!(handle.labels[4].docs.as_deref(), Some("Alarms an hour away."));
}

/// A component with the WIT of another appended: the last section counts.
fn with_wit(component: &[u8], wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("other.wit", wit).unwrap();
    let content = wit_component::encode(&resolve, package).unwrap();
    with_section(component, &content)
}

fn with_section(component: &[u8], content: &[u8]) -> Vec<u8> {
    let name = b"wok:wit";
    let mut section = vec![u8::try_from(name.len()).unwrap()];
    section.extend_from_slice(name);
    section.extend_from_slice(content);
    let mut bytes = component.to_vec();
    bytes.push(0);
    let mut length = section.len();
    while length > 0x7f {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend_from_slice(&section);
    bytes
}

#[track_caller]
fn check_unusable(bytes: &[u8], expected: &str) {
    let module = Module::load(engine(), "forged", bytes).unwrap();
    let DocState::Unusable(reason) = &module.interface().doc_state else {
        panic!("{:?}", module.interface().doc_state)
    };
    assert!(reason.contains(expected), "{reason}");
    assert!(module.interface().operations.iter().all(|operation| operation.docs.is_none()));
}

#[test]
fn a_wit_that_describes_something_else_is_not_believed() {
    let hostile = bytes("hostile");
    check_unusable(
        &with_wit(hostile, "package wok:hostile@0.1.0; interface other { spin: func(); }"),
        "does not describe wok:hostile/hostile@0.1.0",
    );
    check_unusable(
        &with_wit(
            hostile,
            "package wok:hostile@0.1.0; interface hostile { /// Harmless.\n spin: func(); }",
        ),
        "describes other types than the component has",
    );
    check_unusable(&with_section(hostile, b"not a component"), "cannot be read");
}
