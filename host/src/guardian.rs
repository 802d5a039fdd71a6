//! Runs a user's command only while a claim is held.
//!
//! A command that acts on a claim must be gone before the claim can be somebody else's, also when
//! wok itself is stopped or killed. So a second process, the *guardian* (this binary, executed
//! again), starts the command and ends it: in order when wok says so, and at once when the last
//! deadline it heard of has passed or wok lets go of the channel between them, by whatever death.
//!
//! | process | file | what it does |
//! |---|---|---|
//! | wok | this one | [`Guardian`]: tells the deadlines, waits for the outcome |
//! | guardian | `watchdog` acts, `plan` decides | a process group of its own, all signals blocked, one thread |
//! | stage before the command | `launch` | asks the kernel to be killed with the guardian, then becomes the command |
//! | command | | leads a process group; standard streams are wok's |
//!
//! `record` is what travels between them, `tree` finds descendants, `terminal` hands over the
//! foreground.
//!
//! What holds:
//! - [`Guardian::wait`] completes when the command *and every descendant* are gone, also those
//!   that moved to another session: the guardian is their subreaper, kills until `wait` finds no
//!   child, and only then reports. Until then the claim's znode must stay.
//! - What a command leaves in the background ends with it: it would outlive the claim. It gets the
//!   stop signal and, after the stop-timeout, is killed.
//! - A guardian that is killed takes the command with it; wok notices and kills the rest by their
//!   group and by the mark in their environment. One that is stopped past the deadline is
//!   continued by wok.
//! - A stop-timeout is at most half of the time up to the first deadline.
//!
//! What does not: a command that gains other privileges (`sudo`) cannot be killed without them, so
//! `wait` does not complete; if wok *and* the guardian are killed in the same moment, only the
//! command's first process is certain to die; if the whole machine freezes, only the fence
//! protects.

mod launch;
mod plan;
mod record;
mod terminal;
mod tree;
mod watchdog;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram as StdDatagram;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;
use uuid::Uuid;

use self::record::{Order, Received, Report};
use self::terminal::Terminal;
use self::tree::Marked;
use self::watchdog::Arguments;
use crate::clock::Boottime;

/// How late the guardian's report may be before wok helps; also how often wok looks.
const LOOK: Duration = Duration::from_millis(100);

/// How often wok sweeps by itself when the guardian is no more.
const SWEEP: Duration = Duration::from_millis(5);

/// How many orders wait for room in the channel. It holds hundreds, so this is reached only by a
/// flood of signals at a stopped guardian; the oldest of them are dropped.
const UNSENT_LIMIT: usize = 64;

/// Must be the first thing that `main` does, before it starts a thread or reads its arguments: a
/// guardian is the same binary with hidden arguments. Given a code, `main` returns it.
pub fn main_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next()?;
    match name.to_str()? {
        watchdog::NAME => Some(watchdog::main(arguments)),
        launch::NAME => Some(launch::main(arguments)),
        _ => None,
    }
}

/// What to run and until when.
#[derive(Debug, Clone)]
pub struct GuardianOptions {
    /// The program, looked up in `PATH` as a shell does, and its arguments.
    pub command: Vec<OsString>,
    /// Variables added to the environment that it shares with wok.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs; wok's own directory if there is none.
    pub working_directory: Option<PathBuf>,
    /// The signal that asks it to end.
    pub stop_signal: Signal,
    /// How long it has between that and the kill.
    pub stop_timeout: Duration,
    /// When the claim ends if nothing more is heard.
    pub deadline: Boottime,
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardianError {
    /// There is no program among the options.
    #[error("no command given: name the program to run while the claim is held")]
    NoCommand,
    /// The command's directory is none.
    #[error("cannot run the command in {path}: {source}")]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// What looking at it said.
        source: io::Error,
    },
    /// The guardian process could not be started.
    #[error("cannot start the guardian process: {0}")]
    Start(#[from] io::Error),
}

/// How the command ended. Nothing of it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, or asked to by [`Guardian::stop`], with this exit code.
    Exited(i32),
    /// Of this signal, which the guardian did not send, or sent after [`Guardian::stop`].
    Signaled(i32),
    /// It could not be executed, for this errno.
    NotStarted(Errno),
    /// It was ended because the claim was over, or as good as.
    Killed(KillReason),
}

/// Why the guardian, or wok in its place, ended the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillReason {
    /// The deadline passed.
    Deadline,
    /// [`Guardian::kill_now`].
    Ordered,
    /// The guardian died.
    GuardianDied,
}

impl Outcome {
    /// The code a shell would give; none for a command that was ended with its claim.
    pub fn exit_code(self) -> Option<u8> {
        match self {
            Outcome::Exited(code) => u8::try_from(code & 0xff).ok(),
            Outcome::Signaled(signal) => u8::try_from((128 + signal) & 0xff).ok(),
            Outcome::NotStarted(Errno::NOENT) => Some(127),
            Outcome::NotStarted(_) => Some(126),
            Outcome::Killed(_) => None,
        }
    }
}

