//! No two recipes share a znode: what one creates, the other would take for its own.

use std::collections::BTreeMap;

use super::document::Place;
use super::recipe::MountPath;
use super::report::Report;

/// A mount, and where the file gives it.
pub(super) struct Mounted<'a> {
    /// The recipe.
    pub(super) recipe: &'a str,
    /// Where it is mounted.
    pub(super) mount: MountPath,
    /// Where the file says so.
    pub(super) place: Place,
}

/// Reports recipes on the same mount, and mounts inside another.
pub(super) fn check(mounts: &[Mounted<'_>], report: &mut Report<'_>) {
    let mut by_segments: BTreeMap<Vec<&str>, &Mounted<'_>> = BTreeMap::new();
    for mounted in mounts {
        let segments = mounted.mount.path().segments().collect::<Vec<_>>();
        if let Some(first) = by_segments.get(&segments) {
            let line = report.source().line_of(first.place.span.start);
            let message = format!(
                "recipes `{}` and `{}` have the same mount {}, given in line {line} already",
                first.recipe, mounted.recipe, mounted.mount
            );
            report.error(mounted.place.clone(), message, "give each recipe a mount of its own");
        } else {
            by_segments.insert(segments, mounted);
        }
    }
    for (segments, inner) in &by_segments {
        let above = (0..segments.len())
            .rev()
            .find_map(|length| segments.get(..length).and_then(|above| by_segments.get(above)));
        if let Some(outer) = above {
            let line = report.source().line_of(outer.place.span.start);
            let message = format!(
                "the mount {} of recipe `{}` is inside {}, the mount of recipe `{}` in line {line}",
                inner.mount, inner.recipe, outer.mount, outer.recipe
            );
            report.error(inner.place.clone(), message, "move one of them out of the other");
        }
    }
}
