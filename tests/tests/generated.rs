//! Files that are checked in and could be made: they are what they would be made today.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use wok::scaffold::{self, Origin};
use wok_tests::contract_page::contract_page;
use wok_tests::{generated, scratch};

fn repository() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository's root")
}

/// A recipe that stands alone.
fn recipe() -> Result<(tempfile::TempDir, std::path::PathBuf)> {
    let directory = scratch::dir()?;
    let recipe = directory.path().join("my-recipe");
    scaffold::create(&recipe, &Origin::Template("minimal".to_owned()))?;
    Ok((directory, recipe))
}

/// What cargo says of a workspace. It writes a lock that is not as it should be.
fn metadata(directory: &Path, more: &[&str]) -> Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline"])
        .args(more)
        .current_dir(directory)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {said}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn package<'a>(metadata: &'a Value, name: &str) -> Result<&'a Value> {
    let packages = metadata["packages"].as_array().context("packages")?;
    packages.iter().find(|it| it["name"] == name).with_context(|| format!("no package {name}"))
}

#[test]
fn the_lock_of_a_new_recipe_is_what_cargo_makes_of_the_workspaces() -> Result<()> {
    let (_directory, recipe) = recipe()?;
    fs::copy(repository()?.join("Cargo.lock"), recipe.join("Cargo.lock"))?;
    metadata(&recipe, &[])?;
    let lock = fs::read_to_string(recipe.join("Cargo.lock"))?;
    let lock = lock.replacen("name = \"my-recipe\"", "name = \"recipe\"", 1);
    let lock = lock.replacen("name = \"my-recipe-judge\"", "name = \"recipe-judge\"", 1);
    generated::check("guest-sdk/standalone/recipe.lock", &lock)
}

#[test]
fn a_vendored_sdk_asks_for_what_the_workspaces_does() -> Result<()> {
    let (_directory, recipe) = recipe()?;
    let alone = metadata(&recipe, &["--no-deps"])?;
    let ours = metadata(repository()?, &["--no-deps"])?;
    for name in ["wok-sdk", "wok-judge"] {
        let asks = |metadata: &Value| -> Result<Value> {
            let sdk = package(metadata, name)?;
            let keys =
                ["version", "edition", "rust_version", "license", "dependencies", "features"];
            Ok(keys.into_iter().map(|key| (key.to_owned(), sdk[key].clone())).collect())
        };
        assert_eq!(asks(&alone)?, asks(&ours)?);
    }
    Ok(())
}

/// A fork's judge is the stock recipe's, with another manifest.
#[test]
fn a_new_judge_may_use_what_the_stock_ones_do() -> Result<()> {
    let (_directory, recipe) = recipe()?;
    let alone = metadata(&recipe, &["--no-deps"])?;
    let ours = metadata(repository()?, &["--no-deps"])?;
    let alone = package(&alone, "my-recipe-judge")?;
    let asked = |judge: &Value| -> Result<Vec<Value>> {
        let dependencies = judge["dependencies"].as_array().context("dependencies")?;
        let keys = ["name", "req", "features", "uses_default_features"];
        let asked = |it: &Value| keys.into_iter().map(|key| it[key].clone()).collect();
        Ok(dependencies.iter().map(asked).collect())
    };
    let there = asked(alone)?;
    let mut seen = 0;
    for stock in ours["packages"].as_array().context("packages")? {
        let manifest = stock["manifest_path"].as_str().unwrap_or_default();
        if !manifest.ends_with("/promise/judge/Cargo.toml") {
            continue;
        }
        seen += 1;
        for same in ["edition", "rust_version", "features"] {
            assert_eq!(stock[same], alone[same], "{manifest}: {same}");
        }
        assert_eq!(stock["targets"][0]["crate_types"], alone["targets"][0]["crate_types"]);
        for dependency in asked(stock)? {
            assert!(there.contains(&dependency), "{manifest}: a new judge has no {dependency}");
        }
    }
    assert_eq!(seen, scaffold::stock_names().count() + scaffold::template_names().count());
    Ok(())
}

#[test]
fn a_new_recipe_is_built_as_the_stock_ones_are() -> Result<()> {
    let (_directory, recipe) = recipe()?;
    let alone = metadata(&recipe, &["--no-deps"])?;
    let alone = package(&alone, "my-recipe")?;
    let ours = metadata(repository()?, &["--no-deps"])?;
    let root = repository()?.display().to_string();
    let mut seen = 0;
    for stock in ours["packages"].as_array().context("packages")? {
        let manifest = stock["manifest_path"].as_str().unwrap_or_default();
        let path = manifest.strip_prefix(&root).unwrap_or(manifest);
        let is_guest =
            path.starts_with("/recipes-wasm/") || path.starts_with("/guest-sdk/templates/");
        // What stands beside a recipe is no recipe.
        if !is_guest || path.contains("/promise/") {
            continue;
        }
        seen += 1;
        for same in ["edition", "rust_version", "features"] {
            assert_eq!(stock[same], alone[same], "{path}: {same}");
        }
        let dependencies = stock["dependencies"].as_array().context("dependencies")?;
        let names: Vec<_> = dependencies.iter().map(|it| it["name"].clone()).collect();
        assert_eq!(names, [json!("wok-sdk")], "{path}: a new recipe's manifest has this one only");
        assert_eq!(
            stock["targets"][0]["crate_types"], alone["targets"][0]["crate_types"],
            "{path}"
        );
    }
    assert_eq!(seen, scaffold::stock_names().count() + scaffold::template_names().count());

    let profile = |directory: &Path| -> Result<toml::Value> {
        let manifest: toml::Table = fs::read_to_string(directory.join("Cargo.toml"))?.parse()?;
        let profile = manifest.get("profile").and_then(|it| it.get("guest"));
        profile.cloned().context("no profile")
    };
    assert_eq!(profile(&recipe)?, profile(repository()?)?);
    Ok(())
}

#[test]
fn the_page_on_the_contract_says_what_the_contract_says() -> Result<()> {
    let wit = "guest-sdk/wit/recipe.wit";
    let text = fs::read_to_string(repository()?.join(wit))?;
    generated::check("docs/contract.md", &contract_page(wit, &text)?)
}