impl Outcome {
    /// Whether the command never ran.
    pub fn is_not_started(self) -> bool {
        matches!(self, Outcome::NotStarted(_))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Exited(code) => write!(f, "exited with {code}"),
            Outcome::Signaled(signal) => write!(f, "ended by signal {signal}"),
            Outcome::NotStarted(errno) => write!(f, "cannot be executed: {errno}"),
            Outcome::Killed(KillReason::Deadline) => {
                f.write_str("killed because the claim's deadline passed")
            }
            Outcome::Killed(KillReason::Ordered) => f.write_str("killed with its claim"),
            Outcome::Killed(KillReason::GuardianDied) => {
                f.write_str("killed because its guardian died")
            }
        }
    }
}

impl From<Report> for Option<Outcome> {
    fn from(report: Report) -> Self {
        Some(match report {
            Report::Group(_) => return None,
            Report::NotStarted(errno) => Outcome::NotStarted(Errno::from_raw_os_error(errno)),
            Report::Exited(code) => Outcome::Exited(code),
            Report::Signaled(signal) => Outcome::Signaled(signal),
            Report::DeadlinePassed => Outcome::Killed(KillReason::Deadline),
            Report::Killed => Outcome::Killed(KillReason::Ordered),
        })
    }
}

/// A command under guard. Dropping it kills the command at once, without waiting for that.
///
/// No method but [`wait`](Self::wait) blocks or awaits: a guardian that does not listen must never
/// hold up the session's heartbeats.
#[derive(Debug)]
pub struct Guardian {
    /// Only for its readiness: the socket keeps record boundaries, as a datagram one does.
    channel: UnixDatagram,
    id: Option<Pid>,
    process: tokio::sync::Mutex<Child>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    deadline: Boottime,
    unsent: VecDeque<Order>,
    marked: Marked,
    outcome: Option<Outcome>,
}

