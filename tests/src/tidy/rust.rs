//! What Rust code may say where.

use super::{File, Finding};

/// The lines that hold code: comments may talk about anything.
fn code(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.lines().filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn names_crate(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(start, _)| {
        let before = line.get(..start).and_then(|before| before.chars().next_back());
        let after = line.get(start + name.len()..).unwrap_or_default();
        let starts = before.is_none_or(|before| !before.is_alphanumeric() && before != '_');
        starts && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
    })
}

fn only_in(files: &[File], name: &str, room: &str) -> Vec<Finding> {
    let (file_of_room, below) = (format!("{room}.rs"), format!("{room}/"));
    let is_outside = |file: &&File| {
        file.is_rust()
            && file.path.starts_with("host/src/")
            && file.path != file_of_room
            && !file.path.starts_with(&below)
    };
    let findings = |file: &File| -> Vec<Finding> {
        let lines = code(file).filter(|(_, line)| names_crate(line, name));
        lines.map(|(number, _)| file.finding(number, format!("only {room} knows {name}"))).collect()
    };
    files.iter().filter(is_outside).flat_map(findings).collect()
}

pub(super) fn client_in_session(files: &[File]) -> Vec<Finding> {
    only_in(files, "zookeeper_client", "host/src/session")
}

pub(super) fn wasmtime_in_guest(files: &[File]) -> Vec<Finding> {
    only_in(files, "wasmtime", "host/src/guest")
}

pub(super) fn no_excused_tests(files: &[File]) -> Vec<Finding> {
    let is_excuse = |line: &str| {
        let line = line.trim_start();
        line.starts_with("#[ignore") || line.starts_with("#[should_panic")
    };
    let findings = |file: &File| -> Vec<Finding> {
        let lines = code(file).filter(|(_, line)| is_excuse(line));
        lines.map(|(number, _)| file.finding(number, "a test runs, and judges by itself")).collect()
    };
    files.iter().filter(|file| file.is_rust()).flat_map(findings).collect()
}

fn calls(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(start, _)| {
        line.get(start + name.len()..).is_some_and(|after| after.starts_with('('))
    })
}

pub(super) fn no_sleeps(files: &[File]) -> Vec<Finding> {
    let findings = |file: &File| -> Vec<Finding> {
        let is_test = file.path.starts_with("tests/") || file.path.contains("/tests/");
        // By convention the tests of a module are its last part.
        let unit_tests = file.lines().find(|(_, line)| line.trim() == "#[cfg(test)]");
        let tests_from = match (is_test, unit_tests) {
            (true, _) => 0,
            (false, Some((number, _))) => number,
            (false, None) => usize::MAX,
        };
        let sleeps = |line: &str| ["sleep", "sleep_until"].iter().any(|name| calls(line, name));
        code(file)
            .filter(|(number, line)| *number >= tests_from && sleeps(line))
            .filter(|(number, _)| !file.is_excused(*number))
            .map(|(number, _)| file.finding(number, "wait for a fact, with `patience`"))
            .collect()
    };
    files.iter().filter(|file| file.is_rust()).flat_map(findings).collect()
}

pub(super) fn reasoned_allows(files: &[File]) -> Vec<Finding> {
    let starts = |line: &str| {
        let line = line.trim_start().trim_start_matches("#!").trim_start_matches('#');
        line.starts_with("[allow(") || line.starts_with("[expect(")
    };
    let findings = |file: &File| -> Vec<Finding> {
        let lines = code(file).filter(|(_, line)| starts(line));
        let is_unreasoned = |number: usize| {
            let from = file.text.lines().skip(number - 1);
            let mut attribute = String::new();
            for line in from {
                attribute.push_str(line);
                if line.contains(")]") {
                    break;
                }
            }
            !attribute.contains("reason = \"")
        };
        lines
            .filter(|(number, _)| is_unreasoned(*number))
            .map(|(number, _)| file.finding(number, "say why: `reason = \"...\"`"))
            .collect()
    };
    files.iter().filter(|file| file.is_rust()).flat_map(findings).collect()
}
