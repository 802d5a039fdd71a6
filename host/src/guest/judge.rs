//! Judges of promises: components without imports that are asked for a verdict after a run.
//!
//! A judge is nobody's participant. It has an engine of its own, a fresh instance for each run, fuel
//! instead of time, and bounds on its memory and on what it answers. Whatever it does wrong is an error
//! of the judge, which names it, and never a verdict.

mod bindings;

use std::sync::Arc;

use sha2::{Digest, Sha256};
use wasmtime::component::{Component, Linker};
use wasmtime::{Store, Trap};

use super::binary::{DAMAGED, is_judge, no_component};
use super::cache;
use super::engine::{CompileCache, EngineError, sandboxed};
use super::fault::in_words;
use super::limits::{Growth, LimitReached, Limits};
use super::sections::custom_section;
pub(crate) use bindings::wok::judge::history;

/// The custom section in which a recipe carries the judge of its promise along.
const SECTION: &str = "wok:judge";

/// What one verdict may use: some seconds of an ordinary processor. The stock ones take a thousandth.
const FUEL: u64 = 2_000_000_000;

/// A history of ten thousand entries takes a few MiB.
const MEMORY: u64 = 128 << 20;

/// What a judge may answer in one call, in the host's memory: some thousand sentences.
const ANSWER_BYTES: usize = 1 << 20;

/// A judge's stack: it runs on that of its thread.
const STACK: usize = 512 << 10;

/// The judge of a promise, compiled and checked. Clones are the same judge.
#[derive(Clone)]
pub struct Judge {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    digest: String,
    invariants: Vec<(String, String)>,
    pre: bindings::PromisePre<Growth>,
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// There is no engine for it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The bytes are no judge.
    #[error("{judge} is no judge: {problem}")]
    Unfit {
        /// Its name.
        judge: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It does not take the recipe's config.
    #[error("the judge {judge} refuses the config: {error}")]
    Refused {
        /// Its name.
        judge: String,
        /// What it says.
        error: String,
    },
    /// It trapped, used up what it may, or answered what makes no sense.
    #[error("the judge {judge} failed in `{function}`: {problem}; nothing was judged")]
    Failed {
        /// Its name.
        judge: String,
        /// What it was asked.
        function: &'static str,
        /// What happened.
        problem: String,
    },
}

impl Judge {
    /// Largest judge: the stock ones have a few hundred thousand bytes.
    pub(crate) const MAX_BYTES: usize = 8 << 20;

    /// Compiles a judge and asks it for its invariants.
    ///
    /// # Errors
    /// The bytes are no judge, or the judge fails at once.
    pub fn load(name: &str, bytes: &[u8], cache: &CompileCache) -> Result<Self, JudgeError> {
        let unfit = |problem: String| JudgeError::Unfit { judge: name.to_owned(), problem };
        if let Some(problem) = no_component(bytes, Self::MAX_BYTES, "wok build --judge") {
            return Err(unfit(problem));
        }
        let engine = engine(cache)?;
        let component = Component::from_binary(&engine, bytes)
            .map_err(|error| unfit(format!("{error:#}; {DAMAGED}")))?;
        if !is_judge(&component, &engine) {
            let problem = "it does not export wok:judge/judge; a recipe stands before --judge, as in \
                           `wok test recipe.wasm --judge judge.wasm`, and `wok build --judge` makes a judge";
            return Err(unfit(problem.to_owned()));
        }
        // Nothing is linked: what asks for anything but types does not fit.
        let pre = Linker::new(&engine)
            .instantiate_pre(&component)
            .and_then(bindings::PromisePre::new)
            .map_err(|error| {
                let remedy = "a judge imports nothing; build it with the wok-judge of this host";
                unfit(format!("{error:#}; {remedy}"))
            })?;
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let digest = crate::digest::hex(&digest);
        let mut inner = Inner { name: name.to_owned(), digest, invariants: Vec::new(), pre };
        inner.invariants = Sitting::new(&inner, "invariants")?.invariants()?;
        if inner.invariants.is_empty() {
            let problem = "it judges nothing: its `invariants` are none";
            return Err(unfit(problem.to_owned()));
        }
        Ok(Judge { inner: Arc::new(inner) })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The SHA-256 of its bytes, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// Its invariants: an id and a sentence of each.
    pub fn invariants(&self) -> &[(String, String)] {
        &self.inner.invariants
    }

    /// Whether it judges an invariant of that id.
    pub fn names(&self, invariant: &str) -> bool {
        self.inner.invariants.iter().any(|(id, _)| id == invariant)
    }

    /// What a run of a recipe with that config broke.
    ///
    /// # Errors
    /// [`JudgeError::Refused`] and [`JudgeError::Failed`].
    pub(crate) fn verdict(
        &self,
        config: &str,
        texts: &[String],
        entries: &[history::Entry],
    ) -> Result<Vec<history::Violation>, JudgeError> {
        let mut sitting = Sitting::new(&self.inner, "begin")?;
        sitting.begin(config)?;
        sitting.see(texts, entries)?;
        sitting.verdict()
    }

    /// An answer that makes no sense.
    pub(crate) fn failed(&self, problem: String) -> JudgeError {
        self.inner.failed("verdict", problem)
    }
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inner { name, digest, .. } = &*self.inner;
        formatter.debug_struct("Judge").field("name", name).field("digest", digest).finish()
    }
}

impl Inner {
    fn failed(&self, function: &'static str, problem: String) -> JudgeError {
        JudgeError::Failed { judge: self.name.clone(), function, problem }
    }
}

/// The judge that a recipe's component carries along.
pub fn carried_judge(component: &[u8]) -> Option<&[u8]> {
    custom_section(component, SECTION)
}

fn engine(cache: &CompileCache) -> Result<wasmtime::Engine, EngineError> {
    let mut config = sandboxed();
    // What a number that is not one looks like in memory depends on the processor.
    config.consume_fuel(true).cranelift_nan_canonicalization(true);
    config.max_wasm_stack(STACK);
    config.memory_reservation(MEMORY);
    config.memory_guard_size(64 << 10);
    config.memory_may_move(false);
    cache::apply(&mut config, cache)?;
    wasmtime::Engine::new(&config).map_err(|source| EngineError::Judge { source })
}

/// A judge at one run.
struct Sitting<'a> {
    judge: &'a Inner,
    store: Store<Growth>,
    instance: bindings::Promise,
}

