//! How a component ends that does not end well.

use std::time::Duration;

use serde_json::Value;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};

use super::limits::LimitReached;

/// Why a component cannot go on. None of its calls is answered any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Its code did something that WebAssembly does not allow, or panicked.
    #[error("{guest}: {operation} trapped: {message}")]
    Trapped {
        /// The participant's id and module.
        guest: String,
        /// What it was doing.
        operation: String,
        /// What happened.
        message: String,
        /// Where, innermost first, as text; empty if nothing is known.
        backtrace: String,
    },
    /// A call used up its processor time.
    #[error(
        "{guest}: {operation} used more than {budget:?} of processor time; \
         raise limits.cpu-per-call if it needs more"
    )]
    CpuSpent {
        /// The participant's id and module.
        guest: String,
        /// What it was doing.
        operation: String,
        /// What it had.
        budget: Duration,
    },
    /// It wanted more of something than it may have.
    #[error("{guest}: {operation} wanted more than {maximum} {what}; {}", remedy(*.key))]
    OverLimit {
        /// The participant's id and module.
        guest: String,
        /// What it was doing.
        operation: String,
        /// What it wanted, in words.
        what: &'static str,
        /// How much it may have.
        maximum: u64,
        /// Which key of the config raises that; none if it is fixed.
        key: Option<&'static str>,
    },
    /// The operation was cancelled and did not return in time, so the participant's task dropped
    /// the call.
    #[error("{guest}: {operation} did not return within {grace:?} of being cancelled")]
    GraceSpent {
        /// The participant's id and module.
        guest: String,
        /// What it was doing.
        operation: String,
        /// What it had.
        grace: Duration,
    },
    /// Its `configure` answered an error.
    #[error("{guest}: the module refuses its config: {error}")]
    ConfigRefused {
        /// The participant's id and module.
        guest: String,
        /// The module's own error.
        error: Value,
    },
    /// The pool has no room for another component.
    #[error(
        "{guest}: no room for another participant ({source}); raise [engine] participants, \
         or end some"
    )]
    PoolSpent {
        /// The participant's id and module.
        guest: String,
        /// What there was too little of.
        source: wasmtime::Error,
    },
    /// An earlier call ended in a fault or was dropped, and nothing can follow it.
    #[error("{guest}: ended by an earlier fault")]
    Dead {
        /// The participant's id and module.
        guest: String,
    },
    /// The task that keeps it is gone and has told nobody why.
    #[error("{guest}: its task ended without a word, which is a bug of the host")]
    Abandoned {
        /// The participant's id and module.
        guest: String,
    },
}

impl Fault {
    /// Its kind in one word, for programs and for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Trapped { .. } => "trapped",
            Fault::CpuSpent { .. } => "cpu-spent",
            Fault::OverLimit { .. } => "over-limit",
            Fault::GraceSpent { .. } => "grace-spent",
            Fault::ConfigRefused { .. } => "config-refused",
            Fault::PoolSpent { .. } => "pool-spent",
            Fault::Dead { .. } => "dead",
            Fault::Abandoned { .. } => "abandoned",
        }
    }
}

/// What a trap means to somebody who knows the component and not WebAssembly.
pub(super) fn in_words(trap: Trap) -> String {
    match trap {
        Trap::StackOverflow => "the stack is used up, as by deep recursion".to_owned(),
        // Compilers keep a stack of their own at the memory's low end, and grow it beyond that.
        Trap::MemoryOutOfBounds => {
            "it reached outside its memory, as by deep recursion or a wrong pointer".to_owned()
        }
        Trap::UnreachableCodeReached => "it panicked or aborted".to_owned(),
        Trap::OutOfFuel => "its fuel is used up, as by a loop without an end".to_owned(),
        trap => trap.to_string(),
    }
}

fn remedy(key: Option<&str>) -> String {
    match key {
        Some(key) => format!("raise {key} if it needs more"),
        None => "that is fixed".to_owned(),
    }
}

/// What a component leaves behind that says more about its end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traces<'a> {
    /// The growth of its memory that was perhaps denied before.
    pub(super) denied: Option<LimitReached>,
    /// The last error that it has logged. A panic logs itself.
    pub(super) last_error: Option<&'a str>,
}

/// Who was doing what when the fault happened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) guest: &'a str,
    pub(super) operation: &'a str,
    /// The fixed limit of what the call may hand over.
    pub(super) hostcall_bytes: u64,
}

impl Scene<'_> {
    /// What an error of a call means.
    pub(super) fn fault(&self, error: wasmtime::Error, traces: Traces<'_>) -> Fault {
        if let Some(limit) = error.downcast_ref::<LimitReached>().copied().or(traces.denied) {
            return self.over_limit(limit);
        }
        if error.is::<PoolConcurrencyLimitError>() {
            return Fault::PoolSpent { guest: self.guest.to_owned(), source: error };
        }
        let cause = error.root_cause().to_string();
        // wasmtime has no type for this one.
        if cause.contains("fuel allocated for hostcalls") {
            return self.over_limit(LimitReached {
                what: "bytes handed to the host in one call",
                maximum: self.hostcall_bytes,
                key: None,
            });
        }
        let message = match (error.downcast_ref::<Trap>(), traces.last_error) {
            // Not everybody sees the log: `wok test` has none.
            (Some(trap @ Trap::UnreachableCodeReached), Some(line)) => {
                format!("{}; the last error that it logged: {line}", in_words(*trap))
            }
            (Some(trap), _) => in_words(*trap),
            (None, _) => cause,
        };
        let backtrace = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::to_string);
        Fault::Trapped {
            guest: self.guest.to_owned(),
            operation: self.operation.to_owned(),
            message,
            backtrace: backtrace.unwrap_or_default(),
        }
    }

    fn over_limit(&self, limit: LimitReached) -> Fault {
        Fault::OverLimit {
            guest: self.guest.to_owned(),
            operation: self.operation.to_owned(),
            what: limit.what,
            maximum: limit.maximum,
            key: limit.key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(trap: Trap, last_error: Option<&str>, expected: &str) {
        let scene = Scene { guest: "participant 1 of mine", operation: "take", hostcall_bytes: 0 };
        let traces = Traces { denied: None, last_error };
        let fault = scene.fault(trap.into(), traces);
        assert_eq!(fault.to_string(), format!("participant 1 of mine: take trapped: {expected}"));
    }

    #[test]
    fn a_panic_is_told_with_what_it_logged_if_it_did() {
        let panicked = Trap::UnreachableCodeReached;
        let expected =
            "it panicked or aborted; the last error that it logged: panicked at a.rs:1:2";
        check(panicked, Some("panicked at a.rs:1:2"), expected);
        check(panicked, None, "it panicked or aborted");
        let expected = "the stack is used up, as by deep recursion";
        check(Trap::StackOverflow, Some("something else"), expected);
    }
}
