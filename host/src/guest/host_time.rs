//! The contract's `time-and-chance`.

use std::time::Duration;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::wok::recipe::time_and_chance::Host;
use super::state::{OwnedWatch, State};

impl Host for State {
    async fn now_ms(&mut self) -> Result<u64> {
        self.begin_call()?;
        Ok(self.surroundings.time.now_ms())
    }

    async fn wall_ms(&mut self) -> Result<u64> {
        self.begin_call()?;
        Ok(self.surroundings.time.wall_ms())
    }

    async fn random_u64(&mut self) -> Result<u64> {
        self.begin_call()?;
        Ok(self.surroundings.time.random_u64())
    }

    async fn alarm(&mut self, after_ms: u64, tag: u64) -> Result<Resource<OwnedWatch>> {
        self.begin_call()?;
        self.check_alarms()?;
        let watch = self.surroundings.time.alarm(Duration::from_millis(after_ms));
        Ok(self.own_watch(watch, tag))
    }
}
