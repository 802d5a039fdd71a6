//! The guardian against commands that do not want to end, and against the death of everyone who
//! should end them. Needs no ZooKeeper.
//!
//! That all of a command is gone is read from a FIFO that each of its processes holds open: it
//! ends when, and only when, none of them is left. No process of these tests outlives its
//! directory: each looks for a file in it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test, in functions shared by tests as well"
)]

mod terminal;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;
use wok::clock::Boottime;

/// Ends a hang, and is no measure: everything here takes milliseconds unless it says otherwise.
const HANG: Duration = Duration::from_secs(30);

/// A deadline that no test lives to see.
const FAR: u64 = 600_000;

/// A leader that ignores the stop signals, a child that does as well, a daemon that also moved to a
/// session of its own and lost its parent, and a stranger that also has nothing in its environment.
/// All append to the log until they are gone.
const STUBBORN_TREE: &str = r#"
trap '' TERM INT HUP
exec 9>"$FIFO"
live() { echo "$1" >&9; while [ -e "$LOG" ]; do echo "$1" >>"$LOG"; sleep 0.02; done; }
(live child) &
(setsid sh -c 'echo daemon >&9; while [ -e "$LOG" ]; do echo daemon >>"$LOG"; sleep 0.02; done' &)
(setsid env -i sh -c 'echo stranger >&9; while [ -e "$0" ]; do echo stranger >>"$0"; sleep 0.02; done' "$LOG" &)
live leader
"#;

/// A daemon that forks and ends, and does so again in its child, for ever: a guardian that looks
/// for the daemon finds that it has moved on.
const COMET: &str = r#"
setsid perl -e '
    while (-e $ENV{LOG}) {
        if (++$generation == 100) { open F, ">", $ENV{FIFO}; print F "on its way\n"; close F }
        fork and exit
    }' &
while [ -e "$LOG" ]; do sleep 0.1; done
"#;

/// A command under guard, with the wok side as a process.
struct Guarded {
    wok: Child,
    lines: Receiver<String>,
    tree: Receiver<String>,
    dir: TempDir,
}

/// When and how the claim ends.
struct Claim {
    deadline: u64,
    stop_timeout: u64,
    mode: &'static str,
}

const HELD: Claim = Claim { deadline: FAR, stop_timeout: 60_000, mode: "once" };

impl Guarded {
    fn run(claim: Claim, script: &str) -> Self {
        Self::run_command(claim, &["sh", "-c", script])
    }

    fn run_command(claim: Claim, command: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let log = dir.path().join("log");
        File::create(&log).unwrap();
        let mut wok = Command::new(env!("CARGO_BIN_EXE_wok-guarded"))
            .args([claim.deadline.to_string(), claim.stop_timeout.to_string()])
            .arg(claim.mode)
            .arg(&log)
            .args(command)
            .envs([("FIFO", &fifo), ("LOG", &log)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // As a shell starts a job.
            .process_group(0)
            .spawn()
            .unwrap();
        let lines = lines_of(wok.stdout.take().unwrap());
        Self { wok, lines, tree: lines_of_file(fifo), dir }
    }

    /// The stubborn tree, all of it alive.
    fn stubborn(claim: Claim) -> Self {
        let mut guarded = Self::run(claim, STUBBORN_TREE);
        let mut alive: Vec<String> = (0..4).map(|_| guarded.hear_from_tree()).collect();
        alive.sort();
        assert_eq!(alive, ["child", "daemon", "leader", "stranger"]);
        guarded.assert_wok_runs();
        guarded
    }

    #[track_caller]
    fn assert_wok_runs(&mut self) {
        assert_eq!(self.wok.try_wait().unwrap(), None, "wok ended");
    }

    #[track_caller]
    fn hear_from_tree(&self) -> String {
        self.tree.recv_timeout(HANG).expect("the command says something")
    }

    /// Waits until no process of the command is left.
    #[track_caller]
    fn tree_is_gone(&self) {
        loop {
            match self.tree.recv_timeout(HANG) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("the command lives on"),
            }
        }
    }

    /// The next line of wok, or of the command's standard output, that starts so; its rest.
    #[track_caller]
    fn hear(&self, start: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(HANG).unwrap_or_else(|_| panic!("no `{start}`"));
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_owned();
            }
        }
    }

    fn guardian(&self) -> Pid {
        Pid::from_raw(self.hear("guardian").parse().unwrap()).unwrap()
    }

    /// The guardian, and its keeper.
    fn helpers(&self) -> (Pid, Pid) {
        let guardian = self.guardian();
        let status = fs::read_to_string(format!("/proc/{guardian}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        (guardian, Pid::from_raw(parent.trim().parse().unwrap()).unwrap())
    }

    fn deadline(&self) -> Boottime {
        Boottime::from_nanos(self.hear("deadline").parse().unwrap())
    }

    fn signal_wok(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.wok), signal).unwrap();
    }

    /// wok's end; checks that nobody of the command did anything after wok was told that they are
    /// gone.
    #[track_caller]
    fn end(mut self, outcome: &str, code: i32) {
        assert_eq!(self.hear("outcome"), outcome);
        self.tree_is_gone();
        assert_eq!(self.wait().code(), Some(code));
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap();
        assert_eq!(log.lines().last(), Some("gone"), "somebody acted after the end");
        assert_eq!(log.matches("gone").count(), 1, "told once");
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        // Its standard output has ended or is about to: nothing keeps it.
        self.wok.wait().unwrap()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Only after a failed check is anything left to kill; the guardian sees to the rest.
        let _ = self.wok.kill();
        let _ = self.wok.wait();
    }
}

