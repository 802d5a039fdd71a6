//! Counts what is in the queue.

use wok_sdk::reads;
use wok_sdk::zookeeper::{Error, Reply, Request};

use crate::bindings::exports::wok::queue::queue::LengthInfo;
use crate::place::{CLAIMS, DEAD_LETTERS, ITEMS};
use crate::read::there;

/// How many items are asked for in one round trip: as many requests as the host sends at once.
const AT_ONCE: u32 = 128;

/// Counts, behind a `sync`: who asks is rarely the one that has put in or taken.
///
/// A claim may outlive its item, as that of an item does which `ack-item` has acknowledged. So the claims are
/// listed, and their items looked for: what is not in the queue is not counted as taken. The claims come
/// first, so that no more items are taken than there are.
pub(crate) fn length() -> Result<LengthInfo, Error> {
    let asks = [
        Request::Sync(ITEMS.to_owned()),
        Request::GetChildren(CLAIMS.to_owned()),
        Request::Exists(ITEMS.to_owned()),
        Request::Exists(DEAD_LETTERS.to_owned()),
    ];
    let (mut items, mut dead_letters, mut taken) = (0, 0, 0);
    for reply in reads(&asks) {
        match reply {
            // First that of items, then that of dead letters, which moves the first one to its place.
            Ok(Reply::Exists(stat)) => {
                items = std::mem::replace(&mut dead_letters, stat.map_or(0, |it| it.num_children));
            }
            Ok(Reply::Children(claims)) => loop {
                let some = claims.next(AT_ONCE);
                if some.is_empty() {
                    break;
                }
                there(some)?.iter().for_each(|_| taken += 1);
            },
            // The directory comes with the first claim.
            Ok(_) | Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(LengthInfo { items, taken, dead_letters })
}
