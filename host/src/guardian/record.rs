//! What wok and its guardian tell each other.
//!
//! They are one binary, re-executed, so the records carry no version. The channel is a pair of
//! `SOCK_SEQPACKET` sockets: a record is one packet, and an end that closes, by whatever death of
//! its process, is seen at once by the other.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
    socketpair,
};

/// From wok to the guardian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The claim is held until this instant of `CLOCK_BOOTTIME`, in nanoseconds.
    Deadline(u64),
    /// Send this signal to the command's group.
    Signal(i32),
    /// End the command in order.
    Stop,
    /// End the command at once.
    Kill,
}

/// From the guardian to wok.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The guardian has this process id. It says so before all else.
    Guardian(i32),
    /// The command leads this process group.
    Group(i32),
    /// The command could not be executed, for this errno.
    NotStarted(i32),
    /// The command exited with this code, and nothing is left of it.
    Exited(i32),
    /// The command died of this signal, and nothing is left of it.
    Signaled(i32),
    /// The command was ended because the deadline passed, and nothing is left of it.
    DeadlinePassed,
    /// The command was ended because wok ordered it, and nothing is left of it.
    Killed,
}

/// One record: a letter and a number.
type Packet = [u8; 9];

fn pack(letter: u8, number: u64) -> Packet {
    let mut packet = [letter; 9];
    packet[1..].copy_from_slice(&number.to_le_bytes());
    packet
}

fn unpack(packet: Packet) -> (u8, u64) {
    let [letter, number @ ..] = packet;
    (letter, u64::from_le_bytes(number))
}

fn pack_int(letter: u8, number: i32) -> Packet {
    pack(letter, u64::from(number.cast_unsigned()))
}

/// The number of `pack_int`, which fits by construction.
fn int(number: u64) -> i32 {
    u32::try_from(number).unwrap_or(0).cast_signed()
}

/// A record that travels in one packet.
pub(super) trait Record: Sized {
    /// As it travels.
    fn encode(self) -> Packet;
    /// What travelled; none if it is no record of this kind.
    fn decode(packet: Packet) -> Option<Self>;
}

impl Record for Order {
    fn encode(self) -> Packet {
        match self {
            Order::Deadline(nanos) => pack(b'D', nanos),
            Order::Signal(signal) => pack_int(b'S', signal),
            Order::Stop => pack(b'T', 0),
            Order::Kill => pack(b'K', 0),
        }
    }

    fn decode(packet: Packet) -> Option<Self> {
        Some(match unpack(packet) {
            (b'D', nanos) => Order::Deadline(nanos),
            (b'S', signal) => Order::Signal(int(signal)),
            (b'T', _) => Order::Stop,
            (b'K', _) => Order::Kill,
            _ => return None,
        })
    }
}

impl Record for Report {
    fn encode(self) -> Packet {
        match self {
            Report::Guardian(pid) => pack_int(b'W', pid),
            Report::Group(pid) => pack_int(b'P', pid),
            Report::NotStarted(errno) => pack_int(b'N', errno),
            Report::Exited(code) => pack_int(b'E', code),
            Report::Signaled(signal) => pack_int(b'G', signal),
            Report::DeadlinePassed => pack(b'L', 0),
            Report::Killed => pack(b'K', 0),
        }
    }

    fn decode(packet: Packet) -> Option<Self> {
        Some(match unpack(packet) {
            (b'W', pid) => Report::Guardian(int(pid)),
            (b'P', pid) => Report::Group(int(pid)),
            (b'N', errno) => Report::NotStarted(int(errno)),
            (b'E', code) => Report::Exited(int(code)),
            (b'G', signal) => Report::Signaled(int(signal)),
            (b'L', _) => Report::DeadlinePassed,
            (b'K', _) => Report::Killed,
            _ => return None,
        })
    }
}

/// What a look into the channel found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received<R> {
    /// A record.
    Record(R),
    /// Nothing for now.
    Nothing,
    /// The other end is closed: its process is gone, or has let go.
    Closed,
}

