//! wasmtime, set up once per process.

use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{
    Config, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy, WasmFeatures,
};

use super::bindings::Imports;
use super::cache::{self, CacheError};
use super::scheduler::Scheduler;
use super::state::State;

/// A Rust guest has three: its own and two that `wit-component` adds. Other tool chains have more.
pub(super) const CORE_INSTANCES_PER_COMPONENT: u32 = 8;
/// One for the component's functions and one of `wit-component`'s, with room for other tool chains.
pub(super) const TABLES_PER_COMPONENT: u32 = 4;

/// A component's code and the host calls it makes run on one stack of this size.
const STACK: usize = 256 << 10;
/// What of it the component's code may use. The rest is the host calls': a poll of the ZooKeeper
/// client and a line of the log at once take a tenth of it.
const WASM_STACK: usize = 128 << 10;

/// Bytes of instance data; the stock recipes need under 10,000.
const INSTANCE_BYTES: usize = 256 << 10;

/// What an engine is made for.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Most components at once; `[engine] participants`.
    pub participants: u32,
    /// The largest `limits.memory` of all recipes, in bytes.
    pub memory: u64,
    /// The largest number of table entries of all recipes.
    pub table_elements: u64,
    /// Where compiled modules are kept.
    pub cache: CompileCache,
    /// By what a call's use of the processor is measured.
    pub pace: Pace,
}

/// By what a call's use of the processor is measured and bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// By time: calls give way to each other, and end when `limits.cpu-per-call` is used up.
    Clock,
    /// By this much fuel a call, so that a run can be replayed: nothing depends on how fast the
    /// machine is. A call gives way only where it blocks.
    Fuel(u64),
}

/// Where compiled modules are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileCache {
    /// Nowhere: each start compiles.
    Off,
    /// In a directory of this user's alone, because what is found there is run as machine code.
    In(PathBuf),
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The compile cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The address space for all participants is not to be had.
    #[error(
        "cannot reserve room for {participants} participants of {memory} bytes each ({source:#}); \
         lower [engine] participants or limits.memory"
    )]
    Pool {
        /// How many.
        participants: u32,
        /// How large.
        memory: u64,
        /// What the system said.
        source: wasmtime::Error,
    },
    /// wasmtime does not take the settings for judges.
    #[error("cannot set up an engine for judges: {source:#}")]
    Judge {
        /// What it said.
        source: wasmtime::Error,
    },
    /// The machine does not let a thread start.
    #[error("cannot start the threads that keep components in check")]
    Thread(#[from] std::io::Error),
}

/// wasmtime with the host calls linked. Clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    wasmtime: wasmtime::Engine,
    linker: Linker<State>,
    pace: Pace,
    scheduler: Arc<Scheduler>,
}

