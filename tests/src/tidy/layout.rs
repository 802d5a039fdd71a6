//! Where things are and what they are called.

use std::collections::BTreeSet;

use super::{File, Finding};

const VAGUE: [&str; 5] = ["utils", "common", "helpers", "types", "manager"];
const LONGEST: usize = 600;

pub(super) fn no_mod_rs(files: &[File]) -> Vec<Finding> {
    let is_mod = |file: &&File| file.path.rsplit('/').next() == Some("mod.rs");
    let finding = |file: &File| file.finding(0, "move it to a file named after the module");
    files.iter().filter(is_mod).map(finding).collect()
}

pub(super) fn no_vague_names(files: &[File]) -> Vec<Finding> {
    let vague = |file: &File| {
        let mut parts = file.path.split('/').map(|part| part.trim_end_matches(".rs"));
        parts.find(|part| VAGUE.contains(part)).map(str::to_owned)
    };
    let finding = |file: &File| {
        vague(file).map(|name| {
            file.finding(0, format!("`{name}` says nothing: name it after what it does"))
        })
    };
    files.iter().filter(|file| file.is_rust()).filter_map(finding).collect()
}

pub(super) fn no_long_files(files: &[File]) -> Vec<Finding> {
    let finding = |file: &File| {
        let length = file.text.lines().count();
        (length > LONGEST).then(|| file.finding(length, format!("{length} lines: split it")))
    };
    files.iter().filter(|file| file.is_rust()).filter_map(finding).collect()
}

/// A file that no `mod` names is compiled by nobody, and its tests are played by nobody.
pub(super) fn no_orphans(files: &[File]) -> Vec<Finding> {
    let is_manifest = |file: &&File| file.path.ends_with("Cargo.toml");
    let manifests: String =
        files.iter().filter(is_manifest).map(|file| file.text.as_str()).collect();
    // What cargo compiles by itself, or because a manifest names it.
    let is_target = |directory: &str, name: &str| {
        let within = directory.rsplit('/').next().unwrap_or_default();
        ["main", "lib", "build"].contains(&name)
            || ["bin", "examples", "tests"].contains(&within)
            || manifests.contains(&format!("{within}/{name}.rs\""))
    };
    let is_module = |directory: &str, name: &str| {
        let declared = format!("mod {name};");
        let above = format!("{directory}.rs");
        files.iter().any(|file| {
            let beside = file.path.rsplit_once('/').is_some_and(|(of, _)| of == directory);
            (beside || file.path == above)
                && file.text.lines().any(|line| line.ends_with(&declared))
        })
    };
    let is_orphan = |file: &&File| {
        file.path.strip_suffix(".rs").and_then(|path| path.rsplit_once('/')).is_some_and(
            |(directory, name)| !is_target(directory, name) && !is_module(directory, name),
        )
    };
    let finding = |file: &File| file.finding(0, "nobody compiles it: name it with a `mod`");
    files.iter().filter(is_orphan).map(finding).collect()
}

pub(super) fn recipes_are_whole(files: &[File]) -> Vec<Finding> {
    let inside = |file: &File| {
        let (recipe, rest) = file.path.strip_prefix("recipes-wasm/")?.split_once('/')?;
        Some((recipe.to_owned(), rest.to_owned()))
    };
    let there: BTreeSet<_> = files.iter().filter_map(inside).collect();
    let recipes: BTreeSet<_> = there.iter().map(|(recipe, _)| recipe).collect();
    let mut findings = Vec::new();
    for recipe in recipes {
        let mut want = |what: &str, is_there: &dyn Fn(&str) -> bool| {
            if !there.iter().any(|(of, part)| of == recipe && is_there(part)) {
                findings.push(Finding {
                    path: format!("recipes-wasm/{recipe}/{what}"),
                    line: 0,
                    what: "every recipe has one".into(),
                });
            }
        };
        let parts = [
            "README.md",
            "src/lib.rs",
            "src/decide.rs",
            "promise/workload.toml",
            "promise/judge/src/lib.rs",
        ];
        for part in parts {
            want(part, &|there| there == part);
        }
        want("wit/*.wit", &|there| there.starts_with("wit/") && there.ends_with(".wit"));
    }
    findings
}

pub(super) fn one_contract(files: &[File]) -> Vec<Finding> {
    let is_wit = |file: &&File| file.path.ends_with(".wit");
    let misplaced = |file: &&File| {
        !file.path.starts_with("guest-sdk/wit/")
            && file.text.lines().any(|line| line.trim_start().starts_with("package wok:recipe@"))
    };
    let finding = |file: &File| file.finding(0, "a second contract: include guest-sdk/wit");
    files.iter().filter(is_wit).filter(misplaced).map(finding).collect()
}