/// A new channel. Both ends are close-on-exec and do not block.
pub(super) fn channel() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Sends one record; `AGAIN` if the channel is full.
pub(super) fn tell<R: Record>(channel: impl AsFd, record: R) -> Result<(), Errno> {
    let packet = record.encode();
    retry(|| send(channel.as_fd(), &packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)).map(drop)
}

/// Takes one record. Anything unreadable counts as closed, which is the safe side: both ends then
/// kill the command.
pub(super) fn hear<R: Record>(channel: impl AsFd) -> Received<R> {
    let mut packet: Packet = [0; 9];
    let mut receive = || retry(|| recv(channel.as_fd(), &mut packet[..], RecvFlags::DONTWAIT));
    let received = match receive() {
        // The other end was closed with a record unread in it. The kernel tells that once, ahead of the
        // records that the other end has sent.
        Err(Errno::CONNRESET) => receive(),
        received => received,
    };
    match received {
        Ok((9, _)) => R::decode(packet).map_or(Received::Closed, Received::Record),
        Err(Errno::AGAIN) => Received::Nothing,
        _ => Received::Closed,
    }
}

/// Puts a descriptor into the channel, so that a process started with the other end as its
/// standard input can have the user's standard input as well, with nothing inherited by accident.
pub(super) fn hand_over(channel: impl AsFd, descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let descriptors = [descriptor];
    retry(|| {
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(channel.as_fd(), &[IoSlice::new(b"I")], &mut ancillary, SendFlags::NOSIGNAL)
    })
    .map(drop)
}

/// Waits for the descriptor that the process at the other end puts into the channel.
pub(super) fn take_over(channel: impl AsFd) -> Result<OwnedFd, Errno> {
    retry(|| {
        let mut source = [PollFd::new(&channel, PollFlags::IN)];
        poll(&mut source, None)
    })?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        channel.as_fd(),
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or(Errno::NOMSG)
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_last_is_heard_though_the_other_end_has_left_a_record_unread() {
        let (wok, guardian) = channel().unwrap();
        tell(&wok, Order::Deadline(7)).unwrap();
        tell(&guardian, Report::Guardian(1)).unwrap();
        tell(&guardian, Report::Exited(3)).unwrap();
        drop(guardian);
        for report in [Report::Guardian(1), Report::Exited(3)] {
            assert_eq!(hear::<Report>(&wok), Received::Record(report));
        }
        assert_eq!(hear::<Report>(&wok), Received::Closed);
    }

    #[test]
    fn every_record_survives_the_trip() {
        let (wok, guardian) = channel().unwrap();
        for order in [
            Order::Deadline(u64::MAX),
            Order::Deadline(0),
            Order::Signal(15),
            Order::Stop,
            Order::Kill,
        ] {
            tell(&wok, order).unwrap();
            assert_eq!(hear(&guardian), Received::Record(order));
        }
        for report in [
            Report::Guardian(4_194_303),
            Report::Group(4_194_303),
            Report::NotStarted(2),
            Report::Exited(255),
            Report::Signaled(9),
            Report::DeadlinePassed,
            Report::Killed,
        ] {
            tell(&guardian, report).unwrap();
            assert_eq!(hear(&wok), Received::Record(report));
        }
    }

    #[test]
    fn an_empty_channel_a_closed_one_and_nonsense_are_told_apart() {
        let (wok, guardian) = channel().unwrap();
        assert_eq!(hear::<Order>(&guardian), Received::Nothing);
        send(&wok, b"nonsense!", SendFlags::empty()).unwrap();
        assert_eq!(hear::<Order>(&guardian), Received::Closed);
        tell(&wok, Order::Stop).unwrap();
        drop(wok);
        assert_eq!(hear(&guardian), Received::Record(Order::Stop), "what was sent still arrives");
        assert_eq!(hear::<Order>(&guardian), Received::Closed);
    }

    #[test]
    fn a_full_channel_refuses_instead_of_blocking() {
        let (wok, _guardian) = channel().unwrap();
        let refusal = (0..1_000_000).find_map(|n| tell(&wok, Order::Deadline(n)).err());
        assert_eq!(refusal, Some(Errno::AGAIN));
    }
}
