//! One participant's component in its store.

use std::future::Future;
use std::task::{Context, Poll};

use serde_json::Value;
use wasmtime::component::Val;
use wasmtime::{Store, UpdateDeadline};

use super::fault::{Fault, Scene};
use super::meter::{CpuSpent, Metered};
use super::module::{Arguments, Configuration, Module};
use super::state::{Phase, State};
use super::surroundings::Surroundings;
use super::value_type::ValueType;
use super::values;

/// Handles beyond watches and child lists: those borrowed within a call.
const SPARE_HANDLES: usize = 16;

/// What the result of an operation may take where it has a list: 900 KiB of a znode's data, each
/// byte of which is a value of 40 bytes.
const RESULT_BYTES: u64 = 40 << 20;

/// What an operation answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its result, or the `ok` of that; null where it has none.
    Ok(Value),
    /// The `err` of its result.
    Err(Value),
}

/// One participant's component. It serves one call at a time.
///
/// A call that traps, overruns a limit, or whose future is dropped takes the store with it: the
/// instance is dead from then on and answers [`Fault::Dead`].
#[derive(Debug)]
pub struct Instance {
    module: Module,
    guest: String,
    /// Taken out for the time of a call, and put back only if that ends well.
    live: Option<Live>,
}

struct Live {
    store: Store<State>,
    instance: wasmtime::component::Instance,
}

/// A call into the component.
struct Call<'a> {
    operation: &'a str,
    arguments: &'a [Val],
    /// The type of what it answers, if it answers something.
    result: Option<&'a ValueType>,
}

impl Instance {
    /// Instantiates the module and configures it.
    ///
    /// # Errors
    /// The pool is full, the module's code faults, or it refuses the config.
    ///
    /// # Cancellation
    /// What was instantiated is dropped.
    pub async fn start(
        module: &Module,
        surroundings: Surroundings,
        config: &Configuration,
    ) -> Result<Self, Fault> {
        let guest = format!("participant {} of {}", surroundings.id, module.name());
        surroundings.scope.begin();
        let live = Live::instantiate(module, surroundings, &guest).await?;
        let mut instance = Instance { module: module.clone(), guest, live: Some(live) };
        if let Some(config) = &config.value {
            instance.configure(config).await?;
        }
        Ok(instance)
    }

    /// Whether it can still be called.
    pub fn is_alive(&self) -> bool {
        self.live.is_some()
    }

    /// Runs an operation. From here on the scope is that operation's: a cancel from before does
    /// not touch it.
    ///
    /// # Errors
    /// The component faults; it is dead afterwards.
    ///
    /// # Cancellation
    /// The component is dead when the future is dropped before it completes.
    pub fn call<'a>(
        &'a mut self,
        arguments: &'a Arguments,
    ) -> impl Future<Output = Result<Answer, Fault>> + Send + use<'a> {
        self.begin(Phase::Operation);
        async move {
            let module = self.module.clone();
            let operation = module.interface().operation(&arguments.operation);
            let result = operation.and_then(|operation| operation.result.as_ref());
            let call =
                Call { operation: &arguments.operation, arguments: &arguments.values, result };
            Ok(answer(result, &self.run(call).await?))
        }
    }

    /// Tells the component which of its watches have fired since it was last told. Those it keeps
    /// are spent: they wake it no more.
    ///
    /// # Errors
    /// The component faults; it is dead afterwards.
    ///
    /// # Cancellation
    /// The component is dead when the future is dropped before it completes.
    pub fn wake(&mut self) -> impl Future<Output = Result<(), Fault>> + Send + use<'_> {
        self.begin(Phase::Wake);
        async move {
            let Some(live) = &mut self.live else {
                return Err(self.dead());
            };
            // Only the told are spent: one that fires meanwhile wakes the component again.
            let tags = live.store.data_mut().spend_fired();
            if tags.is_empty() || !self.module.interface().has_wake {
                return Ok(());
            }
            let arguments = [Val::List(tags.into_iter().map(Val::U64).collect())];
            let call = Call { operation: "wake", arguments: &arguments, result: None };
            self.run(call).await.map(drop)
        }
    }

    /// Whether it owns a watch that may yet wake it, so that more may come of what it began.
    pub fn has_watches(&mut self) -> bool {
        let has_wake = self.module.interface().has_wake;
        self.live.as_mut().is_some_and(|live| has_wake && live.store.data_mut().has_watches())
    }

    /// Ready when a watch has fired that no [`Self::wake`] was told of. For an instance without a
    /// call under way.
    pub fn poll_fired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.live {
            Some(live) => live.store.data_mut().poll_fired(context),
            None => Poll::Pending,
        }
    }

    async fn configure(&mut self, config: &Val) -> Result<(), Fault> {
        let module = self.module.clone();
        let result = module.interface().configure_result.as_ref();
        let arguments = std::slice::from_ref(config);
        let value = self.run(Call { operation: "configure", arguments, result }).await?;
        match answer(result, &value) {
            Answer::Ok(_) => Ok(()),
            Answer::Err(error) => Err(Fault::ConfigRefused { guest: self.guest.clone(), error }),
        }
    }

    fn begin(&mut self, phase: Phase) {
        if let Some(live) = &mut self.live {
            let state = live.store.data_mut();
            state.phase = phase;
            state.surroundings.scope.begin();
        }
    }

    async fn run(&mut self, call: Call<'_>) -> Result<Option<Val>, Fault> {
        let Some(mut live) = self.live.take() else {
            return Err(self.dead());
        };
        let value = live.enter(&self.module, &self.guest, call).await?;
        self.live = Some(live);
        Ok(value)
    }

    fn dead(&self) -> Fault {
        Fault::Dead { guest: self.guest.clone() }
    }
}

