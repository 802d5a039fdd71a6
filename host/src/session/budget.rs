//! How many bytes of path a session may watch.
//!
//! zookeeper-client re-arms watches after a reconnect in frames of 128 KiB and cannot live through
//! a second frame, so a session must never watch more than that. Room for what one contender takes,
//! or for what `limits.watched-paths` says, is reserved when a participant joins. A session that
//! refuses that is full, and the host opens another one (see `epochs/`). What is watched beyond the
//! reservations comes from a part of its own, of which nobody has more than a share. That is refused
//! in the middle of an operation, which may have created contenders by then; `limits.watched-paths`
//! keeps a recipe that watches more from it. There a path counts once for each kind of watch, as the
//! client re-arms it: a thousand who watch one znode pay once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::failure::Failure;
use super::request::WatchKind;

/// Bytes of path that one session watches at most: the frame's limit, less a margin.
const WATCHED_BYTES: usize = 100 * 1024;

/// Of these, what participants reserve when they join: a thousand of them below `/locks/orders`. No
/// watch takes any of it, so that nobody who joins, or joins again, is refused for what others watch.
const RESERVED_BYTES: usize = 80 * 1024;

/// The rest: what participants watch beyond what they have reserved.
const SHARED_BYTES: usize = WATCHED_BYTES - RESERVED_BYTES;

/// Of the rest, what one participant gets at most: a hundred sites of a vote, or three of the longest
/// paths there may be. Others find room beside it.
const SHARE_BYTES: usize = 12 * 1024;

/// The name of a contender below its mount, reserved for every participant: Curator's
/// `_c_` + UUID + `-lock-` + counter is 55 bytes.
const NAME_BYTES: usize = 63;

/// What a session has left, and who has joined it.
#[derive(Debug, Default)]
pub(super) struct Budget {
    room: Mutex<Room>,
    participants: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Room {
    reserved: usize,
    shared: usize,
    /// What is watched in the shared part, and how many watches stand there.
    watched: HashMap<(WatchKind, String), usize>,
    /// How many participants have joined at each mount.
    mounts: HashMap<Arc<str>, usize>,
}

impl Budget {
    /// Opens the account of a participant whose mount is `mount`, with room for one znode of its
    /// own: a waiter watches its predecessor, a holder its claim, nobody both at a time. Who says
    /// that it will watch more gets room for that.
    ///
    /// # Errors
    /// `OverLimit` when the session has no room for another participant.
    pub(super) fn open(
        self: &Arc<Self>,
        mount: &str,
        watched_bytes: usize,
    ) -> Result<Arc<Account>, Failure> {
        let reserved = (mount.len() + 1 + NAME_BYTES).max(watched_bytes);
        let mut room = self.room();
        if room.reserved + reserved > RESERVED_BYTES {
            return Err(Failure::OverLimit(format!(
                "no room for another participant on this session: one at {mount} reserves \
                 {reserved} bytes of path to watch, and {} of {RESERVED_BYTES} are taken",
                room.reserved
            )));
        }
        room.reserved += reserved;
        let known = room.mounts.get_key_value(mount).map(|(mount, _)| Arc::clone(mount));
        let mount = known.unwrap_or_else(|| Arc::from(mount));
        *room.mounts.entry(Arc::clone(&mount)).or_default() += 1;
        drop(room);
        self.participants.send_modify(|participants| *participants += 1);
        let balance = Mutex::new(Balance { needed: reserved, used: 0, shared: 0 });
        Ok(Arc::new(Account { budget: Arc::clone(self), mount, reserved, balance }))
    }

    /// How many participants there are.
    pub(super) fn participants(&self) -> watch::Receiver<usize> {
        self.participants.subscribe()
    }

