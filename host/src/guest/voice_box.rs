//! What a component says, within bounds.

use std::fmt;
use std::sync::Arc;

use super::bucket::{Bucket, Taken};
use super::limits::Limits;
use super::surroundings::{LogLevel, Voice};

/// Longest line of the log; the rest is cut off.
const MAX_LINE: usize = 4096;

/// A component's log and events, bounded in bytes per second. What is over is counted and dropped;
/// the count is told before the next line that fits, and at the end.
pub(super) struct VoiceBox {
    voice: Arc<dyn Voice>,
    log: Bucket,
    emit: Bucket,
    dropped_lines: u64,
    dropped_events: u64,
}

impl VoiceBox {
    pub(super) fn new(limits: &Limits, voice: Arc<dyn Voice>, now_ms: u64) -> Self {
        VoiceBox {
            voice,
            log: Bucket::full(limits.log_per_second.into(), now_ms),
            emit: Bucket::full(limits.emit_per_second.into(), now_ms),
            dropped_lines: 0,
            dropped_events: 0,
        }
    }

    pub(super) fn log(&mut self, level: LogLevel, message: &str, now_ms: impl FnOnce() -> u64) {
        let line = escaped(message);
        if self.log.take(line.len() as u64 + 1, now_ms) != Taken::Yes {
            self.dropped_lines += 1;
            return;
        }
        self.tell_dropped();
        self.voice.log(level, &line);
    }

    pub(super) fn emit(
        &mut self,
        event: &str,
        detail: Vec<(String, String)>,
        now_ms: impl FnOnce() -> u64,
    ) {
        let length = detail.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let length = (event.len() + length + 1) as u64;
        // Unlike a line of the log an event is not cut, so one beyond the rate never goes out.
        if length > self.emit.per_second() || self.emit.take(length, now_ms) != Taken::Yes {
            self.dropped_events += 1;
            return;
        }
        self.tell_dropped();
        self.voice.emit(event, detail);
    }

    fn tell_dropped(&mut self) {
        for (count, what) in
            [(&mut self.dropped_lines, "log lines"), (&mut self.dropped_events, "events")]
        {
            if *count > 0 {
                let message = format!("{count} {what} were dropped: too many bytes per second");
                self.voice.log(LogLevel::Warn, &message);
                *count = 0;
            }
        }
    }
}

impl Drop for VoiceBox {
    fn drop(&mut self) {
        self.tell_dropped();
    }
}

impl fmt::Debug for VoiceBox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("VoiceBox")
            .field("dropped_lines", &self.dropped_lines)
            .field("dropped_events", &self.dropped_events)
            .finish_non_exhaustive()
    }
}

/// The message as one line. Control characters would speak to the terminal of whoever reads the
/// log, and so would the ones that turn the direction of writing.
fn escaped(message: &str) -> String {
    let mut line = String::with_capacity(message.len().min(MAX_LINE));
    for character in message.chars() {
        if line.len() >= MAX_LINE {
            line.push('…');
            break;
        }
        match character {
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                line.extend(character.escape_unicode());
            }
            control if control.is_control() => line.extend(control.escape_default()),
            plain => line.push(plain),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::session::Fence;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Voice for Heard {
        fn waiting(&self, _: &str) {}
        fn held(&self, _: &str, _: Fence) {}
        fn released(&self, _: &str) {}
        fn emit(&self, event: &str, _: Vec<(String, String)>) {
            self.0.lock().unwrap().push(event.to_owned());
        }
        fn log(&self, _: LogLevel, message: &str) {
            self.0.lock().unwrap().push(message.to_owned());
        }
    }

    #[test]
    fn a_flood_is_cut_off_and_its_rest_counted() {
        let heard = Arc::new(Heard::default());
        let limits = Limits { log_per_second: 100, emit_per_second: 10, ..Limits::default() };
        let mut voice_box = VoiceBox::new(&limits, heard.clone(), 0);
        for _ in 0..1000 {
            voice_box.log(LogLevel::Info, "123456789", || 0);
        }
        assert_eq!(heard.0.lock().unwrap().len(), 10);
        voice_box.log(LogLevel::Info, "later", || 1000);
        voice_box.emit("too long an event", Vec::new(), || 5000);
        drop(voice_box);
        let heard = heard.0.lock().unwrap();
        assert_eq!(heard[10], "990 log lines were dropped: too many bytes per second");
        assert_eq!(heard[11], "later");
        assert_eq!(heard[12], "1 events were dropped: too many bytes per second");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_reaches_the_log() {
        assert_eq!(escaped("\x1b[2Jx\ny\u{9b}é\u{202e}"), r"\u{1b}[2Jx\ny\u{9b}é\u{202e}");
        assert_eq!(escaped(&"x".repeat(10_000)).chars().count(), MAX_LINE + 1);
    }
}
