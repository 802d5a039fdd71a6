//! Several reads in one round trip.

use crate::zookeeper::{Error, Reply, Request, pipeline};

/// Sends reads back to back, and answers them in their order. Where the connection is lost before all are
/// answered, all are sent again, with their watches: a read has no outcome that anybody would have to know.
pub fn reads(requests: &[Request]) -> Vec<Result<Reply, Error>> {
    loop {
        let replies = pipeline(requests);
        if !replies.iter().any(|reply| matches!(reply, Err(Error::OutcomeUnknown))) {
            return replies;
        }
    }
}
