//! Every file's text.

use std::path::Path;

use super::{File, Finding};

/// Where people's and this machine's own files are: no file of the repository has business there.
fn machine_paths() -> Vec<String> {
    // In pieces, so that this file passes.
    let mut paths =
        vec![["/ho", "me/"].concat(), ["/ro", "ot/."].concat(), ["/Us", "ers/"].concat()];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    // A checkout right below `/` could have the name of any znode.
    if let Some(root) = root.filter(|root| root.components().count() > 2) {
        paths.extend(root.to_str().map(str::to_owned));
    }
    paths
}

pub(super) fn clean_text(files: &[File]) -> Vec<Finding> {
    let machine_paths = machine_paths();
    let names_machine = |line: &str| {
        machine_paths.iter().find(|path| {
            line.match_indices(path.as_str()).any(|(start, _)| {
                // `target/root/x` is no path of the machine.
                let before = line.get(..start).and_then(|before| before.chars().next_back());
                before.is_none_or(|before| !before.is_alphanumeric() && !"-_.}".contains(before))
            })
        })
    };
    let findings = |file: &File| -> Vec<Finding> {
        let mut found = Vec::new();
        for (number, line) in file.lines() {
            // In Rust code rustfmt sees to it, and a text in a string may have to end so.
            if !file.is_rust() && line.ends_with([' ', '\t', '\r']) {
                found.push(file.finding(number, "blanks at the end of the line"));
            }
            if let Some(path) = names_machine(line) {
                found.push(file.finding(number, format!("{path} is of one machine only")));
            }
        }
        found
    };
    files.iter().flat_map(findings).collect()
}
