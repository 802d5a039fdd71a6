//! What is written, and what is not written over.

use super::*;

fn stock() -> Vec<Origin> {
    stock_names().map(|name| Origin::Stock(name.to_owned())).collect()
}

fn origins() -> Vec<Origin> {
    let templates = template_names().map(|name| Origin::Template(name.to_owned()));
    stock().into_iter().chain(templates).collect()
}

fn created(origin: &Origin) -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("my-recipe");
    create(&directory, origin).unwrap();
    (parent, directory)
}

fn text(directory: &Path, path: &str) -> String {
    fs::read_to_string(directory.join(path)).unwrap()
}

#[test]
fn there_is_a_recipe_to_fork_for_every_one_that_runs() {
    let names: Vec<_> = stock_names().collect();
    assert_eq!(names, crate::modules::stock_names().collect::<Vec<_>>());
    assert!(template_names().any(|name| name == "minimal"));
}

#[test]
fn every_crate_is_whole_and_names_nothing_of_this_repository() {
    for origin in origins() {
        let (_parent, directory) = created(&origin);
        assert!(text(&directory, "Cargo.toml").contains("name = \"my-recipe\""));
        assert_eq!(text(&directory, "Cargo.lock").matches("name = \"my-recipe\"").count(), 1);
        for path in ["README.md", "src/lib.rs", "src/decide.rs", ".gitignore", "wok-sdk/LICENSE"] {
            assert!(directory.join(path).is_file(), "{origin:?}: {path}");
        }
        // The promise is whole: what its users do, and who judges it.
        for path in
            ["promise/workload.toml", "promise/judge/src/lib.rs", "wok-sdk/judge/src/lib.rs"]
        {
            assert!(directory.join(path).is_file(), "{origin:?}: {path}");
        }
        assert!(
            text(&directory, "promise/judge/Cargo.toml").contains("name = \"my-recipe-judge\"")
        );
        assert_eq!(text(&directory, "Cargo.lock").matches("name = \"my-recipe-judge\"").count(), 1);
        let bindings = text(&directory, "src/bindings.rs");
        assert!(bindings.contains("wok_sdk::bind!(\"wok-sdk/wit\", "), "{bindings}");
        assert!(!bindings.contains("../"), "{bindings}");
        assert_eq!(text(&directory, "wok-sdk/wit/recipe.wit"), wok_build::CONTRACT);
        let manifests = [
            "Cargo.toml",
            "promise/judge/Cargo.toml",
            "wok-sdk/Cargo.toml",
            "wok-sdk/judge/Cargo.toml",
        ];
        for path in manifests {
            let manifest: toml::Table = text(&directory, path).parse().unwrap();
            assert!(!manifest.to_string().contains("workspace = true"), "{path}");
        }
    }
}

#[test]
fn a_crate_from_a_template_has_its_own_name_inside() {
    let parent = tempfile::tempdir().unwrap();
    for (name, inside) in [("my_semaphore", "my-semaphore"), ("record", "seat"), ("a1-2", "seat")] {
        let directory = parent.path().join(name);
        create(&directory, &Origin::Template("minimal".to_owned())).unwrap();
        let wit = text(&directory, &format!("wit/{inside}.wit"));
        assert!(wit.contains(&format!("package my:{inside}@0.1.0;")), "{wit}");
        assert!(wit.contains(&format!("interface {inside} {{")), "{wit}");
        let path = format!("my::{0}::{0}::Guest", inside.replace('-', "_"));
        assert!(text(&directory, "src/lib.rs").contains(&path), "{name}");
        assert!(text(&directory, "src/bindings.rs").contains(&format!("my:{inside}/recipe")));
        let files = [
            "README.md",
            "src/lib.rs",
            "src/decide.rs",
            "promise/workload.toml",
            "promise/judge/src/lib.rs",
        ];
        for file in files {
            assert!(text(&directory, file).contains(inside), "{name}: {file}");
            assert_eq!(text(&directory, file).contains("seat"), inside == "seat", "{name}: {file}");
        }
    }
}

#[test]
fn the_lock_keeps_cargos_order_wherever_the_name_belongs() {
    let mut names = Vec::new();
    for name in ["aaa", "my-recipe", "recipe-judge", "zzz"] {
        let package = PackageName::of(Path::new(name)).unwrap();
        let lock = lock_file::naming(&package);
        assert!(lock.ends_with("]\n") || lock.ends_with("\"\n"), "{lock}");
        assert!(!lock.contains("\n\n\n"), "{lock}");
        let parsed: toml::Table = lock.parse().unwrap();
        let packages = parsed["package"].as_array().unwrap();
        names = packages.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        assert!(names.is_sorted(), "{names:?}");
        for ours in [name.to_owned(), format!("{name}-judge")] {
            assert_eq!(names.iter().filter(|it| **it == ours).count(), 1, "{names:?}");
        }
    }
    assert!(names.iter().all(|name| name != "recipe"));
}

