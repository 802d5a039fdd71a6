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

/// Two doors, one for each direction. Open at first.
#[derive(Debug)]
pub(super) struct Gate {
    requests: watch::Sender<bool>,
    replies: watch::Sender<bool>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Gate { requests: watch::Sender::new(true), replies: watch::Sender::new(true) }
    }

    pub(super) fn close(&self, direction: Direction) {
        self.set(direction, false);
    }

    pub(super) fn open(&self) {
        self.set(Direction::Both, true);
    }

    fn set(&self, direction: Direction, open: bool) {
        if direction.has_requests() {
            self.requests.send_replace(open);
        }
        if direction.has_replies() {
            self.replies.send_replace(open);
        }
    }

    pub(super) async fn pass_requests(&self) {
        pass(&self.requests).await;
    }

    pub(super) async fn pass_replies(&self) {
        pass(&self.replies).await;
    }
}

async fn pass(door: &watch::Sender<bool>) {
    // It fails only if the sender is gone, which is borrowed here.
    door.subscribe().wait_for(|open| *open).await.ok();
}
