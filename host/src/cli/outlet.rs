//! Lines that are written by a thread of their own, so that nothing else waits for who reads them.
//!
//! A log collector stalls, a terminal is stopped with Ctrl-S, a parent reads nothing: then a write
//! blocks for as long as that lasts, and with it the heartbeats of a session and the deadlines of a
//! command. So lines go into a bounded queue. What finds no room is dropped and counted, and the count is
//! told where the lines would have been.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Bytes of the log that wait at most: as much as a pipe keeps, so some hundreds of lines.
const LOG_BYTES: usize = 64 << 10;

/// Bytes that wait at most with what the command itself says: a flood of the log leaves room for
/// the line that tells of a loss.
const ALL_BYTES: usize = 4 * LOG_BYTES;

/// Bytes of one write: a pipe takes so many as one, so no other program's line gets between.
const CHUNK: usize = 4096;

/// The end of a command does not wait for a reader that took nothing for so long …
const STALLED: Duration = Duration::from_millis(500);

/// … nor for a slow one for longer than this, in which it reads a full log at 30 KB a second.
const LAST_LINES: Duration = Duration::from_secs(3);

/// How it is told that lines were dropped.
pub(super) type Tell = fn(u64) -> String;

/// A descriptor without the lock that the standard library has for it: who panics while it is blocked would
/// wait for that.
pub(super) struct Descriptor<T>(pub(super) T);

impl<T: AsFd> Write for Descriptor<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.0, bytes) {
            // It does not block: somebody who shares it has made it so.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                Ok(0)
            }
            outcome => Ok(outcome?),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Who says a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An operation, by its answer: of those there is one, and it finds room however long it is.
    Answered,
    Said,
    Logged,
}

/// Lines that wait for their reader, so that nobody else does.
#[derive(Debug)]
pub(super) struct Outlet {
    queue: Mutex<Queue>,
    changed: Condvar,
    tell: Tell,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    /// Of these lines.
    bytes: usize,
    /// Lines that were dropped and not told of.
    dropped: u64,
    is_writing: bool,
    /// Grows with every write that the reader took.
    writes: u64,
}

impl Outlet {
    /// One whose lines a thread of that name writes. None where no thread can be started.
    pub(super) fn start(
        tell: Tell,
        thread: &str,
        sink: impl Write + Send + 'static,
    ) -> Option<Arc<Self>> {
        let outlet = Arc::new(Outlet::new(tell));
        let writing = Arc::clone(&outlet);
        let thread = thread::Builder::new().name(thread.to_owned());
        thread.spawn(move || writing.write_in_the_background(sink)).ok()?;
        Some(outlet)
    }

