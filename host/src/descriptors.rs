//! How many files and connections the process can have open.
//!
//! A shell gives its programs a soft limit of 1,024, for those that use `select`, and a hard limit far
//! above it, for those that ask. A daemon with thousands of apps asks. The commands that it runs get
//! back what the daemon got.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// In the environment of what is started on the way to a command: the soft limit that the command is to
/// have.
const MEMO: &str = "WOK_SOFT_NOFILE";

/// The soft limit from before it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit to the hard one; answers how many there can be, none for no limit.
#[cfg(feature = "daemon")]
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Some(soft) = current
        && current != maximum
    {
        match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            Ok(()) => {
                // The daemon raises it once, so nothing stands there.
                BEFORE.set(soft).ok();
                return maximum;
            }
            Err(error) => tracing::warn!(%error, limit = soft, "cannot have more open files"),
        }
    }
    current
}

/// What a command on its way is told of it.
pub(crate) fn memo() -> Option<(&'static str, String)> {
    BEFORE.get().map(|soft| (MEMO, soft.to_string()))
}

/// Takes the limit back, as the environment says. The environment of what follows is to be without
/// the answer.
pub(crate) fn restore() -> &'static str {
    let soft = std::env::var(MEMO).ok().and_then(|text| text.parse().ok());
    if let Some(soft) = soft {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // It was allowed before, and a limit that stays higher harms hardly anybody.
        setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum }).ok();
    }
    MEMO
}
