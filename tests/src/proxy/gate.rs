//! Holding bytes back.

use tokio::sync::watch;

/// A direction of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the clients to the server.
    Requests,
    /// From the server to the clients.
    Replies,
    /// Both.
    Both,
}

impl Direction {
    fn has_requests(self) -> bool {
        self != Direction::Replies
    }

    fn has_replies(self) -> bool {
        self != Direction::Requests
    }
}

/// How far a door is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    /// Everything passes.
    Open,
    /// No bytes pass. A peer still hears that the other one has closed its connection.
    Closed,
    /// Nothing passes, as where a link is cut.
    Sealed,
}

/// Two doors, one for each direction. Open at first.
#[derive(Debug)]
pub(super) struct Gate {
    requests: watch::Sender<Door>,
    replies: watch::Sender<Door>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Gate { requests: watch::Sender::new(Door::Open), replies: watch::Sender::new(Door::Open) }
    }

    pub(super) fn close(&self, direction: Direction) {
        self.shut(direction, Door::Closed);
    }

    pub(super) fn seal(&self, direction: Direction) {
        self.shut(direction, Door::Sealed);
    }

    pub(super) fn open(&self) {
        self.requests.send_replace(Door::Open);
        self.replies.send_replace(Door::Open);
    }

    fn shut(&self, direction: Direction, to: Door) {
        // A door that is sealed stays so when it is closed as well.
        let shut = |door: &mut Door| *door = to.max(*door);
        if direction.has_requests() {
            self.requests.send_modify(shut);
        }
        if direction.has_replies() {
            self.replies.send_modify(shut);
        }
    }

    /// Waits until bytes pass.
    pub(super) async fn pass_bytes(&self, is_request: bool) {
        self.wait_for(is_request, Door::Open).await;
    }

    /// Waits until the end of a stream passes.
    pub(super) async fn pass_end(&self, is_request: bool) {
        self.wait_for(is_request, Door::Closed).await;
    }

    /// Waits until a door is closed no further than that.
    async fn wait_for(&self, is_request: bool, at_most: Door) {
        let door = if is_request { &self.requests } else { &self.replies };
        // It fails only if the sender is gone, which is borrowed here.
        door.subscribe().wait_for(|door| *door <= at_most).await.ok();
    }
}
