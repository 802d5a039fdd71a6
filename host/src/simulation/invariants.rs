//! What each invariant means, in a sentence for people who read that it was broken.

use super::judges;
use crate::guest::Judge;

/// What an invariant promises, a sentence for each who judges it. Where both the recipe's judge and
/// the host do, the same id may stand for two promises, and each sentence says whose it is.
pub fn promises(invariant: &str, judge: Option<&Judge>) -> Vec<String> {
    let own = judge.into_iter().flat_map(Judge::invariants).find(|(id, _)| id == invariant);
    let own = own.map(|(_, meaning)| meaning.as_str());
    let owed = OWED.iter().find(|(id, _)| *id == invariant).map(|(_, meaning)| *meaning);
    // The host does not judge what it leaves to a recipe's judge that names it.
    let owed = owed.filter(|_| own.is_none() || !judges::is_left_to_recipes(invariant));
    match (own, owed) {
        (Some(own), Some(owed)) if own != owed => vec![
            format!("{invariant} promises, in the words of the recipe's judge: {own}"),
            format!("{invariant} promises, of every recipe: {owed}"),
        ],
        (own, owed) => {
            let meaning = own.or(owed).map(|it| format!("{invariant} promises: {it}"));
            meaning.into_iter().collect()
        }
    }
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
            assert_eq!(promises(id, None).len(), 1, "{id}");
        }
        assert_eq!(promises("M1", None), Vec::<String>::new());
    }

    #[test]
    fn where_the_recipes_judge_and_the_host_judge_one_id_each_promise_says_whose_it_is() {
        let mut shared = 0;
        for name in modules::stock_names() {
            let bytes = modules::stock_judge(name).unwrap();
            let judge = Judge::load(name, bytes, &CompileCache::Off).unwrap();
            assert!(!judge.invariants().is_empty(), "{name}");
            for (id, own) in judge.invariants() {
                let told = promises(id, Some(&judge));
                let is_owed = OWED.iter().any(|(it, _)| it == id);
                if is_owed && !judges::is_left_to_recipes(id) {
                    shared += 1;
                    let words = format!("{id} promises, in the words of the recipe's judge: {own}");
                    assert_eq!((told.len(), &told[0]), (2, &words), "{name}");
                    let words = format!("{id} promises, of every recipe: ");
                    assert!(told[1].starts_with(&words), "{name}: {told:?}");
                } else {
                    assert_eq!(told, [format!("{id} promises: {own}")], "{name}");
                }
            }
            assert_eq!(promises("nothing", Some(&judge)), Vec::<String>::new());
        }
        assert!(shared > 0, "no stock judge shares an id with the host");
    }
}
