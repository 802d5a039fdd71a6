//! The same call by wasmtime alone: what the sandbox's own cost is measured against.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wasmtime::component::{Component, Func, Linker};
use wasmtime::{Config, Engine, Store};
use wok_tests::guests::guest;

/// A component of the tests in a store of its own, with nothing around it: its function is called
/// by name and with dynamic values, on a stack of its own, and can be interrupted.
pub(super) struct Bare {
    store: Store<()>,
    nothing: Func,
}

impl Bare {
    pub(super) async fn new() -> Result<Self> {
        let mut config = Config::new();
        config.epoch_interruption(true).concurrency_support(false);
        let engine = Engine::new(&config)?;
        let component = Component::new(&engine, guest("echo")?)?;
        let mut linker = Linker::new(&engine);
        // It calls none of them.
        linker.define_unknown_imports_as_traps(&component)?;
        let mut store = Store::new(&engine, ());
        // For good: nobody advances the epoch.
        store.set_epoch_deadline(1);
        let instance = linker.instantiate_async(&mut store, &component).await?;
        let interface = component.get_export_index(None, "wok:echo/echo@0.1.0");
        let interface = interface.context("the component's interface")?;
        let nothing = component.get_export_index(Some(&interface), "nothing");
        let nothing = nothing.and_then(|index| instance.get_func(&mut store, index));
        Ok(Bare { store, nothing: nothing.context("the component's operation")? })
    }

    /// What so many calls take.
    pub(super) async fn call(&mut self, count: u32) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..count {
            self.nothing.call_async(&mut self.store, &[], &mut []).await?;
        }
        Ok(start.elapsed())
    }
}
