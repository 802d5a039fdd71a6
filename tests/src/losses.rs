//! The same play again and again, each time with another of its requests lost, or of the replies.

use std::fmt::{Display, Formatter};

use anyhow::{Context, Result};

use crate::proxy::{Action, Cut, Fault, Match, Proxy};

/// A request that the server never sees, and one whose reply nobody sees.
pub const EITHER: [Action; 2] =
    [Action::DropReplyAndCut(Cut::Reset), Action::CutBefore(Cut::Reset)];

/// The same, and a reply that is lost when the connection ends in order.
pub const EVERY: [Action; 3] = [
    Action::DropReplyAndCut(Cut::Reset),
    Action::DropReplyAndCut(Cut::Fin),
    Action::CutBefore(Cut::Reset),
];

/// What is lost in one play.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    how: Action,
    nth: usize,
}

impl Loss {
    /// Loses the request, or its reply, among those that are sent through the proxy from now on about
    /// znodes at or under the path.
    pub fn befall(self, proxy: &Proxy, path: &str) -> Fault {
        proxy.inject(Match::any().under(path).nth(self.nth), self.how)
    }
}

impl Display for Loss {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?} at request {}", self.how, self.nth)
    }
}

/// Plays with the first request lost, with the second, and so on, until one play has no more; this
/// for each way to lose one. A play answers whether its loss has struck. Answers how many have.
///
/// # Errors
/// If a play fails, with the loss that it was played with.
pub async fn each(
    ways: &[Action],
    mut play: impl AsyncFnMut(Loss) -> Result<bool>,
) -> Result<usize> {
    let mut struck = 0;
    for &how in ways {
        for nth in 1.. {
            let loss = Loss { how, nth };
            if !play(loss).await.with_context(|| loss.to_string())? {
                break;
            }
            struck += 1;
        }
    }
    Ok(struck)
}
