//! What clients send, through framing, decoding, the leader, the replica and the answers.

use wok_embedded::ServerVersion;
use wok_embedded::replica::Replica;

use super::driven::{Driven, Kind};
use super::input::Input;

/// Plays an input: a byte of options, then steps. A step's byte has the connection in its lowest
/// two bits, then three bits for what happens there, see `step`, and its highest bit has all that
/// was prepared kept and answered. Two of the four connections have a session from the start.
///
/// # Panics
/// If the server does, an answer is no frame, or the log of it all brings another server elsewhere.
pub fn play(input: &[u8]) {
    let mut input = Input::new(input);
    let options = input.byte().unwrap_or_default();
    let is_set = |bit: u8| options & 1 << bit != 0;
    let kind = Kind {
        version: if is_set(0) { ServerVersion::V3_8 } else { ServerVersion::V3_9 },
        extended_types: !is_set(1),
        never_used_container_ms: is_set(2).then_some(1_000),
        enforce_quota: is_set(3),
    };
    let mut server = Driven::start(kind, Replica::new());
    server.greet(0);
    server.greet(1);
    while step(&mut server, &mut input).is_some() {}
    server.settle();
    server.assert_log_tells_all(Replica::new());
}

fn step(server: &mut Driven, input: &mut Input<'_>) -> Option<()> {
    let step = input.byte()?;
    let wire = usize::from(step & 3);
    match step >> 2 & 7 {
        0 | 1 => {
            let length = input.byte()?;
            server.frame(wire, input.bytes(length.into()));
        }
        2 => {
            let length = input.short()?;
            server.frame(wire, input.bytes(length.into()));
        }
        3 => {
            let length = input.byte()?;
            server.arrive(wire, input.bytes(length.into()));
        }
        4 => server.reconnect(wire),
        5 => server.greet(wire),
        6 => server.wait(1 << (input.byte()? & 15)),
        _ => server.sweep(),
    }
    if step & 0x80 != 0 {
        server.settle();
    }
    Some(())
}
