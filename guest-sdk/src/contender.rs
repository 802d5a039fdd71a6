//! Who stands where in a line of contenders.

use std::iter;

use crate::Sequence;
use crate::participant::{ContenderName, UuidForm};

/// As many infixes as the host takes for a line.
const INFIXES: usize = 8;

/// How the contenders of a recipe are named: before, UUID, after, counter.
///
/// A recipe whose contenders are of several kinds has a naming for each, which differ in `after`:
/// readers and writers of one line, say. [`Naming::beside`] makes one that reads all of them.
#[derive(Clone, Copy, Debug)]
pub struct Naming {
    before: &'static str,
    uuid: UuidForm,
    after: &'static str,
    /// What contenders of other kinds have in the place of `after`.
    others: &'static [&'static str],
}

impl Naming {
    /// As Curator names a protected znode: `_c_<uuid><after><counter>`.
    ///
    /// # Panics
    /// `after` is empty: nothing would tell the counter from the UUID.
    pub const fn curator(after: &'static str) -> Self {
        Naming::new("_c_", UuidForm::Hyphenated, after)
    }

    /// As kazoo names one: `<uuid without hyphens><after><counter>`.
    ///
    /// # Panics
    /// `after` is empty.
    pub const fn kazoo(after: &'static str) -> Self {
        Naming::new("", UuidForm::Simple, after)
    }

    const fn new(before: &'static str, uuid: UuidForm, after: &'static str) -> Self {
        assert!(!after.is_empty(), "something has to stand between the UUID and the counter");
        Naming { before, uuid, after, others: &[] }
    }

    /// The same naming, which reads contenders of these other kinds as well.
    ///
    /// # Panics
    /// One of them is empty, there are more than 7, or one of all kinds is the end of another: a
    /// contender would be of two kinds.
    #[must_use]
    #[allow(clippy::indexing_slicing, reason = "a constant is made without iterators")]
    pub const fn beside(self, others: &'static [&'static str]) -> Self {
        assert!(others.len() < INFIXES, "a line has no more kinds of contenders");
        let mut at = 0;
        while at < others.len() {
            assert!(!others[at].is_empty(), "something has to stand between UUID and counter");
            assert!(is_told_from(others[at], self.after), "two kinds have one end");
            let mut earlier = 0;
            while earlier < at {
                assert!(is_told_from(others[at], others[earlier]), "two kinds have one end");
                earlier += 1;
            }
            at += 1;
        }
        Naming { others, ..self }
    }

    /// Whether the contender is of this naming's own kind, and not of those that it reads beside.
    pub fn is_own(&self, contender: &Contender) -> bool {
        contender.infix == self.after
    }

    /// The contender of this naming's own kind at the same place in line: with the same UUID and the
    /// same counter, under another name. None where its name is not what its fields say.
    pub fn in_the_place_of(&self, contender: &Contender) -> Option<Contender> {
        let Contender { name, infix, sequence } = contender;
        let at = infix_at(infix, name)?;
        let (before, counter) = (name.get(..at)?, name.get(at.checked_add(infix.len())?..)?);
        let name = [before, self.after, counter].concat();
        Some(Contender { name, infix: self.after, sequence: *sequence })
    }

    /// The same naming, which reads no other kind beside its own.
    pub(crate) const fn alone(self) -> Self {
        Naming { others: &[], ..self }
    }

    /// What stands before the counter, of every kind that it reads.
    pub(crate) fn infixes(&self) -> Vec<String> {
        let all = iter::once(&self.after).chain(self.others);
        all.map(|infix| (*infix).to_owned()).collect()
    }

    /// The name to contend with.
    pub fn contender_name(&self) -> ContenderName {
        ContenderName {
            before: self.before.to_owned(),
            uuid: self.uuid,
            after: self.after.to_owned(),
        }
    }

    /// Reads a child's name; none if it is no contender of this naming.
    ///
    /// What stands before `after` is anybody's: the clients that share a directory spell their UUIDs
    /// differently, and a contender that one of them overlooks is a second holder.
    pub fn read(&self, name: String) -> Option<Contender> {
        let (infix, sequence) = self.parse(&name)?;
        Some(Contender { name, infix, sequence })
    }

    /// The contenders of this naming among names, in line.
    pub fn line<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<Contender> {
        let read = names.into_iter().filter_map(|name| self.read(name.to_owned()));
        let mut line: Vec<_> = read.collect();
        let origin = line.first().map_or(Sequence::new(0), |first| first.sequence);
        line.sort_unstable_by(|one, other| {
            let steps = |it: &Contender| it.sequence.steps_after(origin);
            // Equal counters happen only among names of different make; any fixed order will do.
            steps(one).cmp(&steps(other)).then_with(|| one.name.cmp(&other.name))
        });
        line
    }

    fn parse(&self, name: &str) -> Option<(&'static str, Sequence)> {
        let mut infixes = iter::once(&self.after).chain(self.others);
        infixes.find_map(|infix| Some((*infix, sequence_after(infix, name)?)))
    }
}

