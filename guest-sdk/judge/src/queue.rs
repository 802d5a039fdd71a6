//! A queue: who put in what, who took it, and how it went; and the passes over that.
//!
//! The passes read the operations and the znodes of the stock recipes `queue` and `priority-queue`:
//!
//! | operation | what it does |
//! |---|---|
//! | `put`, `put-all` | puts in `data`, or each of `items`; with `priority` if the items of the [`Kind`] have one |
//! | `take`, `take-many` | takes an item, or up to `max` of them, and waits while there is none |
//! | `ack`, `reject` | removes what the participant has taken, or gives it back |
//! | `ack-item` | removes the `item` that was taken under that `fence` |
//! | `peek`, `length` | tells of the next item or of that `item`, and how much there is |
//!
//! | znode, below the mount | what it is |
//! |---|---|
//! | `items/<name>` | an item, if its name ends with a counter: a sequential znode. Its version says how often it was taken |
//! | `claims/<name>` | somebody has the item: an ephemeral znode, created in the txn that counts the attempt and deleted in the one that removes the item |
//! | `dead-letters/<name>` | an item that was taken as often as it may be, moved here in one txn |
//! | `consumers/…` | the line of those who wait |
//!
//! A judge of a queue names these ids in its [`INVARIANTS`](crate::Judge::INVARIANTS):
//!
//! | id | pass | broken if |
//! |---|---|---|
//! | Q1 | [`puts`], [`takes`] | an acknowledged put is not in the queue as it was put in, or somebody takes what nobody has put in |
//! | Q2 | [`takes`] | an item that was removed at its taking is told to somebody else than the one who took it, or to nobody though that one was answered |
//! | Q3 | [`takes`], [`ends`] | an item is told without a claim of its own, with a wrong number of attempts, is removed by somebody else than the one who has it, or stays though it was acknowledged |
//! | [`Kind::id`] | [`takes`] | of several items that one call takes, one is told behind others that come after it |
//! | Q5 | [`puts`] | a put that is not acknowledged puts in more than once, or a part; or somebody is answered that nobody knows |
//! | Q6 | [`ends`] | an item is a dead letter before its time, or without being kept, or is taken after its time |
//! | Q7 | [`looks`] | `peek` answers an item that nobody could take at any moment of the call, answers none though one was there all the while, or passes over one that comes before it that was; or what is told of the item is not so |
//! | Q8 | [`looks`] | `length` answers fewer or more items, taken items or dead letters than there were at any moment of the call |
//! | Q9 | [`takes`] | a call takes more items than it asks for at most |
//! | M5 | [`beliefs`] | somebody goes on believing to hold what is long gone, or acts on it |
//! | M7 | [`leftovers`] | a place or a claim outlives the call that it was made for, or what ends it |
//! | W1 | [`waits`] | somebody waits while there is an item that nobody has, or is turned away where it would have to wait |
//! | H1 | [`waits`], [`herd`] | anybody but the first in line watches the items, or one that waits asks again and again |
//!
//! [`check`] makes all of these passes. Which item may be taken while which others are there is the recipe's
//! own: the recipe's judge reads that in the [`Log`].

pub mod ends;
pub mod leftovers;
pub mod log;
pub mod looks;
pub mod puts;
pub mod stories;
pub mod takes;
pub mod waits;

#[cfg(test)]
mod tests;

use crate::{Case, Violation, beliefs, herd};
use log::Log;

/// In which order the items of a queue are taken, and in which words that is told.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The id of the invariant that says in which order items are taken.
    pub id: &'static str,
    /// What is said of an item that comes before another one, such as "is older".
    pub earlier: &'static str,
    /// What an item is called that comes after another one, such as "a younger".
    pub later: &'static str,
    /// Reads an item's priority in the name of its znode: of two items the one with the lower number comes
    /// first. None if items have no priority: then the older one comes first, as it does of two with one
    /// priority.
    pub priority: Option<fn(&str) -> i64>,
    /// How `peek` looks for the next item.
    pub peek: Peek,
}

/// How `peek` looks for the next item. An item that it is asked for by name is read without a `sync` in
/// either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peek {
    /// Nothing confirms what it reads: the server that answers may be behind the others.
    Unconfirmed,
    /// It reads behind a `sync`, so that it sees what was committed before the call.
    BehindSync,
}

/// Makes all passes over a queue that makes an item a dead letter when the item was taken `most` times.
/// Without `most` it makes none.
///
/// A judge that promises something else in one respect makes the other passes one by one.
pub fn check(case: &Case<'_>, log: &Log<'_>, most: Option<u64>, found: &mut Vec<Violation>) {
    puts::check(case, log, found);
    takes::check(case, log, found);
    ends::check(case, log, most, found);
    looks::check(case, log, found);
    beliefs::check(case, "M5", "M5", found);
    leftovers::check(case, log, found);
    waits::check(case, log, found);
    herd::check(case, "H1", found);
}
