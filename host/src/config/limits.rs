//! `limits`: what each participant of a recipe may use.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::quantity::{BadValue, parse_duration, parse_size, spell_duration};
use super::report::Report;
use super::section::{Key, Section};
use crate::guest;
use crate::session::SeatLimits;

/// Stock recipes live in under 2 MiB; ten times that lets a recipe in a language with a garbage
/// collector work, and a thousand full ones still fit into a large machine.
const DEFAULT_MEMORY: u64 = 16 << 20;

/// From a page of WebAssembly to all that 32 bits can address.
const MEMORY: RangeInclusive<u64> = 64 << 10..=4 << 30;

/// A step of a recipe takes well under a millisecond; a hundred times that is a bug, and heartbeats
/// are not late by it.
const DEFAULT_CPU_PER_CALL: Duration = Duration::from_millis(100);

/// Epochs tick in milliseconds; a guest that computes for longer than this is doing other work.
const CPU_PER_CALL: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

/// A lock waits on one znode and a barrier on two; watched paths share one budget of the session.
const DEFAULT_WATCHES: u32 = 64;

/// One znode at a time, which is what waits in a line. Whatever a participant reserves, others cannot:
/// a session has 80 KiB for all of them.
const DEFAULT_WATCHED_PATHS: u64 = 0;

/// Two participants that reserve so much fit on a session, and a few hundred usual ones beside them.
const MOST_WATCHED_PATHS: u64 = 32 << 10;

/// A participant's ephemeral znodes live in the ensemble's memory and are deleted one by one when
/// it ends: a thousand take well under a second.
const DEFAULT_ZNODES: u32 = 1_000;

/// What a producer of a queue may have outstanding: more than anybody wants to list. In the ensemble
/// they take memory, and every list of their directory is as long as they are many.
const DEFAULT_PERSISTENT_ZNODES: u32 = 10_000;

/// A thousand items of a kilobyte. A server keeps its last 500 transactions in memory, whole.
const DEFAULT_WRITTEN_PER_SECOND: u64 = 1 << 20;

/// From a slow trickle to all that a link carries.
const WRITTEN_PER_SECOND: RangeInclusive<u64> = 1 << 10..=1 << 30;

/// A cycle of the lock takes four requests; this is more of them than one client makes after
/// another on a server that syncs, and one participant in a loop cannot take from an ensemble what
/// serves its neighbours.
const DEFAULT_CALLS_PER_SECOND: u32 = 5_000;

/// A session can watch some thousands of paths in all, whatever one participant is allowed.
const MOST_WATCHES: u32 = 10_000;

/// More are deleted more slowly than a session timeout.
const MOST_ZNODES: u32 = 100_000;

/// More than a server of usual size has memory for.
const MOST_PERSISTENT_ZNODES: u32 = 1_000_000;

/// Beyond what an ensemble answers in a second.
const MOST_CALLS_PER_SECOND: u32 = 1_000_000;

const MEMORY_KEY: Key = Key::new("memory", "\"16MiB\"");
const CPU_PER_CALL_KEY: Key = Key::new("cpu-per-call", "\"100ms\"");
const WATCHES_KEY: Key = Key::new("watches", "64");
const ZNODES_KEY: Key = Key::new("znodes", "1000");
const PERSISTENT_ZNODES_KEY: Key = Key::new("persistent-znodes", "10000");
const WATCHED_PATHS_KEY: Key = Key::new("watched-paths", "\"8KiB\"");
const WRITTEN_PER_SECOND_KEY: Key = Key::new("written-per-second", "\"1MiB\"");
const CALLS_PER_SECOND_KEY: Key = Key::new("calls-per-second", "5000");

/// What each participant of a recipe may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of linear memory.
    pub memory: u64,
    /// Processor time of one call, which gets back the time for which it waits, up to the whole.
    pub cpu_per_call: Duration,
    /// Watches that are armed at once.
    pub watches: u32,
    /// Bytes of path that can be watched whatever others do, beyond what is reserved for everybody.
    pub watched_paths: u64,
    /// Ephemeral znodes that exist at once.
    pub znodes: u32,
    /// Persistent znodes that it created and nobody has deleted, and containers.
    pub persistent_znodes: u32,
    /// Bytes written to the ensemble in a second.
    pub written_per_second: u64,
    /// Requests to the ensemble. What a guest asks of the host alone costs processor time only.
    pub calls_per_second: u32,
}

impl Limits {
    /// The same, if a config file could say them.
    ///
    /// # Errors
    /// One of them is out of range.
    pub fn check(self) -> Result<Self, BadValue> {
        let out_of_range = |what: &str, remedy: String| {
            Err(BadValue::new(format!("{what} is out of range"), remedy))
        };
        for (what, bytes, range) in [
            ("memory", self.memory, MEMORY),
            ("watched_paths", self.watched_paths, 0..=MOST_WATCHED_PATHS),
            ("written_per_second", self.written_per_second, WRITTEN_PER_SECOND),
        ] {
            if !range.contains(&bytes) {
                let (least, most) = range.into_inner();
                return out_of_range(what, format!("choose from {least} to {most} bytes"));
            }
        }
        for (what, count, most) in [
            ("watches", self.watches, MOST_WATCHES),
            ("znodes", self.znodes, MOST_ZNODES),
            ("persistent_znodes", self.persistent_znodes, MOST_PERSISTENT_ZNODES),
            ("calls_per_second", self.calls_per_second, MOST_CALLS_PER_SECOND),
        ] {
            if !(1..=most).contains(&count) {
                return out_of_range(what, format!("choose from 1 to {most}"));
            }
        }
        if !CPU_PER_CALL.contains(&self.cpu_per_call) {
            let (least, most) = CPU_PER_CALL.into_inner();
            return out_of_range("cpu_per_call", format!("choose from {least:?} to {most:?}"));
        }
        Ok(self)
    }