fn lines_of(source: impl Read + Send + 'static) -> Receiver<String> {
    let (tx, rx) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            if tx.send(line).is_err() {
                return;
            }
        }
    });
    rx
}

/// As above, of a FIFO, which is only open once a writer came.
fn lines_of_file(path: PathBuf) -> Receiver<String> {
    let (tx, rx) = channel();
    std::thread::spawn(move || {
        let Ok(fifo) = File::open(path) else { return };
        for line in BufReader::new(fifo).lines().map_while(Result::ok) {
            if tx.send(line).is_err() {
                return;
            }
        }
    });
    rx
}

/// A command that never opens the FIFO would leave `tree_is_gone` waiting for ever.
fn script(text: &str) -> String {
    format!("exec 9>\"$FIFO\"\n{text}")
}

#[test]
fn the_commands_own_exit_code_is_passed_on() {
    for code in [0, 1, 76, 255] {
        let guarded = Guarded::run(HELD, &script(&format!("exit {code}")));
        guarded.end(&format!("Exited({code})"), code);
    }
}

#[test]
fn a_commands_death_by_signal_is_passed_on() {
    let guarded = Guarded::run(HELD, &script("kill -SEGV $$"));
    guarded.end("Signaled(11)", 139);
}

#[test]
fn a_command_that_cannot_be_executed_is_told_apart_from_one_that_failed() {
    for (command, outcome, code) in [
        ("wok-no-such-program", "NotStarted(Os { code: 2, kind: NotFound", 127),
        ("/etc/passwd", "NotStarted(Os { code: 13, kind: PermissionDenied", 126),
        ("/", "NotStarted(Os { code: 13, kind: PermissionDenied", 126),
    ] {
        let mut guarded = Guarded::run_command(HELD, &[command]);
        let said = guarded.hear("outcome");
        assert!(said.starts_with(outcome), "{command}: {said}");
        assert_eq!(guarded.wait().code(), Some(code), "{command}");
    }
}

#[test]
fn the_whole_tree_dies_with_wok() {
    let mut guarded = Guarded::stubborn(HELD);
    guarded.signal_wok(Signal::KILL);
    guarded.tree_is_gone();
    guarded.wait();
}

#[test]
fn the_whole_tree_dies_with_the_whole_of_woks_job() {
    let mut guarded = Guarded::stubborn(HELD);
    kill_process_group(Pid::from_child(&guarded.wok), Signal::KILL).unwrap();
    guarded.tree_is_gone();
    guarded.wait();
}

#[test]
fn the_whole_tree_is_gone_at_the_deadline_while_the_whole_of_woks_job_is_stopped() {
    let claim = Claim { deadline: 1_500, stop_timeout: 200, mode: "extend" };
    let guarded = Guarded::stubborn(claim);
    kill_process_group(Pid::from_child(&guarded.wok), Signal::STOP).unwrap();
    guarded.tree_is_gone();
    guarded.signal_wok(Signal::CONT);
    guarded.end("Killed(Deadline)", 76);
}

