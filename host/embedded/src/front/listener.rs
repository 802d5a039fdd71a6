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

/// How many connections there are, and how many each address has.
#[derive(Debug, Clone)]
pub(super) struct Census {
    /// Zero is no limit.
    most_of_an_address: usize,
    most: usize,
    counts: Arc<Mutex<Counts>>,
    next_id: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
    /// Whether it has been told that there are as many as there can be.
    is_told: bool,
}

impl Census {
    pub(super) fn new(most_of_an_address: usize, most: usize) -> Self {
        let next_id = Arc::new(AtomicU64::new(1));
        Census { most_of_an_address, most, counts: Arc::default(), next_id }
    }

    fn enter(&self, address: IpAddr) -> Option<Place> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.all >= self.most {
            if !std::mem::replace(&mut counts.is_told, true) {
                let connections = counts.all;
                warn!(
                    connections,
                    %address,
                    "more connections are refused: the data needs the open files that are left; \
                     raise their limit (`ulimit -n`)"
                );
            }
            return None;
        }
        let count = counts.by_address.entry(address).or_default();
        if self.most_of_an_address > 0 && *count >= self.most_of_an_address {
            debug!(%address, "too many connections from this address");
            return None;
        }
        *count += 1;
        counts.all += 1;
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
        counts.all = counts.all.saturating_sub(1);
        // Once for each time that they are as many again, and not for each that comes in between.
        counts.is_told &= counts.all > self.census.most / 2;
        if let Some(count) = counts.by_address.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.by_address.remove(&self.address);
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
    let Some(place) = census.enter(address.ip()) else { return };
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
    fn connections_are_limited_in_all_and_for_an_address() {
        let census = Census::new(2, 3);
        let enter = |last: u8| census.enter(IpAddr::from([10, 0, 0, last]));
        let mut places = vec![enter(1).unwrap(), enter(1).unwrap()];
        assert!(enter(1).is_none(), "the address has two");
        places.push(enter(2).unwrap());
        assert!(enter(3).is_none(), "there are three");
        places.remove(0);
        let third = enter(3).unwrap();
        assert!(enter(3).is_none(), "there are three again");
        drop((places, third));
        assert!(enter(1).is_some() && census.counts.lock().unwrap().by_address.is_empty());
    }

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