impl Guardian {
    /// Starts a guardian, which starts the command.
    ///
    /// That the command itself cannot be executed is an [`Outcome`]. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// Nothing was started.
    pub fn spawn(options: GuardianOptions) -> Result<Self, GuardianError> {
        if options.command.is_empty() {
            return Err(GuardianError::NoCommand);
        }
        if let Some(path) = &options.working_directory {
            let is_usable = std::fs::read_dir(path).map(drop);
            is_usable
                .map_err(|source| GuardianError::WorkingDirectory { path: path.clone(), source })?;
        }
        // With `SIGCHLD` ignored, as some parents leave it, the kernel would keep no statuses for
        // the guardian. A disposition to ignore is inherited through an exec; a handler is not.
        drop(signal(SignalKind::child())?);

        let (channel, theirs) = record::channel().map_err(io::Error::from)?;
        let channel = UnixDatagram::from_std(StdDatagram::from(channel))?;
        let stdin = io::stdin();
        record::hand_over(&channel, stdin.as_fd()).map_err(io::Error::from)?;
        let marked =
            Marked { mark: Uuid::new_v4().to_string(), group: None, session: tree::own_session()? };
        let arguments = Arguments {
            deadline: options.deadline,
            stop_timeout: options.stop_timeout,
            stop_signal: options.stop_signal,
            home: tree::own_group(),
            mark: marked.mark.clone(),
            command: options.command,
        };
        // Not by its path: that may lead to a newer binary, which speaks another protocol.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("wok").arg(watchdog::NAME).args(arguments.write()).envs(options.env);
        // A group of its own: who kills or stops the whole of wok's job does not reach it.
        command.stdin(Stdio::from(theirs)).process_group(0).kill_on_drop(false);
        if let Some(path) = &options.working_directory {
            command.current_dir(path);
        }
        let process = command.spawn()?;
        let id = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self {
            channel,
            id,
            process: tokio::sync::Mutex::new(process),
            state: Mutex::new(State {
                deadline: options.deadline,
                unsent: VecDeque::new(),
                marked,
                outcome: None,
            }),
        })
    }

    /// The claim is now held until `deadline`; called after each heartbeat. The newest counts. Once
    /// the guardian has begun to end the command, it has no effect.
    pub fn extend(&self, deadline: Boottime) {
        self.state().deadline = deadline;
        self.order(Order::Deadline(deadline.as_nanos()));
    }

    /// Sends a signal to the command's process group.
    pub fn signal(&self, signal: Signal) {
        self.order(Order::Signal(signal.as_raw()));
    }

    /// Asks the command to end: the stop signal now, the kill after the stop-timeout or at the
    /// deadline, whichever is first. The claim is to be released after [`wait`](Self::wait).
    pub fn stop(&self) {
        self.order(Order::Stop);
    }

    /// Kills the command now: the claim is lost.
    pub fn kill_now(&self) {
        let mut state = self.state();
        // From now on a guardian that does not report is overdue.
        state.deadline = state.deadline.min(Boottime::now());
        drop(state);
        self.order(Order::Kill);
    }

    /// The guardian's process id, for logs.
    pub fn id(&self) -> Option<u32> {
        self.id.and_then(|id| u32::try_from(id.as_raw_pid()).ok())
    }

    /// Waits until nothing is left of the command. It must be polled while the command runs: it
    /// stands in for a guardian that is dead or stopped.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost; it can be called again, and after it completed says the same again.
    pub async fn wait(&self) -> Outcome {
        let outcome = loop {
            if let Some(outcome) = self.hear() {
                break outcome;
            }
            tokio::select! {
                biased;
                // Losing this branch loses nothing: readiness stays until `hear` finds the channel
                // empty. An error is a runtime that shuts down, which the next look meets again.
                _ = self.channel.readable() => {}
                // A timer only: nothing to lose.
                () = sleep(LOOK) => {
                    self.send_unsent();
                    self.help_if_overdue();
                }
            }
        };
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => self.stand_in().await,
        };
        self.state().outcome = Some(outcome);
        // It has reported or died: this only takes its status, so that no zombie stays.
        let _ = self.process.lock().await.wait().await;
        outcome
    }

    /// Reads what the guardian said. None: nothing final yet; none within: it is no more.
    fn hear(&self) -> Option<Option<Outcome>> {
        if let Some(outcome) = self.state().outcome {
            return Some(Some(outcome));
        }
        loop {
            let heard = self.channel.try_io(Interest::READABLE, || {
                match record::hear::<Report>(&self.channel) {
                    Received::Nothing => Err(io::ErrorKind::WouldBlock.into()),
                    heard => Ok(heard),
                }
            });
            match heard {
                Ok(Received::Record(Report::Group(group))) => {
                    self.state().marked.group = Some(group);
                }
                Ok(Received::Record(report)) => return Some(report.into()),
                Ok(Received::Closed) => return Some(None),
                Ok(Received::Nothing) | Err(_) => return None,
            }
        }
    }

    /// The deadline has passed and the guardian has not reported. It may be stopped, or the kill
    /// takes long: continue it, and kill as well.
    fn help_if_overdue(&self) {
        let state = self.state();
        if !(state.deadline + LOOK).has_passed() {
            return;
        }
        let marked = state.marked.clone();
        drop(state);
        if let Some(id) = self.id {
            // Its status is not taken before it reported, so the number is still its own.
            let _ = kill_process(id, Signal::CONT);
        }
        let _ = marked.kill();
    }

    /// Kills the command in the guardian's place. The kernel killed its first process already.
    async fn stand_in(&self) -> Outcome {
        let marked = self.state().marked.clone();
        // Once more after nothing was found: what a scan missed was born of one that it killed.
        let mut clean = 0;
        while clean < 2 {
            clean = match marked.kill() {
                Ok(0) => clean + 1,
                Ok(_) | Err(_) => 0,
            };
            sleep(SWEEP).await;
        }
        let terminal = tree::own_group().and_then(Terminal::open);
        if let (Some(terminal), Some(group)) = (terminal, marked.group.and_then(Pid::from_raw)) {
            terminal.take_back(group);
        }
        Outcome::Killed(KillReason::GuardianDied)
    }

    fn order(&self, order: Order) {
        let mut state = self.state();
        if matches!(order, Order::Deadline(_)) {
            state.unsent.retain(|unsent| !matches!(unsent, Order::Deadline(_)));
        }
        state.unsent.push_back(order);
        if state.unsent.len() > UNSENT_LIMIT
            && let Some(oldest) =
                state.unsent.iter().position(|unsent| matches!(unsent, Order::Signal(_)))
        {
            state.unsent.remove(oldest);
        }
        drop(state);
        self.send_unsent();
    }

    fn send_unsent(&self) {
        let mut state = self.state();
        while let Some(order) = state.unsent.front().copied() {
            match record::tell(&self.channel, order) {
                Ok(()) => {
                    state.unsent.pop_front();
                }
                Err(Errno::AGAIN) => return,
                // The guardian is no more, which `wait` hears.
                Err(_) => return state.unsent.clear(),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        for (outcome, code) in [
            (Outcome::Exited(0), Some(0)),
            (Outcome::Exited(255), Some(255)),
            (Outcome::Signaled(15), Some(143)),
            (Outcome::NotStarted(Errno::NOENT), Some(127)),
            (Outcome::NotStarted(Errno::ACCESS), Some(126)),
            (Outcome::Killed(KillReason::Deadline), None),
        ] {
            assert_eq!(outcome.exit_code(), code, "{outcome:?}");
        }
    }
}
