//! Every file's text.

use std::collections::HashSet;
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

/// Documents say which test shows what they promise, and which mutant. One that is renamed or gone shows
/// nothing any more.
pub(super) fn tests_that_exist(files: &[File]) -> Vec<Finding> {
    let (documents, sources): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| file.path.ends_with(".md"));
    let mut known: HashSet<&str> =
        sources.iter().flat_map(|file| file.text.split(|it| !is_of_a_word(it))).collect();
    let patches = files.iter().filter_map(|file| file.path.strip_suffix(".patch"));
    known.extend(patches.filter_map(|path| path.rsplit('/').next()));
    let mut found = Vec::new();
    for file in documents {
        for (number, line) in file.lines() {
            let unknown = named_tests(line).filter(|name| !known.contains(name));
            found.extend(unknown.map(|name| {
                file.finding(
                    number,
                    format!("there is no {name}: name the test that took its place"),
                )
            }));
        }
    }
    found
}

/// Documents lead to files, directories and items of the code. A path begins at the root of the repository
/// or at the document's own directory.
pub(super) fn places_that_exist(files: &[File]) -> Vec<Finding> {
    let (documents, sources): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| file.path.ends_with(".md"));
    let mut paths: HashSet<&str> = HashSet::new();
    for file in files {
        let ends = file.path.match_indices('/').filter_map(|(end, _)| file.path.get(..end));
        paths.extend(ends.chain([&*file.path]));
    }
    let tops: HashSet<&str> =
        files.iter().filter_map(|file| file.path.split_once('/')).map(|it| it.0).collect();
    let words: HashSet<&str> =
        sources.iter().flat_map(|file| file.text.split(|it| !is_of_a_word(it))).collect();
    let mut found = Vec::new();
    for file in documents {
        let own = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let is_there = |path: &str| {
            let path = path.trim_end_matches('/');
            paths.contains(path) || paths.contains(&*format!("{own}/{path}"))
        };
        for (number, line) in file.lines() {
            let named = line.split('`').skip(1).step_by(2);
            for name in named {
                let is_gone = match name.split_once("::") {
                    Some(_) => is_item(name) && !name.split("::").all(|word| words.contains(word)),
                    None => is_path(name, &tops) && !is_there(name),
                };
                if is_gone {
                    let what = format!("there is no {name}: name what took its place");
                    found.push(file.finding(number, what));
                }
            }
        }
    }
    found
}

fn is_of_a_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Whether it is a path of the repository, without a part that stands for others.
fn is_path(name: &str, tops: &HashSet<&str>) -> bool {
    let may_stand = |it: char| is_of_a_word(it) || ".-/".contains(it);
    name.chars().all(may_stand) && name.split_once('/').is_some_and(|(top, _)| tops.contains(top))
}

/// Whether it is an item of Rust's with its module or type, as `Attempt::create`.
fn is_item(name: &str) -> bool {
    name.split("::").all(|word| !word.is_empty() && word.chars().all(is_of_a_word))
}

/// What a line names in backticks as a test, by its four words or more, or as a mutant, behind that word.
fn named_tests(line: &str) -> impl Iterator<Item = &str> {
    let mut is_of_mutants = false;
    line.split('`').enumerate().filter_map(move |(index, part)| {
        if index % 2 == 0 {
            let goes_on = is_of_mutants && [", ", " and "].contains(&part);
            is_of_mutants = goes_on || part.ends_with("mutant ") || part.ends_with("mutants ");
            return None;
        }
        let mut letters = part.chars();
        let is_test = letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_')
            && part.matches('_').count() >= 3;
        (is_test || is_of_mutants).then_some(part)
    })
}
