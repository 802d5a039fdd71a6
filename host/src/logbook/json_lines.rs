//! Lines of the log for programs: one flat JSON object each, as the events of commands are.

use std::fmt;
use std::time::SystemTime;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::guest::values::unsigned;

/// Writes what is logged as `{"event":"log","level":"info","message":…}` with its fields beside.
#[derive(Debug)]
pub struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        writeln!(writer, "{}", Value::Object(line_of(event)))
    }
}

/// What is logged, as a flat object.
pub(super) fn line_of(event: &Event<'_>) -> Map<String, Value> {
    let mut fields = Fields(Map::new());
    event.record(&mut fields);
    let Fields(mut line) = fields;
    // Over what a field of such a name says: these are what every line has.
    let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let level = event.metadata().level().as_str().to_lowercase();
    for (name, value) in [
        ("event", "log"),
        ("level", level.as_str()),
        ("target", event.metadata().target()),
        ("at", now.as_str()),
    ] {
        line.insert(name.to_owned(), json!(value));
    }
    line
}

/// The fields of a line. Numbers stay numbers, as in answers.
struct Fields(Map<String, Value>);

impl Fields {
    fn insert(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, unsigned(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        // What a module tells is JSON already.
        let value = match field.name() {
            "detail" | "answer" => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            _ => Value::String(text),
        };
        self.insert(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_of_the_log_is_one_flat_object() {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt()
            .event_format(JsonLines)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(log, || {
            let (recipe, fence) = ("orders", 7_u64);
            let detail = json!({ "fence": 7 });
            tracing::warn!(recipe, fence, %detail, error = %"no\nway", level = "mine", "not held");
        });
        let bytes = written.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8(bytes).unwrap();
        let mut line: Value = serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap();
        assert!(line.as_object_mut().unwrap().remove("at").is_some(), "{line}");
        let expected = json!({
            "event": "log",
            "level": "warn",
            "target": module_path!(),
            "message": "not held",
            "recipe": "orders",
            "fence": 7,
            "detail": { "fence": 7 },
            "error": "no\nway",
        });
        assert_eq!(line, expected);
    }
}