/// Whether neither of two infixes is the end of the other.
#[allow(clippy::indexing_slicing, reason = "a constant is made without iterators")]
const fn is_told_from(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut back = 1;
    while back <= one.len() && back <= other.len() {
        if one[one.len() - back] != other[other.len() - back] {
            return true;
        }
        back += 1;
    }
    false
}

fn sequence_after(infix: &str, name: &str) -> Option<Sequence> {
    let start = infix_at(infix, name)?.checked_add(infix.len())?;
    Sequence::parse(name.get(start..)?)
}

/// Where the infix begins.
fn infix_at(infix: &str, name: &str) -> Option<usize> {
    // From the right: a wrapped counter has a minus sign, and an infix ends with one too. As bytes:
    // what the search for a text brings along is a page of memory for every waiter.
    let infix = infix.as_bytes();
    name.as_bytes().windows(infix.len()).rposition(|window| window == infix)
}

/// A contender znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// The name of the znode, without its parent.
    pub name: String,
    /// Its kind: what stands before the counter.
    pub infix: &'static str,
    /// Its counter.
    pub sequence: Sequence,
}

impl Contender {
    /// The path of its znode, given the line's directory.
    pub fn path(&self, directory: &str) -> String {
        let separator = if directory.ends_with('/') { "" } else { "/" };
        [directory, separator, &*self.name].concat()
    }

    fn is_ahead_of(&self, other: &Contender) -> bool {
        if self.sequence == other.sequence {
            return self.name < other.name;
        }
        self.sequence.is_before(other.sequence)
    }
}

/// Where an own contender stands, from one look at the children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody is ahead.
    First,
    /// Somebody is ahead.
    Behind {
        /// Next ahead of the own contender: the one to watch, so that one release wakes one waiter.
        predecessor: Contender,
        /// How many are ahead, the predecessor included.
        ahead: usize,
    },
    /// The own contender is not among the children: somebody deleted it.
    Gone,
}

impl Standing {
    /// Finds `own` among the contenders. Takes them one by one and keeps one: a long list costs the
    /// component no memory.
    pub fn of(own: &Contender, contenders: impl IntoIterator<Item = Contender>) -> Self {
        let mut predecessor: Option<Contender> = None;
        let mut ahead = 0_usize;
        let mut is_there = false;
        for contender in contenders {
            if contender.name == own.name {
                is_there = true;
            } else if contender.is_ahead_of(own) {
                ahead = ahead.saturating_add(1);
                if predecessor.as_ref().is_none_or(|nearest| nearest.is_ahead_of(&contender)) {
                    predecessor = Some(contender);
                }
            }
        }
        match predecessor {
            _ if !is_there => Standing::Gone,
            None => Standing::First,
            Some(predecessor) => Standing::Behind { predecessor, ahead },
        }
    }
}

