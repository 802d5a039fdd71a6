//! Three servers in three sites, a fourth site that only a slow link leads to, and what is done to
//! the links.

use std::time::Duration;

use crate::network::{Network, Site, Slowness};
use crate::patience::{PATIENCE, eventually};
use crate::zookeeper::{Ensemble, Options};
use anyhow::{Context, Result};

/// As servers are set up by default; what they believe of each other is counted in these.
const TICK: Duration = Duration::from_secs(2);
const SYNC_LIMIT: u32 = 5;

/// What a round takes besides: programs start, and servers find together again.
const AROUND: Duration = Duration::from_secs(8);

/// How long a link that flaps, or is slow, is used.
const MINUTE: Duration = Duration::from_secs(60);

/// The longest pause of a server whose leader is not to give it up.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Long enough for a server that goes on to answer what has come meanwhile, and shorter than the time
/// between two pings of the leader.
const A_MOMENT: Duration = Duration::from_millis(50);

/// How many sites have a server.
const SERVERS: usize = 3;

/// The site without a server.
const FAR: usize = SERVERS;

/// How slow the link of that site can be.
const SLOW: Slowness = Slowness {
    delay: Duration::from_millis(300),
    jitter: Duration::from_millis(200),
    lost_percent: 5,
};

/// Three servers in three sites, and a site at the end of a link that can be slow.
#[derive(Debug)]
pub struct Ground {
    network: Network,
    ensemble: Ensemble,
}

/// What is done to the links while a host at one server holds, and another waits at the two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The holder's host, with a follower, from the two others.
    WithFollower,
    /// As that, a moment after the follower has been paused for a while, so that the heartbeats of
    /// that while are answered and the leader is told of none.
    AfterAPause,
    /// The holder's host, with the leader, from the two others.
    WithLeader,
    /// A follower from the leader. The holder's host is at that follower, and reaches no other.
    FollowerFromLeader,
    /// As that, but the leader still hears the follower.
    LeaderUnheard,
    /// As that, but the follower still hears the leader.
    FollowerUnheard,
    /// The holder's host with a follower, every other second for a minute.
    Flapping,
    /// Nothing is cut off, but the link of the holder's host is slow and loses packets.
    Slow,
    /// As that, but the link becomes slow when the host holds, and TCP has yet to learn how slow.
    Slowing,
}

impl Cut {
    /// All of them.
    pub const ALL: [Cut; 9] = [
        Cut::WithFollower,
        Cut::AfterAPause,
        Cut::WithLeader,
        Cut::FollowerFromLeader,
        Cut::LeaderUnheard,
        Cut::FollowerUnheard,
        Cut::Flapping,
        Cut::Slow,
        Cut::Slowing,
    ];

    /// Whether it can be played with a session timeout of this length: on a slow link a shorter session
    /// is hardly ever believed in for long enough to claim anything.
    pub fn is_playable(self, timeout: Duration) -> bool {
        self != Cut::Slow || timeout >= Duration::from_secs(10)
    }

    /// Whether the holder is certain to lose its claim.
    pub(super) fn is_lasting(self) -> bool {
        !matches!(self, Cut::Flapping | Cut::Slow | Cut::Slowing)
    }

    /// Whether the holder is to keep its claim.
    pub(super) fn is_survived(self) -> bool {
        self == Cut::Slow
    }

    /// How long a round takes on a machine that does nothing else, roughly.
    pub fn takes(self, timeout: Duration) -> Duration {
        match self {
            // After it the leader's followers find out, and a session begins anew.
            Cut::WithLeader => TICK * SYNC_LIMIT + timeout + AROUND,
            Cut::Flapping | Cut::Slow | Cut::Slowing => MINUTE + AROUND,
            _ => timeout + AROUND,
        }
    }
}

/// Where a round is played.
pub(super) struct Places {
    /// The server that the holder's host uses.
    holder: usize,
    /// The site that the holder's host is in.
    host: usize,
    leader: usize,
}

impl Ground {
    /// Starts the servers.
    ///
    /// # Errors
    /// If this machine lets nobody make network namespaces or TUN devices.
    pub async fn new() -> Result<Ground> {
        let mut network = Network::new(4)?;
        network.slow_down(FAR, Slowness::default())?;
        let options = Options::default().tick(TICK).setting("syncLimit", &SYNC_LIMIT.to_string());
        let ensemble = Ensemble::start_apart(&network.sites()[..SERVERS], options).await?;
        Ok(Ground { network, ensemble })
    }

