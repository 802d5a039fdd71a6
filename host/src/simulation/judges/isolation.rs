//! Nobody reaches outside its mount.

use wok_judge::{Case, Violation};

use crate::simulation::history::What;

/// X1: every path of a host call, and every znode that one creates, is the participant's mount or
/// below it, segment by segment.
pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    for (at, entry) in case.history.iter().enumerate() {
        let (participant, call, paths) = match &entry.what {
            What::HostCall { participant, name, paths, .. } => {
                (participant, name.as_str(), paths.as_slice())
            }
            What::HostCallAnswered { participant, created: Some(path), .. } => {
                (participant, "contend", std::slice::from_ref(path))
            }
            _ => continue,
        };
        let Some(person) = case.people.person(*participant) else { continue };
        if let Some(path) = paths.iter().find(|path| !is_inside(person.mount, path)) {
            let mount = person.mount;
            let sentence =
                format!("`{call}` of participant {participant} reached {path}, outside {mount}");
            found.push(Violation::new(id, at, sentence).by([*participant]));
        }
    }
}

/// Whether a path is `mount` or below it. Dots are never resolved, so they lead nowhere.
fn is_inside(mount: &str, path: &str) -> bool {
    let below = if mount == "/" { Some(path) } else { path.strip_prefix(mount) };
    let dots = path.split('/').any(|segment| segment == "." || segment == "..");
    below.is_some_and(|below| below.is_empty() || below.starts_with('/')) && !dots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_with_a_longer_name_is_outside() {
        for (mount, path, expected) in [
            ("/locks/a", "/locks/a", true),
            ("/locks/a", "/locks/a/b", true),
            ("/locks/a", "/locks/a-evil", false),
            ("/locks/a", "/locks", false),
            ("/locks/a", "/locks/a/../b", false),
            ("/", "/anything", true),
        ] {
            assert_eq!(is_inside(mount, path), expected, "{mount} {path}");
        }
    }
}
