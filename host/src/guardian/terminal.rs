//! Who may read from the terminal.
//!
//! A terminal has one foreground process group. Ctrl-C goes to it, and every other group that
//! reads is stopped. The command has a group of its own (so that it can be killed as one), so in
//! an interactive use (`wok lock /x -- bash`) the terminal is handed to it and taken back at the
//! end, as a shell does with a job.

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use nix::sys::signal::{SigSet, SigmaskHow, Signal as NixSignal};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The controlling terminal, if there is one.
pub(super) struct Terminal {
    tty: File,
    /// wok's process group, which the invoking shell made and may put into the foreground.
    home: Pid,
}

impl Terminal {
    /// Opens it. None in scripts, services and anything else without a terminal.
    pub(super) fn open(home: Pid) -> Option<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { tty, home })
    }

    /// Whether the command should start in the foreground: wok is there, and no other program of
    /// a pipeline (which would share its group, and be stopped as soon as it reads) can be.
    pub(super) fn is_for_the_command(&self, stdin: impl AsFd) -> bool {
        rustix::termios::isatty(stdin)
            && std::io::stdout().is_terminal()
            && self.foreground() == Some(self.home)
    }

    /// Makes a group the foreground one.
    pub(super) fn give(&self, group: Pid) {
        without_being_stopped(|| {
            // It fails if the group ended meanwhile; there is then nobody to give it to.
            let _ = tcsetpgrp(&self.tty, group);
        });
    }

    /// Lets a stopped command go on if it should.
    ///
    /// Stopped in the foreground (Ctrl-Z): nobody else would ever continue it, and suspending wok
    /// instead would lose the claim, so it goes on. Stopped because it wanted the terminal from
    /// the background: once wok itself is in the foreground, the terminal is the command's.
    pub(super) fn settle_stopped(&self, group: Pid, signal: i32) {
        let wants_terminal = signal == Signal::TTIN.as_raw() || signal == Signal::TTOU.as_raw();
        let foreground = self.foreground();
        if foreground == Some(self.home) && wants_terminal {
            self.give(group);
        } else if foreground != Some(group) {
            return;
        }
        let _ = kill_process_group(group, Signal::CONT);
    }

    /// Takes the terminal back for wok's group after the command is gone. Not if a third group has
    /// it: the invoking shell took it already, wok being stopped or dead.
    pub(super) fn take_back(&self, group: Pid) {
        let Some(foreground) = self.foreground() else {
            return;
        };
        if foreground == group || test_kill_process_group(foreground).is_err() {
            self.give(self.home);
        }
    }

    fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.tty).ok()
    }
}

/// Setting the foreground group from the background stops the caller by `SIGTTOU` unless that is
/// blocked.
fn without_being_stopped(act: impl FnOnce()) {
    let mut stop = SigSet::empty();
    stop.add(NixSignal::SIGTTOU);
    let Ok(before) = stop.thread_swap_mask(SigmaskHow::SIG_BLOCK) else {
        return;
    };
    act();
    let _ = before.thread_set_mask();
}
