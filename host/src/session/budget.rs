//! How many bytes of path a session may watch.
//!
//! zookeeper-client re-arms watches after a reconnect in frames of 128 KiB and cannot live through
//! a second frame, so a session must never watch more than that. Room is reserved when a
//! participant joins, and refused then: never in the middle of an acquire. What is watched beyond that
//! comes from a part of its own, of which nobody has more than a share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::failure::Failure;

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

/// What a session has left.
#[derive(Debug, Default)]
pub(super) struct Budget {
    reserved: AtomicUsize,
    shared: AtomicUsize,
}

impl Budget {
    /// Opens the account of a participant whose mount is `mount`, with room for one znode of its
    /// own: a waiter watches its predecessor, a holder its claim, nobody both at a time.
    ///
    /// # Errors
    /// `OverLimit` when the session has no room for another participant.
    pub(super) fn open(self: &Arc<Self>, mount: &str) -> Result<Arc<Account>, Failure> {
        let reserved = mount.len() + 1 + NAME_BYTES;
        if !take(&self.reserved, reserved, RESERVED_BYTES) {
            return Err(Failure::OverLimit(format!(
                "no room for another participant on this session: watching takes {reserved} bytes \
                 of path for each at {mount}, and {} of {RESERVED_BYTES} are taken; run a second \
                 wok, or use a shorter mount",
                self.reserved.load(Ordering::Relaxed)
            )));
        }
        let balance = Mutex::new(Balance { needed: reserved, used: 0 });
        Ok(Arc::new(Account { budget: Arc::clone(self), reserved, balance }))
    }
}

fn take(from: &AtomicUsize, bytes: usize, most: usize) -> bool {
    let fits = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= most);
    from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
}

/// What one participant has reserved and watches.
#[derive(Debug)]
pub(super) struct Account {
    budget: Arc<Budget>,
    /// When it joined.
    reserved: usize,
    balance: Mutex<Balance>,
}

#[derive(Debug, Clone, Copy)]
struct Balance {
    /// For the longest of its contenders.
    needed: usize,
    /// Watched now.
    used: usize,
}

impl Account {
    /// Keeps room for a contender with that path, before anything is created that will need it.
    ///
    /// # Errors
    /// `OverLimit` when the session, or the participant's share of it, has no room.
    pub(super) fn reserve(&self, path_bytes: usize) -> Result<(), Failure> {
        self.change(|balance| balance.needed = balance.needed.max(path_bytes))
    }

    /// Gives back what was kept beyond the longest of the participant's contenders, if anything was.
    pub(super) fn release(&self, longest: impl FnOnce() -> usize) {
        if self.balance().needed > self.reserved {
            // Less is never refused.
            self.change(|balance| balance.needed = longest().max(self.reserved)).ok();
        }
    }

    /// Pays for a watch until the charge is dropped.
    ///
    /// # Errors
    /// As [`Account::reserve`].
    pub(super) fn charge(self: &Arc<Self>, path: &str) -> Result<Charge, Failure> {
        let bytes = path.len();
        self.change(|balance| balance.used += bytes)?;
        Ok(Charge { account: Arc::clone(self), bytes })
    }

    /// What the balance takes of the rest: a watch inside the reservation is free.
    fn beyond(&self, balance: Balance) -> usize {
        balance.needed.max(balance.used).saturating_sub(self.reserved)
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Balance)) -> Result<(), Failure> {
        let mut balance = self.balance();
        let mut changed = *balance;
        change(&mut changed);
        let (before, after) = (self.beyond(*balance), self.beyond(changed));
        if after > SHARE_BYTES && after > before {
            return Err(Failure::OverLimit(format!(
                "this participant would watch {} bytes of path, and {} is its share of the \
                 session: drop watches, use shorter paths, or share the work with another \
                 participant",
                self.reserved + after,
                self.reserved + SHARE_BYTES,
            )));
        }
        let more = after.saturating_sub(before);
        if !take(&self.budget.shared, more, SHARED_BYTES) {
            return Err(Failure::OverLimit(format!(
                "the participants of this session watch {SHARED_BYTES} bytes of path at most \
                 beyond what each has reserved, and no {more} are left: drop watches, use shorter \
                 paths or run a second wok"
            )));
        }
        self.budget.shared.fetch_sub(before.saturating_sub(after), Ordering::Relaxed);
        *balance = changed;
        Ok(())
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let balance = *self.balance.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.budget.shared.fetch_sub(self.beyond(balance), Ordering::Relaxed);
        self.budget.reserved.fetch_sub(self.reserved, Ordering::Relaxed);
    }
}

