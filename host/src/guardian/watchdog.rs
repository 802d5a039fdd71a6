//! The guardian process: one thread that starts the command, knows its deadline, and ends it.
//!
//! It depends on nothing of wok's: not on its runtime, not on its process group (a shell that
//! stops or kills wok's job does not reach it), not on any signal but those nobody can refuse.
//! Every signal is blocked from the first line on.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, set_child_subreaper, wait,
};
use rustix::time::Timespec;

use super::cgroup::Cgroup;
use super::deadman::Deadman;
use super::launch::{self, Place};
use super::plan::{Due, Plan};
use super::record::{self, Order, Received, Report};
use super::terminal::Terminal;
use super::tree;
use super::words::say;
use crate::clock::Boottime;

/// The hidden first argument of this process.
pub(super) const NAME: &str = "__guardian";

/// What `ps` shows, of its program and of its arguments. It does not contain "wok": who stops or
/// kills wok by that name must not do the same to its guardian.
pub(super) const SHOWN: &str = "claim-guardian";

/// How long it ever sleeps: `poll` does not count the time that the machine is suspended, and the
/// terminal's foreground group changes without a word.
const LOOK: Duration = Duration::from_millis(100);

/// How often the tree is swept while it is being killed: at first, and at most. The second is for
/// a process that cannot die yet, stuck in the kernel.
const SWEEP: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// What wok says on the command line; the user's standard input comes through the channel.
pub(super) struct Arguments {
    /// When the claim ends if nothing more is heard.
    pub(super) deadline: Boottime,
    /// How long the command has between the stop signal and the kill.
    pub(super) stop_timeout: Duration,
    /// The signal that asks it to end.
    pub(super) stop_signal: Signal,
    /// wok's process group, if it has a number here and the command may have the terminal.
    pub(super) home: Option<Pid>,
    /// The command's control group, if it can have one.
    pub(super) cgroup: Option<Cgroup>,
    /// What the command's processes are found by if this one is no more.
    pub(super) mark: String,
    /// Program and arguments.
    pub(super) command: Vec<OsString>,
}

impl Arguments {
    /// As the arguments that follow the hidden name.
    pub(super) fn write(self) -> Vec<OsString> {
        let stop_timeout = u64::try_from(self.stop_timeout.as_nanos()).unwrap_or(u64::MAX);
        let words = [
            self.deadline.as_nanos().to_string(),
            stop_timeout.to_string(),
            self.stop_signal.as_raw().to_string(),
            self.home.map_or(0, Pid::as_raw_pid).to_string(),
            self.mark,
        ];
        let cgroup = self.cgroup.map(|it| it.directory().as_os_str().to_owned());
        let words = words.into_iter().map(OsString::from);
        words.chain([cgroup.unwrap_or_default()]).chain(self.command).collect()
    }

    /// As [`write`](Self::write) gave them.
    pub(super) fn read(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut word = || words.next()?.into_string().ok();
        Some(Self {
            deadline: Boottime::from_nanos(word()?.parse().ok()?),
            stop_timeout: Duration::from_nanos(word()?.parse().ok()?),
            stop_signal: Signal::from_named_raw(word()?.parse().ok()?)?,
            home: Pid::from_raw(word()?.parse().ok()?),
            mark: word()?,
            cgroup: words
                .next()
                .filter(|directory| !directory.is_empty())
                .map(|directory| Cgroup::at(PathBuf::from(directory))),
            command: words.collect(),
        })
    }
}

/// Is the guardian until the command and all of its descendants are gone.
pub(super) fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let refused = |reason: &dyn std::fmt::Display| {
        say(format_args!("wok guardian: {reason}"));
        ExitCode::FAILURE
    };
    if let Err(errno) = SigSet::all().thread_block() {
        return refused(&errno);
    }
    let _ = std::fs::write("/proc/self/comm", SHOWN);
    let Some(arguments) = Arguments::read(words) else {
        return refused(&"started by wok itself, never by hand; see `wok hold --help`");
    };
    match Watchdog::start(arguments) {
        Ok(watchdog) => {
            if let Some(mut watchdog) = watchdog {
                watchdog.watch();
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            // Nothing was executed: the stage before the command waits until the rest is done. If nobody
            // listens, nobody waits for the reason either.
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
            let _ = record::tell(io::stdin(), Report::NotStarted(errno.raw_os_error()));
            refused(&error)
        }
    }
}

