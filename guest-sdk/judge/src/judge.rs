//! A judge as a component: the trait, and what `export!` makes of it.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::Violation;
use crate::bindings::exports::wok::judge::judge::Guest;
use crate::bindings::wok::judge::history;
use crate::history::Entry;
use crate::raise::Raising;

/// What a recipe promises.
pub trait Judge: Sized {
    /// Its invariants: an id, and one sentence for people.
    const INVARIANTS: &'static [(&'static str, &'static str)];

    /// A run of a recipe with that config, which is JSON, is to be judged.
    ///
    /// # Errors
    /// What is wrong with the config, in words.
    fn begin(config: &str) -> Result<Self, String>;

    /// What a run broke.
    fn verdict(&self, history: &[Entry]) -> Vec<Violation>;
}

/// Makes the component's exports of a [`Judge`].
#[macro_export]
macro_rules! export {
    ($judge:ty) => {
        // The names of the exports are none that a native linker takes.
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Exported = $crate::Exported<$judge>;
    $crate::bindings::export_component!(Exported with_types_in $crate::bindings);
        };
    };
}

/// A judge behind the component's exports.
#[doc(hidden)]
#[derive(Debug)]
pub struct Exported<J>(PhantomData<J>);

thread_local! {
    /// The run that is judged. A component judges one.
    static RUN: RefCell<Run> = RefCell::default();
}

/// A judge that has begun, whatever its type.
type Begun = Box<dyn Fn(&[Entry]) -> Vec<Violation>>;

#[derive(Default)]
struct Run {
    judge: Option<Begun>,
    raising: Raising,
    history: Vec<Entry>,
}

impl<J: Judge + 'static> Guest for Exported<J> {
    fn invariants() -> Vec<(String, String)> {
        J::INVARIANTS.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
    }

    fn begin(config: String) -> Result<(), String> {
        let judge = J::begin(&config)?;
        let judge = Box::new(move |history: &[Entry]| judge.verdict(history));
        RUN.with_borrow_mut(|run| *run = Run { judge: Some(judge), ..Run::default() });
        Ok(())
    }

    fn see(texts: Vec<String>, entries: Vec<history::Entry>) {
        RUN.with_borrow_mut(|run| {
            run.raising.learn(texts);
            let raised = entries.into_iter().map(|entry| run.raising.entry(entry));
            run.history.extend(raised);
        });
    }

    #[allow(clippy::panic, reason = "a host that does not begin has to be told, and a trap is")]
    fn verdict() -> Vec<history::Violation> {
        RUN.with_borrow(|run| match &run.judge {
            Some(judge) => judge(&run.history).into_iter().map(lower).collect(),
            None => panic!("no run has begun"),
        })
    }
}

fn lower(violation: Violation) -> history::Violation {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    history::Violation {
        invariant: violation.invariant.into_owned(),
        sentence: violation.sentence,
        at: number(violation.at),
        involved: violation.involved.into_iter().map(number).collect(),
        participants: violation.participants,
    }
}