/// A watch that is paid for.
#[derive(Debug)]
pub(super) struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        // Less is never refused.
        self.account.change(|balance| balance.used -= self.bytes).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(budget: &Budget) -> (usize, usize) {
        (budget.reserved.load(Ordering::Relaxed), budget.shared.load(Ordering::Relaxed))
    }

    #[test]
    fn a_watch_inside_the_reservation_takes_nothing_more() {
        let budget = Arc::new(Budget::default());
        let account = budget.open("/locks/a").unwrap();
        let before = taken(&budget);
        let charge = account.charge("/locks/a/_c_x-lock-0000000001").unwrap();
        assert_eq!(taken(&budget), before);
        drop(charge);
        drop(account);
        assert_eq!(taken(&budget), (0, 0));
    }

    #[test]
    fn a_thousand_participants_fit_and_the_first_too_many_is_refused_at_join() {
        let budget = Arc::new(Budget::default());
        let mut accounts = Vec::new();
        let refusal = loop {
            match budget.open("/locks/orders") {
                Ok(account) => accounts.push(account),
                Err(error) => break error,
            }
        };
        assert!(accounts.len() >= 1_000, "only {}", accounts.len());
        assert!(matches!(refusal, Failure::OverLimit(text) if text.contains("/locks/orders")));
        // Those that joined can still do what they reserved for.
        let watched = format!("/locks/orders/{}", "n".repeat(NAME_BYTES - 1));
        let charges: Vec<_> = accounts.iter().map(|account| account.charge(&watched)).collect();
        assert!(charges.iter().all(Result::is_ok));
    }

    #[test]
    fn one_participant_takes_its_share_and_no_more_and_never_what_others_join_with() {
        let budget = Arc::new(Budget::default());
        let greedy = budget.open("/m").unwrap();
        let mut charges = Vec::new();
        let refusal = loop {
            match greedy.charge(&"x".repeat(1000)) {
                Ok(charge) => charges.push(charge),
                Err(error) => break error,
            }
        };
        assert!(matches!(refusal, Failure::OverLimit(text) if text.contains("its share")));
        assert_eq!(charges.len(), (SHARE_BYTES + greedy.reserved) / 1000);
        // Another still finds room for more than it has reserved, and a thousand can join.
        let other = budget.open("/m").unwrap();
        assert!(other.charge(&"x".repeat(4096)).is_ok());
        let joined: Vec<_> = (0..900).map(|_| budget.open("/locks/orders")).collect();
        assert!(joined.iter().all(Result::is_ok));
        drop(charges);
        assert_eq!(taken(&budget).1, 0);
    }

    #[test]
    fn what_a_long_name_took_is_given_back_with_it() {
        let budget = Arc::new(Budget::default());
        let account = budget.open("/m").unwrap();
        account.reserve(4000).unwrap();
        assert_eq!(taken(&budget).1, 4000 - account.reserved);
        account.release(|| 4000);
        assert_eq!(taken(&budget).1, 4000 - account.reserved);
        account.release(|| 0);
        assert_eq!(taken(&budget).1, 0);
        assert!(account.reserve(SHARE_BYTES + account.reserved + 1).is_err());
        assert_eq!(taken(&budget).1, 0);
    }

    #[test]
    fn a_refused_charge_changes_nothing() {
        let budget = Arc::new(Budget::default());
        let account = budget.open("/m").unwrap();
        let before = taken(&budget);
        assert!(account.charge(&"x".repeat(WATCHED_BYTES + 1)).is_err());
        assert_eq!(taken(&budget), before);
        assert!(account.charge("/m/a").is_ok());
    }
}
