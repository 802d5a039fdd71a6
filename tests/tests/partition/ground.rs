//! Three servers in three sites, and what is done to the links between them.

use std::time::Duration;

use anyhow::{Context, Result};
use wok_tests::network::{Network, Site};
use wok_tests::patience::{PATIENCE, eventually};
use wok_tests::zookeeper::{Ensemble, Options};

/// As servers are set up by default; what they believe of each other is counted in these.
const TICK: Duration = Duration::from_secs(2);
const SYNC_LIMIT: &str = "5";

/// How long a link that flaps does so.
const FLAPPING: Duration = Duration::from_secs(60);

/// Three servers in three sites.
pub(crate) struct Ground {
    network: Network,
    ensemble: Ensemble,
}

/// What is cut off while a host at one server holds, and another waits at the two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The holder's host, with a follower, from the two others.
    WithFollower,
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
}

impl Cut {
    /// All of them.
    pub(crate) const ALL: [Cut; 6] = [
        Cut::WithFollower,
        Cut::WithLeader,
        Cut::FollowerFromLeader,
        Cut::LeaderUnheard,
        Cut::FollowerUnheard,
        Cut::Flapping,
    ];

    /// Whether the holder is certain to lose its claim.
    pub(crate) fn is_lasting(self) -> bool {
        self != Cut::Flapping
    }
}

/// Where the holder's host is, and where the leader is.
pub(crate) struct Places {
    holder: usize,
    leader: usize,
}

impl Ground {
    pub(crate) async fn new() -> Result<Ground> {
        let network = Network::new(3)?;
        let options = Options::default().tick(TICK).setting("syncLimit", SYNC_LIMIT);
        let ensemble = Ensemble::start_apart(&network, options).await?;
        Ok(Ground { network, ensemble })
    }

    /// Where a round of that cut is played.
    pub(crate) async fn places(&self, cut: Cut) -> Result<Places> {
        let leader = self.ensemble.leader().await?;
        let holder = match cut {
            Cut::WithLeader => leader,
            _ => (leader + 1) % self.ensemble.servers().len(),
        };
        Ok(Places { holder, leader })
    }

    /// The holder's site, and its server.
    pub(crate) fn holder(&self, places: &Places) -> (&Site, String) {
        let server = self.ensemble.servers()[places.holder].address();
        (&self.network.sites()[places.holder], server.to_owned())
    }

    /// The next holder's site, and the servers that the holder does not use.
    pub(crate) fn waiter(&self, places: &Places) -> (&Site, String) {
        let is_other = |index: &usize| *index != places.holder;
        let others: Vec<usize> = (0..self.ensemble.servers().len()).filter(is_other).collect();
        let servers = others.iter().map(|index| self.ensemble.servers()[*index].address());
        let site = others.iter().find(|index| **index != places.leader).unwrap_or(&others[0]);
        (&self.network.sites()[*site], servers.collect::<Vec<_>>().join(","))
    }

    /// Cuts, and waits for what ends by itself.
    pub(crate) async fn cut(&self, cut: Cut, places: &Places) -> Result<()> {
        let Places { holder, leader } = *places;
        match cut {
            Cut::WithFollower | Cut::WithLeader => self.network.isolate(holder),
            Cut::FollowerFromLeader => {
                self.network.cut(holder, leader)?;
                self.network.cut(leader, holder)
            }
            Cut::LeaderUnheard => self.network.cut(leader, holder),
            Cut::FollowerUnheard => self.network.cut(holder, leader),
            Cut::Flapping => self.flap(holder).await,
        }
    }

    async fn flap(&self, site: usize) -> Result<()> {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        for second in 0..FLAPPING.as_secs() {
            seconds.tick().await;
            match second % 2 {
                0 => self.network.isolate(site)?,
                _ => self.network.join(site)?,
            }
        }
        Ok(())
    }

    /// Undoes a cut, and waits until all servers serve.
    pub(crate) async fn mend(&self, cut: Cut, places: &Places) -> Result<()> {
        let Places { holder, leader } = *places;
        match cut {
            Cut::WithFollower | Cut::WithLeader => self.network.join(holder)?,
            Cut::FollowerFromLeader => {
                self.network.mend(holder, leader)?;
                self.network.mend(leader, holder)?;
            }
            Cut::LeaderUnheard => self.network.mend(leader, holder)?,
            Cut::FollowerUnheard => self.network.mend(holder, leader)?,
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
