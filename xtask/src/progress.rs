//! What the user sees while something takes its time.

use std::fmt::Arguments;
use std::io::Write;
use std::time::{Duration, Instant};

/// How often a quiet piece of work shows that it is alive.
const BEAT: Duration = Duration::from_secs(3);

/// Prints a line. Unlike `println!` it does not end the program, and with it the work, when the
/// reader of its output is gone.
macro_rules! say {
    ($($text:tt)*) => { $crate::progress::print(format_args!("{}\n", format_args!($($text)*))) };
}
pub(crate) use say;

/// Prints text and makes it visible now.
pub(crate) fn print(text: Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    let _reader_gone = stdout.write_fmt(text).and_then(|()| stdout.flush());
}

/// Announces a part of the work.
pub(crate) fn heading(text: &str) {
    say!("\n== {text}");
}

/// Reports something that was looked at and found right.
pub(crate) fn found(text: &str) {
    say!("✓ {text}");
}

/// Reports something that was looked at and found wrong.
pub(crate) fn wrong(text: &str) {
    say!("✗ {text}");
}

/// A duration as people read it.
pub(crate) fn spell(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

/// A piece of quiet work: its name, then a dot now and again, then what came of it.
pub(crate) struct Work {
    started: Instant,
    beat: Instant,
}

impl Work {
    /// Prints what begins now.
    pub(crate) fn begin(text: &str) -> Self {
        print(format_args!("  {text} "));
        let now = Instant::now();
        Self { started: now, beat: now }
    }

    /// Prints a dot if the last one is long enough ago.
    pub(crate) fn tick(&mut self) {
        if self.beat.elapsed() >= BEAT {
            self.beat = Instant::now();
            print(format_args!("."));
        }
    }

    /// Prints what came of it, and how long it took.
    pub(crate) fn end(self, outcome: &str) {
        say!(" {outcome} ({})", spell(self.started.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_spelled_by_their_size() {
        assert_eq!(spell(Duration::from_millis(1_250)), "1.2 s");
        assert_eq!(spell(Duration::from_secs(185)), "3 min 05 s");
    }
}
