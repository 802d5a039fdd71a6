//! How many bytes of path a session may watch.
//!
//! zookeeper-client re-arms watches after a reconnect in frames of 128 KiB and cannot live through
//! a second frame, so a session must never watch more than that. Room is reserved when a
//! participant joins, and refused then: never in the middle of an acquire.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::failure::Failure;

/// Bytes of path that one session watches at most: the frame's limit, less a margin.
pub(super) const WATCHED_BYTES: usize = 100 * 1024;

/// The name of a contender below its mount, reserved for every participant: Curator's
/// `_c_` + UUID + `-lock-` + counter is 55 bytes.
const NAME_BYTES: usize = 63;

/// What a session has left.
#[derive(Debug, Default)]
pub(super) struct Budget {
    used: AtomicUsize,
}

impl Budget {
    /// Opens the account of a participant whose mount is `mount`, with room for one znode of its
    /// own: a waiter watches its predecessor, a holder its claim, nobody both at a time.
    ///
    /// # Errors
    /// `OverLimit` when the session has no room for another participant.
    pub(super) fn open(self: &Arc<Self>, mount: &str) -> Result<Arc<Account>, Failure> {
        let reserved = mount.len() + 1 + NAME_BYTES;
        if !self.take(reserved) {
            return Err(Failure::OverLimit(format!(
                "no room for another participant on this session: watching takes {reserved} bytes \
                 of path for each at {mount}, and {} of {WATCHED_BYTES} are taken; run a second \
                 wok, or use a shorter mount",
                self.used.load(Ordering::Relaxed)
            )));
        }
        Ok(Arc::new(Account {
            budget: Arc::clone(self),
            balance: Mutex::new(Balance { reserved, used: 0 }),
        }))
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= WATCHED_BYTES);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What one participant has reserved and watches.
#[derive(Debug)]
pub(super) struct Account {
    budget: Arc<Budget>,
    balance: Mutex<Balance>,
}

#[derive(Debug)]
struct Balance {
    reserved: usize,
    used: usize,
}

impl Balance {
    /// What the account takes from the budget: a watch inside the reservation is free.
    fn taken(&self) -> usize {
        self.reserved.max(self.used)
    }
}

impl Account {
    /// Makes the reservation at least this large, before anything is created that will need it.
    ///
    /// # Errors
    /// `OverLimit` when the session has no room.
    pub(super) fn reserve(&self, path_bytes: usize) -> Result<(), Failure> {
        self.change(|balance| balance.reserved = balance.reserved.max(path_bytes))
    }

    /// Pays for a watch until the charge is dropped.
    ///
    /// # Errors
    /// `OverLimit` when the session has no room.
    pub(super) fn charge(self: &Arc<Self>, path: &str) -> Result<Charge, Failure> {
        let bytes = path.len();
        self.change(|balance| balance.used += bytes)?;
        Ok(Charge { account: Arc::clone(self), bytes })
    }

    fn change(&self, change: impl FnOnce(&mut Balance)) -> Result<(), Failure> {
        let mut balance = self.balance.lock().unwrap_or_else(PoisonError::into_inner);
        let (reserved, used, before) = (balance.reserved, balance.used, balance.taken());
        change(&mut balance);
        let more = balance.taken().saturating_sub(before);
        if more > 0 && !self.budget.take(more) {
            *balance = Balance { reserved, used };
            return Err(Failure::OverLimit(format!(
                "this session watches {WATCHED_BYTES} bytes of path at most, and no {more} are \
                 left: drop watches, use shorter paths or run a second wok"
            )));
        }
        Ok(())
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let balance = self.balance.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.budget.give_back(balance.taken());
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
        let mut balance = self.account.balance.lock().unwrap_or_else(PoisonError::into_inner);
        let before = balance.taken();
        balance.used -= self.bytes;
        self.account.budget.give_back(before - balance.taken());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_inside_the_reservation_takes_nothing_more() {
        let budget = Arc::new(Budget::default());
        let account = budget.open("/locks/a").unwrap();
        let reserved = budget.used.load(Ordering::Relaxed);
        let charge = account.charge("/locks/a/_c_x-lock-0000000001").unwrap();
        assert_eq!(budget.used.load(Ordering::Relaxed), reserved);
        drop(charge);
        drop(account);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
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
    fn a_refused_charge_changes_nothing() {
        let budget = Arc::new(Budget::default());
        let account = budget.open("/m").unwrap();
        let before = budget.used.load(Ordering::Relaxed);
        assert!(account.charge(&"x".repeat(WATCHED_BYTES + 1)).is_err());
        assert_eq!(budget.used.load(Ordering::Relaxed), before);
        assert!(account.charge("/m/a").is_ok());
    }
}