#[test]
fn the_whole_tree_is_gone_at_the_deadline() {
    let guarded = Guarded::stubborn(Claim { deadline: 1_500, stop_timeout: 200, mode: "once" });
    let deadline = guarded.deadline();
    guarded.tree_is_gone();
    assert!(deadline.has_passed(), "killed before the deadline, though it ignores to be asked");
    guarded.end("Killed(Deadline)", 76);
}

#[test]
fn the_whole_tree_is_gone_at_the_deadline_while_wok_is_stopped() {
    let guarded = Guarded::stubborn(Claim { deadline: 1_500, stop_timeout: 200, mode: "extend" });
    guarded.signal_wok(Signal::STOP);
    guarded.tree_is_gone();
    let stat = fs::read_to_string(format!("/proc/{}/stat", guarded.wok.id())).unwrap();
    assert!(stat.contains(") T "), "wok had no part in it: {stat}");
    guarded.signal_wok(Signal::CONT);
    guarded.end("Killed(Deadline)", 76);
}

#[test]
fn a_command_is_asked_before_the_deadline_and_what_it_answers_is_a_loss_all_the_same() {
    let claim = Claim { deadline: 3_000, stop_timeout: 1_400, mode: "once" };
    let text = "trap 'echo asked; exit 0' TERM\nwhile [ -e \"$LOG\" ]; do sleep 0.02; done";
    let guarded = Guarded::run(claim, &script(text));
    let deadline = guarded.deadline();
    guarded.hear("asked");
    assert!(!deadline.has_passed(), "asked too late");
    guarded.end("Killed(Deadline)", 76);
}

#[test]
fn extending_keeps_the_command_alive_past_its_first_deadline() {
    let claim = Claim { deadline: 1_000, stop_timeout: 100, mode: "extend" };
    let guarded = Guarded::run(claim, &script("sleep 2.5; exit 7"));
    let deadline = guarded.deadline();
    guarded.tree_is_gone();
    assert!(deadline.has_passed());
    guarded.end("Exited(7)", 7);
}

#[test]
fn a_command_whose_time_is_over_is_never_started() {
    let claim = Claim { deadline: 0, stop_timeout: 0, mode: "once" };
    let mut guarded = Guarded::run_command(claim, &["sh", "-c", "echo started"]);
    let said: Vec<String> = guarded.lines.iter().collect();
    assert!(said.contains(&"outcome Killed(Deadline)".to_owned()), "{said:?}");
    assert!(!said.contains(&"started".to_owned()), "{said:?}");
    assert_eq!(guarded.wait().code(), Some(76));
}

#[test]
fn the_whole_tree_dies_with_its_guardian() {
    let guarded = Guarded::stubborn(HELD);
    kill_process(guarded.guardian(), Signal::KILL).unwrap();
    guarded.tree_is_gone();
    guarded.end("Killed(GuardianDied)", 76);
}

#[test]
fn the_whole_tree_dies_with_its_guardian_though_wok_is_stopped() {
    let guarded = Guarded::stubborn(HELD);
    let guardian = guarded.guardian();
    guarded.signal_wok(Signal::STOP);
    kill_process(guardian, Signal::KILL).unwrap();
    guarded.tree_is_gone();
    guarded.signal_wok(Signal::CONT);
    guarded.end("Killed(GuardianDied)", 76);
}

#[test]
fn the_whole_tree_dies_with_its_guardian_whatever_became_of_the_keeper() {
    for signal in [Signal::STOP, Signal::KILL] {
        let mut guarded = Guarded::stubborn(HELD);
        let (guardian, keeper) = guarded.helpers();
        kill_process(keeper, signal).unwrap();
        guarded.assert_wok_runs();
        kill_process(guardian, Signal::KILL).unwrap();
        guarded.tree_is_gone();
        guarded.end("Killed(GuardianDied)", 76);
    }
}