    /// Whether there is a participant at this mount.
    pub(super) fn has_joined_at(&self, mount: &str) -> bool {
        self.room().mounts.contains_key(mount)
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room {
    /// Takes bytes of the shared part.
    fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.shared + bytes > SHARED_BYTES {
            return Err(Failure::OverLimit(format!(
                "the participants of this session watch {SHARED_BYTES} bytes of path at most \
                 beyond what each has reserved, and no {bytes} are left: drop watches, use shorter \
                 paths, or have each reserve what it needs (`limits.watched-paths`)"
            )));
        }
        self.shared += bytes;
        Ok(())
    }

    /// Counts a watch in the shared part.
    fn watch(&mut self, watched: &(WatchKind, String)) -> Result<(), Failure> {
        if let Some(standing) = self.watched.get_mut(watched) {
            *standing += 1;
            return Ok(());
        }
        self.take(watched.1.len())?;
        self.watched.insert(watched.clone(), 1);
        Ok(())
    }

    fn unwatch(&mut self, watched: &(WatchKind, String)) {
        let Some(standing) = self.watched.get_mut(watched) else { return };
        *standing -= 1;
        if *standing == 0 {
            self.watched.remove(watched);
            self.shared -= watched.1.len();
        }
    }

    fn leave(&mut self, mount: &str) {
        let Some(participants) = self.mounts.get_mut(mount) else { return };
        *participants -= 1;
        if *participants == 0 {
            self.mounts.remove(mount);
        }
    }
}

/// What one participant has reserved and watches.
#[derive(Debug)]
pub(super) struct Account {
    budget: Arc<Budget>,
    mount: Arc<str>,
    /// When it joined.
    reserved: usize,
    balance: Mutex<Balance>,
}

#[derive(Debug, Clone, Copy)]
struct Balance {
    /// Its own room: what it has reserved, or more for the longest of its contenders.
    needed: usize,
    /// Watched in its own room.
    used: usize,
    /// Watched in the shared part, whether or not others watch the same there.
    shared: usize,
}

impl Account {
    /// Keeps room for a contender with that path, before anything is created that will need it.
    ///
    /// # Errors
    /// `OverLimit` when the session, or the participant's share of it, has no room.
    pub(super) fn reserve(&self, path_bytes: usize) -> Result<(), Failure> {
        let mut balance = self.balance();
        let needed = balance.needed.max(path_bytes);
        let more = self.beyond(Balance { needed, ..*balance }) - self.beyond(*balance);
        if more > 0 {
            self.check_share(*balance, more)?;
            self.budget.room().take(more)?;
        }
        balance.needed = needed;
        Ok(())
    }

    /// Gives back what was kept beyond the longest of the participant's contenders, if anything was.
    pub(super) fn release(&self, longest: impl FnOnce() -> usize) {
        let mut balance = self.balance();
        if balance.needed > self.reserved {
            let needed = longest().max(self.reserved).min(balance.needed);
            self.change(&mut balance, |balance| balance.needed = needed);
        }
    }

    /// Pays for a watch until the charge is dropped: from the participant's own room as far as that
    /// goes, else from the shared part.
    ///
    /// # Errors
    /// As [`Account::reserve`].
    pub(super) fn charge(self: &Arc<Self>, kind: WatchKind, path: &str) -> Result<Charge, Failure> {
        let bytes = path.len();
        let mut balance = self.balance();
        if balance.used + bytes <= balance.needed {
            balance.used += bytes;
            return Ok(Charge { account: Arc::clone(self), paid: Paid::Own(bytes) });
        }
        self.check_share(*balance, bytes)?;
        let watched = (kind, path.to_owned());
        self.budget.room().watch(&watched)?;
        balance.shared += bytes;
        Ok(Charge { account: Arc::clone(self), paid: Paid::Shared(Box::new(watched)) })
    }

    fn check_share(&self, balance: Balance, more: usize) -> Result<(), Failure> {
        let share = self.beyond(balance) + balance.shared + more;
        if share <= SHARE_BYTES {
            return Ok(());
        }
        Err(Failure::OverLimit(format!(
            "this participant would watch {} bytes of path, and {} is its share of the session: \
             drop watches, use shorter paths, or share the work with another participant",
            self.reserved + share,
            self.reserved + SHARE_BYTES,
        )))
    }

    /// What its own room takes of the shared part.
    fn beyond(&self, balance: Balance) -> usize {
        balance.needed.max(balance.used).saturating_sub(self.reserved)
    }

    /// Changes what its own room takes of the shared part, to less or the same.
    fn change(&self, balance: &mut Balance, change: impl FnOnce(&mut Balance)) {
        let before = self.beyond(*balance);
        change(balance);
        let less = before.saturating_sub(self.beyond(*balance));
        if less > 0 {
            self.budget.room().shared -= less;
        }
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        // Nothing of the shared part is watched any more: every charge keeps its account.
        let balance = *self.balance();
        let mut room = self.budget.room();
        room.shared -= self.beyond(balance);
        room.reserved -= self.reserved;
        room.leave(&self.mount);
        drop(room);
        self.budget.participants.send_modify(|participants| *participants -= 1);
    }
}

/// A watch that is paid for.
#[derive(Debug)]
pub(super) struct Charge {
    account: Arc<Account>,
    paid: Paid,
}

/// From which room a watch is paid.
#[derive(Debug)]
enum Paid {
    /// The participant's own, so many bytes.
    Own(usize),
    /// The shared part. Boxed, as it is rare.
    Shared(Box<(WatchKind, String)>),
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut balance = self.account.balance();
        match &self.paid {
            Paid::Own(bytes) => self.account.change(&mut balance, |balance| balance.used -= bytes),
            Paid::Shared(watched) => {
                balance.shared -= watched.1.len();
                self.account.budget.room().unwatch(watched);
            }
        }
    }
}

#[cfg(test)]
mod tests;
