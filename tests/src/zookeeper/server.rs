//! One ZooKeeper server process.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::options::Options;
use super::site::{Membership, Site};
use crate::patience::{eventually, within};
use crate::process::{self, Signal};
use crate::{launch, network};

/// How often a standalone server is started anew because another process took its port.
const STARTS: usize = 5;

/// While it starts, a server may accept a connection and never answer on it.
const ANSWER: Duration = Duration::from_secs(1);

/// What a standalone server logs first when its ports are open.
const AFTER_TLS: &str = "ContainerManager - Using";

/// A ZooKeeper server process, killed when the value is dropped or the test process ends.
#[derive(Debug)]
pub struct Server {
    site: Site,
    address: String,
    child: Mutex<Option<Child>>,
}

impl Server {
    /// Starts a standalone server and waits until it serves.
    ///
    /// # Errors
    /// If ZooKeeper or Java is not installed, or it does not start; the error ends with its log.
    ///
    /// # Cancellation
    /// Kills the server.
    pub async fn start(options: Options) -> Result<Server> {
        for _ in 1..STARTS {
            let server = Server::spawn(options.clone(), None)?;
            match server.ready().await {
                Err(_) if server.lost_its_port() => continue,
                outcome => return outcome.map(|()| server),
            }
        }
        let server = Server::spawn(options, None)?;
        server.ready().await.map(|()| server)
    }

    pub(super) fn spawn(options: Options, membership: Option<Membership>) -> Result<Server> {
        let site = Site::new(options, membership)?;
        let child = launch::start(site.command()?)?;
        let address = format!("{}:{}", site.host(), site.client_port);
        Ok(Server { site, address, child: Mutex::new(Some(child)) })
    }

    /// `host:port` for clients without TLS.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The site of a network that it runs in, if it does in one.
    pub fn home(&self) -> Option<&network::Site> {
        self.site.home()
    }

    /// `host:port` for clients with TLS, if the options asked for it.
    pub fn secure_address(&self) -> Option<String> {
        self.site.secure_port.map(|port| format!("{}:{port}", self.site.host()))
    }

    /// Sends a four-letter word.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn four_letter(&self, word: &str) -> Result<String> {
        let answer = async {
            let mut stream = match self.site.home() {
                None => TcpStream::connect(&self.address).await?,
                Some(home) => home.connect(self.address.parse()?).await?,
            };
            stream.write_all(word.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            anyhow::Ok(answer)
        };
        within(&format!("the answer to `{word}`"), answer).await?
    }

    /// The sessions that watch the znode, by the server's own word.
    ///
    /// # Errors
    /// If the server does not answer, or answers what is no list of sessions.
    pub async fn watchers(&self, path: &str) -> Result<Vec<i64>> {
        let by_path = self.four_letter("wchp").await?;
        let watched = by_path.lines().skip_while(|line| *line != path).skip(1);
        let sessions = watched.map_while(|line| line.strip_prefix("\t0x"));
        let session = |hex: &str| u64::from_str_radix(hex, 16).map(u64::cast_signed);
        sessions.map(|hex| session(hex).with_context(|| format!("the session {hex:?}"))).collect()
    }

    /// The server's own counters, by name.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn mntr(&self) -> Result<HashMap<String, String>> {
        let text = self.four_letter("mntr").await?;
        let pair = |line: &str| {
            line.split_once('\t').map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    /// One of the server's own counters.
    ///
    /// # Errors
    /// If the server does not answer, or has no such number.
    pub async fn counter(&self, name: &str) -> Result<f64> {
        let counters = self.mntr().await?;
        let value = counters.get(name).with_context(|| format!("`mntr` has no {name}"))?;
        value.parse().with_context(|| format!("`mntr` says {name} = {value}"))
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.site.log_path()).unwrap_or_default()
    }

    /// Asks the server to end, and waits until it has.
    ///
    /// # Errors
    /// If it does not run, or does not end.
    pub async fn stop(&mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        eventually("the server to stop", async || Ok(self.has_ended().then_some(()))).await?;
        self.kill();
        Ok(())
    }

    /// Kills the server, as a power cut would. Nothing happens if it does not run.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child().take() {
            // Both fail only if it has ended already.
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// Starts the server again after [`Server::stop`] or [`Server::kill`], on the same ports and
    /// data, and waits until it serves.
    ///
    /// # Errors
    /// If it still runs, or does not start.
    pub async fn restart(&mut self) -> Result<()> {
        self.respawn()?;
        self.ready().await
    }

    pub(super) fn respawn(&mut self) -> Result<()> {
        let mut child = self.child();
        anyhow::ensure!(child.is_none(), "the server still runs: stop or kill it first");
        *child = Some(launch::start(self.site.command()?)?);
        Ok(())
    }

    /// Where its data is.
    pub(super) fn data(&self) -> PathBuf {
        self.site.data()
    }

    /// Stops the process where it stands: its connections stay open and silent.
    ///
    /// # Errors
    /// If it does not run.
    pub async fn pause(&self) -> Result<()> {
        process::pause(self.pid()?).await.context("stop the server")
    }

    /// Lets a paused process go on.
    ///
    /// # Errors
    /// If it does not run.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// The server's process id.
    ///
    /// # Errors
    /// If it does not run.
    pub fn pid(&self) -> Result<u32> {
        self.child().as_ref().map(Child::id).context("the server does not run")
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        // The child is held, so its id cannot become another's.
        let child = self.child();
        let child = child.as_ref().context("the server does not run")?;
        process::signal(child.id(), signal).context("signal the server")
    }

    /// Waits until the server serves clients.
    pub(super) async fn ready(&self) -> Result<()> {
        let data = format!("dataDir={}/", self.data().display());
        let serves = eventually("ZooKeeper to serve", async || {
            if self.has_ended() {
                bail!("ZooKeeper has ended");
            }
            let said = async |word| {
                let answer = tokio::time::timeout(ANSWER, self.four_letter(word)).await;
                answer.ok().and_then(Result::ok).unwrap_or_default()
            };
            // The second question tells this server from a stranger who took its port.
            let serves =
                said("srvr").await.contains("Mode: ") && said("conf").await.contains(&data);
            Ok((serves && self.serves_securely()).then_some(()))
        });
        serves.await.map_err(|error| anyhow!("{error:#}\nits log ends:\n{}", self.log_tail()))
    }

    /// A server without TLS does. The port for TLS is opened after the plain one, and turns clients
    /// away for a moment; what is logged next says that this is over.
    fn serves_securely(&self) -> bool {
        let log = self.log();
        let (began, opened) = (log.rfind("Server environment:java.home"), log.rfind(AFTER_TLS));
        self.site.secure_port.is_none() || opened > began
    }

    fn has_ended(&self) -> bool {
        match self.child().as_mut() {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => true,
        }
    }

    pub(super) fn lost_its_port(&self) -> bool {
        self.has_ended() && self.log().contains("java.net.BindException")
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        lines.get(lines.len().saturating_sub(40)..).unwrap_or_default().join("\n")
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What the server saw is worth reading only when the test did not like it.
        if std::thread::panicking() {
            eprintln!("log of ZooKeeper at {} ends:\n{}", self.address, self.log_tail());
        }
        self.kill();
    }
}
