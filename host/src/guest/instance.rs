//! One participant's component in its store.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;
use wasmtime::component::Val;
use wasmtime::{Store, UpdateDeadline};

use super::engine::Pace;
use super::fault::{Fault, Scene, Traces};
use super::module::{Arguments, Configuration, Function, Module};
use super::scheduler::{CpuSpent, Metered, Running, Turn};
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
    /// Who it is, in words.
    guest: Arc<str>,
    turn: Arc<Turn>,
    /// Taken out for the time of a call, and put back only if that ends well.
    live: Option<Live>,
}

/// What can be called, with its store. A call has it to itself.
struct Live {
    store: Store<State>,
    instance: wasmtime::component::Instance,
}

/// A call into the component. It owns all that it needs, because the slow lane may have it.
struct Call {
    function: Arc<Function>,
    arguments: Arc<[Val]>,
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
        let guest = in_words(&surroundings.id, module);
        surroundings.scope.begin();
        let mut instance = Instance {
            module: module.clone(),
            guest: guest.into(),
            turn: Arc::new(Turn::new(module.engine().scheduler())),
            live: None,
        };
        instance.instantiate(surroundings).await?;
        if let Some(config) = &config.value {
            instance.configure(config.clone()).await?;
        }
        Ok(instance)
    }

    async fn instantiate(&mut self, surroundings: Surroundings) -> Result<(), Fault> {
        let (module, guest) = (self.module.clone(), Arc::clone(&self.guest));
        let turn = Arc::clone(&self.turn);
        let budget = surroundings.limits.cpu_per_call;
        let starting = Box::pin(Live::instantiate(module, surroundings, guest, turn));
        let started = self.metered(starting, budget).await;
        self.live = Some(started.unwrap_or_else(|CpuSpent| Err(self.spent("start", budget)))?);
        Ok(())
    }

    /// Ends the component, and completes when none of its code runs any more: a call that was
    /// dropped in the slow lane has its turn to the end.
    pub async fn end(mut self) {
        self.live = None;
        self.turn.detours.close();
        self.turn.detours.wait().await;
    }

    /// Which participant of which module it is, in words, as its faults say it.
    pub fn guest(&self) -> &str {
        &self.guest
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
            let function = Arc::clone(&arguments.function);
            let call = Call { function, arguments: Arc::clone(&arguments.values) };
            let value = self.run(call).await?;
            Ok(answer(arguments.function.result.as_ref(), &value))
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
            if let Some(witness) = &live.store.data().surroundings.witness {
                witness.woken(&tags);
            }
            let tags = Val::List(tags.into_iter().map(Val::U64).collect());
            let call = Call { function: self.reserved("wake")?, arguments: [tags].into() };
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

    async fn configure(&mut self, config: Val) -> Result<(), Fault> {
        let function = self.reserved("configure")?;
        let call = Call { function: Arc::clone(&function), arguments: [config].into() };
        let value = self.run(call).await?;
        match answer(function.result.as_ref(), &value) {
            Answer::Ok(_) => Ok(()),
            Answer::Err(error) => {
                Err(Fault::ConfigRefused { guest: self.guest.to_string(), error })
            }
        }
    }

    fn reserved(&self, name: &str) -> Result<Arc<Function>, Fault> {
        self.module.function(name).map(Arc::clone).ok_or_else(|| {
            let scene = Scene { guest: &self.guest, operation: name, hostcall_bytes: 0 };
            scene.fault(not_found(name), Traces::default())
        })
    }

    fn begin(&mut self, phase: Phase) {
        if let Some(live) = &mut self.live {
            let state = live.store.data_mut();
            state.phase = phase;
            state.surroundings.scope.begin();
        }
    }

    async fn run(&mut self, call: Call) -> Result<Option<Val>, Fault> {
        let Some(live) = self.live.take() else {
            return Err(self.dead());
        };
        let budget = live.store.data().surroundings.limits.cpu_per_call;
        let function = Arc::clone(&call.function);
        let pace = self.module.engine().pace();
        let calling = Box::pin(live.enter(pace, Arc::clone(&self.guest), call));
        let ran = self.metered(calling, budget).await;
        let ran = ran.unwrap_or_else(|CpuSpent| Err(self.spent(&function.name, budget)));
        let (live, value) = ran?;
        self.live = Some(live);
        Ok(value)
    }

    /// Has a call take its turns.
    fn metered<T: Send + 'static>(&self, call: Running<T>, budget: Duration) -> Metered<T> {
        let turn = Arc::clone(&self.turn);
        let engine = self.module.engine();
        let scheduler = Arc::clone(engine.scheduler());
        match engine.pace() {
            Pace::Clock => Metered::new(call, budget, turn, scheduler),
            Pace::Fuel(_) => Metered::without_clock(call, turn, scheduler),
        }
    }

    fn spent(&self, operation: &str, budget: Duration) -> Fault {
        let (guest, operation) = (self.guest.to_string(), operation.to_owned());
        Fault::CpuSpent { guest, operation, budget }
    }

    fn dead(&self) -> Fault {
        Fault::Dead { guest: self.guest.to_string() }
    }
}

