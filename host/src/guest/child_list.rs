//! A list of child names that a component takes in batches, and the line that they make.

use std::cmp::Ordering;
use std::mem;

use wasmtime::{Result, ensure};

use super::bindings::wok::recipe::zookeeper::{Line, Place, Stat};

/// What a name takes in memory besides its text, its place in a line included.
pub(super) const NAME_OVERHEAD: usize = 48;

/// Most names in one batch, whatever the component asks for.
const MAX_NAMES: usize = 4096;

/// Most infixes of a line: each name is compared with each of them.
const MAX_INFIXES: usize = 16;

/// The digits of a counter as ZooKeeper writes it, `%010d`.
const COUNTER: usize = 10;

/// A list of children that the component takes in batches.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "the generated bindings are as public as they can be")]
pub struct ChildList {
    pub(super) count: u32,
    pub(super) stat: Stat,
    /// What all of the names took.
    pub(super) bytes: u64,
    /// Empty where a name was handed out before there was a line.
    names: Vec<String>,
    /// The line, once there is one.
    line: Option<InLine>,
    /// How many were handed out or passed over, of the line if there is one.
    passed: usize,
}

/// The names that were put in order.
#[derive(Debug)]
struct InLine {
    infixes: Vec<String>,
    /// The first in line first.
    standing: Vec<Standing>,
    /// Which name is that of a contender of another naming.
    stranger: Option<u32>,
}

/// A contender in its place.
#[derive(Debug, Clone, Copy)]
struct Standing {
    counter: i32,
    /// Which of the names.
    name: u32,
}

impl ChildList {
    pub(super) fn new(names: Vec<String>, stat: Stat) -> Self {
        let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
        let bytes = names.iter().map(|name| (name.len() + NAME_OVERHEAD) as u64).sum();
        ChildList { count, stat, bytes, names, line: None, passed: 0 }
    }

    /// The next names, at most so many.
    pub(super) fn next(&mut self, max: u32) -> Vec<String> {
        let max = MAX_NAMES.min(max as usize);
        let batch: Vec<String> = match &self.line {
            None => self.names.iter_mut().skip(self.passed).take(max).map(mem::take).collect(),
            Some(line) => {
                let standing = line.standing.iter().skip(self.passed).take(max);
                standing.map(|it| self.name(it.name).to_owned()).collect()
            }
        };
        self.passed += batch.len();
        batch
    }

    /// Passes over the next names.
    pub(super) fn skip(&mut self, count: u32) {
        let all = self.line.as_ref().map_or(self.names.len(), |line| line.standing.len());
        let rest = all.saturating_sub(self.passed);
        if self.line.is_none() {
            // As if they were handed out.
            self.names.iter_mut().skip(self.passed).take(count as usize).for_each(String::clear);
        }
        self.passed += rest.min(count as usize);
    }

    /// Makes a line of the names that were not handed out yet, and begins at its first.
    ///
    /// # Errors
    /// For infixes that tell nothing, and for too many.
    pub(super) fn order(&mut self, infixes: Vec<String>) -> Result<Line> {
        ensure!(
            infixes.len() <= MAX_INFIXES && !infixes.iter().any(String::is_empty),
            "order: give at most {MAX_INFIXES} infixes, none of them empty"
        );
        self.passed = 0;
        let line = match self.line.take() {
            Some(line) if line.infixes == infixes => line,
            _ => self.line_up(infixes),
        };
        let length = u32::try_from(line.standing.len()).unwrap_or(u32::MAX);
        let stranger = line.stranger.map(|name| self.name(name).to_owned());
        self.line = Some(line);
        Ok(Line { length, stranger })
    }

    fn line_up(&self, infixes: Vec<String>) -> InLine {
        let (mut standing, mut stranger) = (Vec::new(), None);
        for (at, name) in (0_u32..).zip(&self.names) {
            match infixes.iter().find_map(|infix| counter_after(infix, name)) {
                Some(counter) => standing.push(Standing { counter, name: at }),
                None if stranger.is_none() && ends_with_counter(name) => stranger = Some(at),
                None => {}
            }
        }
        let origin = standing.first().map_or(0, |first| first.counter);
        standing.sort_unstable_by(|one, other| {
            let named = |it: &Standing| (it.counter, self.name(it.name));
            compare(origin, named(one), named(other))
        });
        InLine { infixes, standing, stranger }
    }

