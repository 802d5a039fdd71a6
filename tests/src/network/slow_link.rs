//! A link whose packets come late or never.
//!
//! It carries whole packets between two TUN devices, so the kernel's own TCP at both ends copes with
//! the loss: how long a lost packet holds up what is behind it is the kernel's doing, not a model's.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tun_rs::{AsyncDevice, DeviceBuilder, SyncDevice};

use super::enter;

/// How slow a link is, in each direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slowness {
    /// How long a packet takes on average.
    pub delay: Duration,
    /// How much longer or shorter a packet may take.
    pub jitter: Duration,
    /// How many packets of a hundred are lost.
    pub lost_percent: u64,
}

/// No packet of a device is longer: its largest unit is 1,500 bytes.
const LONGEST_PACKET: usize = 2_048;

/// Packets under way in one direction; a link that is full loses the next one, as links do.
const UNDER_WAY: usize = 1_024;

/// Carries packets for as long as the value lives.
#[derive(Debug)]
pub(super) struct SlowLink {
    slowness: watch::Sender<Slowness>,
    #[expect(dead_code, reason = "dropping it ends the tasks")]
    ways: JoinSet<()>,
}

impl SlowLink {
    /// Makes a device in each of two namespaces, and carries packets between them.
    pub(super) fn between(ends: [(&str, &str); 2], slowness: Slowness) -> Result<SlowLink> {
        let [one, other] = ends.map(|(namespace, device)| open(namespace, device));
        let (one, other) = (Arc::new(one?), Arc::new(other?));
        let slowness = watch::Sender::new(slowness);
        let mut ways = JoinSet::new();
        ways.spawn(carry(Arc::clone(&one), Arc::clone(&other), slowness.subscribe()));
        ways.spawn(carry(other, one, slowness.subscribe()));
        Ok(SlowLink { slowness, ways })
    }

    /// Is as slow as that for the packets that come from now on.
    pub(super) fn change(&self, slowness: Slowness) {
        self.slowness.send_replace(slowness);
    }
}

/// A TUN device in a namespace.
fn open(namespace: &str, device: &str) -> Result<AsyncDevice> {
    let (namespace, name) = (namespace.to_owned(), device.to_owned());
    // The thread is of this device alone, for it does not come back from the namespace.
    let opened = thread::spawn(move || -> Result<SyncDevice> {
        enter(&namespace)?;
        let device = DeviceBuilder::new().name(name).build_sync();
        device.context("a TUN device, which takes /dev/net/tun and root")
    });
    let device = opened.join().map_err(|_| anyhow!("the thread of {device} failed"))??;
    Ok(AsyncDevice::new(device)?)
}

/// Carries what one device sends to the other, until a device is gone.
async fn carry(from: Arc<AsyncDevice>, to: Arc<AsyncDevice>, slowness: watch::Receiver<Slowness>) {
    let (sender, mut under_way) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let receive = async move {
        let mut last = Instant::now();
        let mut packet = vec![0; LONGEST_PACKET];
        while let Ok(length) = from.recv(&mut packet).await {
            let slowness = *slowness.borrow();
            if random(100) < slowness.lost_percent {
                continue;
            }
            // In order, as on one line: a packet that is held up holds up the next.
            last = last.max(Instant::now() + slowness.of_a_packet());
            let bytes = packet.get(..length).unwrap_or_default().to_vec();
            // A full link loses the packet.
            sender.try_send((last, bytes)).ok();
        }
    };
    let send = async move {
        while let Some((at, bytes)) = under_way.recv().await {
            // tidy: the wait is the fault that the test asked for
            tokio::time::sleep_until(at).await;
            if is_gone(to.send(&bytes).await) {
                return;
            }
        }
    };
    tokio::join!(receive, send);
}

/// Whether a device takes nothing more: it goes with its namespace.
fn is_gone(sent: io::Result<usize>) -> bool {
    sent.is_err_and(|error| error.kind() != io::ErrorKind::InvalidInput)
}

impl Slowness {
    fn of_a_packet(&self) -> Duration {
        let span = self.jitter * 2;
        self.delay.saturating_sub(self.jitter) + span.mul_f64(random(1_000) as f64 / 1_000.0)
    }
}

fn random(below: u64) -> u64 {
    u64::from(uuid::Uuid::new_v4().as_fields().0) % below
}
