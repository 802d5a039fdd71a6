//! What a look at the barrier means, and what stands in its znode.

/// What a look tells a participant that has met the barrier before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The barrier that was met is gone, whether or not another one is up by now.
    Lowered,
    /// It is still the one that was met.
    StillUp,
}

/// Decides by the barrier's `czxid`: that of the one that was met, and that of the one that is up
/// now, if any is. A znode that is created anew has another one, so a barrier that was lowered and
/// raised again between two looks is not taken for the one that was met.
pub(crate) fn seen(met: u64, now: Option<u64>) -> Seen {
    if now == Some(met) { Seen::StillUp } else { Seen::Lowered }
}

/// Whose barrier is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Raiser {
    /// The call with that mark has raised it.
    ThisCall,
    /// Somebody else has, in that participant's words; or this participant in an earlier call.
    Other(String),
}

/// What every mark begins with.
const MARK: &str = "raise-";

/// The mark of a call, by which the call knows its own barrier after a lost reply.
pub(crate) fn mark(participant: &str, number: u32) -> String {
    format!("{MARK}{participant}-{number}")
}

/// The data of a barrier: who raises it, and in a line of its own the mark of the call.
pub(crate) fn data(owner: &str, mark: &str) -> Vec<u8> {
    format!("{owner}\n{mark}").into_bytes()
}

/// Who raised the barrier with these data, as the call with that mark sees it. Other clients write
/// what they want: Curator an address, kazoo nothing.
pub(crate) fn raiser(data: &[u8], own_mark: &str) -> Raiser {
    let text = String::from_utf8_lossy(data);
    match text.rsplit_once('\n') {
        Some((_, mark)) if mark == own_mark => Raiser::ThisCall,
        Some((owner, mark)) if mark.starts_with(MARK) => Raiser::Other(owner.to_owned()),
        _ => Raiser::Other(text.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_that_is_gone_was_lowered() {
        assert_eq!(seen(7, None), Seen::Lowered);
    }

    #[test]
    fn the_same_barrier_is_still_up() {
        assert_eq!(seen(7, Some(7)), Seen::StillUp);
    }

    #[test]
    fn a_barrier_that_was_raised_again_between_two_looks_was_lowered() {
        assert_eq!(seen(7, Some(9)), Seen::Lowered);
    }

    #[test]
    fn a_call_knows_its_own_barrier_and_no_other_one() {
        let own = mark("p1", 2);
        assert_eq!(raiser(&data("the nightly job", &own), &own), Raiser::ThisCall);
        for other in [mark("p1", 1), mark("p1", 20), mark("p2", 2)] {
            let found = raiser(&data("the nightly job", &other), &own);
            assert_eq!(found, Raiser::Other("the nightly job".to_owned()));
        }
    }

    #[test]
    fn an_owner_of_several_lines_keeps_them() {
        let found = raiser(&data("one\ntwo", &mark("p2", 0)), &mark("p1", 0));
        assert_eq!(found, Raiser::Other("one\ntwo".to_owned()));
    }

    #[test]
    fn what_other_clients_write_is_shown_as_it_is() {
        for (data, owner) in [
            (&b""[..], ""),
            (b"192.0.2.7", "192.0.2.7"),
            (b"two\nlines", "two\nlines"),
            (b"\xff", "\u{fffd}"),
        ] {
            assert_eq!(raiser(data, &mark("p1", 0)), Raiser::Other(owner.to_owned()), "{data:?}");
        }
    }
}
