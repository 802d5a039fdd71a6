//! The one source of chance in a run: everything random is drawn from streams that follow from the
//! run's seed and from what they are for, so that leaving a fault out does not change the dice of
//! everything else.

/// A stream of random numbers: Steele, Lea and Flood's SplitMix64. It needs no quality beyond that
/// of exploring, and must answer the same for ever: seeds are kept.
#[derive(Debug, Clone)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The stream of a seed for a purpose.
    pub fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a, so that streams of neighbouring seeds and purposes have nothing in common.
        let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut chance = Chance { state: seed ^ hash };
        chance.state = chance.draw();
        chance
    }

    /// Sixty-four random bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low).saturating_add(1).max(1);
        low.saturating_add(self.draw() % span)
    }

    /// Whether something of so many per cent happens.
    pub fn happens(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }

    /// One of several; none of none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let last = u64::try_from(from.len()).ok()?.checked_sub(1)?;
        from.get(usize::try_from(self.within(0, last)).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_every_time_and_another_for_every_purpose() {
        let drawn = |seed, purpose| {
            let mut chance = Chance::new(seed, purpose);
            [chance.draw(), chance.draw(), chance.draw()]
        };
        assert_eq!(drawn(1, "faults"), drawn(1, "faults"));
        assert_ne!(drawn(1, "faults"), drawn(2, "faults"));
        assert_ne!(drawn(1, "faults"), drawn(1, "network"));
        // Kept seeds mean nothing if this changes.
        assert_eq!(drawn(1, "faults"), DRAWN);
    }

    const DRAWN: [u64; 3] = [0xd04a_0622_f992_12ea, 0x4eb0_a8a1_21df_080d, 0x5ed6_f299_d916_11f1];

    #[test]
    fn a_number_stays_within_its_bounds() {
        let mut chance = Chance::new(7, "bounds");
        for _ in 0..1000 {
            assert!((3..=5).contains(&chance.within(3, 5)));
            assert_eq!(chance.within(9, 9), 9);
        }
        assert_eq!(chance.pick::<u8>(&[]), None);
    }
}
