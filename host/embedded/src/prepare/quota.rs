//! Whether a change is within its quota.

use tracing::warn;

use super::{Asked, Leader};
use crate::protocol::ErrorCode;
use crate::replica::Replica;
use crate::tree::{Limit, Quota};

/// How often an exceeded quota is told of at most.
const TELL_EVERY_MS: u64 = 1_000;

/// By how much a change makes more of what is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grown {
    pub(super) nodes: i64,
    /// The node's bytes.
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Leader {
    /// As Apache ZooKeeper looks at it: at what has been applied, so that what is prepared meanwhile,
    /// the rest of a multi among it, may exceed the limit together.
    ///
    /// # Errors
    /// [`ErrorCode::QuotaExceeded`], beyond a hard limit.
    pub(super) fn check_quota(
        &mut self,
        replica: &Replica,
        asked: &Asked,
        path: &str,
        grown: Grown,
    ) -> Result<(), ErrorCode> {
        if !self.options.enforce_quota {
            return Ok(());
        }
        let Some(quota) = replica.tree().quota_of(path) else { return Ok(()) };
        let Quota { path, limits, counted: Some(counted) } = quota else { return Ok(()) };
        let bytes = signed(grown.to) - signed(grown.from);
        let checks = [
            ("nodes", limits.count_limit(), counted.count(), grown.nodes),
            ("bytes", limits.bytes_limit(), counted.bytes(), bytes),
        ];
        for (what, limit, count, more) in checks {
            let (Some(limit), true) = (limit, more != 0) else { continue };
            let (Limit::Soft(most) | Limit::Hard(most)) = limit;
            let sum = count.wrapping_add(more);
            if sum <= most {
                continue;
            }
            if self.is_quota_to_be_told(asked.now.elapsed_ms) {
                warn!(path, what, sum, ?limit, "a quota is exceeded");
            }
            if matches!(limit, Limit::Hard(_)) {
                return Err(ErrorCode::QuotaExceeded);
            }
        }
        Ok(())
    }

    fn is_quota_to_be_told(&mut self, now_ms: u64) -> bool {
        let told = self.quota_told_ms;
        let is_due = told.is_none_or(|told| now_ms.saturating_sub(told) >= TELL_EVERY_MS);
        if is_due {
            self.quota_told_ms = Some(now_ms);
        }
        is_due
    }
}

/// Data is limited by the longest frame.
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
