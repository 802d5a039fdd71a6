//! What a new root takes over from the machine around it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::workspace::QUESTION;

/// How the network is reached, and whose certificates are believed.
const FILES: &[&str] = &[
    "etc/resolv.conf",
    "etc/hosts",
    "etc/ssl/certs/ca-certificates.crt",
    "etc/apt/sources.list",
    "etc/npmrc",
    "etc/pip.conf",
];

/// The apt sources, the keys they name, and what is preferred.
const DIRECTORIES: &[&str] = &[
    "etc/apt/sources.list.d",
    "etc/apt/trusted.gpg.d",
    "etc/apt/keyrings",
    "etc/apt/preferences.d",
    "usr/share/keyrings",
];

/// Copies the files that belong to the machine into `root`.
pub(super) fn carry(root: &Path) -> Result<()> {
    // Ours would be doubled by the one debootstrap writes; a machine may have none of its own.
    let _none = std::fs::remove_file(root.join("etc/apt/sources.list"));
    for name in FILES {
        copy(&Path::new("/").join(name), &root.join(name))?;
    }
    for name in DIRECTORIES {
        let Ok(files) = std::fs::read_dir(Path::new("/").join(name)) else {
            continue;
        };
        for file in files.flatten() {
            copy(&file.path(), &root.join(name).join(file.file_name()))?;
        }
    }
    for name in ["config.toml", "config"] {
        copy(&cargo_home().join(name), &root.join("root/.cargo").join(name))?;
    }
    let settings = root.join("etc/apt/apt.conf.d/90-outer-machine");
    std::fs::write(&settings, transport(&apt(&["apt-config", "dump"])?))
        .with_context(|| format!("write {}", settings.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_file() {
        return Ok(());
    }
    let parent = to.parent().context("a file has a parent")?;
    std::fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
    std::fs::copy(from, to).map(|_| ()).with_context(|| format!("copy {}", from.display()))
}

fn cargo_home() -> PathBuf {
    let home = || Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

fn apt(words: &[&str]) -> Result<String> {
    let (program, arguments) = words.split_first().context("a command has a program")?;
    let mut command = Command::new(program);
    process::capture(program, command.env("LC_ALL", "C.UTF-8").args(arguments), QUESTION)
}

/// The mirror that this machine's apt fetches `release` from.
pub(super) fn mirror(release: &str) -> Result<String> {
    let format = "$(CREATED_BY) $(RELEASE) $(COMPONENT) $(REPO_URI)";
    let targets = apt(&["apt-get", "indextargets", "--format", format])?;
    read_mirror(&targets, release)
        .with_context(|| format!("apt on this machine has no source for Debian {release}"))
}

fn read_mirror(targets: &str, release: &str) -> Option<String> {
    let wanted = format!("Packages {release} main ");
    targets.lines().find_map(|line| line.strip_prefix(&wanted)).map(str::to_owned)
}

/// From what apt is configured with: how it fetches, but none of the hooks, which name programs
/// of the outer machine.
fn transport(settings: &str) -> String {
    settings
        .lines()
        .filter(|line| line.starts_with("Acquire::") && !line.starts_with("Acquire::IndexTargets"))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// From the variables of this process: proxies, certificates, and how cargo, npm and pip fetch.
/// Tokens stay outside.
pub(super) fn variables(
    all: impl Iterator<Item = (String, String)>,
) -> impl Iterator<Item = (String, String)> {
    const PREFIXES: [&str; 9] = [
        "SSL_CERT_",
        "NODE_EXTRA_CA_CERTS",
        "PIP_CERT",
        "PIP_DEFAULT_TIMEOUT",
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTRIES_",
        "CARGO_REGISTRY_",
        "CARGO_SOURCE_",
    ];
    all.filter(|(name, _)| {
        let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
        let is_fetching = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        is_proxy || (is_fetching && !name.ends_with("_TOKEN"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_of_the_release_itself() {
        let targets = "Translations bookworm main http://mirror/t/\n\
                       Packages bookworm-updates main http://mirror/u/\n\
                       Packages bookworm main http://mirror/debian/\n";
        assert_eq!(read_mirror(targets, "bookworm").as_deref(), Some("http://mirror/debian/"));
        assert_eq!(read_mirror(targets, "trixie"), None);
    }

    #[test]
    fn apt_keeps_how_it_fetches_and_loses_its_hooks() {
        let settings = "Acquire::Check-Date \"false\";\nAcquire::IndexTargets::deb \"\";\n\
                        DPkg::Post-Invoke:: \"tidy\";\n";
        assert_eq!(transport(settings), "Acquire::Check-Date \"false\";\n");
    }

    #[test]
    fn proxies_and_certificates_are_carried_and_tokens_are_not() {
        let names = [
            "https_proxy",
            "NO_PROXY",
            "SSL_CERT_FILE",
            "CARGO_REGISTRY_TOKEN",
            "CARGO",
            "CARGO_NET_RETRY",
            "NODE_EXTRA_CA_CERTS",
            "HOME",
        ];
        let all = names.iter().map(|name| ((*name).to_owned(), String::new()));
        let kept: Vec<_> = variables(all).map(|(name, _)| name).collect();
        let wanted =
            ["https_proxy", "NO_PROXY", "SSL_CERT_FILE", "CARGO_NET_RETRY", "NODE_EXTRA_CA_CERTS"];
        assert_eq!(kept, wanted);
    }
}
