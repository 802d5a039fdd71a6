//! What the data of a latch's znode mean, and what a count makes of them.

/// How many have to count down, and how many of them still have to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latch {
    /// How many in all.
    pub(crate) count: u32,
    /// How many are still to come.
    pub(crate) remaining: u32,
}

/// The highest count. The names of so many children, at the most bytes an id may have, still fit into
/// one reply of a server, so that the latch can be listed and deleted.
pub(crate) const MOST: u32 = 10_000;

/// The most bytes of an id.
const LONGEST: usize = 64;

/// What stands before the id in a child's name. Other children are none of this recipe's.
const COUNTED: &str = "count-";

/// How many bytes of what is no latch are shown.
const SHOWN: usize = 24;

/// What a count does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It leaves the latch like this, and others are still to come.
    Count(Latch),
    /// It is the last one, and opens the latch.
    Open(Latch),
    /// Nothing: the latch is open.
    Leave,
}

impl Latch {
    /// One that nobody has counted at.
    pub(crate) fn new(count: u32) -> Self {
        Latch { count, remaining: count }
    }

    /// Whether all have counted down.
    pub(crate) fn is_open(self) -> bool {
        self.remaining == 0
    }

    /// Decides for an id that is counted now.
    pub(crate) fn step(self) -> Step {
        match self.remaining {
            0 => Step::Leave,
            1 => Step::Open(Latch { remaining: 0, ..self }),
            remaining => Step::Count(Latch { remaining: remaining - 1, ..self }),
        }
    }

    /// Reads a latch's data, as `5 of 8`; none if there are no data yet.
    ///
    /// # Errors
    /// What stands there instead, in words.
    pub(crate) fn parse(data: &[u8]) -> Result<Option<Self>, String> {
        if data.is_empty() {
            return Ok(None);
        }
        let read = || {
            let (remaining, count) = std::str::from_utf8(data).ok()?.split_once(" of ")?;
            let latch = Latch { count: count.parse().ok()?, remaining: remaining.parse().ok()? };
            // Only what this recipe would write is a latch: `+5 of 08` is not.
            (latch.remaining <= latch.count && latch.data() == data).then_some(latch)
        };
        read().map(Some).ok_or_else(|| {
            let shown = data.get(..SHOWN).unwrap_or(data).escape_ascii();
            let more = if data.len() > SHOWN { "..." } else { "" };
            format!(
                "the mount's own znode has \"{shown}\"{more}, where a latch has for instance \
                 \"5 of 8\": if it is another application's, mount the latch elsewhere; if nobody \
                 wants what it holds, delete it"
            )
        })
    }

    /// What is written into the latch's znode.
    pub(crate) fn data(self) -> Vec<u8> {
        format!("{} of {}", self.remaining, self.count).into_bytes()
    }
}

/// Whether a participant with this setting may use the latch.
///
/// # Errors
/// Why not, in words.
pub(crate) fn agrees(latch: Latch, count: u32) -> Result<(), String> {
    if latch.count == count {
        return Ok(());
    }
    Err(format!(
        "the latch is for {}, but `count` is {count} here: give all who use this latch the same \
         count",
        latch.count
    ))
}

/// The name of the child that says that the id was counted.
///
/// # Errors
/// What is wrong with the id.
pub(crate) fn name(id: &str) -> Result<String, String> {
    let length = id.len();
    if !(1..=LONGEST).contains(&length) {
        return Err(format!("count-down: an id has 1 to {LONGEST} bytes, and this one {length}"));
    }
    if id.contains(|character: char| character == '/' || character.is_control()) {
        return Err(format!("count-down: the id {id:?} has a slash or a control character"));
    }
    Ok([COUNTED, id].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_one_less_and_the_last_one_opens() {
        let mut latch = Latch::new(3);
        for remaining in [2, 1] {
            let after = Latch { count: 3, remaining };
            assert_eq!(latch.step(), Step::Count(after));
            assert!(!after.is_open());
            latch = after;
        }
        let open = Latch { count: 3, remaining: 0 };
        assert_eq!(latch.step(), Step::Open(open));
        assert!(open.is_open());
        assert_eq!(open.step(), Step::Leave);
        assert_eq!(Latch::new(1).step(), Step::Open(Latch { count: 1, remaining: 0 }));
    }

    #[test]
    fn data_read_back_as_they_were_written() {
        for latch in [Latch::new(1), Latch { count: 8, remaining: 5 }, Latch::new(MOST)] {
            assert_eq!(Latch::parse(&latch.data()), Ok(Some(latch)));
        }
        assert_eq!(Latch { count: 8, remaining: 5 }.data(), b"5 of 8");
        assert_eq!(Latch::parse(b""), Ok(None));
    }

    #[test]
    fn what_is_no_latch_is_told_with_its_first_bytes() {
        let foreign = [
            &b"8"[..],
            b"9 of 8",
            b"05 of 8",
            b"+5 of 8",
            b"5 of 8\n",
            b" of ",
            b"\xff of 8",
            b"5 of 99999999999",
            b"192.0.2.1:2181 and more of that",
        ];
        for data in foreign {
            let told = Latch::parse(data).expect_err("it is no latch");
            assert!(told.contains("mount the latch elsewhere"), "{told}");
        }
        let long = Latch::parse(&[b'x'; 900_000]).expect_err("it is no latch");
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn another_count_is_refused_with_both() {
        assert_eq!(agrees(Latch { count: 8, remaining: 5 }, 8), Ok(()));
        let told = agrees(Latch { count: 8, remaining: 0 }, 9).expect_err("they differ");
        assert!(told.contains("for 8") && told.contains("`count` is 9"), "{told}");
    }

    #[test]
    fn an_id_is_the_end_of_a_name() {
        assert_eq!(name("host-7").as_deref(), Ok("count-host-7"));
        for fine in ["..", " ", "\u{fc}", &"x".repeat(LONGEST)] {
            assert!(name(fine).is_ok(), "{fine:?}");
        }
        for wrong in ["", "a/b", "a\nb", "\0", "\u{85}", &"x".repeat(LONGEST + 1)] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
    }
}
