//! A client for Python, generated from the document of a daemon with all stock recipes, that takes a lock of
//! that daemon.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use wok_tests::api::serve;
use wok_tests::openapi::config_of_stock_recipes;
use wok_tests::python::Environment;
use wok_tests::{scratch, zookeeper};

use crate::{Options, figure};

/// The generator, and what the client that it makes imports.
const PACKAGES: [&str; 3] = ["openapi-python-client==0.29.1", "httpx", "python-dateutil"];

/// Imports every module of the client, and counts them.
const IMPORT: &str = "\
import importlib, pkgutil, client
names = [it.name for it in pkgutil.walk_packages(client.__path__, 'client.')]
for name in names:
    importlib.import_module(name)
print(len(names))
";

/// Plays the part: it is as long as it is.
pub(crate) fn play(_: &Options) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(take_a_lock())
}

async fn take_a_lock() -> Result<()> {
    let started = Instant::now();
    let environment = Environment::install("openapi-client", &PACKAGES)?;
    let directory = scratch::dir()?;
    let at = |name: &str| directory.path().join(name);
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", &config_of_stock_recipes()?).await?;
    let document = serving.client().get("/v1/openapi.json").await?.body;
    fs::write(at("openapi.json"), document.to_string())?;
    let mut generate = environment.program("openapi-python-client");
    generate.args(["generate", "--meta", "none", "--path"]).arg(at("openapi.json"));
    generate.arg("--output-path").arg(at("client")).current_dir(&directory);
    // It has its code formatted by a program that stands beside it.
    let programs = environment.python().parent().context("a directory")?.to_owned();
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths = [programs].into_iter().chain(env::split_paths(&paths));
    let said = done(generate.env("PATH", env::join_paths(paths)?))?;
    ensure_only_streams_are_left_out(&said)?;
    let mut import = Command::new(environment.python());
    let modules = done(import.args(["-c", IMPORT]).current_dir(&directory))?;
    let mut take = Command::new(environment.python());
    take.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/take_lock.py"));
    take.arg(serving.socket()).env("PYTHONPATH", directory.path());
    let held = done(&mut take)?;
    let paths = document.get("paths").and_then(Value::as_object).context("paths")?.len();
    figure(&format!(
        "{paths} paths, {} modules of the client imported, and a lock taken, renewed and given back with \
         fence {}, in {} s",
        modules.trim(),
        held.trim(),
        started.elapsed().as_secs()
    ));
    Ok(())
}

/// A stream is no single value: who follows one reads its lines by the models of the events.
fn ensure_only_streams_are_left_out(said: &str) -> Result<()> {
    let count = |is: fn(&str) -> bool| said.lines().filter(|line| is(line)).count();
    let warnings = count(|line| line.starts_with("WARNING") || line.starts_with("ERROR"));
    let streams = count(|line| line.contains("(Unsupported content_type application/x-ndjson)"));
    ensure!(warnings == streams && streams > 0, "the generator left something out:\n{said}");
    Ok(())
}

/// What a command says that does what it should.
fn done(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    ensure!(output.status.success(), "{command:?}: {said}");
    Ok(said)
}
