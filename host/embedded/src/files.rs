//! What outlives the process: a directory in Apache ZooKeeper's own formats, so that either
//! server can take the other's directory over.
//!
//! # The directory
//! All files lie in `version-2` below the data directory.
//! * `log.<zxid>`: txns from that zxid on, in order, each with its checksum. Zeros behind the last
//!   one are room for more: they are on disk before a txn takes their place, and some always stay. A
//!   new file is begun by every start and every snapshot.
//! * `snapshot.<zxid>`: sessions and nodes. It is *fuzzy*: begun at that zxid and written piece by
//!   piece while txns go on, so that later pieces are newer. Applying the log's txns after that
//!   zxid makes it whole, whichever of them it already shows.
//! * `unfinished.*`: files that are being written. They are removed by the next start.
//!
//! `wok.lock` beside it keeps a second server of this kind off. Apache ZooKeeper knows no such
//! lock: never run it on a directory that is in use.
//!
//! # What is checked
//! A start takes the newest snapshot that can be read and applies every txn after it. Zxids must
//! follow one another without a gap. A txn that was not written out when the power went is cut off
//! and told of in [`Recovery`]: nobody was told that it happened. The room for it is still behind it;
//! a file that ends sooner was cut by somebody else, who may have cut off txns that were answered.
//! That, and anything else that cannot be read, ends the start with the file, the place, and what to
//! do. That may be more than is lost: a power cut can leave a later page of unanswered txns on disk
//! and an earlier one not, which looks like damage. The message then says where to cut.
//!
//! A file that is gone, or whose last txns are zeros, cannot be told from one that never was, unless
//! a snapshot or a later log shows what is missing.
//!
//! # What is kept
//! Three snapshots, and the logs from the oldest of them on, as Apache's autopurge keeps them:
//! if the newest snapshot cannot be read, the one before it and the logs since make up for it.

mod directory;
mod entry;
mod error;
mod log_reader;
mod log_writer;
mod recovery;
mod retention;
mod snapshot_reader;
mod snapshot_writer;

pub use directory::DataDir;
pub(crate) use directory::{size_of, version_dir};
pub use entry::encode_entry;
pub use error::FilesError;
pub use log_reader::{LogReader, Next};
pub use log_writer::{LogOptions, LogWriter};
pub(crate) use recovery::force_logs_of;
pub use recovery::{Recovery, Replayed, TornTail, recover, replay};
pub use retention::purge;
pub use snapshot_reader::{Snapshot, read_snapshot};
pub use snapshot_writer::{SnapshotNode, SnapshotWriter, write_whole_snapshot};