/// The newest deadline that wok has told, and what else it has ordered. That wok is gone is heard later.
fn newest(channel: &OwnedFd, first: Boottime) -> (Boottime, Vec<Order>) {
    let (mut deadline, mut orders) = (first, Vec::new());
    while let Received::Record(order) = record::hear(channel) {
        match order {
            Order::Deadline(nanos) => deadline = Boottime::from_nanos(nanos),
            order => orders.push(order),
        }
    }
    (deadline, orders)
}

/// What is known of the command's first process.
enum Leader {
    Running,
    Stopped(i32),
    Ended(WaitStatus),
}

struct Watchdog {
    /// To and from wok; none once wok is gone.
    channel: Option<OwnedFd>,
    /// From the stage before the command; none once that has become the command, or failed.
    launching: Option<OwnedFd>,
    child_signals: SignalFd,
    terminal: Option<Terminal>,
    cgroup: Option<Cgroup>,
    deadman: Deadman,
    /// The command's group, and the pid of its leader.
    group: Pid,
    leader: Leader,
    not_started: Option<i32>,
    plan: Plan,
    stop_signal: Signal,
    sweep: Duration,
}

impl Watchdog {
    /// Starts the command; none if its time is over before it began.
    fn start(arguments: Arguments) -> io::Result<Option<Self>> {
        let channel = io::stdin().as_fd().try_clone_to_owned()?;
        record::tell(&channel, Report::Guardian(getpid().as_raw_pid()))?;
        let stdin = record::take_over(&channel)?;
        set_child_subreaper(Some(getpid()))?;
        // Without /proc no descendant would ever be found: better not to start.
        tree::descendants()?;

        let mut child_signal = SigSet::empty();
        child_signal.add(NixSignal::SIGCHLD);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let child_signals = SignalFd::with_flags(&child_signal, flags)?;

        let terminal = arguments.home.and_then(Terminal::open);
        let place = match &terminal {
            Some(terminal) if terminal.is_for_the_command(&stdin) => Place::Foreground,
            _ => Place::Background,
        };
        // This process may have waited long for its turn, and wok has said more meanwhile.
        let (deadline, orders) = newest(&channel, arguments.deadline);
        if deadline.has_passed() {
            record::tell(&channel, Report::DeadlinePassed)?;
            return Ok(None);
        }
        // Before there is a command that this process could leave behind.
        let mut deadman = Deadman::new().inspect_err(|_| {
            let hint = "no timer: is the limit of pending signals (`ulimit -i`) too low?";
            say(format_args!("wok guardian: {hint}"));
        })?;
        deadman.wind_up(deadline);
        let plan = Plan::new(Boottime::now(), deadline, arguments.stop_timeout);
        let launching = match launch::start(&arguments.command, &arguments.mark, place) {
            Ok(launching) => launching,
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
                record::tell(&channel, Report::NotStarted(errno.raw_os_error()))?;
                return Ok(None);
            }
        };
        let group = launching.leader;
        // Where the group does not take it, the command is guarded without one.
        let cgroup = arguments.cgroup.filter(|it| it.add(group.as_raw_pid()).is_ok());
        // Before the command does anything: wok must be able to end it without the guardian.
        record::tell(&channel, Report::Group(group.as_raw_pid()))?;
        let mut watchdog = Self {
            channel: Some(channel),
            launching: Some(launching.channel),
            child_signals,
            terminal,
            cgroup,
            deadman,
            group,
            leader: Leader::Running,
            not_started: None,
            plan,
            stop_signal: arguments.stop_signal,
            sweep: SWEEP.0,
        };
        orders.into_iter().for_each(|order| watchdog.obey(order));
        watchdog.hear_orders();
        // What is to be killed at once does not begin.
        if let Some(launching) = &watchdog.launching
            && !watchdog.plan.is_killing()
        {
            launch::go_on(launching, stdin)?;
        }
        Ok(Some(watchdog))
    }

    /// Returns when nothing is left of the command.
    fn watch(&mut self) {
        loop {
            self.hear_orders();
            self.hear_launch();
            let children = self.reap();
            // Decided before the end is told: it may come too late to count as the command's own.
            let due = self.plan.due(Boottime::now(), self.leader_has_ended());
            self.deadman.wind_up(self.plan.next_sign_of_life(Boottime::now()));
            if children == Children::Gone {
                return self.finish();
            }
            match due {
                Due::Nothing => self.settle_stopped(),
                Due::Stop => {
                    self.signal_group(self.stop_signal);
                    // A stopped command could not hear it.
                    self.signal_group(Signal::CONT);
                }
                // Its leader ended without them, so each is told by itself.
                Due::StopTheRest => {
                    tree::signal_descendants(self.stop_signal);
                    tree::signal_descendants(Signal::CONT);
                }
                Due::StopThoseApart => {
                    tree::signal_those_apart(self.group, self.stop_signal);
                    tree::signal_those_apart(self.group, Signal::CONT);
                }
                Due::Kill => self.kill(),
            }
            self.sleep();
        }
    }

    fn hear_orders(&mut self) {
        while let Some(channel) = &self.channel {
            match record::hear(channel) {
                Received::Record(order) => self.obey(order),
                Received::Nothing => return,
                // At once, though the deadline may be far: this end cannot know whether wok died,
                // or let go and is about to delete the claim's znode.
                Received::Closed => {
                    self.channel = None;
                    self.plan.kill(self.leader_has_ended());
                }
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Deadline(nanos) => self.plan.extend(Boottime::from_nanos(nanos)),
            Order::Signal(signal) => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    self.signal_group(signal);
                }
            }
            Order::Stop => self.plan.stop(),
            Order::Kill => self.plan.kill(self.leader_has_ended()),
        }
    }

    fn hear_launch(&mut self) {
        let Some(launching) = &self.launching else {
            return;
        };
        match record::hear(launching) {
            Received::Record(Report::NotStarted(errno)) => self.not_started = Some(errno),
            Received::Nothing => return,
            Received::Record(_) | Received::Closed => {}
        }
        self.launching = None;
    }

    /// Takes the statuses of all children that have one: the command's, and its orphans'.
    fn reap(&mut self) -> Children {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
        loop {
            match wait(options) {
                Ok(Some((pid, status))) if pid == self.group => {
                    self.leader = match status.stopping_signal() {
                        Some(signal) => Leader::Stopped(signal),
                        None if status.continued() => Leader::Running,
                        None => Leader::Ended(status),
                    };
                }
                Ok(Some(_)) => self.sweep = SWEEP.0,
                Ok(None) => return Children::Left,
                Err(Errno::INTR) => {}
                // The only proof: a descendant that lost its parent would be a child of this one.
                Err(_) => return Children::Gone,
            }
        }
    }

    fn leader_has_ended(&self) -> bool {
        matches!(self.leader, Leader::Ended(_))
    }

    fn settle_stopped(&self) {
        if let (Leader::Stopped(signal), Some(terminal)) = (&self.leader, &self.terminal) {
            terminal.settle_stopped(self.group, *signal);
        }
    }

    fn signal_group(&self, signal: Signal) {
        // Once the leader's status is taken, its number may be given to a stranger.
        if self.leader_has_ended() {
            return;
        }
        let _ = kill_process_group(self.group, signal);
    }

    fn kill(&mut self) {
        // The group first: that is one atomic step, so none of it forks its way out.
        self.signal_group(Signal::KILL);
        tree::kill_descendants();
        // Last: the kernel may have this wait for other control groups that are made or removed just now.
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        self.sweep = (self.sweep * 2).min(SWEEP.1);
    }

    fn sleep(&self) {
        let longest = if self.plan.is_killing() { self.sweep } else { LOOK };
        let pause = self.plan.next(Boottime::now()).map_or(longest, |next| next.min(longest));
        let mut sources = vec![PollFd::new(&self.child_signals, PollFlags::IN)];
        for channel in [&self.channel, &self.launching].into_iter().flatten() {
            sources.push(PollFd::new(channel, PollFlags::IN));
        }
        let pause = Timespec::try_from(pause).unwrap_or_default();
        // An interruption is a reason to look round, like any other.
        let _ = poll(&mut sources, Some(&pause));
        while let Ok(Some(_)) = self.child_signals.read_signal() {}
    }

    fn finish(&mut self) {
        // What the launch said before it exited may have come after the last look.
        self.hear_launch();
        if let Some(terminal) = &self.terminal {
            terminal.take_back(self.group);
        }
        let own = match &self.leader {
            Leader::Ended(status) => status
                .exit_status()
                .map(Report::Exited)
                .or_else(|| status.terminating_signal().map(Report::Signaled)),
            Leader::Running | Leader::Stopped(_) => None,
        };
        let report = self.not_started.map(Report::NotStarted);
        // A status that nobody could read is no reason to call a killed command a success.
        self.tell(report.or(self.plan.verdict()).or(own).unwrap_or(Report::Killed));
    }

    fn tell(&self, report: Report) {
        if let Some(channel) = &self.channel {
            // Three records in a lifetime fit; if wok is gone, there is nobody to tell.
            let _ = record::tell(channel, report);
        }
    }
}

#[derive(PartialEq, Eq)]
enum Children {
    Left,
    Gone,
}
