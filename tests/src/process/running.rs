//! A program that runs, what it prints and how it ends.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;

use super::binary::wok_binary;
use super::tree;
use crate::launch;
use crate::patience::{eventually, within};

/// A program to run.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

impl Program {
    /// The program at `path`, or of that name in `PATH`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Program { path: path.into(), args: Vec::new(), env: Vec::new(), directory: None }
    }

    /// The `wok` binary of this workspace.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn wok() -> Result<Self> {
        Ok(Program::new(wok_binary()?))
    }

    /// A shell script.
    pub fn shell(script: &str) -> Self {
        Program::new("sh").args(["-c", script])
    }

    /// The same program, started by another that becomes it.
    #[must_use]
    pub fn by_way_of<A: AsRef<OsStr>>(
        mut self,
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let mut before: Vec<OsString> = args.into_iter().map(|it| it.as_ref().into()).collect();
        before.push(std::mem::replace(&mut self.path, program.into()).into());
        self.args.splice(0..0, before);
        self
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// The directory it runs in.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Starts it. Its standard input is a pipe: see [`Running::write`].
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(self) -> Result<Running> {
        let mark = tree::new_mark();
        let mut command = launch::command(&self.path);
        command
            .args(&self.args)
            .envs(self.env)
            .env(tree::VARIABLE, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let child = launch::start(command).with_context(|| format!("start {name}"))?;
        Running::new(name, mark, child)
    }

    /// Starts it, closes its standard input and waits until it has ended and closed its outputs.
    ///
    /// # Errors
    /// If it cannot be started, or does not end.
    pub async fn run(self) -> Result<Ended> {
        let mut running = self.start()?;
        running.close_input();
        running.ended().await
    }
}

/// Where a line was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line that a program printed.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where.
    pub stream: Stream,
    /// When it arrived here.
    pub at: Instant,
    /// The line, without its end.
    pub text: String,
}

/// A program that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it printed to standard output.
    pub stdout: String,
    /// What it printed to standard error.
    pub stderr: String,
}

