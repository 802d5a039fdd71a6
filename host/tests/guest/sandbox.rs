//! What every test of the room needs: an engine, the built guests, a session, and surroundings.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use wok::clock::{Boottime, SystemClock};
use wok::guest::{
    Answer, CompileCache, Engine, EngineOptions, Fault, HostTimeAndChance, Instance, Limits,
    LogLevel, Module, Mount, OperationScope, Pace, Surroundings, TimeAndChance, Voice,
};
use wok::session::{Acl, Event, Fence, SeatLimits, Session, Watch};
use wok::tasks::Tasks;
use wok_build::{Builder, Component};

use crate::ensemble::InMemory;

/// A bound that stops a hang; nothing is measured by it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| engine_for(64))
}

pub(crate) fn engine_for(participants: u32) -> Engine {
    let memory = Limits::default().memory;
    let table_elements = Limits::default().table_elements;
    let cache = CompileCache::Off;
    Engine::new(&EngineOptions { participants, memory, table_elements, cache, pace: Pace::Clock })
        .unwrap()
}

/// The bytes of a guest of `tests/guests`.
pub(crate) fn bytes(name: &str) -> &'static [u8] {
    static GUESTS: OnceLock<Vec<Component>> = OnceLock::new();
    let guests = GUESTS.get_or_init(|| {
        let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests");
        // The one that `build.rs` uses: std is compiled there already.
        let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests");
        let builder = Builder::new(target_dir).guests_in(guests);
        builder.and_then(Builder::build).unwrap_or_else(|error| panic!("{error}"))
    });
    &guests.iter().find(|guest| guest.name == name).expect("a guest of that name").wasm
}

pub(crate) fn module(name: &str) -> Module {
    static MODULES: OnceLock<Mutex<Vec<Module>>> = OnceLock::new();
    let mut modules = MODULES.get_or_init(Mutex::default).lock().unwrap();
    if let Some(module) = modules.iter().find(|module| module.name() == name) {
        return module.clone();
    }
    let module = Module::load(engine(), name, bytes(name)).unwrap();
    modules.push(module.clone());
    module
}

/// What a participant said.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Voice for Heard {
    fn waiting(&self, path: &str) {
        self.note(format!("waiting {path}"));
    }

    fn held(&self, path: &str, fence: Fence) {
        self.note(format!("held {path} {fence}"));
    }

    fn released(&self, path: &str) {
        self.note(format!("released {path}"));
    }

    fn emit(&self, event: &str, detail: Vec<(String, String)>) {
        self.note(format!("emit {event} {}", detail.len()));
    }

    fn log(&self, _: LogLevel, message: &str) {
        self.note(format!("log {message}"));
    }
}

/// A clock that moves only when somebody waits for it, and then at once.
#[derive(Debug, Default)]
pub(crate) struct Leaping(AtomicU64);

impl TimeAndChance for Leaping {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn wall_ms(&self) -> u64 {
        self.now_ms()
    }

    fn random_u64(&self) -> u64 {
        4
    }

    fn alarm(&self, after: Duration) -> Watch {
        self.0.fetch_add(u64::try_from(after.as_millis()).unwrap(), Ordering::Relaxed);
        Watch::new(futures_util::future::ready(Event::Elapsed).boxed())
    }
}

/// A session over an ensemble in memory, with a mount at `/app`.
pub(crate) struct Sandbox {
    pub(crate) ensemble: InMemory,
    pub(crate) session: Session,
    pub(crate) heard: Arc<Heard>,
    pub(crate) scope: Arc<OperationScope>,
    pub(crate) time: Arc<dyn TimeAndChance>,
    pub(crate) limits: Limits,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let ensemble = InMemory::with(&["/app", "/app-evil", "/app-evil/secret"]);
        let tasks = Tasks::on(Handle::current());
        let session = Session::new(
            Box::new(ensemble.clone()),
            Acl::Open,
            Arc::new(SystemClock),
            Boottime::now(),
            tasks,
        );
        Sandbox {
            ensemble,
            session,
            heard: Arc::default(),
            scope: Arc::default(),
            time: Arc::new(HostTimeAndChance::new(Arc::new(SystemClock))),
            limits: Limits::default(),
        }
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        let seat =
            self.session.join("/app", SeatLimits { znodes: 100, ..SeatLimits::default() }).unwrap();
        Surroundings {
            seat: Arc::new(seat),
            mount: Mount::new("/app").unwrap(),
            scope: Arc::clone(&self.scope),
            voice: self.heard.clone(),
            id: "p1".into(),
            owner: "a test".to_owned(),
            time: Arc::clone(&self.time),
            witness: None,
            limits: self.limits.clone(),
        }
    }

    pub(crate) async fn start(&self, name: &str) -> Instance {
        self.start_with(name, None).await.unwrap()
    }

    pub(crate) async fn start_with(
        &self,
        name: &str,
        config: Option<&Value>,
    ) -> Result<Instance, Fault> {
        let module = module(name);
        let config = module.configuration(config).unwrap();
        Instance::start(&module, self.surroundings(), &config).await
    }

    pub(crate) async fn hostile(&self) -> Instance {
        self.start("hostile").await
    }
}

/// Calls an operation of the hostile guest.
pub(crate) async fn attack(
    instance: &mut Instance,
    operation: &str,
    body: Value,
) -> Result<Answer, Fault> {
    let arguments = module("hostile").arguments(operation, &body).unwrap();
    tokio::time::timeout(PATIENCE, instance.call(&arguments)).await.expect("the call hangs")
}

/// As [`attack`], for one that must end in a fault; answers its text.
pub(crate) async fn fault(instance: &mut Instance, operation: &str, body: Value) -> Fault {
    let fault = attack(instance, operation, body).await.unwrap_err();
    assert!(!instance.is_alive());
    let later = attack(instance, "woken", json!({})).await.unwrap_err();
    assert!(matches!(later, Fault::Dead { .. }), "{later}");
    fault
}