    /// Where a contender stands in the line, or would stand. Nobody stands in a line that was not made.
    pub(super) fn position(&self, name: &str, counter: i32) -> Place {
        let line = self.line.as_ref().map_or(&[][..], |line| &line.standing);
        // Seen from the contender itself, a line that spans less than half the circle is in the same
        // order as seen from any of those in it.
        let is_ahead = |it: &Standing| {
            compare(counter, (it.counter, self.name(it.name)), (counter, name)) == Ordering::Less
        };
        let ahead = line.partition_point(is_ahead);
        let is_there = line.get(ahead).is_some_and(|it| self.name(it.name) == name);
        Place { ahead: u32::try_from(ahead).unwrap_or(u32::MAX), is_there }
    }

    fn name(&self, at: u32) -> &str {
        self.names.get(at as usize).map_or("", String::as_str)
    }
}

/// Who of two is ahead, as seen from the counter `origin`.
fn compare(origin: i32, one: (i32, &str), other: (i32, &str)) -> Ordering {
    let steps = |counter: i32| counter.wrapping_sub(origin);
    steps(one.0).cmp(&steps(other.0)).then_with(|| one.1.cmp(other.1))
}

/// The counter behind the last such infix, which is not empty; none if the name is no contender with it.
fn counter_after(infix: &str, name: &str) -> Option<i32> {
    // From the right: a wrapped counter has a minus sign, and an infix ends with one, too. A counter
    // is short, so only the end of the name is searched.
    let name = name.as_bytes();
    let least = name.len().saturating_sub(infix.len() + COUNTER + 1);
    let end = name.get(least..)?;
    let at = end.windows(infix.len()).rposition(|window| window == infix.as_bytes())?;
    parse(std::str::from_utf8(end.get(at + infix.len()..)?).ok()?)
}

/// What ZooKeeper writes, `%010d`: ten digits, or a minus sign and nine or ten.
fn parse(counter: &str) -> Option<i32> {
    let digits = counter.strip_prefix('-').unwrap_or(counter);
    let is_width = match digits.len() == counter.len() {
        true => digits.len() == COUNTER,
        false => (COUNTER - 1..=COUNTER).contains(&digits.len()),
    };
    // `str::parse` would also take a plus sign.
    let is_counter = is_width && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_counter.then(|| counter.parse().ok()).flatten()
}