impl Ended {
    /// Its exit code; none if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

#[derive(Debug, Default)]
struct Output {
    lines: Vec<Line>,
    closed: usize,
}

/// A program that was started. When the value is dropped, it and whatever it started are killed.
#[derive(Debug)]
pub struct Running {
    name: String,
    mark: String,
    pid: u32,
    /// It cannot come to mean another process, as an id can.
    handle: OwnedFd,
    input: Option<ChildStdin>,
    output: watch::Receiver<Output>,
    status: watch::Receiver<Option<ExitStatus>>,
}

impl Running {
    fn new(name: String, mark: String, mut child: Child) -> Result<Running> {
        let pid = child.id();
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a process id")?;
        // Its status is collected by the thread below only, so the id is still its own.
        let handle = pidfd_open(id, PidfdFlags::empty()).context("open a process handle")?;
        let (sender, output) = watch::channel(Output::default());
        let sender = Arc::new(sender);
        if let Some(stdout) = child.stdout.take() {
            read_lines(stdout, Stream::Stdout, Arc::clone(&sender));
        }
        if let Some(stderr) = child.stderr.take() {
            read_lines(stderr, Stream::Stderr, sender);
        }
        let input = child.stdin.take();
        let (ended, status) = watch::channel(None);
        thread::spawn(move || ended.send_replace(child.wait().ok()));
        Ok(Running { name, mark, pid, handle, input, output, status })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The ids of it and of whatever it started, as far as they are alive, by a mark in their
    /// environment.
    pub fn tree(&self) -> Vec<u32> {
        tree::marked(&self.mark).into_iter().collect()
    }

    /// What it has printed so far.
    pub fn lines(&self) -> Vec<Line> {
        self.output.borrow().lines.clone()
    }

    /// What it has printed so far to one of its outputs.
    pub fn text(&self, stream: Stream) -> String {
        let output = self.output.borrow();
        let lines = output.lines.iter().filter(|line| line.stream == stream);
        lines.flat_map(|line| [line.text.as_str(), "\n"]).collect()
    }

    /// Waits until it has printed a line that is `wanted`, and answers the first such.
    ///
    /// # Errors
    /// If it does not, or closes its outputs before; the error has what it printed.
    pub async fn wait_for_line(
        &self,
        what: &str,
        mut wanted: impl FnMut(&Line) -> bool,
    ) -> Result<Line> {
        let mut output = self.output.clone();
        let mut found = None;
        let waiting = output.wait_for(|output| {
            found = output.lines.iter().find(|line| wanted(line)).cloned();
            found.is_some() || output.closed == 2
        });
        let waited = within(&format!("{what} from {}", self.name), waiting).await.map(drop);
        waited.map_err(|error| anyhow!("{error:#}; {}", self.printed()))?;
        found.ok_or_else(|| anyhow!("{} ended without {what}; {}", self.name, self.printed()))
    }

    /// As [`Running::wait_for_line`], for a line of either output that contains `text`.
    ///
    /// # Errors
    /// As [`Running::wait_for_line`].
    pub async fn wait_for_text(&self, text: &str) -> Result<Line> {
        self.wait_for_line(&format!("{text:?}"), |line| line.text.contains(text)).await
    }

    /// Writes to its standard input.
    ///
    /// # Errors
    /// If it has closed it.
    pub fn write(&mut self, text: &str) -> Result<()> {
        let input = self.input.as_mut().context("its input was closed")?;
        input.write_all(text.as_bytes())?;
        input.flush()?;
        Ok(())
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Signals it alone, not what it started.
    ///
    /// # Errors
    /// If it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let sent = pidfd_send_signal(&self.handle, signal);
        sent.with_context(|| format!("signal {}; {}", self.name, self.printed()))
    }

    /// Stops it alone where it stands, and waits until all its threads do.
    ///
    /// # Errors
    /// If it has ended.
    pub async fn pause(&self) -> Result<()> {
        let paused = tree::pause(self.pid()).await;
        paused.with_context(|| format!("stop {}; {}", self.name, self.printed()))
    }

    /// How it ended, if it has.
    pub fn status(&self) -> Option<ExitStatus> {
        *self.status.borrow()
    }

    /// Waits until it has ended. What it started may live on.
    ///
    /// # Errors
    /// If it does not end; the error has what it printed.
    pub async fn exit(&self) -> Result<ExitStatus> {
        let mut status = self.status.clone();
        let waiting = status.wait_for(Option::is_some);
        let waited = within(&format!("{} to end", self.name), waiting).await.map(drop);
        waited.map_err(|error| anyhow!("{error:#}; {}", self.printed()))?;
        self.status().context("its status was lost")
    }

    /// Waits until it has ended and its outputs are closed, by all that had them.
    ///
    /// # Errors
    /// If that does not come to pass; the error has what it printed.
    pub async fn ended(&self) -> Result<Ended> {
        let status = self.exit().await?;
        let mut output = self.output.clone();
        let closed = output.wait_for(|output| output.closed == 2);
        let what = format!("the outputs of {} to close", self.name);
        let waited = within(&what, closed).await.map(drop);
        waited.map_err(|error| anyhow!("{error:#}; {}", self.printed()))?;
        let (stdout, stderr) = (self.text(Stream::Stdout), self.text(Stream::Stderr));
        Ok(Ended { status, stdout, stderr })
    }

    /// Waits until neither it nor anything it started is alive.
    ///
    /// # Errors
    /// If that does not come to pass; the error names who lives.
    pub async fn tree_gone(&self) -> Result<()> {
        let gone = eventually("a process tree to end", async || {
            Ok(tree::marked(&self.mark).is_empty().then_some(()))
        });
        gone.await.with_context(|| format!("alive: {:?}; {}", self.tree(), self.printed()))
    }

    /// Kills it and whatever it started.
    pub fn kill_tree(&mut self) {
        tree::kill(&self.mark);
    }

    fn printed(&self) -> String {
        let lines = self.lines();
        let texts = lines.iter().map(|line| format!("\n  {:?}: {}", line.stream, line.text));
        format!("{} printed:{}", self.name, texts.collect::<String>())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.printed());
        }
        self.kill_tree();
    }
}

fn read_lines(from: impl Read + Send + 'static, stream: Stream, to: Arc<watch::Sender<Output>>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(from);
        let mut bytes = Vec::new();
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(1..)) {
            let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
            let line = Line { stream, at: Instant::now(), text };
            to.send_modify(|output| output.lines.push(line));
            bytes.clear();
        }
        to.send_modify(|output| output.closed += 1);
    });
}