    /// Where a round of that cut is played, and the links as they are before the cut.
    pub(super) async fn places(&self, cut: Cut) -> Result<Places> {
        let leader = self.ensemble.leader().await?;
        let holder = match cut {
            Cut::WithLeader => leader,
            _ => (leader + 1) % self.ensemble.servers().len(),
        };
        let host = if matches!(cut, Cut::Slow | Cut::Slowing) { FAR } else { holder };
        if cut == Cut::Slow {
            self.network.change_slowness(FAR, SLOW)?;
        }
        Ok(Places { holder, host, leader })
    }

    /// The holder's site, and its server.
    pub(super) fn holder(&self, places: &Places) -> (&Site, String) {
        let server = self.ensemble.servers()[places.holder].address();
        (&self.network.sites()[places.host], server.to_owned())
    }

    /// The next holder's site, and the servers that the holder does not use.
    pub(super) fn waiter(&self, places: &Places) -> (&Site, String) {
        let is_other = |index: &usize| *index != places.holder;
        let others: Vec<usize> = (0..self.ensemble.servers().len()).filter(is_other).collect();
        let servers = others.iter().map(|index| self.ensemble.servers()[*index].address());
        let site = others.iter().find(|index| **index != places.leader).unwrap_or(&others[0]);
        (&self.network.sites()[*site], servers.collect::<Vec<_>>().join(","))
    }

    /// Cuts, and waits for what ends by itself.
    pub(super) async fn cut(&self, cut: Cut, places: &Places, timeout: Duration) -> Result<()> {
        let Places { holder, leader, .. } = *places;
        match cut {
            Cut::WithFollower | Cut::WithLeader => self.network.isolate(holder),
            Cut::AfterAPause => {
                let server = &self.ensemble.servers()[holder];
                server.pause().await?;
                // Clients give a connection up after two fifths of the session timeout.
                // tidy: the pause is what is played
                tokio::time::sleep((timeout * 7 / 20).min(LONGEST_PAUSE)).await;
                server.resume()?;
                // tidy: so is the moment
                tokio::time::sleep(A_MOMENT).await;
                self.network.isolate(holder)
            }
            Cut::FollowerFromLeader => {
                self.network.cut(holder, leader)?;
                self.network.cut(leader, holder)
            }
            Cut::LeaderUnheard => self.network.cut(leader, holder),
            Cut::FollowerUnheard => self.network.cut(holder, leader),
            Cut::Flapping => self.flap(holder).await,
            Cut::Slow | Cut::Slowing => {
                self.network.change_slowness(FAR, SLOW)?;
                // tidy: for how long it holds is what is promised
                tokio::time::sleep(MINUTE).await;
                Ok(())
            }
        }
    }

    async fn flap(&self, site: usize) -> Result<()> {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        for second in 0..MINUTE.as_secs() {
            seconds.tick().await;
            match second % 2 {
                0 => self.network.isolate(site)?,
                _ => self.network.join(site)?,
            }
        }
        Ok(())
    }

    /// Undoes a cut, and waits until all servers serve.
    pub(super) async fn mend(&self, cut: Cut, places: &Places) -> Result<()> {
        let Places { holder, leader, .. } = *places;
        match cut {
            Cut::WithFollower | Cut::AfterAPause | Cut::WithLeader => {
                self.network.join(holder)?;
            }
            Cut::FollowerFromLeader => {
                self.network.mend(holder, leader)?;
                self.network.mend(leader, holder)?;
            }
            Cut::LeaderUnheard => self.network.mend(leader, holder)?,
            Cut::FollowerUnheard => self.network.mend(holder, leader)?,
            Cut::Slow | Cut::Slowing => {
                self.network.change_slowness(FAR, Slowness::default())?;
            }
            Cut::Flapping => {}
        }
        let serve = async || {
            for server in self.ensemble.servers() {
                let said = server.four_letter("srvr").await.unwrap_or_default();
                if !said.contains("Mode: ") {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        };
        // A follower that comes back late holds an election first.
        match eventually("the servers to serve", serve).await {
            Ok(()) => Ok(()),
            Err(_) => eventually("the servers to serve", serve)
                .await
                .with_context(|| format!("in vain for {:?} before", PATIENCE)),
        }
    }
}
