//! A list of child names that a component takes in batches, and the line that they make.

use std::cmp::Ordering;
use std::mem;

use wasmtime::{Result, ensure};

use super::bindings::wok::recipe::zookeeper::{Line, Place, Stat};

/// What a name takes in memory besides its text.
pub(super) const NAME_OVERHEAD: usize = 40;

/// Most names in one batch, whatever the component asks for.
const MAX_NAMES: usize = 4096;

/// Most infixes of a line: each name is compared with each of them.
const MAX_INFIXES: usize = 8;

/// The longest infix.
const MAX_INFIX: usize = 64;

/// Most lines of one list. To put a list in order takes the processor, and nothing interrupts it.
const MAX_LINES: usize = 4;

/// The digits of a counter as ZooKeeper writes it, `%010d`.
const COUNTER: usize = 10;

/// A list of children that the component takes in batches.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "the generated bindings are as public as they can be")]
pub struct ChildList {
    pub(super) count: u32,
    pub(super) stat: Stat,
    /// What the names took, and what their lines take.
    pub(super) bytes: u64,
    /// Empty where a name was handed out before there was a line.
    names: Vec<String>,
    lines: Vec<InLine>,
    /// Which of the lines the component asks about, once there is one.
    line: Option<usize>,
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
        ChildList { count, stat, bytes, names, lines: Vec::new(), line: None, passed: 0 }
    }

    /// The next names, at most so many.
    pub(super) fn next(&mut self, max: u32) -> Vec<String> {
        let max = MAX_NAMES.min(max as usize);
        let batch: Vec<String> = match self.line() {
            None => self.names.iter_mut().skip(self.passed).take(max).map(mem::take).collect(),
            Some(line) => {
                let standing = line.standing.iter().skip(self.passed).take(max);
                standing.map(|it| name_at(&self.names, it.name).to_owned()).collect()
            }
        };
        self.passed += batch.len();
        batch
    }

    /// Passes over the next names.
    pub(super) fn skip(&mut self, count: u32) {
        let all = self.line().map_or(self.names.len(), |line| line.standing.len());
        let count = all.saturating_sub(self.passed).min(count as usize);
        if self.line.is_none() {
            // As if they were handed out.
            let passed = self.names.iter_mut().skip(self.passed).take(count);
            passed.for_each(|name| drop(mem::take(name)));
        }
        self.passed += count;
    }

    /// Makes a line of the names that were not handed out before the first line, and begins at its
    /// first.
    ///
    /// # Errors
    /// For infixes that tell nothing, and for too many infixes or lines.
    pub(super) fn order(&mut self, infixes: Vec<String>) -> Result<Line> {
        self.passed = 0;
        let known = self.lines.iter().position(|line| line.infixes == infixes);
        let at = match known {
            Some(at) => at,
            None => self.line_up(infixes)?,
        };
        self.line = Some(at);
        let line = self.line();
        let length = line.map_or(0, |line| line.standing.len());
        let stranger = line.and_then(|line| line.stranger);
        Ok(Line {
            length: u32::try_from(length).unwrap_or(u32::MAX),
            stranger: stranger.map(|name| name_at(&self.names, name).to_owned()),
        })
    }

    /// Makes another line; answers which of the lines it is.
    fn line_up(&mut self, infixes: Vec<String>) -> Result<usize> {
        ensure!(
            infixes.len() <= MAX_INFIXES
                && infixes.iter().all(|infix| (1..=MAX_INFIX).contains(&infix.len())),
            "order: give at most {MAX_INFIXES} infixes, each of 1 to {MAX_INFIX} bytes"
        );
        ensure!(
            self.lines.len() < MAX_LINES,
            "order: at most {MAX_LINES} lines are made of one list; list the children again"
        );
        let (mut standing, mut stranger) = (Vec::new(), None);
        for (at, name) in (0_u32..).zip(&self.names) {
            match infixes.iter().find_map(|infix| counter_after(infix, name)) {
                Some(counter) => standing.push(Standing { counter, name: at }),
                None if stranger.is_none() && ends_with_counter(name) => stranger = Some(at),
                None => {}
            }
        }
        let origin = standing.first().map_or(0, |first| first.counter);
        sort(&self.names, origin, &mut standing);
        self.bytes += (standing.capacity() * size_of::<Standing>()) as u64;
        self.lines.push(InLine { infixes, standing, stranger });
        Ok(self.lines.len() - 1)
    }

    /// Where a contender stands in the line, or would stand. Nobody stands in a line that was not made.
    pub(super) fn position(&mut self, name: &str, counter: i32) -> Place {
        let Self { names, lines, line, .. } = self;
        let Some(InLine { standing, .. }) = line.and_then(|at| lines.get_mut(at)) else {
            return Place { ahead: 0, is_there: false };
        };
        if !is_in_order_for(counter, standing) {
            sort(names, counter, standing);
        }
        let is_ahead = |it: &Standing| {
            let other = (it.counter, name_at(names, it.name));
            compare(counter, other, (counter, name)) == Ordering::Less
        };
        let ahead = standing.partition_point(is_ahead);
        let is_there = standing.get(ahead).is_some_and(|it| name_at(names, it.name) == name);
        Place { ahead: u32::try_from(ahead).unwrap_or(u32::MAX), is_there }
    }

    fn line(&self) -> Option<&InLine> {
        self.lines.get(self.line?)
    }
}