impl<'a> Sitting<'a> {
    fn new(judge: &'a Inner, function: &'static str) -> Result<Self, JudgeError> {
        let limits = Limits { memory: MEMORY, ..Limits::default() };
        let mut store = Store::new(judge.pre.engine(), Growth::new(&limits));
        store.limiter(|growth| growth);
        store.set_hostcall_fuel(ANSWER_BYTES);
        let instance = store.set_fuel(FUEL).and_then(|()| judge.pre.instantiate(&mut store));
        match instance {
            Ok(instance) => Ok(Sitting { judge, store, instance }),
            Err(error) => Err(fault(judge, &mut store, function, &error)),
        }
    }

    fn invariants(&mut self) -> Result<Vec<(String, String)>, JudgeError> {
        let answered = self.instance.wok_judge_judge().call_invariants(&mut self.store);
        answered.map_err(|error| self.fault("invariants", &error))
    }

    fn begin(&mut self, config: &str) -> Result<(), JudgeError> {
        let answered = self.instance.wok_judge_judge().call_begin(&mut self.store, config);
        let answered = answered.map_err(|error| self.fault("begin", &error))?;
        let judge = || self.judge.name.clone();
        answered.map_err(|error| JudgeError::Refused { judge: judge(), error })
    }

    fn see(&mut self, texts: &[String], entries: &[history::Entry]) -> Result<(), JudgeError> {
        let judge = self.instance.wok_judge_judge();
        let answered = judge.call_see(&mut self.store, texts, entries);
        answered.map_err(|error| self.fault("see", &error))
    }

    fn verdict(&mut self) -> Result<Vec<history::Violation>, JudgeError> {
        let answered = self.instance.wok_judge_judge().call_verdict(&mut self.store);
        answered.map_err(|error| self.fault("verdict", &error))
    }

    fn fault(&mut self, function: &'static str, error: &wasmtime::Error) -> JudgeError {
        fault(self.judge, &mut self.store, function, error)
    }
}

fn fault(
    judge: &Inner,
    store: &mut Store<Growth>,
    function: &'static str,
    error: &wasmtime::Error,
) -> JudgeError {
    let denied = store.data_mut().denied.take();
    let limit = error.downcast_ref::<LimitReached>().copied().or(denied);
    let cause = error.root_cause().to_string();
    let problem = match (limit, error.downcast_ref::<Trap>()) {
        (Some(LimitReached { what, maximum, .. }), _) => {
            format!("it wanted more than {maximum} {what}")
        }
        (None, Some(trap)) => in_words(*trap),
        // wasmtime has no type for this one.
        (None, None) if cause.contains("fuel allocated for hostcalls") => {
            format!("it answered more than {ANSWER_BYTES} bytes")
        }
        (None, None) => cause,
    };
    judge.failed(function, problem)
}
