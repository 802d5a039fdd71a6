//! Errors in words.

use crate::zookeeper::Error;

/// Why a request failed, in words for people. An error's own text is its name in the code, and brings all of
/// `Debug` along.
pub fn reason(error: &Error) -> &str {
    match error {
        Error::Denied(text)
        | Error::OverLimit(text)
        | Error::Invalid(text)
        | Error::Other(text) => text,
        Error::NoNode => "there is no such znode",
        Error::NodeExists => "the znode is there",
        Error::NotEmpty => "the znode has children",
        Error::BadVersion => "the znode has another version",
        Error::NoChildrenForEphemerals => "an ephemeral znode has no children",
        Error::NoAuth => "the ACL does not allow it",
        Error::QuotaExceeded => "the quota is used up",
        Error::OutcomeUnknown => "the reply was lost",
        Error::Cancelled => "the caller has withdrawn",
    }
}
