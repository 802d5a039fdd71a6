//! The project's guests, built as a user's own recipe would be, all in one invocation.

#![allow(clippy::panic, clippy::expect_used, reason = "tests fail by panicking, their helpers too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use wasmparser::{Parser, Payload};
use wit_component::DecodedWasm;
use wit_parser::{Docs, TypeDefKind};
use wok_build::{Builder, Component, Error, WORKLOAD_FILE, WORKLOAD_SECTION, Wit, wit_of};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The one that `host/build.rs` uses: std is compiled there already.
fn target_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests")
}

fn guests() -> &'static [Component] {
    static GUESTS: OnceLock<Vec<Component>> = OnceLock::new();
    GUESTS.get_or_init(|| {
        Builder::new(target_dir())
            .guests_in(repository().join("recipes-wasm"))
            .and_then(|builder| builder.guests_in(repository().join("tests/guests")))
            .and_then(|builder| builder.progress(|line| eprintln!("{line}")).build())
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

fn wit(guest: &Component) -> Wit {
    let wit = wit_of(&guest.wasm).unwrap_or_else(|error| panic!("{}: {error}", guest.name));
    wit.unwrap_or_else(|| panic!("{} brings no WIT", guest.name))
}

#[test]
fn every_guest_imports_the_contract_alone_and_stays_small() {
    let names: Vec<&str> = guests().iter().map(|guest| guest.name.as_str()).collect();
    assert!(names.contains(&"lock") && names.contains(&"hostile"), "{names:?}");
    for guest in guests() {
        eprintln!("{}: {} bytes, sha256 {}", guest.name, guest.wasm.len(), guest.sha256());
        assert!(guest.wasm.len() < 150_000, "{}: {} bytes", guest.name, guest.wasm.len());
        let Ok(DecodedWasm::Component(resolve, world)) = wit_component::decode(&guest.wasm) else {
            panic!("{} is no component", guest.name);
        };
        for key in resolve.worlds[world].imports.keys() {
            let import = resolve.name_world_key(key);
            assert!(import.starts_with("wok:recipe/"), "{}: {import}", guest.name);
        }
    }
}

#[test]
fn the_docs_of_every_operation_and_type_are_in_the_section() {
    for guest in guests() {
        let Wit { resolve, package } = wit(guest);
        let package = &resolve.packages[package];
        assert_eq!(package.name.to_string(), format!("wok:{}@0.1.0", guest.name));
        let check = |item: &str, docs: &Docs| {
            assert!(docs.contents.is_some(), "{}: {item} has no docs", guest.name);
        };
        check("package", &package.docs);
        let interface = &resolve.interfaces[package.interfaces[&guest.name]];
        check("interface", &interface.docs);
        assert!(!interface.functions.is_empty());
        for (name, function) in &interface.functions {
            check(name, &function.docs);
        }
        for (name, id) in &interface.types {
            let fields = match &resolve.types[*id].kind {
                TypeDefKind::Record(record) => &record.fields[..],
                // Used from the contract, which has its docs.
                TypeDefKind::Type(_) => continue,
                _ => &[],
            };
            check(name, &resolve.types[*id].docs);
            for field in fields {
                check(&field.name, &field.docs);
            }
        }
    }
}

#[test]
fn no_directory_of_this_machine_is_in_a_component() {
    let Some(lock) = guests().iter().find(|guest| guest.name == "lock") else {
        panic!("no lock");
    };
    for directory in [repository().canonicalize().unwrap(), PathBuf::from(env!("HOME"))] {
        let directory = directory.display().to_string();
        let found = lock.wasm.windows(directory.len()).any(|bytes| bytes == directory.as_bytes());
        assert!(!found, "{directory} is in the component");
    }
}

#[test]
fn a_component_without_the_section_has_no_wit() {
    assert!(wit_of(b"no component").is_err());
    // The shortest component: a header and nothing in it.
    let empty = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];
    assert!(matches!(wit_of(&empty), Ok(None)));
}

const FORK: &str = "wok_sdk::bind!(\"CONTRACT\", \"my:recipe/recipe\");
struct Mine;
export!(Mine);
impl exports::my::recipe::mine::Guest for Mine {
    fn twice(number: u32) -> u32 { BODY }
}";

const FORK_WIT: &str = "package my:recipe;
interface mine { twice: func(number: u32) -> u32; }
world recipe { include wok:recipe/imports@0.1.0; export mine; }";

/// Writes a crate outside of the workspace, as a user's fork is, whose one function has this body.
fn write_fork(directory: &Path, body: &str) {
    let sdk = repository().join("guest-sdk").canonicalize().expect("the SDK is there");
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().expect("it has a parent")).expect("make a directory");
        fs::write(path, text).expect("write a file");
    };
    let manifest = format!(
        "[package]\nname = \"my-recipe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\
         [dependencies]\nwok-sdk = {{ path = {sdk:?} }}\n[workspace]\n"
    );
    write("Cargo.toml", &manifest);
    // The versions the workspace has, so that nothing is looked for in the registry.
    let lock = fs::read_to_string(repository().join("Cargo.lock")).expect("the workspace's lock");
    write("Cargo.lock", &lock);
    let contract = sdk.join("wit").display().to_string();
    write("src/lib.rs", &FORK.replace("CONTRACT", &contract).replace("BODY", body));
    write("wit/my-recipe.wit", FORK_WIT);
}

