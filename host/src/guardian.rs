//! Runs a user's command only while a claim is held.
//!
//! A command that acts on a claim must be gone before the claim can be somebody else's, also when
//! wok itself is stopped or killed. So a second process, the *guardian* (this binary, executed
//! again), starts the command and ends it: in order when wok says so, and at once when the last
//! deadline it heard of has passed or wok lets go of the channel between them, by whatever death.
//! A third one, the *keeper*, ends what a guardian leaves that is killed itself.
//!
//! | process | file | what it does |
//! |---|---|---|
//! | wok | this one | [`Guardian`]: tells the deadlines, waits for the outcome |
//! | keeper | `keeper` | starts the guardian, and when that is gone kills what was left to it |
//! | guardian | `watchdog` acts, `plan` decides | a process group of its own, all signals blocked, one thread |
//! | stage before the command | `launch` | asks the kernel to be killed with the guardian, then becomes the command |
//! | command | | leads a process group, and is alone in its control group where it can have one |
//!
//! `record` is what travels between them, `tree` finds descendants, `cgroup` makes control groups,
//! `deadman` gives up a guardian that does not act, `family` and `traces` are how wok finds what a
//! dead guardian left, `terminal` hands over the foreground, and `words` is what the helpers say to people.
//!
//! What holds:
//! - [`Guardian::wait`] completes when the command *and every descendant* are gone, also those
//!   that moved to another session: the guardian is their subreaper, kills until `wait` finds no
//!   child, and only then reports. Until then the claim's znode must stay.
//! - What a command leaves in the background ends with it: it would outlive the claim. It gets the
//!   stop signal and, after the stop-timeout, is killed.
//! - A guardian that is killed takes the command's first process with it. The rest become children
//!   of the keeper, which kills them. wok does as well, in case the keeper cannot.
//! - Guardians and keepers that are stopped are continued by wok.
//! - wok and the guardian may both be stopped or killed: the kernel's timer ends a guardian that did
//!   not act, and the keeper kills the command.
//! - If the keeper and the guardian are killed, the command's processes become children of wok, if
//!   wok has called [`adopt_orphans`], and wok kills them; otherwise wok finds them by their control
//!   group, by their process group and by the mark in their environment.
//! - A stop-timeout is at most half of the time up to the first deadline.
//!
//! What does not:
//! - A command that gains other privileges (`sudo`) cannot be killed without them, except through
//!   a control group, so `wait` does not complete.
//! - Nobody is left to act if wok, the guardian and the keeper are all stopped or killed. The
//!   command's first process ends even then: with the guardian, or at the deadline.
//! - If the whole machine freezes, only the fence protects.