#[test]
fn a_command_is_stopped_in_order_whatever_became_of_the_keeper() {
    let text = "trap 'exit 3' TERM\necho ready >&9\nwhile [ -e \"$LOG\" ]; do sleep 0.02; done";
    for signal in [Signal::STOP, Signal::KILL] {
        let guarded = Guarded::run(HELD, &script(text));
        assert_eq!(guarded.hear_from_tree(), "ready");
        let (_, keeper) = guarded.helpers();
        kill_process(keeper, signal).unwrap();
        guarded.signal_wok(Signal::TERM);
        guarded.end("Exited(3)", 3);
    }
}

#[test]
fn a_guardian_that_is_stopped_is_continued_when_it_is_overdue() {
    let guarded = Guarded::stubborn(Claim { deadline: 1_500, stop_timeout: 200, mode: "once" });
    kill_process(guarded.guardian(), Signal::STOP).unwrap();
    guarded.tree_is_gone();
    guarded.end("Killed(Deadline)", 76);
}

#[test]
fn a_stopped_guardian_does_not_hold_up_an_ordered_stop() {
    let guarded = Guarded::stubborn(Claim { stop_timeout: 200, mode: "extend", ..HELD });
    kill_process(guarded.guardian(), Signal::STOP).unwrap();
    guarded.signal_wok(Signal::TERM);
    guarded.end("Signaled(9)", 137);
}

#[test]
fn who_looks_for_wok_by_name_does_not_find_its_guardian() {
    let guarded = Guarded::stubborn(HELD);
    let (guardian, keeper) = guarded.helpers();
    for helper in [guardian, keeper] {
        let comm = fs::read_to_string(format!("/proc/{helper}/comm")).unwrap();
        let arguments = fs::read_to_string(format!("/proc/{helper}/cmdline")).unwrap();
        assert!(!comm.contains("wok"), "{comm}");
        assert!(!arguments.split('\0').next().unwrap().contains("wok"), "{arguments}");
    }
    guarded.signal_wok(Signal::USR2);
    guarded.end("Killed(Ordered)", 76);
}

/// Whoever looks for processes by the words of a command finds its guardian, and not who is left
/// to act when that is killed.
#[test]
fn a_keeper_does_not_show_the_commands_words() {
    let guarded = Guarded::stubborn(HELD);
    let (guardian, keeper) = guarded.helpers();
    let shows_words = |pid: Pid| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("live leader")
    };
    assert!(shows_words(guardian));
    // It may be about to forget them still.
    let begun = Instant::now();
    while shows_words(keeper) {
        assert!(begun.elapsed() < HANG, "the keeper shows the command's words");
        std::thread::yield_now();
    }
    guarded.signal_wok(Signal::USR2);
    guarded.end("Killed(Ordered)", 76);
}

#[test]
fn signals_that_end_others_end_neither_the_guardian_nor_the_keeper() {
    let mut guarded = Guarded::stubborn(HELD);
    let (guardian, keeper) = guarded.helpers();
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1] {
        kill_process(guardian, signal).unwrap();
        kill_process(keeper, signal).unwrap();
    }
    guarded.assert_wok_runs();
    guarded.signal_wok(Signal::USR2);
    guarded.end("Killed(Ordered)", 76);
}

#[test]
fn an_ordered_stop_lets_the_command_end_itself() {
    let text = "trap 'exit 3' TERM\necho ready >&9\nwhile [ -e \"$LOG\" ]; do sleep 0.02; done";
    let guarded = Guarded::run(HELD, &script(text));
    assert_eq!(guarded.hear_from_tree(), "ready");
    guarded.signal_wok(Signal::TERM);
    guarded.end("Exited(3)", 3);
}

#[test]
fn an_ordered_stop_kills_a_command_that_does_not_end_itself() {
    let guarded = Guarded::stubborn(Claim { stop_timeout: 200, ..HELD });
    guarded.signal_wok(Signal::TERM);
    guarded.end("Signaled(9)", 137);
}

#[test]
fn a_stopped_command_hears_that_it_is_asked_to_end() {
    let text = "trap 'exit 3' TERM\necho $$ >&9\nwhile [ -e \"$LOG\" ]; do sleep 0.02; done";
    let guarded = Guarded::run(HELD, &script(text));
    let leader = Pid::from_raw(guarded.hear_from_tree().parse().unwrap()).unwrap();
    kill_process(leader, Signal::STOP).unwrap();
    guarded.signal_wok(Signal::TERM);
    guarded.end("Exited(3)", 3);
}

