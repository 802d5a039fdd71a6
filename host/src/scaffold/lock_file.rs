//! The versions that a recipe is built with: those that this binary's own stock recipes were.

use super::PackageName;

/// As cargo made it for a crate called `recipe`; a test has cargo make it again.
const LOCK: &str = include_str!("../../../guest-sdk/standalone/recipe.lock");

/// What stands between two packages.
const BETWEEN: &str = "\n[[package]]\n";

/// The lock of a crate of this name, to the letter as cargo writes it: cargo keeps packages in the
/// order of their names, and would write a file in another order anew.
pub(super) fn naming(package: &PackageName) -> String {
    let own = format!("name = \"{package}\"");
    let mut parts = LOCK.split(BETWEEN);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut packages: Vec<String> =
        parts.map(str::trim_end).map(|part| part.replacen("name = \"recipe\"", &own, 1)).collect();
    packages.sort_by(|one, other| name(one).cmp(name(other)));
    for package in packages {
        text.push_str(BETWEEN);
        text.push_str(&package);
        text.push('\n');
    }
    text
}

/// The packages that every recipe depends on.
pub(super) fn packages() -> impl Iterator<Item = &'static str> {
    LOCK.split(BETWEEN).skip(1).map(name).filter(|name| *name != "recipe")
}

fn name(part: &str) -> &str {
    let line = part.lines().next().unwrap_or_default();
    line.trim_start_matches("name = ").trim_matches('"')
}
