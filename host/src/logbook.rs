//! What this process has logged lately, and what it logs: for those who ask the running host.

mod json_lines;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

pub use json_lines::JsonLines;

/// Lines that are kept: what a person scrolls through. With lines of some hundred bytes that is some
/// hundred KiB.
const KEPT: usize = 1_000;

/// A longer line is not kept: a line of a module's may have what the module likes.
const LONGEST: usize = 8 << 10;

/// What this process has logged lately.
#[derive(Debug)]
pub struct Logbook {
    last: Mutex<VecDeque<Bytes>>,
    next: broadcast::Sender<Bytes>,
}

impl Default for Logbook {
    fn default() -> Self {
        Logbook { last: Mutex::default(), next: broadcast::Sender::new(KEPT) }
    }
}

impl Logbook {
    /// The last lines, oldest first, and all that come after them. Each is a JSON object and ends
    /// with a line feed.
    pub fn read(&self, lines: usize) -> (Vec<Bytes>, broadcast::Receiver<Bytes>) {
        // Under the lock, so that no line is in both or in neither.
        let last = self.last();
        let skipped = last.len().saturating_sub(lines);
        (last.iter().skip(skipped).cloned().collect(), self.next.subscribe())
    }

    /// The line that tells a reader how many it missed by being slow.
    pub fn gap(missed: u64) -> Bytes {
        let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let message = format!("{missed} lines were dropped here: they are not read fast enough");
        line(&json!({
            "event": "log", "level": "warn", "target": module_path!(), "at": now,
            "message": message, "dropped": missed,
        }))
    }

    fn write(&self, text: &Value) {
        let mut text = line(text);
        if text.len() > LONGEST {
            text = Bytes::from_static(
                b"{\"event\":\"log\",\"message\":\"a line of more than 8 KiB\"}\n",
            );
        }
        let mut last = self.last();
        if last.len() >= KEPT {
            last.pop_front();
        }
        last.push_back(text.clone());
        // Mostly nobody follows.
        self.next.send(text).ok();
    }

    fn last(&self) -> MutexGuard<'_, VecDeque<Bytes>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(value: &Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}

/// Writes all that is logged into a logbook.
#[derive(Debug)]
pub struct IntoLogbook(pub Arc<Logbook>);

impl<S: Subscriber> Layer<S> for IntoLogbook {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let IntoLogbook(logbook) = self;
        logbook.write(&Value::Object(json_lines::line_of(event)));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_the_next_ones_follow() {
        let logbook = Arc::new(Logbook::default());
        let log = tracing_subscriber::registry().with(IntoLogbook(Arc::clone(&logbook)));
        tracing::subscriber::with_default(log, || {
            (0..KEPT + 5).for_each(|number| tracing::info!(number, "counting"));
            let (last, mut next) = logbook.read(2);
            let number = |line: &Bytes| {
                serde_json::from_slice::<Value>(line).unwrap()["number"].as_u64().unwrap()
            };
            assert_eq!(last.iter().map(number).collect::<Vec<_>>(), [1_003, 1_004]);
            assert_eq!(logbook.read(usize::MAX).0.len(), KEPT);
            tracing::info!(number = 7, long = "x".repeat(LONGEST), "too long");
            tracing::info!(number = 8, "next");
            assert!(!next.try_recv().unwrap().windows(2).any(|it| it == b"xx"));
            assert_eq!(number(&next.try_recv().unwrap()), 8);
        });
    }
}