/// Where the tests of `wok build` have it work: std is compiled once for all of them. Not where the stock
/// recipes are compiled, all of which cargo would forget.
fn build_fork(directory: &Path) -> Result<Component, Error> {
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("forks").join("wok");
    Builder::new(target_dir).guest(directory).build().map(|mut components| components.remove(0))
}

#[test]
fn a_fork_outside_the_workspace_builds_and_its_mistakes_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let build_fork = |body| {
        write_fork(directory.path(), body);
        build_fork(directory.path())
    };
    let error = build_fork("\"text\"").expect_err("it does not compile").to_string();
    assert!(error.contains("mismatched types") && error.contains("src/lib.rs:5"), "{error}");

    let escape = "#[link(wasm_import_module = \"env\")] unsafe extern \"C\" { fn escape(); }
        unsafe { escape() }; number";
    let error = build_fork(escape).expect_err("it imports env").to_string();
    assert!(error.contains("my-recipe") && error.contains("env"), "{error}");

    let fork = build_fork("number * 2").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(fork.package, "my-recipe");
    assert!(wit_of(&fork.wasm).unwrap().is_some());
}

/// To cargo they are one package. The second one's files are older than what is made of the first.
#[test]
fn two_crates_of_one_name_are_not_taken_for_each_other() {
    let forks = ["number * 2", "number * 3"].map(|body| {
        let directory = tempfile::tempdir().unwrap();
        write_fork(directory.path(), body);
        directory
    });
    let built = |fork: usize| {
        let built = build_fork(forks[fork].path());
        built.unwrap_or_else(|error| panic!("{error}")).sha256()
    };
    let (first, second) = (built(0), built(1));
    assert_ne!(first, second);
    assert_eq!(first, built(0));
}

#[test]
fn a_directory_without_a_crate_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let error = Builder::new(target_dir()).guest(empty.path()).build().expect_err("no crate");
    assert!(error.to_string().contains(&empty.path().display().to_string()), "{error}");
}

#[test]
fn a_workload_travels_in_the_component_as_it_was_written() {
    let recipes = repository().join("recipes-wasm");
    let mut with_one = 0;
    for guest in guests() {
        let Ok(text) = fs::read(recipes.join(&guest.name).join(WORKLOAD_FILE)) else { continue };
        with_one += 1;
        let is_it = |payload: &Payload<'_>| match payload {
            Payload::CustomSection(section) => {
                section.name() == WORKLOAD_SECTION && section.data() == text
            }
            _ => false,
        };
        let mut payloads = Parser::new(0).parse_all(&guest.wasm).filter_map(Result::ok);
        assert!(payloads.any(|it| is_it(&it)), "{}: not in the component", guest.name);
    }
    assert!(with_one > 0, "no recipe has a workload");
}
