//! Children that cannot outlive the test process.
//!
//! The kernel kills them when the *thread* that started them ends (`PR_SET_PDEATHSIG`), and a
//! test's thread ends with the test. So one thread, which lives as long as the process, starts them
//! all. `setpriv` asks for the signal and then becomes the program: no `unsafe` is needed here, and
//! the child's process id is the program's. `env` before that undoes what this process may have been
//! started to ignore, as by `nohup`: the child would ignore the same.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;

use anyhow::{Context, Result};

/// A command that runs `program` and is killed when this process ends.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,QUIT", "setpriv", "--pdeathsig", "KILL", "--"]);
    command.arg(program);
    command
}

/// Starts a command made by [`command`].
///
/// # Errors
/// If it cannot be started.
pub fn start(command: Command) -> Result<Child> {
    let (reply, answer) = mpsc::channel();
    launcher()
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send(Order { command, reply })
        .context("the launching thread is gone")?;
    answer
        .recv()
        .context("the launching thread is gone")?
        .context("start a program by `env`, of the package coreutils")
}

struct Order {
    command: Command,
    reply: mpsc::Sender<io::Result<Child>>,
}

fn launcher() -> &'static Mutex<mpsc::Sender<Order>> {
    static LAUNCHER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    LAUNCHER.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        let launch = move || {
            for mut order in inbox {
                // The caller may have failed meanwhile; the child then ends with this process.
                order.reply.send(order.command.spawn()).ok();
            }
        };
        // Without the thread every launch fails, and says that it is gone.
        thread::Builder::new().name("launcher".into()).spawn(launch).ok();
        Mutex::new(orders)
    })
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let mut cat = thread::spawn(|| {
            let mut cat = command("cat");
            cat.stdin(Stdio::piped()).stdout(Stdio::piped());
            start(cat).unwrap()
        })
        .join()
        .unwrap();

        // The thread is gone; `cat` still answers.
        use std::io::{Read, Write};
        let mut stdin = cat.stdin.take().unwrap();
        stdin.write_all(b"still here").unwrap();
        drop(stdin);
        let mut echoed = String::new();
        cat.stdout.take().unwrap().read_to_string(&mut echoed).unwrap();
        assert_eq!(echoed, "still here");
        assert!(cat.wait().unwrap().success());
    }
}
