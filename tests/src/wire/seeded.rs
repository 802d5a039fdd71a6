//! Numbers that a seed decides.

/// SplitMix64: a few lines, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Seeded(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or_default()
    }

    /// One of several.
    ///
    /// # Panics
    /// If there is none.
    #[allow(clippy::indexing_slicing, reason = "the index is below the length")]
    pub fn pick<'a, T>(&mut self, several: &'a [T]) -> &'a T {
        &several[self.below(several.len())]
    }
}
