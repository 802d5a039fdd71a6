//! A slow and lossy way to a server.
//!
//! What is lost on a TCP connection comes later, and all that was sent after it comes behind it: so a
//! lost packet is a pause here, of the time after which its sender sends it again.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How slow a way is, in each direction.
#[derive(Clone, Copy, Debug)]
pub struct Slowness {
    /// How long a packet takes on average.
    pub delay: Duration,
    /// How much longer or shorter it may take.
    pub jitter: Duration,
    /// How many packets of a hundred are lost.
    pub lost_percent: u64,
}

/// After how long a sender first repeats what is lost: TCP waits for a round trip and four times what
/// round trips differ by; then it doubles the time.
const FIRST_REPEAT: Duration = Duration::from_millis(1_200);

/// Packets on their way, each up to 16 KiB.
const ON_THE_WAY: usize = 1_024;

/// A slow way to a server, for as long as the value lives.
#[derive(Debug)]
pub struct SlowLink {
    address: String,
    _connections: JoinSet<()>,
}

impl SlowLink {
    /// A way to the server at `upstream`.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn to(upstream: &str, slowness: Slowness) -> Result<SlowLink> {
        let upstream: SocketAddr = upstream.parse().context("the server's address")?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let mut connections = JoinSet::new();
        connections.spawn(accept(listener, upstream, slowness));
        Ok(SlowLink { address, _connections: connections })
    }

    /// `host:port` for clients.
    pub fn address(&self) -> &str {
        &self.address
    }
}

async fn accept(listener: TcpListener, upstream: SocketAddr, slowness: Slowness) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(async move {
            let Ok(server) = TcpStream::connect(upstream).await else { return };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            // Either end closes both, as a connection that fails does.
            tokio::select! {
                () = carry(from_client, to_server, slowness) => {}
                () = carry(from_server, to_client, slowness) => {}
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    slowness: Slowness,
) {
    let (sender, mut under_way) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
    let send = async {
        let mut last = Instant::now();
        let mut packet = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut packet).await {
            last = last.max(Instant::now() + slowness.of_a_packet());
            let bytes = packet.get(..length).unwrap_or_default().to_vec();
            if sender.send((last, bytes)).await.is_err() {
                return;
            }
        }
        drop(sender);
    };
    let receive = async {
        while let Some((at, bytes)) = under_way.recv().await {
            // tidy: the wait is the fault that the test asked for
            tokio::time::sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(send, receive);
}

impl Slowness {
    fn of_a_packet(&self) -> Duration {
        let span = self.jitter * 2;
        let mut time =
            self.delay.saturating_sub(self.jitter) + span.mul_f64(random(1_000) as f64 / 1_000.0);
        let mut repeat = FIRST_REPEAT;
        while random(100) < self.lost_percent {
            time += repeat;
            repeat *= 2;
        }
        time
    }
}

fn random(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below
}
