//! Nobody reads what wok says, or reads it slowly: no command is killed for that, and waits,
//! signals and exit codes are those that they would be.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use wok_tests::admin::{self, Admin};
use wok_tests::guests::guest_file;
use wok_tests::patience::{eventually, within};
use wok_tests::process::{OrderFile, Program, Running, Signal};
use wok_tests::proxy::Proxy;
use wok_tests::{scratch, zookeeper};

const TIMEOUT: Duration = Duration::from_secs(4);

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

    /// Reads until that text was there.
    async fn until(&self, text: &str) -> Result<()> {
        let mut all = String::new();
        let found = eventually(text, async || {
            all.push_str(&self.read()?);
            Ok(all.contains(text).then_some(()))
        });
        found.await.with_context(|| all.clone())
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
    NeverOnceItHolds,
    Slow,
}

async fn exits(running: &Running) -> Result<Option<i32>> {
    Ok(within("it to end", running.exit()).await??.code())
}

#[tokio::test]
async fn a_wait_ends_though_nobody_reads_what_is_said_of_it() -> Result<()> {
    let server = zookeeper::shared().await;
    let path = zookeeper::unique_path();
    let holder = Program::wok()?.args(["lock", "--connect", server.address(), &path, "--"]);
    let mut holder = holder.args(["sleep", "infinity"]).start()?;
    holder.wait_for_text("holding").await?;
    let pipe = Pipe::new()?;
    pipe.fill()?;
    let lock = ["lock", "--connect", server.address(), "--wait", "1s", &path, "--", "true"];
    let waiting = pipe.wok(&lock)?.start()?;
    assert_eq!(exits(&waiting).await?, Some(75));
    // Asked to end while it waits, it does.
    let lock = ["lock", "--connect", server.address(), &path, "--", "true"];
    let waiting = pipe.wok(&lock)?.start()?;
    let admin = Admin::connect(server.address()).await?;
    admin.wait_children(&path, "two contenders", |it| it.len() == 2).await?;
    waiting.signal(Signal::TERM)?;
    assert_eq!(exits(&waiting).await?, Some(128 + 15));
    holder.kill_tree();
    Ok(())
}

/// A command under a claim, beside nobody who reads.
async fn holds_beside(reader: Reader, operation: &[&str]) -> Result<()> {
    let server = zookeeper::shared().await;
    let (proxy, pipe) = (Proxy::start(server.address())?, Pipe::new()?);
    let (order, mount) = (OrderFile::new()?, zookeeper::unique_path());
    if reader == Reader::NeverFromTheStart {
        pipe.fill()?;
    }
    let slow = (reader == Reader::Slow).then(|| SlowReader::of(&pipe)).transpose()?;
    let command = format!("{}; while :; do sleep 0.05; done", order.append("begins"));
    let mut arguments = vec!["hold", "--connect", proxy.address(), "--session-timeout", "4s"];
    arguments.extend(["--mount", &mount]);
    arguments.extend(operation);
    arguments.extend(["--", "sh", "-c", &command]);
    let running = pipe.wok(&arguments)?.env("WOK_LOG", "trace").start()?;
    order.wait_for("begins").await?;
    if reader == Reader::NeverOnceItHolds {
        pipe.until("holding").await?;
        pipe.fill()?;
    }
    // tidy: longer than a session of which nobody hears, of a promise of time.
    tokio::time::sleep(TIMEOUT + TIMEOUT / 4).await;
    ensure!(running.status().is_none(), "{reader:?}: it ended");
    heartbeats_are_in_time(&proxy)?;
    // The session ends: the command is killed, and the exit code says why.
    admin::expire(server.address(), proxy.sessions().last().context("a session")?).await?;
    assert_eq!(exits(&running).await?, Some(76), "{reader:?}");
    drop(slow);
    Ok(())
}

/// From one request to the next never more than a third of the timeout.
fn heartbeats_are_in_time(proxy: &Proxy) -> Result<()> {
    let log = proxy.log();
    let gaps = log.iter().zip(log.iter().skip(1)).map(|(one, next)| next.at - one.at);
    let longest = gaps.max().unwrap_or_default();
    ensure!(longest <= TIMEOUT / 3, "{longest:?} without a request");
    Ok(())
}

#[tokio::test]
async fn a_command_is_held_though_nobody_reads_from_the_start() -> Result<()> {
    holds_beside(Reader::NeverFromTheStart, &["lock", "acquire"]).await
}

#[tokio::test]
async fn a_command_is_held_though_nobody_reads_any_more() -> Result<()> {
    holds_beside(Reader::NeverOnceItHolds, &["lock", "acquire"]).await
}

#[tokio::test]
async fn a_command_is_held_though_the_reader_is_slow() -> Result<()> {
    holds_beside(Reader::Slow, &["lock", "acquire"]).await
}

/// A daemon with a recipe that logs without an end, and a neighbour with a command.
async fn daemon_beside(reader: Reader) -> Result<()> {
    let server = zookeeper::shared().await;
    let (proxy, pipe) = (Proxy::start(server.address())?, Pipe::new()?);
    let (order, root) = (OrderFile::new()?, zookeeper::unique_path());
    let admin = Admin::connect(server.address()).await?;
    admin.create(&format!("{root}/hostile/go"), b"").await?;
    let (directory, module) = guest_file("hostile")?;
    let config = directory.path().join("wok.toml");
    let script = format!("{}; while :; do sleep 0.05; done", order.append("begins"));
    let text = format!(
        r#"
[zookeeper]
connect = "{}"
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
        proxy.address(),
        serde_json::to_string(&module)?,
        serde_json::to_string(&script)?,
    );
    std::fs::write(&config, text)?;
    if reader == Reader::NeverFromTheStart {
        pipe.fill()?;
    }
    let slow = (reader == Reader::Slow).then(|| SlowReader::of(&pipe)).transpose()?;
    let config: &Path = &config;
    let running = pipe.wok(&["run", &config.to_string_lossy()])?.start()?;
    order.wait_for("begins").await?;
    if reader == Reader::NeverOnceItHolds {
        pipe.fill()?;
    }
    // tidy: longer than a session of which nobody hears, of a promise of time.
    tokio::time::sleep(TIMEOUT + TIMEOUT / 4).await;
    assert_eq!(order.labels()?, ["begins"], "{reader:?}");
    heartbeats_are_in_time(&proxy)?;
    let read = match slow {
        Some(slow) => {
            running.signal(Signal::TERM)?;
            assert_eq!(exits(&running).await?, Some(0), "{reader:?}");
            slow.read() + &pipe.read()?
        }
        // Once the reader reads again, wok tells how many lines it dropped.
        None => {
            pipe.until("lines were dropped here").await?;
            running.signal(Signal::TERM)?;
            assert_eq!(exits(&running).await?, Some(0), "{reader:?}");
            return Ok(());
        }
    };
    ensure!(read.contains("lines were dropped here"), "{reader:?}: {} bytes", read.len());
    Ok(())
}

#[tokio::test]
async fn a_daemon_goes_on_though_nobody_reads_from_the_start() -> Result<()> {
    daemon_beside(Reader::NeverFromTheStart).await
}

#[tokio::test]
async fn a_daemon_goes_on_though_nobody_reads_any_more() -> Result<()> {
    daemon_beside(Reader::NeverOnceItHolds).await
}

#[tokio::test]
async fn a_daemon_goes_on_though_the_reader_is_slow() -> Result<()> {
    daemon_beside(Reader::Slow).await
}
