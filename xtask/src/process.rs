//! Child processes that cannot outlive this program.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::{progress, stop};

/// What a group that was asked to end gets before it is killed: enough for wok's ordered release.
const GRACE: Duration = Duration::from_secs(3);

/// How often a child is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A child that leads its own process group; dropping it ends the whole group.
pub(crate) struct Group {
    name: String,
    child: Child,
    leader: Pid,
    status: Option<ExitStatus>,
}

impl Group {
    /// Starts `command` as the leader of a new group. Standard input is closed: a background group
    /// that reads from the terminal would be stopped.
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self> {
        stop::look()?;
        let child = command
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {name} ({})", command.get_program().display()))?;
        let leader = Pid::from_child(&child);
        Ok(Self { name: name.to_owned(), child, leader, status: None })
    }

    /// The child itself, to take its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How the leader ended, if it has. Whatever it left behind in its group is killed first:
    /// until the leader is reaped its number cannot belong to anyone else.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            let ended = rustix::process::waitid(WaitId::Pid(self.leader), look)
                .with_context(|| format!("look at {}", self.name))?;
            if ended.is_some() {
                let _gone = rustix::process::kill_process_group(self.leader, Signal::KILL);
                self.status = Some(self.child.wait().with_context(|| self.name.clone())?);
            }
        }
        Ok(self.status)
    }

    /// Waits for the leader to end; past `limit` the group is killed and that is an error.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                self.end();
                bail!("{}: killed after {}", self.name, progress::spell(limit));
            }
            stop::pause(LOOK)?;
        }
    }

    /// Signals the leader alone, as a crash or an operator would.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_some() {
            bail!("{}: has already ended", self.name);
        }
        rustix::process::kill_process(self.leader, signal)
            .with_context(|| format!("signal {}", self.name))
    }

    /// Asks the group to end, and kills it after a grace period.
    pub(crate) fn end(&mut self) {
        let deadline = Instant::now() + GRACE;
        let _gone = rustix::process::kill_process_group(self.leader, Signal::TERM);
        // Also while this program is being stopped, so not `stop::pause`.
        let (_never, nothing) = mpsc::channel::<()>();
        while Instant::now() < deadline {
            match self.ended() {
                Ok(None) => {
                    let _timeout = nothing.recv_timeout(LOOK);
                }
                Ok(Some(_)) => return,
                Err(_) => break,
            }
        }
        let _gone = rustix::process::kill_process_group(self.leader, Signal::KILL);
        let _reaped = self.child.wait().map(|status| self.status = Some(status));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.end();
        }
    }
}

/// Runs `command` with its output shown, every line of standard output also given to `line`.
pub(crate) fn run(
    name: &str,
    command: &mut Command,
    limit: Duration,
    mut line: impl FnMut(&str),
) -> Result<ExitStatus> {
    let deadline = Instant::now() + limit;
    let mut group = Group::start(name, command.stdout(Stdio::piped()))?;
    let stdout = group.child().stdout.take().context("standard output is piped")?;
    let lines = lines(stdout)?;
    let mut show = |text: String| {
        progress::say!("{text}");
        line(&text);
    };
    let status = loop {
        match lines.recv_timeout(LOOK) {
            Ok(text) => show(text),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // Standard output is closed: only the end is left to wait for.
            Err(mpsc::RecvTimeoutError::Disconnected) => stop::pause(LOOK)?,
        }
        stop::look()?;
        if let Some(status) = group.ended()? {
            break status;
        }
        if Instant::now() >= deadline {
            group.end();
            bail!("{name}: killed after {}", progress::spell(limit));
        }
    };
    // What was written before the end; a process that left the group may keep the pipe open.
    while let Ok(text) = lines.recv_timeout(GRACE) {
        show(text);
    }
    Ok(status)
}

/// Runs `command` with its output in `log`, showing a dot now and again.
pub(crate) fn run_quietly(
    text: &str,
    command: &mut Command,
    limit: Duration,
    log: &Path,
) -> Result<()> {
    run_together(text, &mut [(command, log)], limit)
}

/// As [`run_quietly`], with several side by side. The first that fails ends them all.
pub(crate) fn run_together(
    text: &str,
    commands: &mut [(&mut Command, &Path)],
    limit: Duration,
) -> Result<()> {
    let mut work = progress::Work::begin(text);
    let mut groups = Vec::new();
    for (command, log) in commands {
        let file = std::fs::File::create(&log);
        let file = file.with_context(|| format!("create {}", log.display()))?;
        let errors = file.try_clone().context("share the log")?;
        groups.push((Group::start(text, command.stdout(file).stderr(errors))?, *log));
    }
    let deadline = Instant::now() + limit;
    loop {
        let mut running = None;
        for (group, log) in &mut groups {
            match group.ended()? {
                Some(status) if status.success() => {}
                Some(status) => {
                    work.end("failed");
                    bail!("{text}: {}\n{}", describe(status), tail(log));
                }
                None => running = Some(*log),
            }
        }
        let Some(log) = running else {
            work.end("done");
            return Ok(());
        };
        if Instant::now() >= deadline {
            work.end("too slow");
            bail!("{text}: killed after {}\n{}", progress::spell(limit), tail(log));
        }
        work.tick();
        stop::pause(LOOK)?;
    }
}

/// Runs `command` and gives its output, also that of a failure.
pub(crate) fn output(name: &str, command: &mut Command, limit: Duration) -> Result<Output> {
    let mut group = Group::start(name, command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stdout = collect(group.child().stdout.take().context("standard output is piped")?)?;
    let stderr = collect(group.child().stderr.take().context("standard error is piped")?)?;
    let status = group.wait(limit)?;
    let late = || format!("{name}: its output stays open after its end");
    Ok(Output {
        status,
        stdout: stdout.recv_timeout(GRACE).with_context(late)?,
        stderr: stderr.recv_timeout(GRACE).with_context(late)?,
    })
}

/// Runs `command` and gives its standard output; anything but success is an error.
pub(crate) fn capture(name: &str, command: &mut Command, limit: Duration) -> Result<String> {
    let output = output(name, command, limit)?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}: {}", describe(output.status), errors.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name}: output is not UTF-8"))
}

/// The lines of a stream as they come; the channel closes with the stream.
fn lines(stream: impl Read + Send + 'static) -> Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel();
    follow(stream, move |line| {
        // Nobody listens any more once the command was too slow.
        let _unwanted = line.map(|line| sender.send(line));
    })?;
    Ok(receiver)
}

/// Gives every line of a stream to `each` as it comes, and `None` when the stream closes.
pub(crate) fn follow(
    stream: impl Read + Send + 'static,
    mut each: impl FnMut(Option<String>) + Send + 'static,
) -> Result<()> {
    reader(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            each(Some(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned()));
            line.clear();
        }
        each(None);
    })
}

fn collect(mut stream: impl Read + Send + 'static) -> Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    reader(move || {
        let mut bytes = Vec::new();
        if stream.read_to_end(&mut bytes).is_ok() {
            // Nobody waits for it any more if the command was too slow.
            let _unwanted = sender.send(bytes);
        }
    })?;
    Ok(receiver)
}

/// A reader ends when its pipe closes, which the end of the group brings about.
fn reader(body: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new().name("reader".into()).spawn(body).context("start a reader")?;
    Ok(())
}

/// The last lines of a log, for an error message.
pub(crate) fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<_> = text.lines().rev().take(15).collect();
    lines.reverse();
    lines.join("\n")
}

/// How a process ended, as people say it.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

#[cfg(test)]
mod tests;
