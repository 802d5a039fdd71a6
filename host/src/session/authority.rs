//! On whose word an answer is: the server's that gave it, the leader's, or a majority's.

use super::contact::Authority;
use super::failure::{Failure, Refusal};
use super::omission::Omission;
use super::request::{Reply, Request};

/// What must be remembered of a request to say, once it is answered, on whose word the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    authority: Authority,
    is_single_write: bool,
}

impl Asked {
    pub(super) fn of(request: &Request) -> Self {
        let authority = match request {
            // The client library answers an empty one by itself.
            Request::Multi(writes) if writes.is_empty() => Authority::Server,
            Request::Write(_) | Request::Multi(_) => Authority::Quorum,
            Request::Sync(_) => Authority::Leader,
            Request::Exists(..) | Request::GetData(..) | Request::GetChildren(..) => {
                Authority::Server
            }
        };
        Asked { authority, is_single_write: matches!(request, Request::Write(_)) }
    }

    /// On whose word the answer is. None if there was no answer, or if the answer is a refusal that the server
    /// or the client library may have made up.
    pub(super) fn authority(
        self,
        answer: &Result<Reply, Failure>,
        omits: impl Fn(Omission) -> bool,
    ) -> Option<Authority> {
        match answer {
            // With `zookeeper.enableEagerACLCheck` a server refuses a single write by itself where the
            // access list is in the way, and asks nobody.
            Err(Failure::Refused { refusal: Refusal::NoAuth, .. }) if self.is_single_write => {
                return Some(Authority::Server);
            }
            Ok(_) => {}
            Err(Failure::Refused { refusal, .. })
                if refusal.is_of_the_tree() || omits(Omission::MadeUpAnswer) => {}
            Err(_) => return None,
        }
        Some(match self.authority {
            Authority::Server if omits(Omission::HeartbeatByRead) => Authority::Quorum,
            Authority::Leader if omits(Omission::HeartbeatBySync) => Authority::Quorum,
            authority => authority,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::{Watching, Write, Written};
    use super::*;

    fn path() -> String {
        "/a".to_owned()
    }

    fn single() -> Request {
        Request::Write(Write::Delete { path: path(), version: None })
    }

    fn multi() -> Request {
        Request::Multi(vec![Write::Check { path: path(), version: None }])
    }

    #[track_caller]
    fn check(request: &Request, answer: Result<Reply, Failure>, expected: Option<Authority>) {
        let found = Asked::of(request).authority(&answer, |_| false);
        assert_eq!(found, expected, "{request:?}: {answer:?}");
    }

    #[test]
    fn an_answer_is_on_the_word_of_those_who_must_have_taken_part_in_it() {
        check(&single(), Ok(Reply::Written(Written::Deleted)), Some(Authority::Quorum));
        check(&multi(), Ok(Reply::Multi(vec![Written::Checked])), Some(Authority::Quorum));
        check(&Request::Multi(Vec::new()), Ok(Reply::Multi(Vec::new())), Some(Authority::Server));
        check(&Request::Sync(path()), Ok(Reply::Synced), Some(Authority::Leader));
        let exists = Request::Exists(path(), Watching::No);
        check(&exists, Ok(Reply::Exists(None, None)), Some(Authority::Server));
    }

    #[test]
    fn a_write_that_the_ensemble_refuses_is_a_majoritys_answer_too() {
        let refusals = [Refusal::NoNode, Refusal::NodeExists, Refusal::BadVersion];
        for refusal in refusals {
            check(&single(), Err(refusal.clone().into()), Some(Authority::Quorum));
            check(&multi(), Err(refusal.into()), Some(Authority::Quorum));
        }
    }

    #[test]
    fn a_single_write_that_an_access_list_forbids_is_refused_by_one_server_perhaps() {
        check(&single(), Err(Refusal::NoAuth.into()), Some(Authority::Server));
        check(&multi(), Err(Refusal::NoAuth.into()), Some(Authority::Quorum));
    }

    #[test]
    fn what_a_server_or_the_client_may_have_made_up_is_nobodys_word() {
        for refusal in [Refusal::Throttled, Refusal::Unimplemented, Refusal::Other(path())] {
            check(&single(), Err(refusal.into()), None);
        }
        for failure in [Failure::OutcomeUnknown, Failure::SessionLost] {
            check(&multi(), Err(failure), None);
        }
    }
}
