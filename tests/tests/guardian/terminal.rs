//! Commands in a terminal: who has the foreground, and who gets it back.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;

use tempfile::TempDir;

use super::{HANG, lines_of};

/// wok in a terminal of its own, as its foreground job; the test types into it.
struct Typist {
    terminal: Child,
    keys: Option<ChildStdin>,
    lines: Receiver<String>,
    _dir: TempDir,
}

impl Typist {
    fn run(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (log, file) = (dir.path().join("log"), dir.path().join("script.sh"));
        File::create(&log).unwrap();
        fs::write(&file, script).unwrap();
        let mut terminal = Command::new("script")
            .args(["-qefc", "sh \"$SCRIPT\"", "/dev/null"])
            .envs([("SCRIPT", &file), ("LOG", &log)])
            .env("GUARDED", env!("CARGO_BIN_EXE_wok-guarded"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines_of(terminal.stdout.take().unwrap());
        let keys = terminal.stdin.take();
        Self { terminal, keys, lines, _dir: dir }
    }

    fn types(&mut self, text: &str) {
        self.keys.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    fn sees(&self, text: &str) {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(HANG) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => seen.push(line),
                Err(_) => panic!("no `{text}` in {seen:#?}"),
            }
        }
    }

    fn ends(mut self) {
        drop(self.keys.take());
        assert!(self.terminal.wait().unwrap().success());
    }
}

impl Drop for Typist {
    fn drop(&mut self) {
        // After a failed check: the terminal hangs up on everything in it.
        let _ = self.terminal.kill();
        let _ = self.terminal.wait();
    }
}

#[test]
fn in_a_terminal_the_command_has_the_foreground_and_gives_it_back() {
    // Fields 5 and 8 of proc(5)'s stat: the process's group, and the terminal's foreground group. A shell
    // that is interrupted just before it reads would run the trap only when somebody has typed a line.
    let mut typist = Typist::run(
        r#"
        foreground() { read _ _ _ _ group _ _ owner _ </proc/$$/stat
            [ "$group" = "$owner" ] && echo "$1 has it" || echo "$1 has it not"; }
        "$GUARDED" 60000 1000 once "$LOG" sh -c '
            read _ _ _ _ group _ _ owner _ </proc/$$/stat
            [ "$group" = "$owner" ] && echo "the command has it"
            read typed; echo "typed: $typed"
            trap "echo interrupted; exit 9" INT
            echo "now interrupt"; while :; do sleep 0.05; done'
        echo "code $?"
        foreground "the shell"
        read typed; echo "then: $typed"
        "#,
    );
    typist.sees("the command has it");
    // Ctrl-Z: it must go on by itself, as nobody could continue it.
    typist.types("\x1a");
    typist.types("something\n");
    typist.sees("typed: something");
    typist.sees("now interrupt");
    typist.types("\x03");
    typist.sees("interrupted");
    typist.sees("outcome Exited(9)");
    typist.sees("code 9");
    typist.sees("the shell has it");
    typist.types("more\n");
    typist.sees("then: more");
    typist.ends();
}

#[test]
fn a_terminal_comes_back_from_a_command_that_was_killed() {
    let mut typist = Typist::run(
        r#"
        "$GUARDED" 1000 100 once "$LOG" sh -c 'trap "" TERM; read typed; read typed'
        echo "code $?"
        read typed; echo "then: $typed"
        "#,
    );
    typist.sees("outcome Killed(Deadline)");
    typist.sees("code 76");
    typist.types("more\n");
    typist.sees("then: more");
    typist.ends();
}

#[test]
fn a_command_that_did_not_start_in_the_foreground_gets_the_terminal_when_it_reads() {
    // In a pipeline the terminal is left to the others at first; a background job has none.
    let mut typist = Typist::run(
        r#"
        guarded() { "$GUARDED" 60000 1000 once "$LOG" "$@"; }
        guarded sh -c 'echo ready; read typed; echo "typed: $typed"' | cat
        set -m
        guarded sh -c 'echo started; read typed; echo "then: $typed"' &
        fg
        "#,
    );
    typist.sees("ready");
    typist.types("something\n");
    typist.sees("typed: something");
    typist.sees("started");
    typist.types("more\n");
    typist.sees("then: more");
    typist.ends();
}

#[test]
fn a_terminal_comes_back_though_the_guardian_was_killed() {
    // The guardian is the command's parent.
    let mut typist = Typist::run(
        r#"
        "$GUARDED" 60000 1000 once "$LOG" sh -c 'kill -KILL $PPID; read typed'
        echo "code $?"
        read typed; echo "then: $typed"
        "#,
    );
    typist.sees("outcome Killed(GuardianDied)");
    typist.sees("code 76");
    typist.types("more\n");
    typist.sees("then: more");
    typist.ends();
}