    /// Those of the component.
    pub(crate) fn of_guest(self) -> guest::Limits {
        guest::Limits {
            memory: self.memory,
            cpu_per_call: self.cpu_per_call,
            watches: self.watches,
            calls_per_second: self.calls_per_second,
            written_per_second: self.written_per_second,
            ..guest::Limits::default()
        }
    }

    /// Those of what it has in ZooKeeper.
    pub(crate) fn of_seat(self) -> SeatLimits {
        SeatLimits {
            znodes: self.znodes as usize,
            persistent_znodes: self.persistent_znodes as usize,
            watched_paths: usize::try_from(self.watched_paths).unwrap_or(usize::MAX),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: DEFAULT_MEMORY,
            cpu_per_call: DEFAULT_CPU_PER_CALL,
            watches: DEFAULT_WATCHES,
            watched_paths: DEFAULT_WATCHED_PATHS,
            znodes: DEFAULT_ZNODES,
            persistent_znodes: DEFAULT_PERSISTENT_ZNODES,
            written_per_second: DEFAULT_WRITTEN_PER_SECOND,
            calls_per_second: DEFAULT_CALLS_PER_SECOND,
        }
    }
}

pub(super) fn validate(mut section: Section<'_>, report: &mut Report<'_>) -> Option<Limits> {
    let defaults = Limits::default();
    let memory = match section.field(&MEMORY_KEY) {
        Some(field) => field.parsed_by(read_memory, report),
        None => Some(defaults.memory),
    };
    let cpu_per_call = match section.field(&CPU_PER_CALL_KEY) {
        Some(field) => field.parsed_by(read_cpu_per_call, report),
        None => Some(defaults.cpu_per_call),
    };
    let written_per_second = match section.field(&WRITTEN_PER_SECOND_KEY) {
        Some(field) => field.parsed_by(read_written_per_second, report),
        None => Some(defaults.written_per_second),
    };
    let watched_paths = match section.field(&WATCHED_PATHS_KEY) {
        Some(field) => field.parsed_by(read_watched_paths, report),
        None => Some(defaults.watched_paths),
    };
    let mut count =
        |key: &Key, default: u32, most: u32, report: &mut Report<'_>| match section.field(key) {
            Some(field) => field.integer(1..=most, report),
            None => Some(default),
        };
    let watches = count(&WATCHES_KEY, defaults.watches, MOST_WATCHES, report);
    let znodes = count(&ZNODES_KEY, defaults.znodes, MOST_ZNODES, report);
    let most = MOST_PERSISTENT_ZNODES;
    let persistent_znodes = count(&PERSISTENT_ZNODES_KEY, defaults.persistent_znodes, most, report);
    let most = MOST_CALLS_PER_SECOND;
    let calls_per_second = count(&CALLS_PER_SECOND_KEY, defaults.calls_per_second, most, report);
    section.finish(report);
    Some(Limits {
        memory: memory?,
        cpu_per_call: cpu_per_call?,
        watches: watches?,
        watched_paths: watched_paths?,
        znodes: znodes?,
        persistent_znodes: persistent_znodes?,
        written_per_second: written_per_second?,
        calls_per_second: calls_per_second?,
    })
}

fn read_memory(text: &str) -> Result<u64, BadValue> {
    let memory = parse_size(text)?;
    if MEMORY.contains(&memory) {
        return Ok(memory);
    }
    Err(BadValue::new(format!("{text} is out of range"), "choose from \"64KiB\" to \"4GiB\""))
}

fn read_watched_paths(text: &str) -> Result<u64, BadValue> {
    let bytes = parse_size(text)?;
    if bytes <= MOST_WATCHED_PATHS {
        return Ok(bytes);
    }
    Err(BadValue::new(format!("{text} is out of range"), "choose at most \"32KiB\""))
}

fn read_written_per_second(text: &str) -> Result<u64, BadValue> {
    let bytes = parse_size(text)?;
    if WRITTEN_PER_SECOND.contains(&bytes) {
        return Ok(bytes);
    }
    Err(BadValue::new(format!("{text} is out of range"), "choose from \"1KiB\" to \"1GiB\""))
}

fn read_cpu_per_call(text: &str) -> Result<Duration, BadValue> {
    let time = parse_duration(text)?;
    if CPU_PER_CALL.contains(&time) {
        return Ok(time);
    }
    let (least, most) = CPU_PER_CALL.into_inner();
    let remedy =
        format!("choose from \"{}\" to \"{}\"", spell_duration(least), spell_duration(most));
    Err(BadValue::new(format!("{text} is out of range"), remedy))
}
