//! Accepting connections.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tracing::{debug, warn};

use super::connection::{self, Wires};
use super::tasks::Tasks;

/// How long to wait when no connection can be accepted, for want of file descriptors mostly.
const PAUSE: Duration = Duration::from_millis(100);

/// How many connections each address has.
#[derive(Debug, Clone)]
pub(super) struct Census {
    max: usize,
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
    next_id: Arc<AtomicU64>,
}

impl Census {
    pub(super) fn new(max: usize) -> Self {
        Census { max, counts: Arc::default(), next_id: Arc::new(AtomicU64::new(1)) }
    }

    fn enter(&self, address: IpAddr) -> Option<Place> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if self.max > 0 && *count >= self.max {
            return None;
        }
        *count += 1;
        Some(Place { address, census: self.clone() })
    }
}

/// One connection's place in the census, given up when dropped.
struct Place {
    address: IpAddr,
    census: Census,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.census.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// Accepts connections until the server ends.
pub(super) async fn run(listener: TcpListener, census: Census, wires: Wires, tasks: Tasks) {
    loop {
        // Nothing is lost with either branch: a connection not accepted here is refused.
        let accepted = tokio::select! {
            () = wires.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                serve(stream, canonical(address), &census, &wires, &tasks);
            }
            Err(error) => {
                warn!(%error, "no connection can be accepted");
                tokio::select! {
                    () = wires.stop.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
}

/// A client that comes by IPv4 to a socket of IPv6 is the same as one that does not.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn serve(
    stream: tokio::net::TcpStream,
    address: SocketAddr,
    census: &Census,
    wires: &Wires,
    tasks: &Tasks,
) {
    let Some(place) = census.enter(address.ip()) else {
        debug!(%address, "too many connections from this address");
        return;
    };
    let id = census.next_id.fetch_add(1, Ordering::Relaxed);
    let wires = wires.clone();
    tasks.start(async move {
        connection::run(id, stream, address, wires).await;
        drop(place);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ipv4_is_one_whatever_socket_it_comes_to() {
        let check = |address: &str, expected: &str| {
            assert_eq!(canonical(address.parse().unwrap()).to_string(), expected);
        };
        check("[::ffff:10.1.2.3]:4", "10.1.2.3:4");
        check("10.1.2.3:4", "10.1.2.3:4");
        check("[::1]:4", "[::1]:4");
    }
}
