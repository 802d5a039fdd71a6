//! Whether a module takes its config, asked before there is a session.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, pending};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::instance::Instance;
use super::limits::Limits;
use super::module::{Configuration, Module};
use super::mount::Mount;
use super::scope::OperationScope;
use super::surroundings::{HostTimeAndChance, LogLevel, Surroundings, Voice};
use super::witness::Witness;
use crate::clock::SystemClock;
use crate::session::{Fence, unconnected};
use crate::znode_path::ZnodePath;

/// The module's error, if its `configure` refuses this config. Nothing is connected to.
///
/// A module that asks the ensemble for something while it is configured, or waits, can be judged only
/// when it joins. One that faults is not said to refuse: its participant tells the fault. One that goes on
/// and on has used up its processor time, which `limits` bound.
///
/// # Cancellation
/// What was instantiated is dropped.
pub async fn config_refusal(
    module: &Module,
    config: &Configuration,
    limits: Limits,
    owner: String,
) -> Option<Value> {
    // There is no `configure` that could refuse.
    config.value.as_ref()?;
    let asks = CancellationToken::new();
    // Nothing is sent, so there is no rate to keep: one that asks again and again for what is refused before
    // it is sent would be delayed each time, and a delay is no processor time.
    let limits = Limits { calls_per_second: u32::MAX, written_per_second: u64::MAX, ..limits };
    let surroundings = Surroundings {
        seat: Arc::new(unconnected()),
        mount: Mount::from(ZnodePath::root()),
        scope: Arc::new(OperationScope::new()),
        voice: Arc::new(Unheard),
        id: "unconnected".into(),
        owner,
        time: Arc::new(HostTimeAndChance::new(Arc::new(SystemClock))),
        limits,
        witness: Some(Arc::new(Questions(asks.clone()))),
    };
    // What it asks is never answered, so of the two only one can complete.
    let started = asks.run_until_cancelled(Instance::start(module, surroundings, config)).await;
    match started? {
        Err(Fault::ConfigRefused { error, .. }) => Some(error),
        Err(_) | Ok(_) => None,
    }
}

/// Notices that a component asks the ensemble for something, or waits.
struct Questions(CancellationToken);

impl Witness for Questions {
    fn asked(&self, _: &'static str, _: Vec<String>) -> u64 {
        self.0.cancel();
        0
    }

    fn answered(&self, _: u64, _: &'static str, _: Option<&str>) {}

    fn woken(&self, _: &[u64]) {}

    fn doom(&self) -> Option<&'static str> {
        None
    }

    fn until_killed(&self) -> BoxFuture<'static, ()> {
        pending().boxed()
    }
}

/// Says nothing on. What a module says as it is asked about its config, its participant says again.
pub(super) struct Unheard;

impl Voice for Unheard {
    fn waiting(&self, _: &str) {}

    fn held(&self, _: &str, _: Fence) {}

    fn released(&self, _: &str) {}

    fn emit(&self, _: &str, _: Vec<(String, String)>) {}

    fn log(&self, _: LogLevel, _: &str) {}
}
