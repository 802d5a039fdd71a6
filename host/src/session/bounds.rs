//! Limits on what is sent, so that no participant can break the session for all.

use super::failure::Failure;
use super::request::{Request, Write};

/// Requests that one session has in flight at most: half of what makes a server of default
/// configuration (`globalOutstandingLimit` 1,000) stop reading its connections.
pub(super) const IN_FLIGHT: u32 = 500;

/// Child lists that one session asks for at a time: their replies are the only unbounded ones, and
/// a server keeps each whole in memory until it is sent. Each takes a permit.
pub(super) const CHILD_LISTS: usize = 8;

/// Requests in one pipeline: a guest cannot take more than a quarter of the session's share.
pub(super) const PIPELINE: usize = 128;

/// Bytes of an encoded request at most. The server drops the connection, with everybody's requests
/// on it, at `jute.maxbuffer`, 1,048,575 bytes unless configured; the rest is for what we do not
/// count exactly.
pub(super) const REQUEST_BYTES: usize = 900 * 1024;

/// Bytes of data and names that one pipeline is answered at most, and then one window of it: they
/// are in the host's memory until the last of them is there, and then in the component's.
pub(super) const PIPELINE_BYTES: usize = 8 << 20;

/// What a request costs besides paths and data: header, ACL, flags, lengths.
const OVERHEAD: usize = 100;

/// Refuses a request that the server would not accept for its size.
///
/// # Errors
/// `Invalid`, naming the size and the limit.
pub(super) fn check_size(request: &Request) -> Result<(), Failure> {
    let size = encoded_size(request);
    if size > REQUEST_BYTES {
        return Err(Failure::Invalid(format!(
            "the request is {size} bytes long, the limit is {REQUEST_BYTES}: keep the data \
             elsewhere and its address here"
        )));
    }
    Ok(())
}

/// Bytes of a request on the wire, or a little more.
pub(super) fn encoded_size(request: &Request) -> usize {
    match request {
        Request::Write(write) => write_size(write),
        Request::Multi(writes) => writes.iter().map(write_size).sum(),
        Request::Exists(path, _)
        | Request::GetData(path, _)
        | Request::GetChildren(path, _)
        | Request::Sync(path) => path.len() + OVERHEAD,
    }
}

fn write_size(write: &Write) -> usize {
    OVERHEAD
        + match write {
            Write::Create { path, data, .. } | Write::SetData { path, data, .. } => {
                path.len() + data.len()
            }
            Write::Delete { path, .. } | Write::Check { path, .. } => path.len(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_multi_are_summed() {
        let part =
            |bytes| Write::SetData { path: "/a".into(), data: vec![0; bytes], version: None };
        assert!(check_size(&Request::Multi(vec![part(500 * 1024)])).is_ok());
        let error = check_size(&Request::Multi(vec![part(500 * 1024), part(500 * 1024)]));
        assert!(matches!(error, Err(Failure::Invalid(text)) if text.contains("921600")));
    }
}
