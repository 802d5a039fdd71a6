//! The two servers that are compared.

use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use wok_embedded::{EmbeddedZooKeeper, ServerOptions, ServerVersion};

use super::run::Run;
use super::transcript::difference;
use crate::zookeeper::{Options, Server};

const TICK: Duration = Duration::from_millis(500);
/// How often both look for containers and nodes whose time is over.
const SWEEP: Duration = Duration::from_millis(500);
/// `super` with the password `test`.
const SUPER: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";

/// Whether nodes may have a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendedTypes {
    /// They may.
    On,
    /// They may not, which is the default of Apache ZooKeeper.
    Off,
}

/// Apache ZooKeeper and the embedded server, set up alike. Scripts run on both one by one, so that
/// zxids are a script's own.
#[derive(Debug)]
pub struct Pair {
    apache: Server,
    embedded: EmbeddedZooKeeper,
    turn: Mutex<()>,
}

impl Pair {
    /// Starts both.
    ///
    /// # Errors
    /// If one does not start.
    pub fn start(extended_types: ExtendedTypes) -> Result<Pair> {
        let is_extended = extended_types == ExtendedTypes::On;
        let options = Options::default()
            .tick(TICK)
            .setting("extendedTypesEnabled", if is_extended { "true" } else { "false" })
            .property("zookeeper.enforceQuota", "true")
            .property("znode.container.checkIntervalMs", &SWEEP.as_millis().to_string())
            .property("zookeeper.DigestAuthenticationProvider.superDigest", SUPER);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let apache = runtime.block_on(Server::start(options))?;
        let embedded = EmbeddedZooKeeper::start_with(ServerOptions {
            tick_time: TICK,
            max_session_timeout: None,
            extended_types: is_extended,
            enforce_quota: true,
            container_check_interval: SWEEP,
            super_digest: Some(SUPER.to_owned()),
            version: ServerVersion::V3_8,
            ..ServerOptions::for_tests()
        })?;
        Ok(Pair { apache, embedded, turn: Mutex::new(()) })
    }

    /// Runs a script on both.
    ///
    /// # Errors
    /// If the script fails on either, or the transcripts differ: the error shows both.
    pub fn compare(&self, script: impl Fn(&mut Run) -> Result<()> + Sync) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let run = |address: &str| {
            let mut run = Run::start(Rc::new(address.to_owned()))?;
            let outcome = script(&mut run);
            anyhow::Ok(run.finish(outcome))
        };
        let (apache, embedded) = thread::scope(|scope| {
            let apache = scope.spawn(|| run(self.apache.address()));
            let embedded = run(self.embedded.connect_string());
            (apache.join(), embedded)
        });
        let apache = apache.map_err(|_| anyhow!("the script panicked"))?;
        let ((apache, apache_outcome), (embedded, outcome)) = (apache?, embedded?);
        if let Some(difference) = difference(("Apache", &apache), ("embedded", &embedded)) {
            bail!("{difference}");
        }
        outcome.context("on the embedded server")?;
        apache_outcome.context("on Apache ZooKeeper")
    }
}
