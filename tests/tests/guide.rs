//! The guide in `docs/` is true: its commands do what it shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use wok::simulation::history::FaultKind;
use wok_tests::authors::Workshop;
use wok_tests::guide::{Reader, steps};
use wok_tests::tidy::{CHECKS, File};

fn docs() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the root")?.join("docs"))
}

/// The pages by their names, which are their paths without `.md`.
fn pages() -> Result<Vec<(String, String)>> {
    let root = docs()?;
    let (mut pages, mut directories) = (Vec::new(), vec![root.clone()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(&root)?.with_extension("");
                pages.push((name.to_string_lossy().into_owned(), fs::read_to_string(&path)?));
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Pages for those who change wok are played in a copy of the checkout.
const FOR_CONTRIBUTORS: &str = "contributing/";

#[tokio::test]
async fn every_page_does_what_it_says() -> Result<()> {
    let shop = Workshop::open()?;
    let mut played = 0;
    for (name, text) in pages()? {
        let is_played = !steps(&text).with_context(|| name.clone())?.is_empty();
        if !is_played || name.starts_with(FOR_CONTRIBUTORS) {
            continue;
        }
        played += 1;
        let mut reader = Reader::begin(&shop, &name)?;
        reader.play(&text).await.with_context(|| format!("docs/{name}.md"))?;
    }
    ensure!(played >= 4, "only {played} pages have something to play");
    Ok(())
}

#[tokio::test]
async fn the_page_of_a_new_stock_recipe_makes_one() -> Result<()> {
    let shop = Workshop::open()?;
    let mut reader = Reader::begin(&shop, "wok")?;
    let checkout = shop.path().join("wok");
    copy(docs()?.parent().context("the root")?, &checkout)?;
    let page = fs::read_to_string(docs()?.join("contributing/new-stock-recipe.md"))?;
    reader.play(&page).await?;
    // What the build script compiles, and what it says of the crates: those of the workspace.
    let listed = shop.run("cd wok && cargo metadata --no-deps --format-version 1")?;
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout)?;
    let packages = listed["packages"].as_array().context("packages")?;
    for name in ["wok-seat", "wok-seat-judge"] {
        ensure!(packages.iter().any(|it| it["name"] == name), "{name} is not in the workspace");
    }
    ensure!(checkout.join("tests/mutants/sits-beside.patch").is_file());
    let recipe = files_below(&checkout, &checkout.join("recipes-wasm/seat"))?;
    let findings: Vec<_> = CHECKS.iter().flat_map(|check| (check.run)(&recipe)).collect();
    ensure!(findings.is_empty(), "{findings:#?}");
    Ok(())
}

/// As the style guide's checks read them.
fn files_below(root: &Path, directory: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(root, &path)?);
        } else {
            let name = path.strip_prefix(root)?.display().to_string();
            files.push(File { path: name, text: fs::read_to_string(&path)? });
        }
    }
    Ok(files)
}

/// A checkout, without what was built in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if [".git", "target", "node_modules"].iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
        } else if entry.file_type()?.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_page_that_is_not_true_is_found() -> Result<()> {
    let shop = Workshop::open()?;
    let mut reader = Reader::begin(&shop, "untrue")?;
    reader
        .play("```console run\n$ echo one; echo two\none\ntwo\n$ false\n$ echo $?\n1\n```\n")
        .await?;
    for (page, told) in [
        ("```console run\n$ echo two; echo one\none\ntwo\n```\n", "\"two\""),
        ("```console run\n$ (exit 3)\n```\n", "exit code 3"),
        ("```console serve\n$ echo three\nfour\n```\n", "\"four\""),
        ("```diff apply\n--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n```\n", "does not apply"),
    ] {
        let error = format!("{:#}", reader.play(page).await.expect_err(page));
        assert!(error.contains(told), "{error}");
    }
    Ok(())
}

#[test]
fn the_page_of_scenarios_has_every_fault() -> Result<()> {
    let page = fs::read_to_string(docs()?.join("scenarios.md"))?;
    let rows: BTreeSet<&str> = page
        .lines()
        .skip_while(|line| *line != "### Faults")
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|name| !name.starts_with('{'))
        .collect();
    let faults: BTreeSet<&str> = FaultKind::ALL.iter().map(|fault| fault.name()).collect();
    assert_eq!(rows, faults);
    Ok(())
}

#[test]
fn the_summary_has_every_page_and_no_link_leads_nowhere() -> Result<()> {
    let pages = pages()?;
    let names: BTreeSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    let root = docs()?;
    for (name, text) in &pages {
        let mut linked = BTreeSet::new();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let directory = root.join(name).parent().context("a directory")?.to_owned();
            ensure!(directory.join(file).exists(), "docs/{name}.md: {target} leads nowhere");
            linked.insert(file.trim_end_matches(".md"));
        }
        if name == "SUMMARY" {
            let missing: Vec<_> =
                names.iter().filter(|it| **it != "SUMMARY" && !linked.contains(**it)).collect();
            ensure!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
        }
    }
    Ok(())
}
