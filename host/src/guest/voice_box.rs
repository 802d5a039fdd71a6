//! What a component says, within bounds.

use std::fmt;
use std::sync::Arc;

use super::bucket::{Bucket, Taken};
use super::limits::Limits;
use super::surroundings::{LogLevel, Voice};
use crate::plain_text;

/// Longest line of the log; the rest is cut off.
const MAX_LINE: usize = 4096;

/// Characters of an error that are kept for the end of the component. A panic's place and message fit.
const MAX_KEPT: usize = 400;

/// Pairs of an event at most: each is handled by itself wherever the event goes.
const MAX_PAIRS: usize = 64;

/// Bytes of an event at most, all its texts together.
const MAX_EVENT: usize = 16 << 10;

/// What a line, an event and a pair are charged besides their bytes: what the log and the followers
/// put around them, so that empty ones are none the cheaper to send by the thousand.
const AROUND: usize = 64;

/// A component's log and events, bounded in bytes per second. What is over is counted and dropped;
/// the count is told before the next line that fits, and at the end.
pub(super) struct VoiceBox {
    voice: Arc<dyn Voice>,
    log: Bucket,
    emit: Bucket,
    dropped_lines: u64,
    dropped_events: u64,
    oversized_events: u64,
    last_error: Option<String>,
}

impl VoiceBox {
    pub(super) fn new(limits: &Limits, voice: Arc<dyn Voice>, now_ms: u64) -> Self {
        VoiceBox {
            voice,
            log: Bucket::full(limits.log_per_second.into(), now_ms),
            emit: Bucket::full(limits.emit_per_second.into(), now_ms),
            dropped_lines: 0,
            dropped_events: 0,
            oversized_events: 0,
            last_error: None,
        }
    }

    /// The beginning of the last error that was logged.
    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    pub(super) fn log(&mut self, level: LogLevel, message: &str, now_ms: impl FnOnce() -> u64) {
        let line = escaped(message);
        if level == LogLevel::Error {
            self.last_error = Some(line.chars().take(MAX_KEPT).collect());
        }
        if self.log.take((line.len() + AROUND) as u64, now_ms) != Taken::Yes {
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
        let texts = detail.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let length = event.len() + texts;
        if detail.len() > MAX_PAIRS || length > MAX_EVENT {
            self.oversized_events += 1;
            return;
        }
        let charge = (length + AROUND * (1 + detail.len())) as u64;
        if self.emit.take(charge, now_ms) != Taken::Yes {
            self.dropped_events += 1;
            return;
        }
        self.tell_dropped();
        self.voice.emit(event, detail);
    }

    fn tell_dropped(&mut self) {
        let VoiceBox { dropped_lines, dropped_events, oversized_events, .. } = *self;
        if dropped_lines + dropped_events + oversized_events == 0 {
            return;
        }
        let too_fast = "too many bytes per second";
        let too_large = format!("an event has at most {MAX_PAIRS} pairs and {MAX_EVENT} bytes");
        for (count, what, why) in [
            (dropped_lines, "log lines", too_fast),
            (dropped_events, "events", too_fast),
            (oversized_events, "events", &too_large),
        ] {
            if count > 0 {
                let message = format!("{count} {what} were dropped: {why}");
                self.voice.log(LogLevel::Warn, &message);
            }
        }
        (self.dropped_lines, self.dropped_events, self.oversized_events) = (0, 0, 0);
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

/// The message as one line that may be shown on a terminal: a person may read the log there.
fn escaped(message: &str) -> String {
    let mut line = String::with_capacity(message.len().min(MAX_LINE));
    for character in message.chars() {
        if line.len() >= MAX_LINE {
            line.push('…');
            break;
        }
        plain_text::push(&mut line, character);
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
        let limits = Limits { log_per_second: 800, emit_per_second: 800, ..Limits::default() };
        let mut voice_box = VoiceBox::new(&limits, heard.clone(), 0);
        for _ in 0..1000 {
            voice_box.log(LogLevel::Info, "0123456789abcdef", || 0);
            voice_box.log(LogLevel::Info, "", || 0);
        }
        // Of 80 bytes with what is around it, and of 64.
        assert_eq!(heard.0.lock().unwrap().len(), 11);
        voice_box.log(LogLevel::Info, "later", || 1000);
        let heard = heard.0.lock().unwrap();
        assert_eq!(heard[11], "1989 log lines were dropped: too many bytes per second");
        assert_eq!(heard[12], "later");
    }

    #[test]
    fn empty_pairs_are_charged_as_others_are_and_an_event_has_only_so_many() {
        let heard = Arc::new(Heard::default());
        let mut voice_box = VoiceBox::new(&Limits::default(), heard.clone(), 0);
        let pairs = |count| vec![(String::new(), String::new()); count];
        for _ in 0..1000 {
            voice_box.emit("few", pairs(MAX_PAIRS), || 0);
        }
        for _ in 0..1000 {
            voice_box.emit("many", pairs(MAX_PAIRS + 1), || 0);
            voice_box.emit("large", vec![("x".repeat(MAX_EVENT), String::new())], || 0);
        }
        // Each of 65 parts.
        let fit = Limits::default().emit_per_second as usize / (AROUND * (1 + MAX_PAIRS));
        assert_eq!(*heard.0.lock().unwrap(), vec!["few".to_owned(); fit]);
        drop(voice_box);
        let heard = heard.0.lock().unwrap();
        let dropped = 1000 - fit;
        assert_eq!(heard[fit], format!("{dropped} events were dropped: too many bytes per second"));
        let told = "2000 events were dropped: an event has at most 64 pairs and 16384 bytes";
        assert_eq!(heard[fit + 1], told);
    }

    #[test]
    fn the_last_error_is_kept_also_where_the_log_has_no_room() {
        let limits = Limits { log_per_second: 70, ..Limits::default() };
        let mut voice_box = VoiceBox::new(&limits, Arc::new(Heard::default()), 0);
        voice_box.log(LogLevel::Info, "", || 0);
        assert_eq!(voice_box.last_error(), None);
        voice_box.log(LogLevel::Error, "first", || 0);
        voice_box.log(LogLevel::Error, "panicked at a.rs:1:2:\nso", || 0);
        voice_box.log(LogLevel::Warn, "later", || 0);
        assert_eq!(voice_box.last_error(), Some(r"panicked at a.rs:1:2:\nso"));
        voice_box.log(LogLevel::Error, &"é".repeat(MAX_KEPT + 1), || 0);
        assert_eq!(voice_box.last_error(), Some(&*"é".repeat(MAX_KEPT)));
    }

    #[test]
    fn nothing_that_a_terminal_obeys_reaches_the_log() {
        assert_eq!(escaped("\x1b[2Jx\ny\u{9b}é\u{202e}"), r"\u{1b}[2Jx\ny\u{9b}é\u{202e}");
        assert_eq!(escaped(&"x".repeat(10_000)).chars().count(), MAX_LINE + 1);
    }
}
