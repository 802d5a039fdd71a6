//! The parts of the style guide that a program can check, on the text of the files under version
//! control. What a compiler lint checks is left to the lint.
//!
//! A rule that has to be broken is broken in the open: the line above says `tidy:` and why.

mod layout;
mod rust;
mod text;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path from the repository's root.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines with their numbers from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Whether the line above `number` says why a rule is broken there.
    fn is_excused(&self, number: usize) -> bool {
        let above = number.checked_sub(2).and_then(|index| self.text.lines().nth(index));
        above.is_some_and(|line| {
            line.trim_start().strip_prefix("// tidy: ").is_some_and(|why| why.len() > 10)
        })
    }

    fn finding(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, what: what.into() }
    }
}

/// Something that is not as the style guide wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub path: String,
    /// From 1; 0 is the file as a whole.
    pub line: usize,
    /// What, and the remedy.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name, in words.
    pub name: &'static str,
    /// What breaks it.
    pub run: fn(&[File]) -> Vec<Finding>,
}

/// All the rules.
pub const CHECKS: [Check; 18] = [
    Check { name: "modules are name.rs, not mod.rs", run: layout::no_mod_rs },
    Check { name: "no module is called utils and the like", run: layout::no_vague_names },
    Check { name: "no file is longer than 600 lines", run: layout::no_long_files },
    Check { name: "every file is compiled", run: layout::no_orphans },
    Check { name: "every recipe has its three parts", run: layout::recipes_are_whole },
    Check { name: "the contract exists once", run: layout::one_contract },
    Check { name: "only the session room knows the client", run: rust::client_in_session },
    Check { name: "only the guest room knows wasmtime", run: rust::wasmtime_in_guest },
    Check { name: "no recipe is named outside `cli`", run: rust::recipes_in_cli },
    Check { name: "no room of the host knows one above", run: rust::rooms_know_lower_ones },
    Check { name: "tasks start in `tasks` only", run: rust::tasks_in_tasks },
    Check { name: "the session room asks only `clock` for the time", run: rust::time_from_clock },
    Check { name: "no test is switched off or hopes for a panic", run: rust::no_excused_tests },
    Check { name: "no test sleeps", run: rust::no_sleeps },
    Check { name: "every allow has a reason", run: rust::reasoned_allows },
    Check { name: "no blanks at line ends, no paths of a machine", run: text::clean_text },
    Check { name: "documents name tests that exist", run: text::tests_that_exist },
    Check { name: "documents name files and items that exist", run: text::places_that_exist },
];

/// The files under version control and those that are about to be, as far as they are text.
///
/// # Errors
/// If `git` cannot list them.
pub fn repository() -> Result<Vec<File>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository's root")?;
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("run git")?;
    let complaint = String::from_utf8_lossy(&listed.stderr);
    ensure!(listed.status.success(), "git ls-files: {complaint}");
    let paths = String::from_utf8(listed.stdout)?;
    let read = |path: &str| {
        // A deleted file is still listed; one that is no text is not looked at.
        let text = fs::read_to_string(root.join(path)).ok()?;
        Some(File { path: path.to_owned(), text })
    };
    Ok(paths.split('\0').filter(|path| !path.is_empty()).filter_map(read).collect())
}
