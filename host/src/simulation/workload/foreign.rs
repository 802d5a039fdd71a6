//! The znodes that another program creates among the recipe's: with a name and data that mean nothing to
//! the recipe.

use crate::simulation::chance::Chance;
use crate::simulation::plan::Foreign;

/// In how many runs of a hundred each of them is created, and until when: while there is much to do.
const PERCENT: u64 = 30;
const UNTIL_MS: u64 = 12_000;

/// What such a znode holds: nothing, a text, what is no text, and what might be taken for something.
const DATA: [&[u8]; 4] = [b"", b"made by hand\n", &[0xff, 0xfe, 0x00], b"{\"id\": 7}"];

/// What is created in a run.
pub(super) fn drawn<'a>(paths: impl Iterator<Item = &'a str>, chance: &mut Chance) -> Vec<Foreign> {
    let drawn = paths.filter_map(|path| {
        // Each draws the same number of dice, so that one more changes nothing for the others.
        let (happens, at_ms) = (chance.happens(PERCENT), chance.within(0, UNTIL_MS));
        let data = chance.pick(&DATA).copied().unwrap_or_default();
        happens.then(|| Foreign { path: path.to_owned(), data: data.to_vec().into(), at_ms })
    });
    drawn.collect()
}
