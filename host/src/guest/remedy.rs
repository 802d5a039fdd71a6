//! What the log says of a request that the server refuses for what a person has set up there: the contract's
//! error, which the component is answered, has no room for the znodes.

use super::answer::Failed;
use super::state::State;
use super::surroundings::LogLevel;
use crate::session::{Failure, Refusal};

impl State {
    /// Names the znodes of a host call that an ACL, a quota or an ephemeral parent forbids, and the remedy.
    pub(super) fn log_refusal(&mut self, host_call: &str, paths: &[String], failed: &Failed) {
        let Failed::Request(Failure::Refused { refusal, index }) = failed else { return };
        let remedy = match refusal {
            Refusal::NoAuth => missing_permission(host_call),
            Refusal::NoChildrenForEphemerals => "choose another mount",
            Refusal::QuotaExceeded => "`listquota` tells the quota",
            _ => return,
        };
        let part = index.and_then(|index| paths.get(index));
        let znodes = part.cloned().unwrap_or_else(|| paths.join(", "));
        let line = format!("{host_call} {znodes}: {refusal}; {remedy}");
        let time = &self.surroundings.time;
        self.voice_box.log(LogLevel::Warn, &line, || time.now_ms());
    }
}

/// Which entry of an ACL the host call takes.
fn missing_permission(host_call: &str) -> &'static str {
    match host_call {
        "get-data" | "get-children" | "watch-data" | "watch-children" => {
            "to read a znode takes what its own ACL says"
        }
        "set-data" => "to set a znode's data takes what its own ACL says",
        _ => "to create or to delete a znode takes what the ACL of its parent says",
    }
}
