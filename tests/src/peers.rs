//! Other clients that take part in the same znodes as wok does: Apache Curator and kazoo.
//!
//! A peer is a small program of `tests/interop/` that carries out the commands which it reads, one
//! after another, and answers each of them with one line. So a command that waits in a line keeps
//! those behind it waiting, and a test that needs two contenders starts two peers.
//!
//! ```no_run
//! use wok_tests::{peers::Peer, zookeeper};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let mut holder = Peer::curator(zookeeper::shared().await.address()).await?;
//! let mut waiter = Peer::curator(zookeeper::shared().await.address()).await?;
//! holder.call("lock acquire /some/lock curator").await?;
//! waiter.send("lock acquire /some/lock curator")?;
//! holder.call("lock release").await?;
//! waiter.answer().await?;
//! # Ok(())
//! # }
//! ```

mod curator;

use std::collections::VecDeque;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::outside::kazoo;
use crate::process::{Program, Running, Stream};

/// A client of another making, with a session of its own. It is killed when the value is dropped.
#[derive(Debug)]
pub struct Peer {
    running: Running,
    commands: usize,
    /// The numbers of the commands that no answer was taken for yet.
    unanswered: VecDeque<usize>,
}

impl Peer {
    /// Starts a peer with the recipes of Apache Curator, and waits until it has its session.
    ///
    /// # Errors
    /// If Curator or a Java that compiles is not installed, or the server does not answer.
    pub async fn curator(address: &str) -> Result<Peer> {
        Peer::start(curator::program()?.arg(address)).await
    }

    /// Starts a peer with the recipes of kazoo, and waits until it has its session.
    ///
    /// # Errors
    /// If kazoo cannot be installed, or the server does not answer.
    pub async fn kazoo(address: &str) -> Result<Peer> {
        let python = tokio::task::spawn_blocking(kazoo::install).await??.python();
        let program = Program::new(python).arg(source("kazoo/peer.py"));
        Peer::start(program.arg(address)).await
    }

    async fn start(program: Program) -> Result<Peer> {
        let running = program.start()?;
        running.wait_for_line("ready", |line| line.text == "ready").await?;
        Ok(Peer { running, commands: 0, unanswered: VecDeque::new() })
    }

    /// Sends a command without waiting for its answer.
    ///
    /// # Errors
    /// If the peer has ended.
    pub fn send(&mut self, command: &str) -> Result<()> {
        self.commands += 1;
        self.unanswered.push_back(self.commands);
        self.running.write(&format!("{} {command}\n", self.commands))
    }

    /// Waits for the answer to the first command that none was taken for yet.
    ///
    /// # Errors
    /// If the command failed, or is not answered.
    pub async fn answer(&mut self) -> Result<String> {
        let number = self.unanswered.pop_front().context("every command was answered")?;
        let is_answer = |text: &str| words(text, number).is_some();
        let line = self.running.wait_for_line("an answer", |line| is_answer(&line.text)).await?;
        match words(&line.text, number) {
            Some(("ok", answer)) => Ok(answer.to_owned()),
            _ => bail!("the peer answered {:?}", line.text),
        }
    }

    /// Whether the next answer is there already.
    pub fn has_answered(&self) -> bool {
        let text = self.running.text(Stream::Stdout);
        self.unanswered
            .front()
            .is_some_and(|number| text.lines().any(|line| words(line, *number).is_some()))
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// As [`Peer::send`] and [`Peer::answer`].
    pub async fn call(&mut self, command: &str) -> Result<String> {
        self.send(command)?;
        self.answer().await.with_context(|| format!("the command {command:?}"))
    }

    /// Kills the peer, as a power cut would. Its session is left to expire.
    pub fn kill(mut self) {
        self.running.kill_tree();
    }
}

/// How the command of that number came out, and what was said of it.
fn words(line: &str, number: usize) -> Option<(&str, &str)> {
    let (of, answer) = line.split_once(' ')?;
    let (outcome, said) = answer.split_once(' ').unwrap_or((answer, ""));
    (of == number.to_string()).then_some((outcome, said.trim()))
}

/// A file of `tests/interop/`.
fn source(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("interop").join(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_from_that_to_another_command_and_from_the_rest() {
        assert_eq!(words("1 ok", 1), Some(("ok", "")));
        assert_eq!(words("12 ok 5 true", 12), Some(("ok", "5 true")));
        assert_eq!(words("3 error it broke", 3), Some(("error", "it broke")));
        assert_eq!(words("12 ok", 1), None);
        assert_eq!(words("ready", 1), None);
    }
}