fn name_at(names: &[String], at: u32) -> &str {
    names.get(at as usize).map_or("", String::as_str)
}

/// The first first, as seen from the counter `origin`.
fn sort(names: &[String], origin: i32, standing: &mut [Standing]) {
    let named = |it: &Standing| (it.counter, name_at(names, it.name));
    standing.sort_unstable_by(|one, other| compare(origin, named(one), named(other)));
}

/// Whether a line that was sorted has those first who are ahead of this counter. So it is as long as
/// all span less than half the circle, together with the counter. It takes a name that somebody made
/// up to make them span more, and then who is ahead depends on who looks.
fn is_in_order_for(counter: i32, standing: &[Standing]) -> bool {
    let Some((first, last)) = standing.first().zip(standing.last()) else { return true };
    let is_before = |one: i32, other: i32| one.wrapping_sub(other) < 0;
    let (first, last) = (first.counter, last.counter);
    !is_before(last, first) && (is_before(first, counter) || !is_before(last, counter))
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

    fn place(list: &mut ChildList, name: &str, counter: i32) -> (u32, bool) {
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
        assert_eq!(place(&mut list, "d-lock--2147483648", i32::MIN), (1, true));
        assert_eq!(place(&mut list, "z-lock--2147483648", i32::MIN), (2, false));
        assert_eq!(place(&mut list, "a-lock--2147483646", i32::MIN + 2), (3, false));
        list.skip(1);
        assert_eq!(list.next(1), ["d-lock--2147483648"]);
        assert_eq!(list.next(9), ["b-lock--2147483647"]);
    }

    #[test]
    fn another_line_can_be_made_of_the_same_names() {
        let mut list = list(&["r-R-0000000003", "w-W-0000000001", "r-R-0000000002"]);
        assert_eq!(order(&mut list, &["-R-", "-W-"]), (3, None));
        assert_eq!(place(&mut list, "r-R-0000000003", 3), (2, true));
        assert_eq!(order(&mut list, &["-W-"]), (1, Some("r-R-0000000003".to_owned())));
        assert_eq!(place(&mut list, "r-R-0000000003", 3), (1, false));
        assert_eq!(list.next(9), ["w-W-0000000001"]);
    }

    #[test]
    fn a_made_up_counter_lets_nobody_by() {
        // Half the circle away from those in line. The server may list it anywhere.
        let mut names = vec!["5-lock-0000000005", "6-lock-0000000006", "7-lock-0000000007"];
        names.push("x-lock--2147483642");
        for at in 0..names.len() {
            names.rotate_left(at);
            let mut list = list(&names);
            order(&mut list, &["-lock-"]);
            // Each sees what is ahead of it, and what was made up if that seems to be.
            let made_up = i32::MIN + 6;
            for counter in [5_i32, 6, 7] {
                let seems_ahead = u32::from(made_up.wrapping_sub(counter) < 0);
                let name = format!("{counter}-lock-000000000{counter}");
                let ahead = u32::try_from(counter - 5).unwrap() + seems_ahead;
                assert_eq!(place(&mut list, &name, counter), (ahead, true), "{names:?}");
            }
        }
    }

    #[test]
    fn a_place_in_a_line_of_others_is_found_from_wherever_it_is_asked() {
        let mut list = list(&["a-W-0000000000", "b-W-0000000100"]);
        order(&mut list, &["-W-"]);
        for counter in [-1, 0, 50, 100, i32::MAX, i32::MIN, i32::MIN + 50, i32::MIN + 101] {
            let ahead = [0, 100_i32].iter().filter(|it| it.wrapping_sub(counter) < 0).count();
            let ahead = u32::try_from(ahead).unwrap();
            assert_eq!(place(&mut list, "A", counter), (ahead, false), "{counter}");
        }
    }

    #[test]
    fn only_so_many_lines_are_made_of_a_list() {
        let mut list = list(&["a-lock-0000000001"]);
        let bytes = list.bytes;
        let infixes = |number: usize| vec![format!("-{number}-")];
        for number in 0..MAX_LINES {
            list.order(infixes(number)).unwrap();
        }
        assert!(list.order(infixes(MAX_LINES)).is_err());
        assert_eq!(list.order(infixes(0)).unwrap().length, 0);
        assert_eq!(list.bytes, bytes, "nobody stands in any of them");
    }

    #[test]
    fn a_line_counts_among_the_bytes_of_its_list() {
        let mut list = list(&["a-lock-0000000001"]);
        let bytes = list.bytes;
        order(&mut list, &["-lock-"]);
        assert!(list.bytes > bytes);
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
        assert_eq!(place(&mut list, "a-lock-0000000001", 1), (0, false));
        assert_eq!(order(&mut list, &[]), (0, Some("a-lock-0000000001".to_owned())));
    }

    #[test]
    fn infixes_that_tell_nothing_and_too_many_are_refused() {
        let mut list = list(&["a-lock-0000000001"]);
        let (none, long) = (vec![String::new()], vec!["x".repeat(MAX_INFIX + 1)]);
        for infixes in [none, long, vec!["-lock-".to_owned(); MAX_INFIXES + 1]] {
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
