//! Nobody reads what wok says, or reads it slowly: no command is killed for that, and waits,
//! signals and exit codes are those that they would be.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::{FutureExt, try_join_all};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use wok_tests::admin::{self, Admin};
use wok_tests::guests::guest_file;
use wok_tests::patience::{eventually, within};
use wok_tests::process::{OrderFile, Program, Running, Signal, is_there};
use wok_tests::proxy::{Cut, Match, Proxy};
use wok_tests::{scratch, zookeeper};

const TIMEOUT: Duration = Duration::from_secs(4);

const MINUTE: Duration = Duration::from_secs(60);

/// How soon a program ends that is asked to, though nobody reads. A person who waits for longer kills it.
const PROMPT: Duration = Duration::from_secs(5);

/// Heartbeats of which a trace is more than wok keeps, which is 64 KiB: each has two requests and two
/// replies, with lines of some 130 bytes. In a minute there are 150.
const FULL_OF_BEATS: usize = 140;

/// A pipe as a program's standard error, which is read when the test wants it.
struct Pipe {
    directory: tempfile::TempDir,
    ours: File,
}

impl Pipe {
    fn new() -> Result<Self> {
        let directory = scratch::dir()?;
        let path = path_in(&directory);
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
        let ours = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&path)?;
        Ok(Pipe { directory, ours })
    }

    /// Fills it, so that the next line that is written to it blocks.
    fn fill(&self) -> Result<()> {
        for size in [4096, 1] {
            loop {
                match (&self.ours).write(&vec![b'\n'; size]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Empties it.
    fn read(&self) -> Result<String> {
        let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
        loop {
            match (&self.ours).read(&mut bytes) {
                Ok(length) => all.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(String::from_utf8_lossy(&all).into_owned())
    }

    /// Reads until `found` finds something in all that was read.
    async fn until<T>(&self, what: &str, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let mut all = String::new();
        let reading = eventually(what, async || {
            all.push_str(&self.read()?);
            Ok(found(&all))
        });
        reading.await.with_context(|| all.clone())
    }

    /// `wok` with this as its standard error.
    fn wok(&self, arguments: &[&str]) -> Result<Program> {
        let binary = wok_tests::process::wok_binary()?;
        let script = "exec \"$@\" 2> \"$PIPE\"";
        let program = Program::shell(script).env("PIPE", path_in(&self.directory)).arg("sh");
        Ok(program.arg(binary).args(arguments))
    }
}

fn path_in(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("pipe")
}

/// Reads 50 KB in a second until it is dropped.
struct SlowReader {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<String>>,
}

impl SlowReader {
    fn of(pipe: &Pipe) -> Result<Self> {
        let (mut file, stop) = (pipe.ours.try_clone()?, Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (_silent, never) = mpsc::channel::<()>();
            let (mut all, mut bytes) = (Vec::new(), [0; 5000]);
            while !stopped.load(Ordering::Relaxed) {
                if let Ok(length) = file.read(&mut bytes) {
                    all.extend_from_slice(&bytes[..length]);
                }
                // How slow the reader is: nothing comes this way.
                never.recv_timeout(Duration::from_millis(100)).ok();
            }
            String::from_utf8_lossy(&all).into_owned()
        });
        Ok(SlowReader { stop, thread: Some(thread) })
    }

    fn read(mut self) -> String {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(|it| it.join().unwrap()).unwrap_or_default()
    }
}

impl Drop for SlowReader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// When it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    NeverFromTheStart,
    /// Not since it waits, or since it holds.
    NeverAnyMore,
    Slow,
}

const READERS: [Reader; 3] = [Reader::NeverFromTheStart, Reader::NeverAnyMore, Reader::Slow];

impl Reader {
    /// A pipe that it reads from.
    fn pipe(self) -> Result<(Pipe, Option<SlowReader>)> {
        let pipe = Pipe::new()?;
        if self == Reader::NeverFromTheStart {
            pipe.fill()?;
        }
        let slow = (self == Reader::Slow).then(|| SlowReader::of(&pipe)).transpose()?;
        Ok((pipe, slow))
    }
}

async fn exits(running: &Running) -> Result<Option<i32>> {
    Ok(within("it to end", running.exit()).await??.code())
}

#[tokio::test]
async fn a_wait_ends_though_nobody_reads_what_is_said_of_it() -> Result<()> {
    let waits = READERS.map(|reader| async move {
        waits_beside(reader).await.with_context(|| format!("{reader:?}"))
    });
    try_join_all(waits).await.map(drop)
}

/// In line, until the wait is over, and until it is asked to end.
async fn waits_beside(reader: Reader) -> Result<()> {
    let server = zookeeper::shared().await;
    let (admin, path) = (Admin::connect(server.address()).await?, zookeeper::unique_path());
    let holder = Program::wok()?.args(["lock", "--connect", server.address(), &path, "--"]);
    let holder = holder.args(["sleep", "infinity"]).start()?;
    holder.wait_for_text("holding").await?;
    for (wait, code) in [(Some("10s"), 75), (None, 128 + 15)] {
        let (pipe, _slow) = reader.pipe()?;
        let mut lock = vec!["lock", "--connect", server.address()];
        lock.extend(wait.iter().flat_map(|wait| ["--wait", *wait]));
        lock.extend([&*path, "--", "true"]);
        let waiting = pipe.wok(&lock)?.env("WOK_LOG", "trace").start()?;
        admin.wait_children(&path, "two contenders", |it| it.len() == 2).await?;
        if reader == Reader::NeverAnyMore {
            pipe.fill()?;
        }
        let since = Instant::now();
        if wait.is_none() {
            waiting.signal(Signal::TERM)?;
        }
        let left = if wait.is_some() { Duration::from_secs(10) } else { Duration::ZERO };
        assert_eq!(exits(&waiting).await?, Some(code));
        let took = since.elapsed();
        ensure!(took <= left + PROMPT, "--wait {wait:?}: it ended only after {took:?}");
    }
    Ok(())
}

/// What holds beside the reader.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    /// A daemon, with a recipe that logs without an end, and a neighbour of it that holds.
    Run,
    Hold,
    Lock,
}

/// A holder whose command runs, and what a test sees of it.
struct Held {
    running: Running,
    pipe: Pipe,
    slow: Option<SlowReader>,
    proxy: Proxy,
    order: OrderFile,
    command: u32,
    _config: tempfile::TempDir,
}

impl Held {
    async fn start(holder: Holder, reader: Reader) -> Result<Self> {
        let server = zookeeper::shared().await;
        let (proxy, (pipe, slow)) = (Proxy::start(server.address())?, reader.pipe()?);
        let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
        let script = format!("{}; while :; do sleep 0.05; done", order.append("begins $$"));
        let (directory, module) = guest_file("hostile")?;
        let config = directory.path().join("wok.toml");
        let mut arguments = vec![];
        let session = ["--connect", proxy.address(), "--session-timeout", "4s"];
        match holder {
            Holder::Run => {
                let admin = Admin::connect(server.address()).await?;
                admin.create(&format!("{path}/hostile/go"), b"").await?;
                fs::write(&config, daemon(proxy.address(), &path, &module, &script)?)?;
                arguments.extend(["run", config.to_str().context("a path that is text")?]);
            }
            Holder::Hold => {
                arguments.push("hold");
                arguments.extend(session);
                arguments.extend(["--mount", &path, "lock", "acquire", "--", "sh", "-c", &script]);
            }
            Holder::Lock => {
                arguments.push("lock");
                arguments.extend(session);
                arguments.extend([&*path, "--", "sh", "-c", &script]);
            }
        }
        let mut program = pipe.wok(&arguments)?;
        if holder != Holder::Run {
            program = program.env("WOK_LOG", "trace");
        }
        let running = program.start()?;
        let command = order.wait_for_pid("begins", 1).await?;
        if reader == Reader::NeverAnyMore {
            pipe.fill()?;
        }
        Ok(Held { running, pipe, slow, proxy, order, command, _config: directory })
    }

    /// The command is the one that it was.
    fn goes_on(&self) -> Result<()> {
        ensure!(self.running.status().is_none(), "it ended");
        ensure!(is_there(self.command), "the command was killed");
        let labels = self.order.labels()?;
        ensure!(labels.len() == 1, "{labels:?}");
        Ok(())
    }

    /// From one heartbeat that is answered to the next, and from the last one to now, never more than a
    /// third of the timeout.
    fn heartbeats_are_in_time(&self, since: Instant) -> Result<()> {
        let now = Instant::now();
        let beats = self.proxy.requests(&Match::heartbeats());
        let answered = beats.iter().filter(|beat| beat.answer.is_some_and(|it| it.error == 0));
        let mut before = since;
        for at in answered.map(|beat| beat.at).chain([now]) {
            let gap = at.saturating_duration_since(before);
            ensure!(gap <= TIMEOUT / 3, "{gap:?} without a heartbeat that is answered");
            before = at;
        }
        Ok(())
    }

    /// Its connection is lost, and refused once at least before it has another one.
    async fn is_refused(&self) -> Result<()> {
        let before = self.proxy.refused();
        self.proxy.refuse();
        self.proxy.cut_all(Cut::Reset);
        eventually("a connection to be refused", async || {
            Ok((self.proxy.refused() > before).then_some(()))
        })
        .await?;
        self.proxy.clear_log();
        self.proxy.welcome();
        eventually("a heartbeat on another connection", async || {
            let beats = self.proxy.requests(&Match::heartbeats());
            Ok(beats.iter().any(|beat| beat.answer.is_some()).then_some(()))
        })
        .await
    }

    /// So much is logged that it cannot all be kept for a reader that does not read.
    async fn logs_too_much(&self, holder: Holder) -> Result<()> {
        if holder == Holder::Run {
            return Ok(());
        }
        eventually("heartbeats enough", async || {
            let beats = self.proxy.requests(&Match::heartbeats()).len();
            Ok((beats >= FULL_OF_BEATS).then_some(()))
        })
        .await
    }
}

/// The daemon's file.
fn daemon(connect: &str, root: &str, module: &Path, script: &str) -> Result<String> {
    Ok(format!(
        r#"
[zookeeper]
connect = "{connect}"
session-timeout = "4s"
root = "{root}"

[recipes.hostile]
module = {}
mount = "/hostile"
run = {{ call = "attack-when-told", arguments = {{ attack = "logs" }} }}

[recipes.neighbour]
module = "lock"
mount = "/neighbour"
run = {{ call = "acquire" }}
while-held = {{ exec = ["sh", "-c", {}], stop-timeout = "500ms" }}
"#,
        serde_json::to_string(&module)?,
        serde_json::to_string(&script)?,
    ))
}

/// How many lines wok says that it dropped.
fn dropped(said: &str) -> Option<u64> {
    let (before, _) = said.split_once(" lines were dropped here")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Holds for a minute as if all were read, ends as if all were read, and tells what was not.
async fn holds_beside(holder: Holder, reader: Reader) -> Result<()> {
    let mut held = Held::start(holder, reader).await?;
    held.proxy.clear_log();
    let since = Instant::now();
    // tidy: what is promised is promised for a minute.
    tokio::time::sleep(MINUTE).await;
    held.goes_on()?;
    held.heartbeats_are_in_time(since)?;
    if reader != Reader::Slow {
        held.logs_too_much(holder).await?;
    }
    held.is_refused().await?;
    held.goes_on()?;
    if reader != Reader::Slow {
        // Once the reader reads again, and then does not.
        let lines = held.pipe.until("what was dropped", dropped).await?;
        ensure!(lines > 0, "no lines were dropped");
        held.pipe.fill()?;
    }

    let since = Instant::now();
    let (code, bound) = match holder {
        Holder::Run | Holder::Hold => {
            held.running.signal(Signal::TERM)?;
            (if holder == Holder::Run { 0 } else { 128 + 15 }, PROMPT)
        }
        // It is told at once, or looks for another connection first.
        Holder::Lock => {
            let session = held.proxy.sessions().pop().context("a session")?;
            admin::expire(zookeeper::shared().await.address(), &session).await?;
            (76, PROMPT + TIMEOUT)
        }
    };
    assert_eq!(exits(&held.running).await?, Some(code));
    let took = since.elapsed();
    ensure!(took <= bound, "it ended only after {took:?}");
    held.running.tree_gone().await?;
    if let Some(slow) = held.slow.take().filter(|_| holder == Holder::Run) {
        let read = slow.read() + &held.pipe.read()?;
        ensure!(dropped(&read).is_some_and(|lines| lines > 0), "{} bytes", read.len());
    }
    Ok(())
}

/// All at one time, so that it takes one minute. They are too large to lie on a stack together.
#[tokio::test]
async fn commands_are_held_for_a_minute_though_nobody_reads_or_reads_slowly() -> Result<()> {
    let cases = [Holder::Run, Holder::Hold, Holder::Lock].map(|holder| {
        READERS.map(|reader| {
            let held = holds_beside(holder, reader).boxed_local();
            held.map(move |it| it.with_context(|| format!("{holder:?}, {reader:?}")))
        })
    });
    try_join_all(cases.into_iter().flatten()).await.map(drop)
}