impl Live {
    async fn instantiate(
        module: &Module,
        surroundings: Surroundings,
        guest: &str,
    ) -> Result<Self, Fault> {
        let limits = surroundings.limits.clone();
        let mut store = Store::new(module.engine().wasmtime(), State::new(surroundings));
        store.limiter(|state| &mut state.growth);
        store.set_hostcall_fuel(to_usize(limits.hostcall_bytes));
        let handles = limits.watches.saturating_add(limits.child_lists) as usize;
        store.set_max_component_handles(handles.saturating_add(SPARE_HANDLES));
        // At each tick the neighbours have their turn.
        store.epoch_deadline_callback(|_| {
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        store.set_epoch_deadline(1);
        let scene = Scene { guest, operation: "start", hostcall_bytes: limits.hostcall_bytes };
        let starting = module.pre().instantiate_async(&mut store);
        match Metered::new(starting, limits.cpu_per_call).await {
            Ok(Ok(instance)) => Ok(Live { store, instance }),
            Ok(Err(error)) => Err(scene.fault(error, store.data().growth.denied)),
            Err(CpuSpent) => Err(scene.cpu_spent(limits.cpu_per_call)),
        }
    }

    async fn enter(
        &mut self,
        module: &Module,
        guest: &str,
        call: Call<'_>,
    ) -> Result<Option<Val>, Fault> {
        let limits = &self.store.data().surroundings.limits;
        let budget = limits.cpu_per_call;
        // A dynamic value takes more than its bytes, and a result may carry a znode's data.
        let hostcall_bytes = match call.result {
            Some(result) if result.has_list() => limits.hostcall_bytes.max(RESULT_BYTES),
            _ => limits.hostcall_bytes,
        };
        let scene = Scene { guest, operation: call.operation, hostcall_bytes };
        let index = module.function(call.operation);
        let Some(function) = index.and_then(|index| self.instance.get_func(&mut self.store, index))
        else {
            let missing = format!("host bug: {} was not found at load", call.operation);
            return Err(scene.fault(wasmtime::Error::msg(missing), None));
        };
        self.store.set_hostcall_fuel(to_usize(hostcall_bytes));
        // The time since the last call does not count.
        self.store.set_epoch_deadline(1);
        self.store.data_mut().growth.denied = None;
        let mut results = call.result.map(|_| Val::Bool(false));
        let calling = function.call_async(&mut self.store, call.arguments, results.as_mut_slice());
        match Metered::new(calling, budget).await {
            Ok(Ok(())) => Ok(results),
            Ok(Err(error)) => Err(scene.fault(error, self.store.data().growth.denied)),
            Err(CpuSpent) => Err(scene.cpu_spent(budget)),
        }
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.data().fmt(formatter)
    }
}

/// A result at the top is split into its cases.
fn answer(ty: Option<&ValueType>, value: &Option<Val>) -> Answer {
    match (ty, value) {
        (Some(ValueType::Result { ok, .. }), Some(Val::Result(Ok(value)))) => {
            Answer::Ok(values::write_optional(ok.as_deref(), value.as_deref()))
        }
        (Some(ValueType::Result { err, .. }), Some(Val::Result(Err(value)))) => {
            Answer::Err(values::write_optional(err.as_deref(), value.as_deref()))
        }
        (ty, value) => Answer::Ok(values::write_optional(ty, value.as_ref())),
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
