//! Who takes part in what: every participant of this host, from its joining to its end.
//!
//! The registry is kept by what the host sees of any participant, and knows no recipe's meaning.
//! Those who ask are told from where things stand at that moment; those who follow are told what
//! comes after.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use tokio::sync::{broadcast, watch};

use crate::participant::{Listener, Notice, Presence};

/// What is kept for those who follow all participants and are slow; what is older is dropped for
/// them, and counted. A thousand participants that lose a session tell two thousand things.
const BACKLOG: usize = 4_096;

/// A program that takes part through this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// What it calls itself, else its process, else its connection where the host cannot see the process.
    /// Several participants of one user and one name are one app's.
    pub name: String,
    /// The user that it runs as, where the host knows.
    pub uid: Option<u32>,
    /// Its process, where the host can see it.
    pub pid: Option<u32>,
}

/// On whose behalf a participant takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The config tells the host to.
    Host,
    /// An app asked.
    App(App),
}

/// A participant of this host.
#[derive(Debug)]
pub struct Member {
    /// The participant.
    pub presence: Presence,
    /// The recipe that it takes part in.
    pub recipe: String,
    /// What other contenders are told of it.
    pub owner: String,
    /// On whose behalf.
    pub by: By,
    /// Since when.
    pub since: SystemTime,
}

/// What a participant of this host tells.
#[derive(Debug, Clone)]
pub struct Told {
    /// Which.
    pub member: Arc<Member>,
    /// What.
    pub word: Word,
}

/// What is told of a participant.
#[derive(Debug, Clone)]
pub enum Word {
    /// It has joined.
    Joined,
    /// It tells something itself.
    Notice(Notice),
}

/// Every participant of this host.
#[derive(Debug)]
pub struct Registry {
    members: watch::Sender<BTreeMap<Arc<str>, Arc<Member>>>,
    told: broadcast::Sender<Told>,
}

impl Default for Registry {
    fn default() -> Self {
        Registry { members: watch::Sender::default(), told: broadcast::Sender::new(BACKLOG) }
    }
}

impl Registry {
    /// Enters a participant, which is struck out when it has ended.
    pub fn enter(self: &Arc<Self>, member: Member) -> Arc<Member> {
        let member = Arc::new(member);
        let id = Arc::clone(member.presence.id());
        self.members.send_modify(|members| drop(members.insert(id, Arc::clone(&member))));
        self.tell(&member, || Word::Joined);
        let clerk = Clerk { registry: Arc::downgrade(self), member: Arc::downgrade(&member) };
        member.presence.attach(Box::new(clerk));
        member
    }

    /// Those who take part now, in the order of their ids.
    pub fn list(&self) -> Vec<Arc<Member>> {
        self.members.borrow().values().cloned().collect()
    }

    /// The participant of that id, if it takes part.
    pub fn find(&self, id: &str) -> Option<Arc<Member>> {
        self.members.borrow().get(id).cloned()
    }

    /// Follows all participants, from now on. A follower that is too slow is told how much it missed.
    pub fn follow(&self) -> broadcast::Receiver<Told> {
        self.told.subscribe()
    }

    /// Completes when nobody takes part.
    pub async fn until_empty(&self) {
        // The sender of what is watched is this registry.
        self.members.subscribe().wait_for(BTreeMap::is_empty).await.ok();
    }

    fn tell(&self, member: &Arc<Member>, word: impl FnOnce() -> Word) {
        // Mostly nobody follows, and then nothing is kept.
        if self.told.receiver_count() > 0 {
            // The last of them may have gone this moment.
            self.told.send(Told { member: Arc::clone(member), word: word() }).ok();
        }
    }
}

/// Writes down what a participant tells.
struct Clerk {
    registry: Weak<Registry>,
    member: Weak<Member>,
}

impl Listener for Clerk {
    fn hear(&mut self, notice: &Notice) {
        let (Some(registry), Some(member)) = (self.registry.upgrade(), self.member.upgrade())
        else {
            return;
        };
        registry.tell(&member, || Word::Notice(notice.clone()));
        if matches!(notice, Notice::Ended(_)) {
            registry.members.send_modify(|members| drop(members.remove(member.presence.id())));
        }
    }
}
