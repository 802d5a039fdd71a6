//! What the one that was struck knows of its operation, and what has to be there by that.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use wok::participant::Answer;

use super::party::Operation;

/// What of an answer is looked at.
pub(super) type Part = fn(&Value) -> Value;

/// All of it.
pub(super) fn whole(answer: &Value) -> Value {
    answer.clone()
}

/// What the one that was struck knows.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was told this.
    Done(Value),
    /// It was told that nothing has happened, and why.
    Refused(Value),
    /// The operation was carried out once, or not at all.
    Unknown,
}

impl Outcome {
    /// By the answer, if there was one.
    pub(super) fn of(answer: Option<Answer>) -> Outcome {
        match answer.map(|answer| answer.value) {
            Some(Ok(told)) => Outcome::Done(told),
            Some(Err(error))
                if error != json!("outcome-unknown") && error != json!("cancelled") =>
            {
                Outcome::Refused(error)
            }
            _ => Outcome::Unknown,
        }
    }

    /// For a failure.
    fn story(&self) -> String {
        match self {
            Outcome::Done(told) => format!("was told {told}"),
            Outcome::Refused(why) => format!("was refused with {why}"),
            Outcome::Unknown => "does not know what became of it".to_owned(),
        }
    }
}

/// What an operation answers where it is carried out.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) part: Part,
    pub(super) is: Value,
}

impl Told {
    pub(super) fn judge(&self, outcome: &Outcome) -> Result<()> {
        if let Outcome::Done(told) = outcome {
            let told = (self.part)(told);
            ensure!(told == self.is, "the one that was struck was told {told}, not {}", self.is);
        }
        Ok(())
    }
}

/// What another one finds afterwards.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) look: Operation,
    pub(super) part: Part,
    /// Where the operation was not carried out.
    pub(super) without: Value,
    /// Where it was, once.
    pub(super) with: Value,
}

impl Found {
    pub(super) fn judge(&self, outcome: &Outcome, answer: &Value) -> Result<()> {
        let found = (self.part)(answer);
        let (is_without, is_with) = (found == self.without, found == self.with);
        let is_right = match outcome {
            Outcome::Done(_) => is_with,
            Outcome::Refused(_) => is_without,
            Outcome::Unknown => is_without || is_with,
        };
        let (story, Found { without, with, .. }) = (outcome.story(), self);
        ensure!(
            is_right,
            "the one that was struck {story}, and another one finds {found}: {with} would say that it was \
             carried out, and {without} that it was not"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: &Outcome, found: &Value, is_right: bool) {
        let (without, with) = (json!(["a", "b"]), json!(["b"]));
        let expected = Found { look: ("take-many", Value::Null), part: whole, without, with };
        assert_eq!(expected.judge(outcome, found).is_ok(), is_right, "{outcome:?} {found}");
    }

    #[test]
    fn what_is_there_has_to_be_what_the_one_that_was_struck_knows() {
        let (not_taken, taken) = (json!(["a", "b"]), json!(["b"]));
        let done = Outcome::Done(json!({ "data": "a" }));
        check(&done, &taken, true);
        check(&done, &not_taken, false);
        let refused = Outcome::Refused(json!("no-node"));
        check(&refused, &not_taken, true);
        check(&refused, &taken, false);
        check(&Outcome::Unknown, &not_taken, true);
        check(&Outcome::Unknown, &taken, true);
        for lost_or_doubled in [json!([]), json!(["a"]), json!(["a", "a", "b"]), json!(["b", "b"])]
        {
            for outcome in [&done, &refused, &Outcome::Unknown] {
                check(outcome, &lost_or_doubled, false);
            }
        }
    }

    #[test]
    fn what_was_told_is_compared_only_where_something_was_told() {
        let told = Told { part: |told| told["data"].clone(), is: json!("a") };
        told.judge(&Outcome::Done(json!({ "data": "a" }))).unwrap();
        told.judge(&Outcome::Done(json!({ "data": "b" }))).unwrap_err();
        told.judge(&Outcome::Unknown).unwrap();
    }
}
