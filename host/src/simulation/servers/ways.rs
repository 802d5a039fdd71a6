//! Which servers hear which others.

use std::collections::BTreeMap;

/// The ways from each server to each other. Cut, they are silent: nobody is told.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// How many faults cut the way from one to another.
    cuts: BTreeMap<(usize, usize), usize>,
}

impl Ways {
    pub(super) fn cut(&mut self, from: usize, to: usize) {
        *self.cuts.entry((from, to)).or_insert(0) += 1;
    }

    /// Takes one cut back.
    pub(super) fn heal(&mut self, from: usize, to: usize) {
        if let Some(cuts) = self.cuts.get_mut(&(from, to)) {
            *cuts -= 1;
            if *cuts == 0 {
                self.cuts.remove(&(from, to));
            }
        }
    }

    /// Whether what one says gets to the other.
    pub(super) fn lead(&self, from: usize, to: usize) -> bool {
        !self.cuts.contains_key(&(from, to))
    }

    /// Whether two hear each other.
    pub(super) fn join(&self, one: usize, other: usize) -> bool {
        self.lead(one, other) && self.lead(other, one)
    }
}