#[test]
fn signals_are_forwarded() {
    let text = "trap 'exit 5' USR1\necho ready >&9\nwhile [ -e \"$LOG\" ]; do sleep 0.02; done";
    let guarded = Guarded::run(HELD, &script(text));
    assert_eq!(guarded.hear_from_tree(), "ready");
    guarded.signal_wok(Signal::USR1);
    guarded.end("Exited(5)", 5);
}

#[test]
fn what_a_command_leaves_in_the_background_ends_before_its_end_is_told() {
    let text = r#"
        (setsid sh -c 'trap "" TERM; echo daemon >&9; while [ -e "$LOG" ]; do echo daemon >>"$LOG"; sleep 0.02; done' &)
        read line <"$LOG.go"
        exit 4"#;
    let guarded = Guarded::run(
        Claim { stop_timeout: 200, ..HELD },
        &script(&format!("mkfifo \"$LOG.go\"\n{text}")),
    );
    assert_eq!(guarded.hear_from_tree(), "daemon");
    let go = guarded.dir.path().join("log.go");
    writeln!(File::options().write(true).open(go).unwrap(), "go").unwrap();
    guarded.end("Exited(4)", 4);
}

#[test]
fn what_has_left_the_commands_group_is_asked_to_end_and_nobody_is_asked_twice() {
    // As `timeout 1h job` does: the job has a group of its own, and its shell dies of the stop signal.
    let text = r#"
        sh -c 'trap "echo asked >&9" TERM; echo near >&9; while [ -e "$LOG" ]; do sleep 0.02; done' &
        setsid sh -c 'trap "echo far >&9; exit" TERM; echo apart >&9; while [ -e "$LOG" ]; do sleep 0.02; done' &
        wait"#;
    let guarded = Guarded::run(Claim { stop_timeout: 1_000, ..HELD }, &script(text));
    let mut ready = [guarded.hear_from_tree(), guarded.hear_from_tree()];
    ready.sort();
    assert_eq!(ready, ["apart", "near"]);
    guarded.signal_wok(Signal::TERM);
    let mut asked = [guarded.hear_from_tree(), guarded.hear_from_tree()];
    asked.sort();
    assert_eq!(asked, ["asked", "far"]);
    // What is left of it is killed when its time is over, and says nothing more.
    assert_eq!(guarded.hear("outcome"), "Signaled(15)");
    assert_eq!(guarded.tree.recv_timeout(HANG), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn what_depends_on_a_command_whose_caller_withdraws_waits_for_the_end_of_it() {
    let text = r#"echo $PPID >&9
        while [ -e "$LOG" ]; do echo on >>"$LOG"; sleep 0.02; done"#;
    let guarded = Guarded::run(Claim { mode: "withdrawn", ..HELD }, &script(text));
    let guardian = Pid::from_raw(guarded.hear_from_tree().parse().unwrap()).unwrap();
    // Somebody has to wake it before it kills the command.
    kill_process(guardian, Signal::STOP).unwrap();
    guarded.signal_wok(Signal::TERM);
    guarded.end("Withdrawn", 0);
}

#[test]
fn a_process_that_forks_on_and_on_does_not_escape() {
    let guarded = Guarded::run(HELD, &script(COMET));
    assert_eq!(guarded.hear_from_tree(), "on its way");
    guarded.signal_wok(Signal::USR2);
    guarded.end("Killed(Ordered)", 76);
}

#[test]
fn a_command_inherits_what_wok_did_and_nothing_of_the_guardians() {
    // The file numbers that are open, the blocked and the ignored signals.
    let look = r#"
        for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
            [ -e /proc/$$/fd/$n ] && echo "state fd $n"; done
        while read key value; do case $key in SigBlk:|SigIgn:) echo "state $key $value";; esac
        done </proc/self/status
        echo "fence $WOK_FENCE""#;
    let direct = Command::new("sh").args(["-c", look]).stdin(Stdio::null()).output().unwrap();
    let expected: Vec<String> = String::from_utf8(direct.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("state "))
        .map(str::to_owned)
        .collect();
    let guarded = Guarded::run_command(HELD, &["sh", "-c", look]);
    for want in &expected {
        assert_eq!(&guarded.hear("state"), want, "all of {expected:?}");
    }
    assert_eq!(guarded.hear("fence"), "42");
}
