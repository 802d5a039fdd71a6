//! Which operations were called: what was never called was never judged.

use std::collections::BTreeMap;

use super::history::{Entry, Outcome, What};

/// How often operations were called, and how often that went well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Called {
    operations: BTreeMap<String, Calls>,
}

/// The calls of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Calls {
    made: u64,
    /// Answered, and not by an error.
    answered: u64,
}

impl Called {
    /// In a history.
    pub fn of(history: &[Entry]) -> Self {
        let mut called = Called::default();
        let mut open = BTreeMap::new();
        for entry in history {
            match &entry.what {
                What::Invoked { call, operation, .. } => {
                    called.operations.entry(operation.clone()).or_default().made += 1;
                    open.insert(*call, operation);
                }
                What::Returned { call, outcome: Outcome::Ok { .. }, .. } => {
                    let operation = open.get(call).and_then(|it| called.operations.get_mut(*it));
                    operation.into_iter().for_each(|calls| calls.answered += 1);
                }
                _ => {}
            }
        }
        called
    }

    /// Adds another run's.
    pub fn add(&mut self, other: Called) {
        for (operation, calls) in other.operations {
            let sum = self.operations.entry(operation).or_default();
            sum.made += calls.made;
            sum.answered += calls.answered;
        }
    }

    /// How often an operation was called.
    pub fn made(&self, operation: &str) -> u64 {
        self.operations.get(operation).map_or(0, |calls| calls.made)
    }

    /// How often an operation was answered, and not by an error.
    pub fn answered(&self, operation: &str) -> u64 {
        self.operations.get(operation).map_or(0, |calls| calls.answered)
    }

    /// Whether an operation was called and answered errors only, or not at all.
    pub fn only_failed(&self, operation: &str) -> bool {
        self.operations.get(operation).is_some_and(|calls| calls.made > 0 && calls.answered == 0)
    }
}