impl Live {
    async fn instantiate(
        module: Module,
        surroundings: Surroundings,
        guest: Arc<str>,
        turn: Arc<Turn>,
    ) -> Result<Self, Fault> {
        let limits = surroundings.limits.clone();
        let state = State::new(surroundings, Arc::clone(&turn));
        let mut store = Store::new(module.engine().wasmtime(), state);
        store.limiter(|state| &mut state.growth);
        store.set_hostcall_fuel(to_usize(limits.hostcall_bytes));
        // Each watch a second time: a component that waits lends all that it waits for.
        let handles = limits.watches.saturating_mul(2).saturating_add(limits.child_lists) as usize;
        store.set_max_component_handles(handles.saturating_add(SPARE_HANDLES));
        // The neighbours have their turn when this one's is over.
        store.epoch_deadline_callback(move |_| match turn.is_over() {
            true => Ok(UpdateDeadline::Yield(1)),
            false => Ok(UpdateDeadline::Continue(1)),
        });
        if let Err(error) = provide(&mut store, module.engine().pace()) {
            let hostcall_bytes = limits.hostcall_bytes;
            let scene = Scene { guest: &guest, operation: "start", hostcall_bytes };
            return Err(scene.fault(error, Traces::default()));
        }
        match module.pre().instantiate_async(&mut store).await {
            Ok(instance) => Ok(Live { store, instance }),
            Err(error) => {
                let hostcall_bytes = limits.hostcall_bytes;
                let scene = Scene { guest: &guest, operation: "start", hostcall_bytes };
                Err(scene.fault(error, store.data().traces()))
            }
        }
    }

    async fn enter(
        mut self,
        pace: Pace,
        guest: Arc<str>,
        call: Call,
    ) -> Result<(Self, Option<Val>), Fault> {
        let Function { name: operation, index, result } = &*call.function;
        let limits = &self.store.data().surroundings.limits;
        // A dynamic value takes more than its bytes, and a result may carry a znode's data.
        let hostcall_bytes = match result {
            Some(result) if result.has_list() => limits.hostcall_bytes.max(RESULT_BYTES),
            _ => limits.hostcall_bytes,
        };
        let scene = Scene { guest: &guest, operation, hostcall_bytes };
        let Some(function) = self.instance.get_func(&mut self.store, index) else {
            return Err(scene.fault(not_found(operation), Traces::default()));
        };
        self.store.set_hostcall_fuel(to_usize(hostcall_bytes));
        if let Err(error) = provide(&mut self.store, pace) {
            return Err(scene.fault(error, Traces::default()));
        }
        self.store.data_mut().growth.denied = None;
        let mut results = result.as_ref().map(|_| Val::Bool(false));
        let calling = function.call_async(&mut self.store, &call.arguments, results.as_mut_slice());
        match calling.await {
            Ok(()) => Ok((self, results)),
            Err(error) => Err(scene.fault(error, self.store.data().traces())),
        }
    }
}

/// A participant of a module, in words.
pub(crate) fn in_words(participant: &str, module: &Module) -> String {
    format!("participant {participant} of {}", module.name())
}

fn not_found(function: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("host bug: {function} was not found at load"))
}

impl std::fmt::Debug for Live {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.data().fmt(formatter)
    }
}

/// What a call may use, by the measure that the engine goes by.
fn provide(store: &mut Store<State>, pace: Pace) -> wasmtime::Result<()> {
    match pace {
        // The time since the last call does not count.
        Pace::Clock => {
            store.set_epoch_deadline(1);
            Ok(())
        }
        Pace::Fuel(per_call) => store.set_fuel(per_call),
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
