//! The distribution's packages: what is on offer, and its installation.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Result, bail};

use super::{INSTALL, Package};
use crate::workspace::QUESTION;
use crate::{process, workspace};

/// What to do next about packages that are wanted.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The lists are missing or too old.
    Update,
    Install,
    /// Fresh lists do not offer these.
    Hopeless(Vec<&'static str>),
}

/// Whether the lists were fetched in this run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lists {
    AsFound,
    Fresh,
}

/// Installs `packages`, or fails with the one command to type.
pub(crate) fn install(packages: &[Package]) -> Result<()> {
    let names: Vec<_> = packages.iter().map(|package| package.name).collect();
    let by_hand =
        format!("apt-get update && apt-get install -y --no-install-recommends {}", names.join(" "));
    if !super::server::is_on_path("apt-get") {
        bail!("this is no Debian; on one it would be `{by_hand}`");
    }
    if !rustix::process::geteuid().is_root() {
        bail!("only root can install packages; type: sudo sh -c '{by_hand}'");
    }
    let mut lists = Lists::AsFound;
    loop {
        match decide(packages, &candidates(&names)?, lists) {
            Step::Hopeless(names) => bail!(
                "the configured apt sources do not offer {} in a version that serves",
                names.join(", ")
            ),
            Step::Update => lists = update()?,
            Step::Install => match apt(&format!("installing {}", names.join(" ")), &names) {
                // Lists that are too old name files that their server no longer has.
                Err(error) if lists == Lists::AsFound && !is_stop(&error) => lists = update()?,
                outcome => return outcome,
            },
        }
    }
}

fn update() -> Result<Lists> {
    run("fetching the package lists", Command::new("apt-get").arg("update"), "apt-update.log")?;
    Ok(Lists::Fresh)
}

fn apt(text: &str, names: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    // `--no-remove`: what the user has installed is never traded for what we want.
    command
        .args(["install", "-y", "--no-install-recommends", "--no-remove"])
        .args(["-o", "DPkg::Lock::Timeout=120"])
        .args(names);
    run(text, &mut command, "apt-install.log")
}

fn run(text: &str, command: &mut Command, log: &str) -> Result<()> {
    command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8");
    process::run_quietly(text, command, INSTALL, &workspace::notes()?.join(log))
}

fn is_stop(error: &anyhow::Error) -> bool {
    error.is::<crate::stop::Stopped>()
}

/// Pure: what to do next, from what is wanted and on offer.
fn decide(wanted: &[Package], offered: &BTreeMap<String, String>, lists: Lists) -> Step {
    let serves = |package: &&Package| {
        offered.get(package.name).is_some_and(|version| first_numbers(version) >= package.at_least)
    };
    let lacking: Vec<_> =
        wanted.iter().filter(|package| !serves(package)).map(|package| package.name).collect();
    match lists {
        _ if lacking.is_empty() => Step::Install,
        Lists::AsFound => Step::Update,
        Lists::Fresh => Step::Hopeless(lacking),
    }
}

fn candidates(names: &[&str]) -> Result<BTreeMap<String, String>> {
    let mut command = Command::new("apt-cache");
    command.env("LC_ALL", "C.UTF-8").arg("policy").args(names);
    Ok(read_policy(&process::capture("apt-cache policy", &mut command, QUESTION)?))
}

/// Reads the candidate of each package from what `apt-cache policy` prints.
fn read_policy(text: &str) -> BTreeMap<String, String> {
    let mut candidates = BTreeMap::new();
    let mut package = "";
    for line in text.lines() {
        if let Some(version) = line.trim_start().strip_prefix("Candidate: ") {
            if version != "(none)" {
                candidates.insert(package.to_owned(), version.to_owned());
            }
        } else if !line.starts_with(' ') {
            package = line.trim_end_matches(':');
        }
    }
    candidates
}

/// The first two numbers of a version, without a Debian epoch; what is no number counts as zero.
pub(super) fn first_numbers(version: &str) -> (u32, u32) {
    let version = version.split_once(':').map_or(version, |(_epoch, rest)| rest);
    let mut numbers = version
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|digits| digits.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILER: Package = Package { name: "rustc-web", at_least: (1, 95) };

    const POLICY: &str = "\
rustc-web:
  Installed: (none)
  Candidate: 1.96.0+dfsg1-1~deb12u2
  Version table:
     1.96.0+dfsg1-1~deb12u2 500
        500 mirror bookworm-security/main amd64 Packages
openjdk-17-jre-headless:
  Installed: 17.0.15+6-1~deb12u1
  Candidate: (none)
";

    fn offers(version: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("rustc-web".into(), version.into())])
    }

    #[track_caller]
    fn check(offered: &BTreeMap<String, String>, lists: Lists, step: &Step) {
        assert_eq!(decide(&[COMPILER], offered, lists), *step);
    }

    #[test]
    fn what_is_on_offer_in_a_version_that_serves_is_installed_without_an_update() {
        check(&offers("1.96.0+dfsg1-1~deb12u2"), Lists::AsFound, &Step::Install);
        check(&offers("1.95.0"), Lists::Fresh, &Step::Install);
        check(&offers("2.0"), Lists::Fresh, &Step::Install);
    }

    #[test]
    fn missing_or_old_lists_are_fetched_once() {
        for offered in [BTreeMap::new(), offers("1.85.0+dfsg3-1~deb12u3")] {
            check(&offered, Lists::AsFound, &Step::Update);
            check(&offered, Lists::Fresh, &Step::Hopeless(vec!["rustc-web"]));
        }
    }

    #[test]
    fn a_policy_gives_the_candidates_and_leaves_out_what_is_not_offered() {
        assert_eq!(read_policy(POLICY), offers("1.96.0+dfsg1-1~deb12u2"));
        assert_eq!(read_policy(""), BTreeMap::new());
    }

    #[test]
    fn versions_compare_by_their_first_two_numbers() {
        assert_eq!(first_numbers("1.96.0+dfsg1-1~deb12u2"), (1, 96));
        assert_eq!(first_numbers("2:1.9-1"), (1, 9));
        assert_eq!(first_numbers("1.95"), (1, 95));
        assert_eq!(first_numbers("nonsense"), (0, 0));
    }
}
