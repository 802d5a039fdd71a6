//! Whom a participant waits behind, as far as the host sees it.
//!
//! Who waits for another's znode to go watches that znode. Where it reads the data for that, the host
//! sees what the znode's owner wrote there, which by custom is who the owner is. A participant goes with
//! its session, so a znode that stays is nobody: a directory whose data are a setting, for instance.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::request::Stat;

/// Most characters of an owner's text that are kept: it is told to people, and anybody may have
/// written it.
const MOST: usize = 200;

/// The znode of another that a participant watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The znode.
    pub path: String,
    /// Who owns it, in words; none if its data are no text that can be told to people.
    pub owner: Option<String>,
}

impl Ahead {
    /// The owner of another's znode; none where the znode is not ephemeral, and so is nobody's.
    pub(super) fn of(path: &str, data: &[u8], stat: &Stat) -> Option<Self> {
        if stat.ephemeral_owner == 0 {
            return None;
        }
        // Numbers in binary are UTF-8 as well where they are small.
        let is_binary = |text: &str| text.contains(|c: char| c.is_control() && !is_line_break(c));
        let text = std::str::from_utf8(data).ok();
        let text = text.filter(|text| !text.is_empty() && !is_binary(text));
        let owner = text.map(|text| text.chars().take(MOST).collect());
        Some(Ahead { path: path.to_owned(), owner })
    }
}

/// The one whom a participant waits behind, for as long as it watches that one's znode.
///
/// Who has become the first in line may watch something else from then on, as the first consumer of a
/// queue watches the list of items. So the end of the watch has to forget the znode: no later read may.
#[derive(Debug, Clone, Default)]
pub(super) struct AheadSlot(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    ahead: Option<Ahead>,
    /// Counts the watches, so that one that ends forgets nothing that a later one has noted.
    number: u64,
}

impl AheadSlot {
    pub(super) fn get(&self) -> Option<Ahead> {
        self.watched().ahead.clone()
    }

    /// Notes whose znode the participant watches from now on; none if that znode is nobody's. The caller drops
    /// what this answers together with the watch, and the slot forgets the znode then.
    pub(super) fn note(&self, ahead: Option<Ahead>) -> Noted {
        let mut watched = self.watched();
        watched.ahead = ahead;
        watched.number += 1;
        Noted { slot: self.clone(), number: watched.number }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch on the znode ahead. When it is dropped, because the watch has fired or nobody holds it any
/// more, the slot forgets the znode.
#[derive(Debug)]
pub(super) struct Noted {
    slot: AheadSlot,
    number: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut watched = self.slot.watched();
        if watched.number == self.number {
            watched.ahead = None;
        }
    }
}

fn is_line_break(character: char) -> bool {
    matches!(character, '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::request::{Request, Watching};
    use crate::session::seat::{Seat, SeatLimits};
    use crate::session::stand_in::{MOUNT, StandIn, contend};
    use crate::session::watch::{Event, Watch};

    #[track_caller]
    fn owner(data: &[u8]) -> Option<String> {
        let stat = Stat { ephemeral_owner: 7, ..Stat::default() };
        Ahead::of("/a", data, &stat).unwrap().owner
    }

    #[test]
    fn an_owner_is_text_of_bounded_length() {
        assert_eq!(owner(b"ann pid 7").as_deref(), Some("ann pid 7"));
        assert_eq!(owner(b"ann\r\npid 7\n").as_deref(), Some("ann\r\npid 7\n"));
        assert_eq!(owner("ann \u{202e}7".as_bytes()).as_deref(), Some("ann \u{202e}7"));
        assert_eq!(owner(b""), None);
        assert_eq!(owner(b"\xff\x00"), None);
        assert_eq!(owner(b"\0\0\0\x02"), None);
        assert_eq!(owner(b"ann\x1b[2J"), None);
        assert_eq!(
            owner("\u{e9}".repeat(1_000).as_bytes()).map(|it| it.chars().count()),
            Some(MOST)
        );
    }

    #[test]
    fn nobody_is_ahead_with_a_znode_that_is_not_ephemeral() {
        assert_eq!(Ahead::of("/leases", b"\0\0\0\x02", &Stat::default()), None);
        assert_eq!(Ahead::of("/barrier", b"ann pid 7", &Stat::default()), None);
    }

    async fn watch(seat: &Seat, path: &str) -> Watch {
        let read = Request::GetData(path.to_owned(), Watching::Yes);
        let (_, _, watch) = seat.submit(read).await.unwrap().data().unwrap();
        watch.unwrap()
    }

    #[tokio::test]
    async fn a_participant_waits_behind_a_znode_for_as_long_as_it_watches_that() {
        let stand_in = StandIn::open();
        let (first, second) =
            (stand_in.seat(SeatLimits::default()), stand_in.seat(SeatLimits::default()));
        let path = contend(&first, MOUNT).await.unwrap();
        let behind = || second.ahead().map(|ahead| ahead.path);
        assert_eq!(behind(), None);
        let earlier = watch(&second, &path).await;
        let later = watch(&second, &path).await;
        drop(earlier);
        assert_eq!(behind().as_ref(), Some(&path), "the later one stands");
        drop(later);
        assert_eq!(behind(), None);
        let watching = watch(&second, &path).await;
        assert_eq!(behind().as_ref(), Some(&path));
        stand_in.delete(&path);
        assert_eq!(watching.fired(), Some(Event::Deleted));
        assert_eq!(behind(), None, "it is the first in line by now, and watches no znode");
    }
}
