//! Leaving, and for how long to wait for it.

use crate::participant::{Follower, Notice, Participant};

/// Has the participant leave, and tells `observe` what it says until nothing of it is left. Without
/// contact it cannot leave; once the session may not be believed in any more, nobody waits for that,
/// for the server ends the session and all that is in its ledger. That is said unless the session is
/// known to be lost: then its loss has been told.
///
/// # Cancellation
/// The participant leaves all the same.
pub async fn leave(
    participant: &Participant,
    follower: &mut Follower,
    mut observe: impl FnMut(Notice),
) {
    participant.leave();
    loop {
        // Cancel-safe: a notice stays with the follower, and the deadline is asked for anew.
        tokio::select! {
            biased;
            notice = follower.next() => match notice {
                Some(notice) => observe(notice),
                None => return,
            },
            () = until_overdue(participant) => {
                if !participant.session().is_lost() {
                    tracing::warn!("no contact with ZooKeeper; what is held or in line goes with the session");
                }
                return;
            }
        }
    }
}

/// Completes when the participant's session may not be believed in any more. Contact moves that.
pub(crate) async fn until_overdue(participant: &Participant) {
    while !participant.deadline().has_passed() {
        tokio::time::sleep(participant.deadline().remaining()).await;
    }
}
