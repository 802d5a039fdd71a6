//! Session ids, unique over all servers and restarts.

/// Hands out session ids: the server's number in the top byte, then the time of the start.
#[derive(Debug, Clone)]
pub struct SessionIds {
    next: i64,
}

impl SessionIds {
    /// The ids of a server that started at a wall-clock time. The server's number must be less
    /// than 255: a top byte of all ones would read as a time to live.
    pub fn new(server_id: u8, start_ms: i64) -> Self {
        let time = (start_ms.cast_unsigned() << 24) >> 8;
        let next = time.cast_signed() | (i64::from(server_id.min(254)) << 56);
        // Zero asks for a new session.
        SessionIds { next: if next == 0 || next == i64::MIN { next + 1 } else { next } }
    }

    /// Passes by an id of an earlier run: the clock may have been set back since.
    #[must_use]
    pub fn past(mut self, session_id: i64) -> Self {
        if session_id >= self.next && session_id >> 56 == self.next >> 56 {
            self.next = session_id.wrapping_add(1);
        }
        self
    }

    /// The next id.
    pub fn next_id(&mut self) -> i64 {
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_the_server_and_the_time() {
        let mut ids = SessionIds::new(1, 0x1234);
        assert_eq!(ids.next_id(), 0x0100_0000_1234_0000);
        assert_eq!(ids.next_id(), 0x0100_0000_1234_0001);
    }

    #[test]
    fn ids_of_an_earlier_run_are_passed_by() {
        let ids = SessionIds::new(1, 0x1234);
        assert_eq!(ids.clone().past(0x0100_0000_1234_0007).next_id(), 0x0100_0000_1234_0008);
        for other in [0x0100_0000_1233_0007, 0x0200_0000_1234_0007] {
            assert_eq!(ids.clone().past(other).next_id(), 0x0100_0000_1234_0000);
        }
    }

    #[test]
    fn no_id_is_zero() {
        assert_ne!(SessionIds::new(0, 0).next_id(), 0);
    }
}