#[test]
fn a_directory_with_something_in_it_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("notes"), "mine").unwrap();
    let named = directory.path().join("sub");
    fs::create_dir(&named).unwrap();
    for origin in origins() {
        let error = create(directory.path(), &origin).unwrap_err();
        // A temporary directory's name may start with a dot.
        assert!(matches!(error, ScaffoldError::NotEmpty { .. } | ScaffoldError::Name { .. }));
    }
    fs::write(named.join("notes"), "mine").unwrap();
    let error = create(&named, &origins()[0]).unwrap_err().to_string();
    assert!(error.contains("is not empty") && error.contains("--refresh-sdk"), "{error}");
    assert_eq!(fs::read_dir(&named).unwrap().count(), 1);
    fs::remove_file(named.join("notes")).unwrap();
    create(&named, &origins()[0]).unwrap();
}

#[test]
fn an_unknown_origin_is_told_what_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let unknown = Origin::Stock("locc".to_owned());
    let error = create(&directory.path().join("a"), &unknown).unwrap_err().to_string();
    for name in stock_names() {
        assert!(error.contains(name), "{error}");
    }
    assert!(!directory.path().join("a").exists());
}

#[test]
fn a_fresh_sdk_has_nothing_to_renew() {
    let (_parent, directory) = created(&origins()[0]);
    let refreshed = refresh(&directory).unwrap();
    assert_eq!(refreshed.changed, []);
    assert_eq!(refreshed.contract_before.as_ref(), Some(&refreshed.contract));
}

/// Makes the SDK one of another wok: the record belongs to it.
fn as_if_from_another_wok(directory: &Path, changes: &[(&str, Option<&str>)]) {
    let sdk = directory.join(vendored::DIRECTORY);
    for (path, text) in changes {
        match text {
            Some(text) => fs::write(sdk.join(path), text).unwrap(),
            None => fs::remove_file(sdk.join(path)).unwrap(),
        }
    }
    let listed = std::process::Command::new("sh")
        .args(["-c", "find . -type f ! -name SHA256SUMS -printf '%P\\n' | xargs sha256sum"])
        .current_dir(&sdk)
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    fs::write(sdk.join("SHA256SUMS"), listed.stdout).unwrap();
}

#[test]
fn an_older_sdk_is_replaced_and_every_change_is_told() {
    let (_parent, directory) = created(&origins()[0]);
    fs::write(directory.join("src/lib.rs"), "// mine\n").unwrap();
    as_if_from_another_wok(
        &directory,
        &[
            ("wit/recipe.wit", Some("package wok:recipe@0.0.9;\n")),
            ("src/old.rs", Some("// gone since\n")),
            ("src/own.rs", None),
        ],
    );
    let refreshed = refresh(&directory).unwrap();
    let told: Vec<_> = refreshed.changed.iter().map(|it| (it.path.as_str(), it.change)).collect();
    let expected = [
        ("wok-sdk/src/old.rs", Change::Removed),
        ("wok-sdk/src/own.rs", Change::Added),
        ("wok-sdk/wit/recipe.wit", Change::Replaced),
    ];
    assert_eq!(told, expected);
    assert_eq!(refreshed.contract_before.as_deref(), Some("0.0.9"));
    assert_eq!(text(&directory, "wok-sdk/wit/recipe.wit"), wok_build::CONTRACT);
    assert_eq!(text(&directory, "src/lib.rs"), "// mine\n");
    assert_eq!(refresh(&directory).unwrap().changed, []);
}

#[test]
fn an_sdk_that_was_changed_by_hand_is_not_written_over() {
    let (_parent, directory) = created(&origins()[0]);
    let edited = directory.join("wok-sdk/src/own.rs");
    fs::write(&edited, "// mine\n").unwrap();
    let error = refresh(&directory).unwrap_err().to_string();
    assert!(error.contains("wok-sdk/src/own.rs") && error.contains("delete"), "{error}");
    assert_eq!(fs::read_to_string(&edited).unwrap(), "// mine\n");
    fs::remove_file(&edited).unwrap();
    assert_eq!(refresh(&directory).unwrap().changed.len(), 1);
}

#[test]
fn a_record_that_leads_elsewhere_is_not_followed() {
    let (_parent, directory) = created(&origins()[0]);
    let record = directory.join("wok-sdk/SHA256SUMS");
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    for path in ["../src/empty.rs", "/etc/hostname", ""] {
        fs::write(directory.join("src/empty.rs"), "").unwrap();
        fs::write(&record, format!("{digest}  {path}\n")).unwrap();
        let error = refresh(&directory).unwrap_err();
        assert!(matches!(error, ScaffoldError::NoSdk { .. }), "{path}: {error}");
        assert!(directory.join("src/empty.rs").exists());
    }
}

#[test]
fn a_directory_that_is_no_recipes_has_no_sdk_to_renew() {
    let directory = tempfile::tempdir().unwrap();
    let error = refresh(directory.path()).unwrap_err().to_string();
    assert!(error.contains("SHA256SUMS is not there"), "{error}");
}
