//! What the local API adds: an operation through the daemon beside the same by the library in this
//! process, and the memory of a daemon that apps attach to.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_util::task::AbortOnDropHandle;
use wok::host::Participant;
use wok::{Host, Recipe};
use wok_tests::api::{Events, Serving, serve};

use crate::ground::{Ground, SESSION_TIMEOUT};
use crate::measure::{median, p99, proportional_bytes_of};
use crate::report::{Bound, Row};

/// Many short rounds: what the API adds is the difference of two figures that the server's disk makes, and
/// that disk is in another mood every second.
const ROUNDS: usize = 100;
const CYCLES: usize = 40;

/// Apps that are attached at a time.
const APPS: usize = 1_000;

/// How many of them ask at a time: a listener's queue has room for them.
const AT_ONCE: usize = 50;

const RECIPES: &str = "[recipes.orders]\nmodule = \"lock\"\nmount = \"/orders\"\n\
                       [recipes.line]\nmodule = \"lock\"\nmount = \"/line\"\n";

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let serving = ground.native.block_on(serve(ground.server.address(), "", RECIPES))?;
    let mut rows = operations(ground, &serving)?;
    rows.push(memory(ground, &serving)?);
    Ok(rows)
}

/// What operations took, in microseconds.
#[derive(Default)]
struct Figures {
    /// Of each round, the middle one.
    p50: Vec<f64>,
    /// Of all rounds: one is too short for a 99th percentile of its own.
    all: Vec<f64>,
}

impl Figures {
    fn add(&mut self, took: Vec<f64>) {
        self.p50.push(median(&took));
        self.all.extend(took);
    }
}

fn operations(ground: &Ground, serving: &Serving) -> Result<Vec<Row>> {
    let host = ground.wok.block_on(async {
        let builder = Host::builder(ground.server.address());
        let recipe = Recipe::new("lock", format!("{}/by-library", serving.root));
        builder.recipe("orders", recipe).session_timeout(SESSION_TIMEOUT).open().await
    })?;
    let participant = ground.wok.block_on(host.join("orders"))?;
    let mut app = ground.native.block_on(App::attach(serving))?;
    let (mut library, mut api) = (Figures::default(), Figures::default());
    for round in 0..=ROUNDS {
        let mut by_library = || -> Result<()> {
            library.add(ground.wok.block_on(by_library(&participant))?);
            Ok(())
        };
        let mut by_api = || -> Result<()> {
            api.add(ground.native.block_on(app.cycles())?);
            Ok(())
        };
        // Each goes first in every other round.
        if round % 2 == 0 {
            by_library()?;
            by_api()?;
        } else {
            by_api()?;
            by_library()?;
        }
        if round == 0 {
            (library, api) = Default::default();
        }
    }
    ground.wok.block_on(async {
        participant.leave().await;
        host.shut_down().await;
    });
    let added = api.p50.iter().zip(&library.p50).map(|(api, library)| api - library).collect();
    let a_second = |figures: &Figures| figures.p50.iter().map(|us| 1e6 / us).collect::<Vec<_>>();
    Ok(vec![
        Row::new("added to an operation by the API, p50", "us", added).bound(Bound::AtMost(150.0)),
        Row::new("operations one after another, API", "1/s", a_second(&api)),
        Row::new("operations one after another, library", "1/s", a_second(&library)),
        Row::new("an operation, API, p50", "us", api.p50),
        Row::new("an operation, API, p99", "us", vec![p99(&api.all)]),
        Row::new("an operation, library, p50", "us", library.p50),
        Row::new("an operation, library, p99", "us", vec![p99(&library.all)]),
    ])
}

/// Acquires and releases again and again; answers how long each took.
async fn cycles(mut call: impl AsyncFnMut(&'static str) -> Result<()>) -> Result<Vec<f64>> {
    let mut took = Vec::with_capacity(2 * CYCLES);
    for _ in 0..CYCLES {
        for operation in ["acquire", "release"] {
            let start = Instant::now();
            call(operation).await?;
            took.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(took)
}

async fn by_library(participant: &Participant) -> Result<Vec<f64>> {
    cycles(async |operation| Ok(participant.call(operation).await.map(drop)?)).await
}

/// An app: a stream that keeps its participant and is read, and a connection for its operations.
struct App {
    _stream: AbortOnDropHandle<()>,
    _connection: AbortOnDropHandle<()>,
    requests: SendRequest<Full<Bytes>>,
    participant: String,
}

impl App {
    async fn attach(serving: &Serving) -> Result<App> {
        let mut stream = serving.client().stream("/v1/recipes/orders/join", &json!({})).await?;
        let joined = stream.until("joined").await?;
        let participant = joined.get("participant").and_then(Value::as_str);
        let participant = participant.context("no participant")?.to_owned();
        let read = tokio::runtime::Handle::current().spawn(async move {
            // Its end is that of the participant, which the next request meets.
            while let Ok(Some(_)) = stream.next().await {}
        });
        let _stream = AbortOnDropHandle::new(read);
        let socket = UnixStream::connect(serving.socket()).await?;
        let (requests, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let connection = tokio::runtime::Handle::current().spawn(async move {
            // How it ends is seen by the next request.
            connection.await.ok();
        });
        let _connection = AbortOnDropHandle::new(connection);
        Ok(App { _stream, _connection, requests, participant })
    }

    async fn cycles(&mut self) -> Result<Vec<f64>> {
        cycles(async |operation| self.call(operation).await).await
    }

    async fn call(&mut self, operation: &str) -> Result<()> {
        let path = format!("/v1/participants/{}/{operation}", self.participant);
        let request = Request::post(path).header("Host", "wok").body(Full::default())?;
        // It tells a moment after an answer that it takes another request.
        self.requests.ready().await?;
        let response = self.requests.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status == 200, "{operation}: {status}: {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}

/// KiB of the daemon's for each app of many that stand in one line.
fn memory(ground: &Ground, serving: &Serving) -> Result<Row> {
    let daemon = serving.daemon.pid().to_string();
    ground.native.block_on(async {
        // What is set up once is there before.
        let first = waiting(serving).await?;
        let before = proportional_bytes_of(&daemon)?;
        let mut apps = Vec::with_capacity(APPS);
        while apps.len() < APPS {
            let asking = (0..AT_ONCE).map(|_| waiting(serving));
            apps.extend(futures_util::future::try_join_all(asking).await?);
        }
        let each = (proportional_bytes_of(&daemon)? - before) / APPS as f64 / 1024.0;
        drop((first, apps));
        Ok(Row::new("memory of an app that waits, 1,000 of them", "KiB", vec![each])
            .bound(Bound::AtMost(60.0)))
    })
}

/// An app that stands in line.
async fn waiting(serving: &Serving) -> Result<Events> {
    let join: Value = json!({ "call": "acquire" });
    let mut stream = serving.client().stream("/v1/recipes/line/join", &join).await?;
    stream.until("waiting").await?;
    Ok(stream)
}