    /// Writes with SIGTTOU blocked. With `stty tostop` the kernel sends that signal to a program that writes to
    /// its terminal while a command has the foreground, and the signal stops all threads of the program.
    fn write_in_the_background(&self, sink: impl Write) {
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTTOU);
        // The kernel refuses only an unknown way of setting the mask, and this one is known.
        stop.thread_block().ok();
        self.write_to(sink);
    }

    fn new(tell: Tell) -> Self {
        Outlet { queue: Mutex::default(), changed: Condvar::new(), tell }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a line written when its turn comes, with its end.
    pub(super) fn push(&self, line: Vec<u8>, kind: Kind) {
        let mut queue = self.queue();
        let most = match kind {
            Kind::Answered => usize::MAX,
            Kind::Said => ALL_BYTES,
            // Once lines are dropped, it is for a while: not a line here and a count there.
            Kind::Logged if queue.dropped > 0 => LOG_BYTES / 2,
            Kind::Logged => LOG_BYTES,
        };
        if queue.bytes + line.len() > most {
            queue.dropped += 1;
            return;
        }
        self.tell_dropped(&mut queue);
        queue.push(line);
        drop(queue);
        self.changed.notify_all();
    }

    /// Tells in its place what was dropped.
    fn tell_dropped(&self, queue: &mut Queue) {
        if queue.dropped > 0 {
            let told = (self.tell)(queue.dropped);
            queue.push(format!("{told}\n").into_bytes());
            queue.dropped = 0;
        }
    }

    /// Writes for ever.
    fn write_to(&self, mut sink: impl Write) {
        loop {
            let line = self.next();
            let mut rest = line.as_slice();
            while let Some(chunk) = rest.get(..rest.len().min(CHUNK)).filter(|it| !it.is_empty()) {
                match sink.write(chunk) {
                    Ok(taken) => {
                        rest = rest.get(taken..).unwrap_or_default();
                        self.queue().writes += u64::from(taken > 0);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // A reader that closed our output does not want to know.
                    Err(_) => break,
                }
            }
            self.queue().is_writing = false;
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Vec<u8> {
        let mut queue = self.queue();
        loop {
            if queue.lines.is_empty() {
                self.tell_dropped(&mut queue);
            }
            if let Some(line) = queue.lines.pop_front() {
                queue.bytes -= line.len();
                queue.is_writing = true;
                return line;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives what was said last the time to be read, if anybody reads.
    pub(super) fn finish(&self) {
        let mut queue = self.queue();
        self.tell_dropped(&mut queue);
        let start = Instant::now();
        let (mut writes, mut since) = (queue.writes, start);
        while queue.is_writing || !queue.lines.is_empty() {
            if queue.writes != writes {
                (writes, since) = (queue.writes, Instant::now());
            }
            if since.elapsed() >= STALLED || start.elapsed() >= LAST_LINES {
                return;
            }
            let waited = self.changed.wait_timeout(queue, STALLED / 10);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Queue {
    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.lines.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    /// A pipe that takes a write when it is let.
    struct Gated(Receiver<()>, SyncSender<Vec<u8>>);

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            self.1.send(bytes.to_owned()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn outlet() -> (Arc<Outlet>, SyncSender<()>, Receiver<Vec<u8>>) {
        let (take, taken) = sync_channel(10_000);
        let (write, written) = sync_channel(10_000);
        let outlet = Arc::new(Outlet::new(|count| format!("{count} dropped")));
        let writing = Arc::clone(&outlet);
        thread::spawn(move || writing.write_to(Gated(taken, write)));
        (outlet, take, written)
    }

    #[test]
    fn nobody_waits_for_a_reader_that_reads_nothing_and_what_is_dropped_is_told_in_its_place() {
        let (outlet, take, written) = outlet();
        let line = vec![b'x'; 1023].into_iter().chain([b'\n']).collect::<Vec<_>>();
        for _ in 0..1000 {
            outlet.push(line.clone(), Kind::Logged);
        }
        outlet.push(b"lost\n".to_vec(), Kind::Said);
        let start = Instant::now();
        outlet.finish();
        assert!(start.elapsed() >= STALLED, "{:?}", start.elapsed());
        for _ in 0..1000 {
            take.send(()).unwrap();
        }
        outlet.finish();
        let lines: Vec<_> = written.try_iter().collect();
        let logged = lines.iter().filter(|it| **it == line).count();
        // One more is in the thread's hands.
        assert!((64..=65).contains(&logged), "{logged}");
        let rest: Vec<_> =
            lines.iter().skip(logged).map(|it| String::from_utf8_lossy(it)).collect();
        assert_eq!(rest, [format!("{} dropped\n", 1000 - logged), "lost\n".to_owned()]);
    }

    #[test]
    fn an_answer_finds_room_where_nothing_else_does() {
        let (outlet, take, written) = outlet();
        for _ in 0..1000 {
            outlet.push(vec![b'x'; 1024], Kind::Said);
        }
        outlet.push(b"answer\n".to_vec(), Kind::Answered);
        for _ in 0..1000 {
            take.send(()).unwrap();
        }
        assert!(written.iter().any(|it| it == b"answer\n"));
    }

    #[test]
    fn what_is_dropped_last_is_told_when_the_reader_has_caught_up() {
        let (outlet, take, written) = outlet();
        for _ in 0..100 {
            outlet.push(vec![b'x'; 1024], Kind::Logged);
        }
        for _ in 0..200 {
            take.send(()).unwrap();
        }
        let last = written.iter().find(|it| it.ends_with(b" dropped\n"));
        assert!(last.is_some());
    }

    #[test]
    fn a_long_line_is_written_in_parts_and_whole() {
        let (outlet, take, written) = outlet();
        outlet.push(vec![b'y'; 3 * CHUNK + 1], Kind::Said);
        for _ in 0..4 {
            take.send(()).unwrap();
        }
        outlet.finish();
        let lengths: Vec<_> = written.try_iter().map(|it| it.len()).collect();
        assert_eq!(lengths, [CHUNK, CHUNK, CHUNK, 1]);
    }
}
