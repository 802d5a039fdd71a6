//! What a participant tells, as lines of the log.

use serde_json::Value;
use tracing::{info, warn};

use crate::participant::{Ending, Notice, detail_as_json};
use crate::session::Held;

/// Writes a notice to the log.
pub(super) fn log_notice(recipe: &str, notice: &Notice) {
    match notice {
        Notice::Waiting { path } => info!(recipe, path, "standing in line"),
        Notice::Held(Held { path, fence }) => info!(recipe, path, fence, "held"),
        Notice::Released { path } => info!(recipe, path, "released"),
        Notice::Idle => info!(recipe, "waits for nothing any more, and holds nothing"),
        Notice::Leaving(leaving) => info!(recipe, why = leaving.why, "asked to end"),
        Notice::Suspended => {
            info!(
                recipe,
                "contact with ZooKeeper is in doubt; what is held stands until its loss is told"
            );
        }
        Notice::Resumed => info!(recipe, "in contact with ZooKeeper again"),
        Notice::Emitted { event, detail } => {
            let detail = Value::Object(detail_as_json(detail));
            info!(recipe, name = event, %detail, "the module tells");
        }
        Notice::Lost(loss) => {
            warn!(recipe, reason = loss.reason(), cause = loss.cause(), %loss, "lost");
        }
        Notice::Ended(Ending::Left) => info!(recipe, "left"),
        Notice::Ended(Ending::Lost(loss)) => {
            warn!(recipe, reason = loss.reason(), cause = loss.cause(), %loss, "ended by a loss");
        }
        Notice::Ended(Ending::Failed(fault)) => {
            warn!(recipe, %fault, cause = fault.kind(), "ended by its module");
        }
    }
}
