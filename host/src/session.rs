//! The session room: the way to ZooKeeper, and the rules that no guest can break.
//!
//! [`open()`] opens a [`Session`], which gives each participant a [`Seat`]. The rules live above
//! the [`Ensemble`] trait, so that a simulated ensemble exercises them, too:
//!
//! | rule | file |
//! |---|---|
//! | a contender's create survives a lost reply | `contend.rs` |
//! | whatever ends a participant, its ephemeral znodes go | `ledger.rs`, `tickets.rs`, `named.rs`, `turns.rs`, `janitor.rs` |
//! | a write to an own znode whose reply was lost is settled | `writes.rs`, `outcome.rs` |
//! | a multi takes its claim as one, and can replace another | `multi.rs`, `dependents.rs` |
//! | a claim is confirmed, watched, and its loss told | `claims.rs`, `watched.rs`, `deletions.rs` |
//! | the host gives a session up before the ensemble can | `authority.rs`, `contact.rs`, `monitor.rs`, `timing.rs` |
//! | a session is never replaced under the same value | `epoch.rs` |
//! | what is watched stays within what the client can re-arm | `budget.rs` |
//! | nothing is sent that could break the session for all | `bounds.rs`, `traffic.rs`, `core.rs` |
//! | what a participant leaves behind is bounded | `persistent.rs` |
//!
//! `omission.rs` names rules that a simulation can leave out; a release leaves none out.
//!
//! Deliberately absent: names of recipes, mounts, configuration files, WebAssembly.

mod ahead;
mod authority;
mod bounds;
mod budget;
mod claims;
mod client;
mod contact;
mod contend;
mod core;
mod deletions;
mod dependents;
mod diagnose;
mod ensemble;
mod ensure;
mod epoch;
mod failure;
mod hosts;
mod janitor;
mod ledger;
mod monitor;
mod multi;
mod named;
mod nodelay;
mod omission;
mod open;
mod options;
mod outcome;
mod persistent;
mod request;
mod seat;
#[cfg(test)]
pub(crate) mod stand_in;
mod state;
mod threads;
mod tick;
mod tickets;
mod timing;
mod traffic;
mod turns;
mod unconnected;
mod watch;
mod watched;
mod writes;

pub use ahead::Ahead;
pub use claims::{Fence, Held, Released};
pub use contact::ContactRule;
pub use contend::{ContenderName, UuidForm};
pub use ensemble::{Connection, Ending, Ensemble};
pub use epoch::Session;
pub use failure::{Failure, Refusal};
pub use omission::Omission;
pub use open::{open, open_by};
pub use options::{ConnectError, ConnectOptions, Credential, SaslLogin, Secret, Tls, TlsIdentity};
pub use persistent::LeftBehind;
pub use request::{Acl, CreateMode, Reply, Request, Stat, Watching, Write, Written};
pub use seat::{Owner, Seat, SeatLimits};
pub use state::{SessionLoss, SessionState};
pub use timing::Timing;
pub use unconnected::unconnected;
pub use watch::{Event, Kin, Watch};