/// The name of the contender at a path. wok shows a holder its path from the root of the ensemble, and a
/// component sees paths from its mount, so only the name at the end tells whose znode that is.
pub fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURATOR: Naming = Naming::curator("-lock-");
    const KAZOO: Naming = Naming::kazoo("__lock__");
    const UUID: &str = "_c_550e8400-e29b-41d4-a716-446655440000";

    fn contender(name: &str) -> Contender {
        CURATOR.read(name.to_owned()).unwrap_or_else(|| panic!("{name} is a contender"))
    }

    #[track_caller]
    fn check_standing(own: &str, names: &[&str], expected: Standing) {
        let contenders = names.iter().filter_map(|name| CURATOR.read((*name).to_owned()));
        assert_eq!(Standing::of(&contender(own), contenders), expected);
    }

    #[test]
    fn both_makes_of_names_are_read() {
        let curator = CURATOR.read(format!("{UUID}-lock-0000000007")).unwrap();
        assert_eq!(curator.sequence, Sequence::new(7));
        let kazoo =
            KAZOO.read("550e8400e29b41d4a716446655440000__lock__0000000007".to_owned()).unwrap();
        assert_eq!(kazoo.sequence, Sequence::new(7));
    }

    #[test]
    fn a_wrapped_counter_is_read_behind_a_hyphen() {
        let wrapped = CURATOR.read(format!("{UUID}-lock--2147483648")).unwrap();
        assert_eq!(wrapped.sequence, Sequence::new(i32::MIN));
    }

    #[test]
    fn a_naming_of_several_kinds_reads_all_of_them_and_contends_as_its_own() {
        const READER: Naming = Naming::curator("__READ__").beside(&["__WRIT__"]);
        const KAZOO_READER: Naming = Naming::kazoo("__rlock__").beside(&["__lock__"]);
        assert_eq!(READER.contender_name().after, "__READ__");
        for (naming, infix) in [
            (READER, "__READ__"),
            (READER, "__WRIT__"),
            (KAZOO_READER, "__rlock__"),
            (KAZOO_READER, "__lock__"),
        ] {
            let name = format!("{UUID}{infix}0000000007");
            let read = naming.read(name.clone()).unwrap();
            assert_eq!((read.infix, read.sequence), (infix, Sequence::new(7)), "{name}");
        }
        let other = format!("{UUID}-lock-0000000007");
        assert_eq!(READER.read(other), None);
    }

    #[test]
    fn kinds_are_told_apart_by_their_ends() {
        assert!(is_told_from("__rlock__", "__lock__") && is_told_from("-__READ__", "-__WRIT__"));
        for (one, other) in [("-lock-", "lock-"), ("lock-", "-lock-"), ("-lock-", "-lock-")] {
            assert!(!is_told_from(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_contender_of_one_kind_gives_its_place_to_one_of_another() {
        const READER: Naming = Naming::curator("-__READ__").beside(&["-__WRIT__"]);
        const WRITER: Naming = Naming::curator("-__WRIT__").beside(&["-__READ__"]);
        for counter in ["0000000007", "-2147483648"] {
            let writer = READER.read(format!("{UUID}-__WRIT__{counter}")).unwrap();
            assert!(WRITER.is_own(&writer) && !READER.is_own(&writer), "{counter}");
            let reader = READER.in_the_place_of(&writer).unwrap();
            assert_eq!(reader.name, format!("{UUID}-__READ__{counter}"));
            assert_eq!(WRITER.read(reader.name.clone()), Some(reader.clone()));
            assert_eq!(reader.sequence, writer.sequence);
        }
        let torn = Contender { name: "x".to_owned(), ..contender("a-lock-0000000001") };
        assert_eq!(READER.in_the_place_of(&torn), None);
    }

    #[test]
    fn a_path_begins_with_the_directory_whether_it_is_the_mount_or_not() {
        let contender = contender("a-lock-0000000001");
        assert_eq!(contender.path("/"), "/a-lock-0000000001");
        assert_eq!(contender.path("/queue"), "/queue/a-lock-0000000001");
    }

    #[test]
    fn foreign_children_are_none() {
        for name in [
            "",
            "config",
            "-lock-",
            "x-lock-12",
            "x-lock-0000000001-leases",
            "x__READ__0000000001",
            "é-lock-000000000é",
        ] {
            assert_eq!(CURATOR.read(name.to_owned()), None, "{name:?}");
        }
        assert_eq!(KAZOO.read("x__rlock__0000000001".to_owned()), None);
    }

    #[test]
    fn the_nearest_ahead_is_the_predecessor_whatever_the_names_are() {
        check_standing(
            "a-lock-0000000009",
            &["z-lock-0000000002", "a-lock-0000000009", "b-lock-0000000008", "c-lock-0000000010"],
            Standing::Behind { predecessor: contender("b-lock-0000000008"), ahead: 2 },
        );
    }

    #[test]
    fn alone_or_lowest_is_first() {
        check_standing(
            "z-lock-0000000003",
            &["z-lock-0000000003", "a-lock-0000000004"],
            Standing::First,
        );
    }

    #[test]
    fn an_own_contender_that_is_missing_is_gone_even_if_none_is_ahead() {
        check_standing("a-lock-0000000001", &["b-lock-0000000002"], Standing::Gone);
        check_standing("a-lock-0000000001", &["b-lock-0000000000"], Standing::Gone);
        check_standing("a-lock-0000000001", &[], Standing::Gone);
    }

    #[test]
    fn a_line_across_the_wrap_keeps_its_order() {
        check_standing(
            "a-lock--2147483648",
            &["a-lock--2147483648", "b-lock-2147483647", "c-lock-2147483646", "d-lock--2147483647"],
            Standing::Behind { predecessor: contender("b-lock-2147483647"), ahead: 2 },
        );
        let line = CURATOR.line([
            "b-lock--2147483647",
            "config",
            "c-lock-2147483647",
            "d-lock--2147483648",
        ]);
        let names: Vec<_> = line.iter().map(|contender| contender.name.as_str()).collect();
        assert_eq!(names, ["c-lock-2147483647", "d-lock--2147483648", "b-lock--2147483647"]);
    }
}
