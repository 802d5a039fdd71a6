//! What each invariant means, in a sentence for people who read that it was broken.

use crate::guest::Judge;

/// What an invariant promises, as the recipe's judge says it and as the host does, where both judge it.
pub fn meanings<'a>(invariant: &'a str, judge: Option<&'a Judge>) -> impl Iterator<Item = &'a str> {
    let promised = judge.into_iter().flat_map(Judge::invariants);
    let promised = promised.map(|(id, meaning)| (id.as_str(), meaning.as_str()));
    let all = promised.chain(OWED.iter().copied());
    all.filter(move |(id, _)| *id == invariant).map(|(_, meaning)| meaning)
}

/// What every recipe owes.
const OWED: &[(&str, &str)] = &[
    (
        "M5",
        "nobody holds on to a claim that is gone, or does anything in its name, and what is lost is \
         told once",
    ),
    (
        "M7",
        "a request leaves no contender behind: when it is answered without a grant or given up, its \
         znode goes, and no request has two of them",
    ),
    ("Q1", "a grant, and what is done under it, rests on contact with a majority that is not old"),
    ("V1", "an ephemeral znode is deleted by the session that made it, and by nobody else"),
    ("W1", "in calm every call is answered"),
    ("H1", "no herd: one deletion wakes one contender"),
    ("X1", "a component reaches nothing outside of its mount"),
    ("X2", "a participant that has ended acts no more and leaves no watch behind"),
    ("L1", "a component keeps its limits, does not trap, and ends when it is cancelled"),
    ("S1", "a watch event has a cause, and comes once and in order"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::CompileCache;
    use crate::modules;

    /// The judges' own table says which ids there are.
    #[test]
    fn every_invariant_of_the_judges_has_a_meaning() {
        let judges = include_str!("judges.rs");
        let rows = judges.lines().filter_map(|line| line.strip_prefix("//! | "));
        let ids: Vec<&str> = rows.filter_map(|row| row.split(" | ").next()).collect();
        assert!(ids.contains(&"M5") && ids.contains(&"S1"), "{ids:?}");
        for id in ids.into_iter().filter(|id| *id != "id") {
            assert_eq!(meanings(id, None).count(), 1, "{id}");
        }
        assert_eq!(meanings("M1", None).count(), 0);
    }

    #[test]
    fn what_a_recipes_judge_says_comes_before_what_the_host_says() {
        for name in modules::stock_names() {
            let bytes = modules::stock_judge(name).unwrap();
            let judge = Judge::load(name, bytes, &CompileCache::Off).unwrap();
            assert!(!judge.invariants().is_empty(), "{name}");
            for (id, meaning) in judge.invariants() {
                let owed = usize::from(OWED.iter().any(|(it, _)| it == id));
                let all: Vec<&str> = meanings(id, Some(&judge)).collect();
                assert_eq!((all.len(), all.first()), (1 + owed, Some(&meaning.as_str())), "{id}");
            }
            assert_eq!(meanings("nothing", Some(&judge)).count(), 0);
        }
    }
}
