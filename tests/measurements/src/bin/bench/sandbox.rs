//! What a call into a component costs, what a call out of it, what a new one, and what a look at a long
//! line.

mod bare;
mod long_line;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use wok::base::Base;
use wok::clock::SystemClock;
use wok::guest::{
    Answer, Arguments, Configuration, HostTimeAndChance, Instance, Limits, LogLevel, Module, Mount,
    OperationScope, Surroundings, Voice,
};
use wok::modules::ModuleSource;
use wok::session::{Fence, Seat, SeatLimits, Session};
use wok_tests::guests::guest_file;

use self::bare::Bare;
use crate::ground::Ground;
use crate::report::{Bound, Row};

const ROUNDS: usize = 20;
const HOST_CALLS: u32 = 100_000;
const EXPORT_CALLS: u32 = 20_000;
const INSTANCES: u32 = 500;

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let host = ground.host(4)?;
    let session = ground.session(&host)?;
    let stage = Stage::new(&host, &session)?;
    let (mut host_calls, mut text_calls) = (Vec::new(), Vec::new());
    let (mut exports, mut instances) = (Vec::new(), Vec::new());
    let mut bare = ground.wok.block_on(Bare::new())?;
    let mut bare_exports = Vec::new();
    for _ in 0..ROUNDS {
        host_calls.push(ground.wok.block_on(stage.host_call("now"))?);
        text_calls.push(ground.wok.block_on(stage.host_call("id"))?);
        exports.push(ground.wok.block_on(stage.export_call())?);
        let took = ground.wok.block_on(bare.call(EXPORT_CALLS))?;
        bare_exports.push(nanos(took, EXPORT_CALLS) / 1e3);
        instances.push(ground.wok.block_on(stage.instantiate())?);
    }
    let of_long_line = long_line::bench(ground, &host, &session)?;
    ground.wok.block_on(session.close());
    let ratio = Row::ratio("export call, wok to wasmtime alone", &exports, &bare_exports);
    let mut rows = vec![
        Row::new("host call", "ns", host_calls).bound(Bound::AtMost(150.0)),
        Row::new("host call that answers a text of 32 bytes", "ns", text_calls),
        Row::new("export call", "us", exports).bound(Bound::AtMost(0.5)),
        Row::new("export call, wasmtime alone", "us", bare_exports),
        ratio,
        Row::new("instantiate the lock and drop it", "us", instances).bound(Bound::AtMost(40.0)),
    ];
    rows.extend(of_long_line);
    Ok(rows)
}

/// The modules, and what their instances are given.
struct Stage {
    hostile: Module,
    echo: Module,
    lock: Module,
    seat: Arc<Seat>,
}

impl Stage {
    fn new(host: &Base, session: &Arc<Session>) -> Result<Self> {
        let test_guest = |name: &str| -> Result<Module> {
            let (_directory, path) = guest_file(name)?;
            Ok(host.load(&ModuleSource::File(path), None)?)
        };
        Ok(Stage {
            hostile: test_guest("hostile")?,
            echo: test_guest("echo")?,
            lock: host.load(&ModuleSource::Stock("lock".to_owned()), None)?,
            seat: Arc::new(session.join("/sandbox", SeatLimits::default())?),
        })
    }

    /// Nanoseconds of one host call: the same operation with and without them.
    async fn host_call(&self, call: &str) -> Result<f64> {
        let count = |count: u32| {
            self.hostile.arguments("call-flood", &json!({ "call": call, "count": count }))
        };
        let (many, none) = (count(HOST_CALLS)?, count(0)?);
        let mut instance = self.start(&self.hostile, &self.hostile.configuration(None)?).await?;
        let mut timed = async |arguments: &Arguments, expected: u32| {
            let start = Instant::now();
            let answer = instance.call(arguments).await?;
            let elapsed = start.elapsed();
            ensure!(answer == Answer::Ok(Value::from(expected)), "call-flood: {answer:?}");
            Ok(elapsed)
        };
        timed(&many, HOST_CALLS).await?;
        let without = timed(&none, 0).await?;
        let with = timed(&many, HOST_CALLS).await?;
        Ok(nanos(with.saturating_sub(without), HOST_CALLS))
    }

    /// Microseconds of one call of an operation that does nothing.
    async fn export_call(&self) -> Result<f64> {
        let nothing = self.echo.arguments("nothing", &Value::Null)?;
        let config = self.echo.configuration(Some(&json!({ "name": "bench" })))?;
        let mut instance = self.start(&self.echo, &config).await?;
        let start = Instant::now();
        for _ in 0..EXPORT_CALLS {
            black_box(instance.call(&nothing).await?);
        }
        Ok(nanos(start.elapsed(), EXPORT_CALLS) / 1e3)
    }

    /// Microseconds of one instance that is made, configured and dropped.
    async fn instantiate(&self) -> Result<f64> {
        let config = self.lock.configuration(None)?;
        let start = Instant::now();
        for _ in 0..INSTANCES {
            black_box(self.start(&self.lock, &config).await?);
        }
        Ok(nanos(start.elapsed(), INSTANCES) / 1e3)
    }

    async fn start(&self, module: &Module, config: &Configuration) -> Result<Instance> {
        Ok(Instance::start(module, self.surroundings()?, config).await?)
    }

    fn surroundings(&self) -> Result<Surroundings> {
        Ok(Surroundings {
            seat: Arc::clone(&self.seat),
            mount: Mount::new("/sandbox")?,
            scope: Arc::new(OperationScope::new()),
            voice: Arc::new(Silence),
            id: "0".repeat(32).into(),
            owner: String::new(),
            time: Arc::new(HostTimeAndChance::new(Arc::new(SystemClock))),
            witness: None,
            limits: Limits::default(),
        })
    }
}

fn nanos(elapsed: Duration, count: u32) -> f64 {
    elapsed.as_secs_f64() * 1e9 / f64::from(count)
}

/// Nobody follows these participants.
struct Silence;

impl Voice for Silence {
    fn waiting(&self, _: &str) {}
    fn held(&self, _: &str, _: Fence) {}
    fn released(&self, _: &str) {}
    fn emit(&self, _: &str, _: Vec<(String, String)>) {}
    fn log(&self, _: LogLevel, _: &str) {}
}
