//! What one component may use.

use std::time::Duration;

use wasmtime::ResourceLimiter;

/// What one component may use. The `[recipes.<name>.limits]` of the config set some of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of linear memory; `limits.memory`.
    pub memory: u64,
    /// Entries of a table.
    pub table_elements: u64,
    /// Processor time of one call, which gets back the time for which it waits, up to the whole;
    /// `limits.cpu-per-call`.
    pub cpu_per_call: Duration,
    /// Watches and alarms owned at once; `limits.watches`.
    pub watches: u32,
    /// Child lists owned at once.
    pub child_lists: u32,
    /// Bytes of names in those lists, beyond which no more is asked for.
    pub child_list_bytes: u64,
    /// Requests to the ensemble per second; `limits.calls-per-second`. Faster ones are slowed down.
    pub calls_per_second: u32,
    /// Bytes written to the ensemble per second; `limits.written-per-second`. More is slowed down.
    pub written_per_second: u64,
    /// Parts of a `multi`, requests of a `pipeline`.
    pub batch: u32,
    /// Bytes logged per second.
    pub log_per_second: u32,
    /// Bytes emitted per second.
    pub emit_per_second: u32,
    /// Bytes that the component may hand to the host in one call.
    pub hostcall_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // The stock recipes use 1.1 MiB, of which a Rust guest's stack is one.
            memory: 16 << 20,
            // Tables hold functions whose address is taken: the stock recipes have under 100.
            table_elements: 10_000,
            // A look at 10,000 contenders takes a few milliseconds.
            cpu_per_call: Duration::from_millis(100),
            // A waiter watches its predecessor and its own znode; a barrier of 64 watches each.
            watches: 64,
            // A recipe looks at one directory at a time; two-phase commit looks at a few.
            child_lists: 16,
            // Eighty thousand contenders. One list of more is answered all the same.
            child_list_bytes: 8 << 20,
            // A cycle of the lock takes 4; a client that does nothing else makes some 500 of them
            // a second on a server that syncs. Ensembles serve tens of thousands of requests.
            calls_per_second: 5000,
            // A thousand items of a kilobyte. A server keeps its last 500 transactions in memory.
            written_per_second: 1 << 20,
            // A batch is built in the memory of both sides, and answered as a whole.
            batch: 128,
            // A page of text per second is more than anybody reads.
            log_per_second: 64 << 10,
            // Followers that are slow get events over a socket with a buffer of about this size.
            emit_per_second: 64 << 10,
            // So that a `create` of 2 MiB is answered `invalid` rather than trapped.
            hostcall_bytes: (2 << 20) + (64 << 10),
        }
    }
}

/// A limit that cannot be answered as an error of a host call, so that it ends the component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}: over {maximum}")]
pub(super) struct LimitReached {
    /// What there was too much of, in words.
    pub(super) what: &'static str,
    /// The limit.
    pub(super) maximum: u64,
    /// Where the config raises it; none if it is fixed.
    pub(super) key: Option<&'static str>,
}

/// Watches the growth of a store's memories and tables.
#[derive(Debug)]
pub(super) struct Growth {
    memory: u64,
    table_elements: u64,
    /// What was denied since this was last taken: an allocator that gets no more usually gives up
    /// with a trap that does not tell why.
    pub(super) denied: Option<LimitReached>,
}

impl Growth {
    pub(super) fn new(limits: &Limits) -> Self {
        let Limits { memory, table_elements, .. } = *limits;
        Growth { memory, table_elements, denied: None }
    }

    fn within(&mut self, desired: usize, limit: LimitReached) -> bool {
        let fits = desired as u64 <= limit.maximum;
        if !fits {
            self.denied = Some(limit);
        }
        fits
    }
}

impl ResourceLimiter for Growth {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let key = Some("limits.memory");
        let limit = LimitReached { what: "bytes of memory", maximum: self.memory, key };
        Ok(self.within(desired, limit))
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let maximum = self.table_elements;
        Ok(self.within(desired, LimitReached { what: "entries of a table", maximum, key: None }))
    }

    fn instances(&self) -> usize {
        super::engine::CORE_INSTANCES_PER_COMPONENT as usize
    }

    fn tables(&self) -> usize {
        super::engine::TABLES_PER_COMPONENT as usize
    }

    fn memories(&self) -> usize {
        1
    }
}
