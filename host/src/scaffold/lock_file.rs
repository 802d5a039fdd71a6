//! The versions that a recipe and its judge are built with: those that this binary's own were.

use super::PackageName;

/// As cargo made it for a crate called `recipe`; a test has cargo make it again.
const LOCK: &str = include_str!("../../../guest-sdk/standalone/recipe.lock");

/// What stands between two packages.
const BETWEEN: &str = "\n[[package]]\n";

/// What the packages of the recipe and of its judge are called there.
const OWN: [&str; 2] = ["recipe", "recipe-judge"];

/// The lock of a crate of this name, to the letter as cargo writes it: cargo keeps packages in the
/// order of their names, and would write a file in another order anew.
pub(super) fn naming(package: &PackageName) -> String {
    let named = |part: &str| match OWN.iter().find(|own| name(part) == **own) {
        Some(own) => {
            let ours = own.replacen("recipe", &package.to_string(), 1);
            part.replacen(&format!("name = \"{own}\""), &format!("name = \"{ours}\""), 1)
        }
        None => part.to_owned(),
    };
    let mut parts = LOCK.split(BETWEEN);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut packages: Vec<String> = parts.map(str::trim_end).map(named).collect();
    packages.sort_by(|one, other| name(one).cmp(name(other)));
    for package in packages {
        text.push_str(BETWEEN);
        text.push_str(&package);
        text.push('\n');
    }
    text
}

/// The packages that every recipe, or its judge, depends on.
pub(super) fn packages() -> impl Iterator<Item = &'static str> {
    LOCK.split(BETWEEN).skip(1).map(name).filter(|name| !OWN.contains(name))
}

fn name(part: &str) -> &str {
    let line = part.lines().next().unwrap_or_default();
    line.trim_start_matches("name = ").trim_matches('"')
}
