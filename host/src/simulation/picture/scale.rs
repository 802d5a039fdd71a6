//! Time from left to right. Where nothing happens for long, it is left out: a break a minute after
//! the last fault would leave everything that led to it in the left inch.

/// How wide what is left out is.
const CUT: f64 = 34.0;

/// What is left out is this many times longer than four in five of the times between two things that
/// happen.
const LONG: u64 = 4;

/// Nothing shorter than this is left out, in microseconds.
const SHORT_US: u64 = 200_000;

/// How far apart times are written, at least.
const BETWEEN_TICKS: f64 = 70.0;

/// Steps between times that are written, in microseconds.
const STEPS_US: [u64; 12] = [
    1_000, 5_000, 10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
    10_000_000, 30_000_000,
];

/// A stretch of time as it is drawn.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from_us: u64,
    until_us: u64,
    left: f64,
    width: f64,
    is_cut: bool,
}

/// Where times are.
#[derive(Debug)]
pub(super) struct Scale {
    stretches: Vec<Stretch>,
    /// Pixels for a microsecond, where nothing is left out.
    rate: f64,
}

impl Scale {
    /// From the first to the last of these moments, which are in order.
    pub(super) fn new(moments: &[u64], left: f64, width: f64) -> Self {
        let gaps: Vec<(u64, u64)> = moments
            .windows(2)
            .filter_map(|pair| match pair {
                [from, until] if until > from => Some((*from, *until)),
                _ => None,
            })
            .collect();
        let mut lengths: Vec<u64> = gaps.iter().map(|(from, until)| until - from).collect();
        lengths.sort_unstable();
        let ordinary =
            lengths.get(lengths.len().saturating_sub(1) * 4 / 5).copied().unwrap_or_default();
        let longest = ordinary.saturating_mul(LONG).max(SHORT_US);
        let is_cut = |(from, until): (u64, u64)| until - from > longest;
        let shown: u64 =
            gaps.iter().filter(|it| !is_cut(**it)).map(|(from, until)| until - from).sum();
        let cuts = gaps.iter().filter(|gap| is_cut(**gap)).count();
        let rate = (width - CUT * cuts as f64).max(1.0) / shown.max(1) as f64;
        let mut at = left;
        let stretches = gaps
            .into_iter()
            .map(|(from_us, until_us)| {
                let is_cut = is_cut((from_us, until_us));
                let width = if is_cut { CUT } else { rate * (until_us - from_us) as f64 };
                let stretch = Stretch { from_us, until_us, left: at, width, is_cut };
                at += width;
                stretch
            })
            .collect();
        Scale { stretches, rate }
    }

    /// Where a time is.
    pub(super) fn x(&self, at_us: u64) -> f64 {
        let stretch = self.stretches.partition_point(|stretch| stretch.until_us < at_us);
        let last = self.stretches.len().saturating_sub(1);
        let Some(stretch) = self.stretches.get(stretch.min(last)) else { return 0.0 };
        let length = (stretch.until_us - stretch.from_us) as f64;
        let part = at_us.saturating_sub(stretch.from_us) as f64 / length;
        stretch.left + stretch.width * part.min(1.0)
    }

    /// What is left out: from where to where, and how long it is.
    pub(super) fn cuts(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let cuts = self.stretches.iter().filter(|stretch| stretch.is_cut);
        cuts.map(|it| (it.left, it.left + it.width, it.until_us - it.from_us))
    }

    /// The times that are written.
    pub(super) fn ticks(&self) -> Vec<u64> {
        let is_far = |step: &&u64| self.rate * **step as f64 >= BETWEEN_TICKS;
        let step = STEPS_US.iter().find(is_far).copied().unwrap_or(60_000_000);
        let mut ticks: Vec<u64> = Vec::new();
        let mut newest = f64::MIN;
        for stretch in self.stretches.iter().filter(|stretch| !stretch.is_cut) {
            let mut at_us = stretch.from_us.next_multiple_of(step);
            while at_us <= stretch.until_us {
                let x = self.x(at_us);
                if x - newest >= BETWEEN_TICKS {
                    newest = x;
                    ticks.push(at_us);
                }
                at_us += step;
            }
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_in_which_nothing_happens_takes_the_room_of_a_word() {
        let moments = [0, 10_000, 20_000, 30_000, 40_000, 60_040_000, 60_050_000];
        let scale = Scale::new(&moments, 100.0, 1_000.0);
        assert_eq!(scale.cuts().map(|(_, _, length)| length).collect::<Vec<_>>(), [60_000_000]);
        assert!((scale.x(60_040_000) - scale.x(40_000) - CUT).abs() < 0.1);
        assert!(scale.x(10_000) - scale.x(0) > 100.0);
        assert!((scale.x(60_050_000) - 1_100.0).abs() < 0.1);
    }

    #[test]
    fn times_are_in_order_and_within() {
        let moments = [5, 7, 7, 4_000_000, 4_000_001];
        let scale = Scale::new(&moments, 100.0, 1_000.0);
        let places: Vec<f64> =
            [0, 5, 6, 7, 9_000, 4_000_001, u64::MAX].map(|it| scale.x(it)).into();
        assert!(places.is_sorted(), "{places:?}");
        assert!(places.iter().all(|x| (100.0..=1_100.1).contains(x)), "{places:?}");
        assert!(scale.ticks().is_sorted());
    }

    #[test]
    fn nothing_at_all_is_no_reason_to_fail() {
        for moments in [&[][..], &[3], &[3, 3]] {
            let scale = Scale::new(moments, 100.0, 1_000.0);
            assert!(scale.x(3).is_finite());
            assert_eq!(scale.ticks(), Vec::<u64>::new());
        }
    }
}
