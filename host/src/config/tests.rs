//! Whole files in, findings and values out.

mod accepted;
mod api;
mod damaged;
mod files;
mod places;
mod text;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

/// Where a text is expected to be marked.
const MARK: char = '»';

/// A directory with the files that configurations in these tests name.
struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        let directory = Directory(TempDir::new().unwrap());
        directory.write("credentials", "wok:geheim\n", 0o600);
        directory.write("ca.pem", "-----BEGIN CERTIFICATE-----\n", 0o644);
        directory.write("cert.pem", "x\r\n-----BEGIN CERTIFICATE-----\r\n", 0o644);
        directory.write("key.pem", "-----BEGIN EC PRIVATE KEY-----\n", 0o600);
        directory.write("scheduler", "#!/bin/sh\n", 0o755);
        directory
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn parse(&self, text: &str) -> Result<Loaded, ConfigErrors> {
        Config::parse(text, &self.path("wok.toml"))
    }

    /// The findings of a text that must be refused.
    #[track_caller]
    fn errors(&self, text: &str) -> Vec<Finding> {
        self.parse(text).map(|_| ()).expect_err(text).findings().to_vec()
    }
}

/// Takes the marks out of a text, and tells their lines and columns.
fn unmarked(text: &str) -> (String, Vec<(usize, usize)>) {
    let mut places = Vec::new();
    let (mut line, mut column) = (1, 1);
    for character in text.chars() {
        match character {
            MARK => places.push((line, column)),
            '\n' => (line, column) = (line + 1, 1),
            _ => column += 1,
        }
    }
    (text.replace(MARK, ""), places)
}

/// A text of one session and one recipe must be refused with these findings and no others, each at
/// the mark of the same rank.
#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    let (text, places) = unmarked(text);
    let found = Directory::new().errors(&text);
    let found: Vec<_> =
        found.iter().map(|e| ((e.line, e.column), e.message.as_str(), e.remedy.as_str())).collect();
    assert_eq!(places.len(), expected.len(), "marks in the text");
    let expected: Vec<_> = places
        .into_iter()
        .zip(expected)
        .map(|(place, (message, remedy))| (place, *message, *remedy))
        .collect();
    assert_eq!(found, expected, "\n{text}");
}

/// As [`check`], for lines of `[zookeeper]`.
#[track_caller]
fn check_session(lines: &str, message: &str, remedy: &str) {
    check(&format!("[zookeeper]\n{lines}\n[recipes]\n"), &[(message, remedy)]);
}

/// As [`check`], for lines of a recipe that has a module and a mount already.
#[track_caller]
fn check_recipe(lines: &str, message: &str, remedy: &str) {
    let text = format!(
        "[zookeeper]\nconnect = \"zk1\"\n[recipes.r]\nmodule = \"lock\"\nmount = \"/r\"\n{lines}\n"
    );
    check(&text, &[(message, remedy)]);
}