impl Engine {
    /// An engine, with its memory reserved and its thread started.
    ///
    /// # Errors
    /// The memory cannot be reserved, or the compile cache is not this user's alone.
    pub fn new(options: &EngineOptions) -> Result<Self, EngineError> {
        let mut config = config(options);
        cache::apply(&mut config, &options.cache)?;
        let pool_error = |source| EngineError::Pool {
            participants: options.participants,
            memory: options.memory,
            source,
        };
        let wasmtime = wasmtime::Engine::new(&config).map_err(pool_error)?;
        let mut linker = Linker::new(&wasmtime);
        Imports::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)
            .map_err(pool_error)?;
        let scheduler = Arc::new(Scheduler::start(wasmtime.clone())?);
        let inner = Inner { wasmtime, linker, pace: options.pace, scheduler };
        Ok(Engine { inner: Arc::new(inner) })
    }

    pub(super) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.wasmtime
    }

    pub(super) fn linker(&self) -> &Linker<State> {
        &self.inner.linker
    }

    /// By what calls are measured.
    pub(super) fn pace(&self) -> Pace {
        self.inner.pace
    }

    /// Who gives components' code its turns.
    pub(super) fn scheduler(&self) -> &Arc<Scheduler> {
        &self.inner.scheduler
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// What holds for all code that is not the host's.
pub(super) fn sandboxed() -> Config {
    let mut config = Config::new();
    // Cranelift alone has epochs; the other compiler is younger, too.
    config.strategy(Strategy::Cranelift);
    config.cranelift_opt_level(OptLevel::Speed);
    // A young part that plain functions do not need.
    config.concurrency_support(false);
    // Nothing that a recipe needs, and each has had its security advisories. Several memories are
    // not among them only since wasmtime panics where it joins composed components without them:
    // `Module::load` refuses what has more than one.
    for feature in [
        WasmFeatures::THREADS,
        WasmFeatures::SHARED_EVERYTHING_THREADS,
        WasmFeatures::GC,
        WasmFeatures::FUNCTION_REFERENCES,
        WasmFeatures::EXCEPTIONS,
        WasmFeatures::LEGACY_EXCEPTIONS,
        WasmFeatures::TAIL_CALL,
        WasmFeatures::MEMORY64,
        WasmFeatures::RELAXED_SIMD,
        WasmFeatures::STACK_SWITCHING,
        WasmFeatures::WIDE_ARITHMETIC,
        WasmFeatures::CUSTOM_PAGE_SIZES,
    ] {
        config.wasm_features(feature, false);
    }
    config.wasm_backtrace_max_frames(std::num::NonZeroUsize::new(32));
    config
}

fn config(options: &EngineOptions) -> Config {
    let mut config = sandboxed();
    match options.pace {
        Pace::Clock => config.epoch_interruption(true),
        // What a number that is not one looks like in memory depends on the processor.
        Pace::Fuel(_) => config.consume_fuel(true).cranelift_nan_canonicalization(true),
    };
    config.async_stack_size(STACK);
    config.max_wasm_stack(WASM_STACK);
    // Just what a memory may have, instead of 4 GiB each: thousands fit into a container's address
    // space, and the bounds checks that this needs hold under speculation as well.
    config.memory_reservation(memory_slot(options));
    config.memory_guard_size(64 << 10);
    config.memory_may_move(false);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(options)));
    config
}

fn pool(options: &EngineOptions) -> PoolingAllocationConfig {
    let participants = options.participants.max(1);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(participants);
    pool.total_memories(participants);
    pool.total_stacks(participants);
    pool.total_core_instances(participants.saturating_mul(CORE_INSTANCES_PER_COMPONENT));
    pool.total_tables(participants.saturating_mul(TABLES_PER_COMPONENT));
    pool.max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT);
    pool.max_tables_per_component(TABLES_PER_COMPONENT);
    pool.max_tables_per_module(TABLES_PER_COMPONENT);
    pool.max_component_instance_size(INSTANCE_BYTES);
    pool.max_core_instance_size(INSTANCE_BYTES);
    pool.max_memory_size(usize::try_from(memory_slot(options)).unwrap_or(usize::MAX));
    pool.table_elements(usize::try_from(options.table_elements).unwrap_or(usize::MAX));
    pool
}

/// The memory of one participant in whole pages of WebAssembly.
fn memory_slot(options: &EngineOptions) -> u64 {
    options.memory.max(1).next_multiple_of(64 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> EngineOptions {
        EngineOptions {
            participants: 10,
            memory: 16 << 20,
            table_elements: 10_000,
            cache: CompileCache::Off,
            pace: Pace::Clock,
        }
    }

    #[test]
    fn what_cannot_be_reserved_is_refused_with_the_keys_to_lower() {
        let options = EngineOptions { participants: 2_000_000, memory: 4 << 30, ..options() };
        let refused = Engine::new(&options).unwrap_err().to_string();
        assert!(refused.contains("2000000 participants of 4294967296 bytes"), "{refused}");
        assert!(refused.contains("[engine] participants or limits.memory"), "{refused}");
    }

    #[test]
    fn ten_thousand_participants_of_the_default_size_fit() {
        Engine::new(&EngineOptions { participants: 10_000, ..options() }).unwrap();
    }

    #[test]
    fn the_epoch_thread_ends_with_the_last_clone_of_the_engine() {
        let engine = Engine::new(&options()).unwrap();
        let weak = Arc::downgrade(&engine.inner);
        let second = engine.clone();
        drop(engine);
        assert!(weak.upgrade().is_some());
        // Joins the thread: this test hangs if the thread does not end.
        drop(second);
        assert!(weak.upgrade().is_none());
    }
}