fn ends_with_counter(name: &str) -> bool {
    let end = name.len().checked_sub(COUNTER).and_then(|at| name.as_bytes().get(at..));
    end.is_some_and(|end| end.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::bindings::wok::recipe::zookeeper::Owner;

    const STAT: Stat = Stat {
        czxid: 1,
        mzxid: 1,
        pzxid: 1,
        ctime_ms: 0,
        mtime_ms: 0,
        version: 0,
        cversion: 0,
        aversion: 0,
        owner: Owner::None,
        data_length: 0,
        num_children: 0,
    };

    fn list(names: &[&str]) -> ChildList {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ChildList::new(names, STAT)
    }

    fn order(list: &mut ChildList, infixes: &[&str]) -> (u32, Option<String>) {
        let infixes: Vec<_> = infixes.iter().map(|infix| (*infix).to_owned()).collect();
        let Line { length, stranger } = list.order(infixes).unwrap();
        (length, stranger)
    }

    fn place(list: &ChildList, name: &str, counter: i32) -> (u32, bool) {
        let Place { ahead, is_there } = list.position(name, counter);
        (ahead, is_there)
    }

    #[test]
    fn names_are_handed_out_once_as_the_server_gave_them() {
        let mut list = list(&["c", "a", "b", "d"]);
        assert_eq!(list.next(2), ["c", "a"]);
        list.skip(1);
        assert_eq!(list.next(9), ["d"]);
        assert_eq!(list.next(9), Vec::<String>::new());
        list.skip(u32::MAX);
        assert_eq!((list.count, list.next(1)), (4, Vec::new()));
    }

    #[test]
    fn a_line_is_in_the_order_of_the_counters_across_their_wrap() {
        let mut list = list(&[
            "b-lock--2147483647",
            "config",
            "c-lock-2147483647",
            "d-lock--2147483648",
            "x-lock-12",
        ]);
        assert_eq!(order(&mut list, &["-lock-"]), (3, None));
        assert_eq!(place(&list, "d-lock--2147483648", i32::MIN), (1, true));
        assert_eq!(place(&list, "z-lock--2147483648", i32::MIN), (2, false));
        assert_eq!(place(&list, "a-lock--2147483646", i32::MIN + 2), (3, false));
        list.skip(1);
        assert_eq!(list.next(1), ["d-lock--2147483648"]);
        assert_eq!(list.next(9), ["b-lock--2147483647"]);
    }

    #[test]
    fn another_line_can_be_made_of_the_same_names() {
        let mut list = list(&["r-R-0000000003", "w-W-0000000001", "r-R-0000000002"]);
        assert_eq!(order(&mut list, &["-R-", "-W-"]), (3, None));
        assert_eq!(place(&list, "r-R-0000000003", 3), (2, true));
        assert_eq!(order(&mut list, &["-W-"]), (1, Some("r-R-0000000003".to_owned())));
        assert_eq!(place(&list, "r-R-0000000003", 3), (1, false));
        assert_eq!(list.next(9), ["w-W-0000000001"]);
    }

    #[test]
    fn a_line_that_is_made_again_begins_again() {
        let mut list = list(&["b-lock-0000000002", "a-lock-0000000001"]);
        for _ in 0..2 {
            assert_eq!(order(&mut list, &["-lock-"]), (2, None));
            assert_eq!(list.next(9), ["a-lock-0000000001", "b-lock-0000000002"]);
        }
    }

    #[test]
    fn what_was_handed_out_is_in_no_line() {
        let mut list = list(&["a-lock-0000000001", "b-lock-0000000002", "c-lock-0000000003"]);
        assert_eq!(list.next(1), ["a-lock-0000000001"]);
        list.skip(1);
        assert_eq!(order(&mut list, &["-lock-"]), (1, None));
        assert_eq!(list.next(9), ["c-lock-0000000003"]);
    }

    #[test]
    fn nobody_is_in_a_line_that_was_not_made() {
        let mut list = list(&["a-lock-0000000001"]);
        assert_eq!(place(&list, "a-lock-0000000001", 1), (0, false));
        assert_eq!(order(&mut list, &[]), (0, Some("a-lock-0000000001".to_owned())));
    }

    #[test]
    fn infixes_that_tell_nothing_and_too_many_are_refused() {
        let mut list = list(&["a-lock-0000000001"]);
        for infixes in [vec![String::new()], vec!["-lock-".to_owned(); MAX_INFIXES + 1]] {
            assert!(list.order(infixes.clone()).is_err(), "{infixes:?}");
        }
        assert_eq!(list.next(9), ["a-lock-0000000001"]);
    }

    #[test]
    fn a_stranger_is_a_contender_of_another_naming_and_no_other_child() {
        let kazoo = "550e8400e29b41d4a716446655440000__lock__0000000007";
        let curator = "_c_550e8400-e29b-41d4-a716-446655440000-lock-0000000007";
        for (infix, own, other) in [("-lock-", curator, kazoo), ("__lock__", kazoo, curator)] {
            assert_eq!(order(&mut list(&[own, other]), &[infix]), (1, Some(other.to_owned())));
            for name in ["x__rlock__0000000001", "lock-0000000003"] {
                assert_eq!(order(&mut list(&[own, name]), &[infix]), (1, Some(name.to_owned())));
            }
            for name in ["", "announcement", "config-1", "é-000000000é", "000000001"] {
                assert_eq!(order(&mut list(&[name, own]), &[infix]), (1, None), "{name}");
            }
        }
    }

    #[test]
    fn names_that_are_hostile_are_in_no_line() {
        let mut list =
            list(&["", "-", "é-000000000é", "-lock-", "a-lock-+000000001", "a-lock-2147483648"]);
        let (length, stranger) = order(&mut list, &["-lock-", "é"]);
        assert_eq!(length, 0, "{:?}", list.next(9));
        assert_eq!(stranger.as_deref(), Some("a-lock-2147483648"));
    }
}
