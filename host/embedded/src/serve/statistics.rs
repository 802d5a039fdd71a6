//! Counters for the four-letter words.

use crate::protocol::OpCode;
use crate::time::Now;

/// What a server, or one of its connections, has done.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Frames that came in.
    pub received: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Requests whose answer took a known time.
    pub answered: u64,
    /// The shortest such time.
    pub min_latency_ms: u64,
    /// The longest.
    pub max_latency_ms: u64,
    /// All of them.
    pub total_latency_ms: u64,
    /// The newest answer.
    pub last: Option<LastAnswer>,
}

/// The newest answer of a connection.
#[derive(Debug, Clone)]
pub struct LastAnswer {
    /// To what.
    pub op: OpCode,
    /// The client's number of the request.
    pub xid: i32,
    /// The answer's zxid.
    pub zxid: i64,
    /// When.
    pub at: Now,
    /// How long it took.
    pub latency_ms: u64,
}

impl Statistics {
    /// The mean time to an answer.
    pub fn mean_latency_ms(&self) -> f64 {
        if self.answered == 0 {
            return 0.0;
        }
        // Far below 2^52 milliseconds.
        #[allow(clippy::cast_precision_loss, reason = "a mean that people read")]
        let mean = self.total_latency_ms as f64 / self.answered as f64;
        (mean * 10_000.0).round() / 10_000.0
    }

    pub(super) fn note(&mut self, answer: LastAnswer) {
        let latency_ms = answer.latency_ms;
        let is_first = self.answered == 0;
        self.min_latency_ms =
            if is_first { latency_ms } else { self.min_latency_ms.min(latency_ms) };
        self.max_latency_ms = self.max_latency_ms.max(latency_ms);
        self.total_latency_ms += latency_ms;
        self.answered += 1;
        self.last = Some(answer);
    }
}
