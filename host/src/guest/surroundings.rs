//! What a component reaches of the world, given by the rooms above.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::limits::Limits;
use super::mount::Mount;
use super::scope::OperationScope;
use super::witness::Witness;
use crate::clock::{Boottime, Clock};
use crate::session::{Fence, Seat, Watch};

/// Everything that one component is given.
#[derive(Clone)]
pub struct Surroundings {
    /// Its door to the session.
    pub seat: Arc<Seat>,
    /// What it sees as `/`.
    pub mount: Mount,
    /// Through which its operation is cancelled.
    pub scope: Arc<OperationScope>,
    /// Where what it says goes.
    pub voice: Arc<dyn Voice>,
    /// The participant's id.
    pub id: Arc<str>,
    /// Who asked for the participant.
    pub owner: String,
    /// Its clock and its dice.
    pub time: Arc<dyn TimeAndChance>,
    /// What it may use.
    pub limits: Limits,
    /// Who sees what it asks; nobody where it takes part for an app.
    pub witness: Option<Arc<dyn Witness>>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Surroundings")
            .field("id", &self.id)
            .field("owner", &self.owner)
            .field("mount", &self.mount)
            .finish_non_exhaustive()
    }
}

/// What a component tells the participant's followers. Paths are absolute.
///
/// Called in the middle of a host call: answers at once and never blocks.
pub trait Voice: Send + Sync {
    /// Its contender znode exists.
    fn waiting(&self, path: &str);
    /// Its claim on a znode stands.
    fn held(&self, path: &str, fence: Fence);
    /// It gave its claim up. Said before the znode goes where `release` does it.
    fn released(&self, path: &str);
    /// An event of the recipe's own.
    fn emit(&self, event: &str, detail: Vec<(String, String)>);
    /// A line for the log, without control characters.
    fn log(&self, level: LogLevel, message: &str);
}

/// How much a line of the log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// For an author who debugs the recipe.
    Debug,
    /// Worth a line.
    Info,
    /// Something is off, and handled.
    Warn,
    /// Something failed.
    Error,
}

/// Time and randomness. Everything a component does follows from these and from the ensemble's
/// answers, so that a run can be replayed.
pub trait TimeAndChance: Send + Sync {
    /// Milliseconds on a clock that never goes back.
    fn now_ms(&self) -> u64;
    /// Milliseconds since 1970.
    fn wall_ms(&self) -> u64;
    /// Sixty-four random bits.
    fn random_u64(&self) -> u64;
    /// A watch that fires after this time.
    fn alarm(&self, after: Duration) -> Watch;
}

/// The host's clock and dice, as a component gets them.
#[derive(Debug, Clone)]
pub struct HostTimeAndChance {
    clock: Arc<dyn Clock>,
    started: Boottime,
}

impl HostTimeAndChance {
    /// A clock that starts at zero: a component learns nothing of the machine's uptime.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        HostTimeAndChance { started: clock.now(), clock }
    }
}

impl TimeAndChance for HostTimeAndChance {
    fn now_ms(&self) -> u64 {
        let elapsed = self.clock.now().saturating_duration_since(self.started);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    fn wall_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    fn random_u64(&self) -> u64 {
        // A random UUID's six fixed bits are at different places in its halves.
        let (high, low) = self.clock.uuid().as_u64_pair();
        high ^ low
    }

    fn alarm(&self, after: Duration) -> Watch {
        Watch::after(after)
    }
}
