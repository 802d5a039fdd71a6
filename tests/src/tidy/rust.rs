//! What Rust code may say where.

use std::collections::BTreeSet;

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

/// Whether a file is the room's own or below it.
fn is_in(file: &File, room: &str) -> bool {
    let within = file.path.strip_prefix(room);
    within.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The host's code outside a room.
fn outside<'a>(files: &'a [File], room: &'a str) -> impl Iterator<Item = &'a File> {
    let is_hosts = |file: &&File| file.is_rust() && file.path.starts_with("host/src/");
    files.iter().filter(is_hosts).filter(move |file| !is_in(file, room))
}

fn only_in(files: &[File], name: &str, room: &str) -> Vec<Finding> {
    let findings = |file: &File| -> Vec<Finding> {
        let lines = code(file).filter(|(_, line)| names_crate(line, name));
        lines.map(|(number, _)| file.finding(number, format!("only {room} knows {name}"))).collect()
    };
    outside(files, room).flat_map(findings).collect()
}

pub(super) fn client_in_session(files: &[File]) -> Vec<Finding> {
    only_in(files, "zookeeper_client", "host/src/session")
}

pub(super) fn wasmtime_in_guest(files: &[File]) -> Vec<Finding> {
    only_in(files, "wasmtime", "host/src/guest")
}

pub(super) fn recipes_in_cli(files: &[File]) -> Vec<Finding> {
    let recipe = |file: &File| {
        let (recipe, _) = file.path.strip_prefix("recipes-wasm/")?.split_once('/')?;
        Some(recipe.to_owned())
    };
    let recipes: BTreeSet<String> = files.iter().filter_map(recipe).collect();
    let names = |line: &str| {
        // A name in quotes may stand in a text.
        let line = line.replace("\\\"", "\"");
        recipes.iter().find(|recipe| {
            line.contains(&format!("\"{recipe}\"")) || line.contains(&format!("wok:{recipe}/"))
        })
    };
    let findings = |file: &File| -> Vec<Finding> {
        let tests_from = tests_from(file);
        let named = code(file).filter_map(|(number, line)| Some((number, names(line)?)));
        named
            .filter(|(number, _)| *number < tests_from && !file.is_excused(*number))
            .map(|(number, recipe)| {
                file.finding(number, format!("to the host {recipe} is a component like any other"))
            })
            .collect()
    };
    outside(files, "host/src/cli").flat_map(findings).collect()
}

/// The rooms stand in `lib.rs` in the order of dependence, the lowest first.
pub(super) fn rooms_know_lower_ones(files: &[File]) -> Vec<Finding> {
    let library = files.iter().find(|file| file.path == "host/src/lib.rs");
    let lines = library.into_iter().flat_map(File::lines);
    let rooms: Vec<&str> = lines.filter_map(|(_, line)| declared(line)).collect();
    let place = |name: &str| rooms.iter().position(|room| *room == name);
    let findings = |file: &File| -> Vec<Finding> {
        let own =
            file.path.strip_prefix("host/src/").and_then(|path| path.split(['/', '.']).next());
        let Some(own) = own.and_then(place) else { return Vec::new() };
        let tests_from = tests_from(file);
        let lines = code(file).filter(|(number, _)| *number < tests_from);
        let above = |line: &str| named_rooms(line).filter_map(place).max().filter(|it| *it > own);
        lines
            .filter_map(|(number, line)| Some((number, rooms.get(above(line)?)?)))
            .map(|(number, room)| file.finding(number, format!("{room} is a room above this one")))
            .collect()
    };
    let is_hosts = |file: &&File| file.is_rust() && file.path.starts_with("host/src/");
    files.iter().filter(is_hosts).flat_map(findings).collect()
}

/// The room that a line of `lib.rs` declares.
fn declared(line: &str) -> Option<&str> {
    line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';')
}

/// What stands behind `crate::` in a line.
fn named_rooms(line: &str) -> impl Iterator<Item = &str> {
    const CRATE: &str = "crate::";
    let is_of_a_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    line.match_indices(CRATE).filter_map(move |(start, _)| {
        let before = line.get(..start)?.chars().next_back();
        let rest = line.get(start + CRATE.len()..)?;
        let end = rest.find(|it| !is_of_a_word(it)).unwrap_or(rest.len());
        rest.get(..end).filter(|_| !before.is_some_and(is_of_a_word))
    })
}

pub(super) fn tasks_in_tasks(files: &[File]) -> Vec<Finding> {
    const STARTS: [&str; 5] =
        ["tokio::spawn(", "task::spawn(", "spawn_local(", "spawn_blocking(", "JoinSet"];
    let findings = |file: &File| -> Vec<Finding> {
        code(file)
            .filter(|(_, line)| STARTS.iter().any(|start| line.contains(start)))
            .filter(|(number, _)| !file.is_excused(*number))
            .map(|(number, _)| file.finding(number, "start it with `Tasks`, which joins it"))
            .collect()
    };
    outside(files, "host/src/tasks").flat_map(findings).collect()
}

pub(super) fn time_from_clock(files: &[File]) -> Vec<Finding> {
    let findings = |file: &File| -> Vec<Finding> {
        code(file)
            .filter(|(_, line)| ["Instant", "SystemTime"].iter().any(|clock| line.contains(clock)))
            .filter(|(number, _)| !file.is_excused(*number))
            .map(|(number, _)| {
                file.finding(number, "a machine that sleeps stops this clock: use `clock`")
            })
            .collect()
    };
    let session = files.iter().filter(|file| file.is_rust() && is_in(file, "host/src/session"));
    session.flat_map(findings).collect()
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

/// The first line of a file's tests.
fn tests_from(file: &File) -> usize {
    let path = &file.path;
    if path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs") {
        return 0;
    }
    // By convention the tests of a module are its last part.
    let unit_tests = file.lines().find(|(_, line)| line.trim() == "#[cfg(test)]");
    unit_tests.map_or(usize::MAX, |(number, _)| number)
}

pub(super) fn no_sleeps(files: &[File]) -> Vec<Finding> {
    let findings = |file: &File| -> Vec<Finding> {
        let tests_from = tests_from(file);
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