mod cgroup;
mod command;
mod deadman;
mod family;
mod keeper;
mod launch;
mod outcome;
mod plan;
mod record;
mod terminal;
mod traces;
mod tree;
mod watchdog;
mod words;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram as StdDatagram;
use std::process::{ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use self::cgroup::Cgroup;
pub use self::command::{Attendance, GuardedCommand};
pub use self::family::adopt_orphans;
use self::family::family;
pub use self::outcome::{KillReason, Outcome};
use self::record::{Order, Received, Report};
use self::terminal::Terminal;
use self::traces::Traces;
use self::watchdog::Arguments;
use crate::clock::Boottime;
use crate::descriptors;

/// How late the guardian's report may be before wok helps; also how often wok looks.
const LOOK: Duration = Duration::from_millis(100);

/// How long wok pauses between its own attempts to kill: at first, and at most. The second is for
/// processes that cannot be killed: to look for them costs a walk through all processes.
const SWEEP: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

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
        keeper::NAME => Some(keeper::main(arguments)),
        keeper::KEEPS => Some(keeper::main_of_keeper(arguments)),
        launch::NAME => Some(launch::main(arguments)),
        _ => None,
    }
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardianError {
    /// The command has no words.
    #[error("no command given: name the program to run while the claim is held")]
    NoCommand,
    /// The guardian process could not be started.
    #[error("cannot start the guardian process: {0}{hint}", hint = hint(.0))]
    Start(#[from] io::Error),
}

/// What may mend it that the guardian cannot be started.
fn hint(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        // The binary is reached by `/proc/self/exe`, whatever has become of its path.
        Some(Errno::NOENT) => ": is `/proc` mounted?",
        Some(Errno::AGAIN) => ": raise the limit of processes (`ulimit -u`)",
        Some(Errno::MFILE) => ": raise the limit of open files (`ulimit -n`)",
        _ => "",
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
    keeper_id: Option<Pid>,
    /// wok's process group, where the command may have the terminal.
    home: Option<Pid>,
    stop_timeout: Duration,
    keeper: tokio::sync::Mutex<Child>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    deadline: Boottime,
    /// By when the command is to be gone because wok said so.
    ends_by: Option<Boottime>,
    unsent: VecDeque<Order>,
    next_look: Instant,
    /// When wok kills by itself again, if the guardian is still overdue, and the pause before that.
    next_help: Boottime,
    pause: Duration,
    traces: Traces,
    /// Who was alive when wok last tried to kill the command itself.
    survivors: Vec<Pid>,
    outcome: Option<Outcome>,
}

impl State {
    fn is_overdue(&self, now: Boottime) -> bool {
        let end = self.ends_by.map_or(self.deadline, |end| end.min(self.deadline));
        end + LOOK <= now
    }
}

impl Guardian {
    /// Starts a keeper, which starts a guardian, which starts the command. The claim ends at
    /// `deadline` if the guardian hears no more.
    ///
    /// That the command itself cannot be executed is an [`Outcome`]. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// Nothing was started.
    pub fn spawn(command: GuardedCommand, deadline: Boottime) -> Result<Self, GuardianError> {
        let GuardedCommand { words, env, stop_signal, stop_timeout, attendance } = command;
        if words.is_empty() {
            return Err(GuardianError::NoCommand);
        }
        // With `SIGCHLD` ignored, as some parents leave it, the kernel would keep no statuses for
        // the guardian. A disposition to ignore is inherited through an exec; a handler is not.
        drop(signal(SignalKind::child())?);

        let (channel, theirs) = record::channel().map_err(io::Error::from)?;
        let channel = UnixDatagram::from_std(StdDatagram::from(channel))?;
        let (stdin, home) = match attendance {
            Attendance::Attended => (io::stdin().as_fd().try_clone_to_owned()?, tree::own_group()),
            Attendance::Unattended => (OwnedFd::from(File::open("/dev/null")?), None),
        };
        record::hand_over(&channel, stdin.as_fd()).map_err(io::Error::from)?;
        let mark = Uuid::new_v4().to_string();
        let session = tree::own_session()?;
        let cgroup = Cgroup::create(&mark);
        let arguments = Arguments {
            deadline,
            stop_timeout,
            stop_signal,
            home,
            mark: mark.clone(),
            cgroup: cgroup.clone(),
            command: words,
        };
        // Not by its path: that may lead to a newer binary, which speaks another protocol.
        let mut command = Command::new("/proc/self/exe");
        command.arg0(keeper::SHOWN).arg(keeper::NAME).args(arguments.write());
        command.envs(descriptors::memo());
        command.envs(env);
        // A group of its own: who kills or stops the whole of wok's job does not reach it.
        command.stdin(Stdio::from(theirs)).process_group(0).kill_on_drop(false);
        let started = family().start(&mut command);
        let keeper = started.inspect_err(|_| {
            if let Some(cgroup) = &cgroup {
                cgroup.remove();
            }
        })?;
        let keeper_id = family::id(&keeper);
        let traces =
            Traces { cgroup, keeper: keeper_id, guardian: None, mark, group: None, session };
        Ok(Self {
            channel,
            keeper_id,
            home,
            stop_timeout,
            keeper: tokio::sync::Mutex::new(keeper),
            state: Mutex::new(State {
                deadline,
                ends_by: None,
                unsent: VecDeque::new(),
                next_look: Instant::now() + LOOK,
                next_help: Boottime::from_nanos(0),
                pause: LOOK,
                traces,
                survivors: Vec::new(),
                outcome: None,
            }),
        })
    }

    /// The claim is now held until `deadline`; called after each heartbeat. The newest counts. Once
    /// the end of the command has begun, it has no effect.
    pub fn extend(&self, deadline: Boottime) {
        let mut state = self.state();
        if state.ends_by.is_some() {
            return;
        }
        state.deadline = deadline;
        drop(state);
        self.order(Order::Deadline(deadline.as_nanos()));
    }

    /// Sends a signal to the command's process group.
    pub fn signal(&self, signal: Signal) {
        self.order(Order::Signal(signal.as_raw()));
    }

    /// Asks the command to end: the stop signal now, the kill after the stop-timeout or at the
    /// deadline, whichever is first. The claim is to be released after [`wait`](Self::wait).
    pub fn stop(&self) {
        self.end_by(Boottime::now() + self.stop_timeout);
        self.order(Order::Stop);
    }

    /// Kills the command now: the claim is lost.
    pub fn kill_now(&self) {
        self.end_by(Boottime::now());
        self.order(Order::Kill);
    }

    /// From then on a guardian that has not reported is overdue.
    fn end_by(&self, end: Boottime) {
        let mut state = self.state();
        state.ends_by = Some(state.ends_by.map_or(end, |before| before.min(end)));
    }

    /// The guardian's process id, for logs; none until [`wait`](Self::wait) has heard of it, and
    /// none once the guardian is dead.
    pub fn id(&self) -> Option<u32> {
        self.state().traces.guardian.and_then(|id| u32::try_from(id.as_raw_pid()).ok())
    }

    /// Which processes of the command were alive when wok itself last tried to kill them, which it
    /// does when the guardian is overdue or dead.
    pub fn survivors(&self) -> Vec<i32> {
        self.state().survivors.iter().map(|pid| pid.as_raw_pid()).collect()
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
            // Kept outside of this future: who calls it again and again must not put it off.
            let next_look = self.state().next_look;
            tokio::select! {
                biased;
                // Losing this branch loses nothing: readiness stays until `hear` finds the channel
                // empty. An error is a runtime that shuts down, which the next look meets again.
                _ = self.channel.readable() => {}
                // A timer only: nothing to lose.
                () = sleep_until(next_look) => self.look(),
            }
        };
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => self.stand_in().await,
        };
        self.state().outcome = Some(outcome);
        self.dismiss_helpers().await;
        outcome
    }

    /// Waits for the ends of guardian and keeper, so that no zombie stays. The command is gone, and
    /// they have nothing left to do.
    async fn dismiss_helpers(&self) {
        let mut keeper = self.keeper.lock().await;
        let status = loop {
            // First, so that who calls again and again does not put it off.
            self.wake_helpers();
            tokio::select! {
                biased;
                // Losing this branch loses nothing: the status stays with the child.
                status = keeper.wait() => break status,
                // A timer only: nothing to lose.
                () = sleep(LOOK) => {}
            }
        };
        family().forget(self.keeper_id);
        let guardian = self.state().traces.guardian;
        if !status.is_ok_and(|status| status.success()) {
            // It was killed, so the guardian's status is left to wok.
            while family().is_about_to_end(guardian) {
                wake(guardian);
                sleep(SWEEP.0).await;
            }
        }
        self.forget_guardian();
        if let Some(cgroup) = &self.state().traces.cgroup {
            cgroup.remove();
        }
    }

    /// It is no more, so its number may be given to another process.
    fn forget_guardian(&self) {
        let guardian = self.state().traces.guardian.take();
        family().forget(guardian);
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
                Ok(Received::Record(Report::Guardian(id))) => {
                    let guardian = Pid::from_raw(id);
                    if let Some(guardian) = guardian {
                        family().welcome(guardian);
                    }
                    self.state().traces.guardian = guardian;
                }
                Ok(Received::Record(Report::Group(group))) => {
                    self.state().traces.group = Some(group);
                }
                Ok(Received::Record(report)) => return Some(report.into()),
                Ok(Received::Closed) => return Some(None),
                Ok(Received::Nothing) | Err(_) => return None,
            }
        }
    }

    /// Looks after the guardian: what it has not been told, whether it was stopped, whether it acts.
    fn look(&self) {
        self.send_unsent();
        self.wake_helpers();
        let now = Boottime::now();
        let mut state = self.state();
        state.next_look = Instant::now() + LOOK;
        if now < state.next_help || !state.is_overdue(now) {
            return;
        }
        // The kill takes long, or the guardian does not act.
        state.pause = (state.pause * 2).min(SWEEP.1);
        state.next_help = now + state.pause;
        drop(state);
        self.kill();
    }

    /// A user who stopped them did not mean the command to outlive its claim.
    fn wake_helpers(&self) {
        // The keeper's status is not taken yet, so the number is still its own. The guardian's is
        // taken when it has ended, which is heard at once.
        wake(self.keeper_id);
        wake(self.state().traces.guardian);
    }

    /// Kills the command in the guardian's place, once; answers whether all of it was gone.
    fn kill(&self) -> bool {
        let traces = self.state().traces.clone();
        // Without a look round nobody can say who is left.
        let Ok(survivors) = traces.kill() else {
            return false;
        };
        let is_gone = survivors.is_empty() && !traces.is_populated();
        self.state().survivors = survivors;
        is_gone
    }

    /// Kills the command of a dead guardian, as the keeper does unless it is dead or stopped itself.
    /// The kernel killed the command's first process already.
    async fn stand_in(&self) -> Outcome {
        self.forget_guardian();
        // Once more after nothing was found: what a look missed was born of one that it killed.
        let (mut clean, mut pause) = (0, SWEEP.0);
        while clean < 2 {
            let before = self.survivors();
            clean = if self.kill() { clean + 1 } else { 0 };
            // Only who stays can wait: others are being born all the time.
            let is_stuck = clean == 0 && self.survivors() == before;
            pause = if is_stuck { (pause * 2).min(SWEEP.1) } else { SWEEP.0 };
            sleep(pause).await;
        }
        let terminal = self.home.and_then(Terminal::open);
        let state = self.state();
        if let (Some(terminal), Some(group)) =
            (terminal, state.traces.group.and_then(Pid::from_raw))
        {
            terminal.take_back(group);
        }
        // The kernel ends a guardian that does not act at the deadline.
        let reason = match state.deadline.has_passed() {
            true => KillReason::Deadline,
            false => KillReason::GuardianDied,
        };
        Outcome::Killed(reason)
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

/// Continues a process that somebody has stopped.
fn wake(process: Option<Pid>) {
    if let Some(id) = process {
        // An error: it has ended.
        let _ = kill_process(id, Signal::CONT);
    }
}
