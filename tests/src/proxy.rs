//! A TCP proxy between a client and a server that understands ZooKeeper's frames and breaks the
//! connection where it is told to.
//!
//! It runs in a thread of its own, so a test may block, and everything but waiting is a plain call.
//! Connections that do not speak ZooKeeper's protocol (TLS, four-letter words) pass through
//! unread; [`Proxy::cut_all`], [`Proxy::stall`] and [`Proxy::refuse`] work on them too.

mod connection;
mod fault;
mod gate;
mod rate;
mod record;
mod wiring;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

pub use fault::{Action, Cut, Fault, Match};
pub use gate::Direction;
pub use record::{Answer, Seen};

use crate::frames::SessionKey;
use crate::network::Site;
use wiring::{Language, Wiring};

/// A proxy in front of one server; it ends when the value is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: String,
    wiring: Arc<Wiring>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of the server at `upstream` (`host:port`).
    ///
    /// # Errors
    /// If the address cannot be read or no port is free.
    pub fn start(upstream: &str) -> Result<Proxy> {
        Proxy::start_speaking(Language::Frames, None, upstream)
    }

    /// As [`Proxy::start`], in front of a server in a site of a network, which nobody else outside of
    /// that network reaches.
    ///
    /// # Errors
    /// As [`Proxy::start`], or if the site is gone.
    pub fn start_into(site: &Site, upstream: &str) -> Result<Proxy> {
        Proxy::start_speaking(Language::Frames, Some(site.clone()), upstream)
    }

    /// Starts a proxy that passes on whatever is said and understands nothing of it, as between two
    /// servers of an ensemble. [`Proxy::inject`] never strikes.
    ///
    /// # Errors
    /// If the address cannot be read or no port is free.
    pub fn start_unread(upstream: &str) -> Result<Proxy> {
        Proxy::start_speaking(Language::Unknown, None, upstream)
    }

    fn start_speaking(language: Language, site: Option<Site>, upstream: &str) -> Result<Proxy> {
        let upstream: SocketAddr =
            upstream.parse().with_context(|| format!("the address {upstream}"))?;
        let listener = TcpListener::bind("127.0.0.1:0").context("a port for the proxy")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?.to_string();
        let wiring = Arc::new(Wiring::new(upstream, language));
        let (stop, stopped) = oneshot::channel();
        let (told, is_there) = std::sync::mpsc::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name(format!("proxy {address}")).spawn({
            let wiring = Arc::clone(&wiring);
            move || {
                // The listener stays where it is; what is opened from here on is in the site.
                let entered = site.map_or(Ok(()), |site| site.enter());
                let is_lost = entered.is_err();
                // It fails only if nobody waits for the proxy any more.
                if told.send(entered).is_err() || is_lost {
                    return;
                }
                runtime.block_on(async {
                    tokio::select! {
                        () = connection::accept(listener, wiring) => {}
                        // Answered or dropped, both mean that the proxy ends.
                        _ = stopped => {}
                    }
                });
            }
        })?;
        is_there.recv().context("the proxy's thread has ended")??;
        Ok(Proxy { address, wiring, stop: Some(stop), thread: Some(thread) })
    }

    /// `host:port` for clients.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Does `action` to the request that `when` picks, once. Several faults may wait at a time; a
    /// request is struck by the first of them that picks it, and counted by all.
    pub fn inject(&self, when: Match, action: Action) -> Fault {
        self.wiring.inject(when, action)
    }

    /// Undoes every fault: as [`Proxy::release`] and [`Proxy::welcome`], and what has not struck
    /// never will. Connections that were cut stay cut.
    pub fn heal(&self) {
        self.wiring.forget_faults();
        self.release();
        self.welcome();
    }

    /// Lets flow on what was held back.
    pub fn release(&self) {
        self.wiring.release();
    }

    /// Lets new connections in again.
    pub fn welcome(&self) {
        self.wiring.refuse(false);
    }

    /// Holds back all bytes of that direction, on present and new connections, until
    /// [`Proxy::release`]. The connections stay up.
    pub fn stall(&self, direction: Direction) {
        self.wiring.stall(direction);
    }

    /// As [`Proxy::stall`], and of a proxy that [passes all on unread](Proxy::start_unread) nobody
    /// hears either that a peer has closed its connection, as where a link is cut.
    pub fn silence(&self, direction: Direction) {
        self.wiring.silence(direction);
    }

    /// From now on the link carries that many bytes in a second, each way; what is sent faster waits.
    pub fn limit(&self, bytes_per_second: u64) {
        self.wiring.rate.set(bytes_per_second);
    }

    /// Resets new connections as soon as they come, until [`Proxy::welcome`]. Present ones
    /// stay.
    pub fn refuse(&self) {
        self.wiring.refuse(true);
    }

    /// How many connections were refused so far.
    pub fn refused(&self) -> usize {
        self.wiring.refused()
    }

    /// Cuts all present connections, on both sides.
    pub fn cut_all(&self, cut: Cut) {
        self.wiring.cut_all(cut);
    }

    /// How many connections are up.
    pub fn connections(&self) -> usize {
        self.wiring.connections()
    }

    /// All requests so far, in the order of their arrival.
    pub fn log(&self) -> Vec<Seen> {
        self.wiring.log()
    }

    /// The requests so far that `of` picks, whatever its [`Match::nth`].
    pub fn requests(&self, of: &Match) -> Vec<Seen> {
        self.log().into_iter().filter(|seen| of.picks(seen)).collect()
    }

    /// Forgets the requests so far, so that the next ones can be counted.
    pub fn clear_log(&self) {
        self.wiring.clear_log();
    }

    /// The sessions that clients got or kept through this proxy, each once, oldest first.
    pub fn sessions(&self) -> Vec<SessionKey> {
        self.wiring.sessions()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        // It fails only if the thread panicked, which has been printed.
        self.thread.take().map(JoinHandle::join);
    }
}
