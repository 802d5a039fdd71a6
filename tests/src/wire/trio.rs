//! A script on three servers of Apache ZooKeeper and on the three of the simulation.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::connection::{Hello, Lost};
use super::ground::{Apache, At, Real, Simulated, Three};
use super::message::Message;
use super::run::{Ground, Run, Who};
use super::transcript::difference;

/// How many seeds must say what Apache ZooKeeper says.
const SEEDS: u64 = 25;

/// How often a script is played at most until both say the same. Apache's threads overtake one
/// another now and then where an order is promised: a `sync` was seen to be answered before the
/// write of another session that it had to wait for was carried out. What the simulation does
/// otherwise than Apache, it does in every play.
const PLAYS: usize = 3;

/// A run on three servers, and what can be done to them.
#[derive(Debug)]
pub struct Trio {
    run: Run,
    servers: Rc<dyn Three>,
}

impl Deref for Trio {
    type Target = Run;

    fn deref(&self) -> &Run {
        &self.run
    }
}

impl DerefMut for Trio {
    fn deref_mut(&mut self) -> &mut Run {
        &mut self.run
    }
}

impl Trio {
    /// Plays a script on both, a few times at most until both say the same, each time on the servers
    /// that `real` answers.
    ///
    /// # Errors
    /// If they never do: the error shows each play.
    pub fn check(
        mut real: impl FnMut() -> Result<Real>,
        script: impl Fn(&mut Trio) -> Result<()>,
    ) -> Result<()> {
        let mut differences = Vec::new();
        while differences.len() < PLAYS {
            match Trio::compare(real()?, &script) {
                Ok(()) => return Ok(()),
                Err(error) => differences.push(format!("{error:#}")),
            }
        }
        bail!("in none of {PLAYS} plays did both say the same\n{}", differences.join("\n\n"))
    }

    /// Plays a script on both, and on the simulation's servers once for each seed: whatever the
    /// network of the simulation does, it must say what Apache ZooKeeper said.
    fn compare(real: Real, script: &impl Fn(&mut Trio) -> Result<()>) -> Result<()> {
        let (apache, outcome) = play(Rc::new(Apache::new(real)?), script)?;
        for seed in 0..SEEDS {
            let (simulated, outcome) = play(Rc::new(Simulated::new(seed)?), script)?;
            if let Some(difference) = difference(("Apache", &apache), ("simulated", &simulated)) {
                bail!("seed {seed}: {difference}");
            }
            outcome.with_context(|| format!("in simulation, seed {seed}"))?;
        }
        outcome.context("on Apache ZooKeeper")
    }

    /// A new session, on one of the servers. It lasts longer than an election.
    ///
    /// # Errors
    /// If the server does not grant it.
    pub fn connect_at(&mut self, at: At, name: &str) -> Result<Who> {
        let who = self.greet_at(at, name, &Hello { timeout: LONG, ..Hello::default() })?;
        who.with_context(|| format!("{name} was not welcome"))
    }

    /// A connection to one of the servers that begins with that; none if the server closes it
    /// without an answer.
    ///
    /// # Errors
    /// If the server cannot be reached, or answers something else.
    pub fn greet_at(&mut self, at: At, name: &str, hello: &Hello) -> Result<Option<Who>> {
        let line = self.servers.dial_at(at)?;
        self.run.greet_on(line, name, hello)
    }

    /// A session comes to a server, with all that its client knows; none if it is sent away.
    ///
    /// # Errors
    /// As [`Trio::greet_at`].
    pub fn return_at(&mut self, at: At, name: &str, old: Who) -> Result<Option<Who>> {
        let (session, last_zxid) = (Some(self.key(old)?), self.last_zxid(old)?);
        self.greet_at(at, name, &Hello { timeout: LONG, session, last_zxid, ..Hello::default() })
    }

    /// Asks, and loses the request, or its reply; the connection ends with it.
    ///
    /// # Errors
    /// If it does not.
    pub fn lose(&mut self, who: Who, lost: Lost, message: impl Into<Message>) -> Result<()> {
        self.run.lose_next(who, lost)?;
        self.send(who, &[message.into()])?;
        self.end(who)
    }

    /// A follower applies nothing new, and goes on serving its clients.
    ///
    /// # Errors
    /// If there is none.
    pub fn hold(&mut self, at: At) -> Result<()> {
        self.note(format_args!("{at:?} is held"));
        self.servers.hold(at)
    }

    /// A follower catches up.
    ///
    /// # Errors
    /// If there is none.
    pub fn let_go(&mut self, at: At) -> Result<()> {
        self.note(format_args!("{at:?} is let go"));
        self.servers.let_go(at)
    }

    /// From now on a server is called by the part that it has at this moment, whatever becomes of it.
    ///
    /// # Errors
    /// If none leads.
    pub fn keep_parts(&mut self) -> Result<()> {
        self.servers.keep_parts()
    }

    /// Two servers hear nothing of each other, until [`Trio::heal`]. Nobody is told.
    ///
    /// # Errors
    /// If there are none.
    pub fn cut(&mut self, one: At, other: At) -> Result<()> {
        self.cut_way(one, other)?;
        self.cut_way(other, one)
    }

    /// One server hears nothing of another, which may hear it, until [`Trio::heal`]. Nobody is told.
    ///
    /// # Errors
    /// If there are none.
    pub fn cut_way(&mut self, from: At, to: At) -> Result<()> {
        self.note(format_args!("{to:?} hears nothing of {from:?}"));
        self.servers.cut_way(from, to)
    }

    /// All servers hear each other again. Waits until all of them serve.
    ///
    /// # Errors
    /// If one does not.
    pub fn heal(&mut self) -> Result<()> {
        self.note("all is healed");
        self.servers.heal()
    }

    /// Waits until a server that looks for a leader has found one.
    ///
    /// # Errors
    /// If it does not.
    pub fn until_serving(&mut self, at: At) -> Result<()> {
        self.servers.until_serving(at)
    }

    /// Nothing is asked for a while.
    pub fn rest(&mut self, time: Duration) {
        self.servers.rest(time);
    }

    /// The leader is lost and another elected. The lost one comes back as a follower.
    ///
    /// # Errors
    /// If none is elected.
    pub fn change_leader(&mut self) -> Result<()> {
        self.note("the leader is lost");
        self.servers.change_leader()
    }
}

/// The longest that the servers grant.
const LONG: Duration = Duration::from_secs(40);

/// The transcript, and how the script went.
fn play(
    servers: Rc<dyn Three>,
    script: &impl Fn(&mut Trio) -> Result<()>,
) -> Result<(Vec<String>, Result<()>)> {
    let run = Run::start(Rc::clone(&servers) as Rc<dyn Ground>)?;
    let mut trio = Trio { run, servers };
    let outcome = script(&mut trio);
    Ok(trio.run.finish(outcome))
}
