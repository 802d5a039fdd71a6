//! The log of a command, on standard error.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use super::colour::Paint;
use super::output::{Output, Printer};
use super::stderr;
use crate::logbook::{IntoLogbook, JsonLines, Logbook};

/// The variable that says how much is logged.
const VARIABLE: &str = "WOK_LOG";

/// What commands log that hold one claim or call one operation: what they do is told by events, so
/// errors, what modules warn of, and what may not be given up when the command has ended.
pub(super) const LOG_FOR_ONE: &str = "error,wok::recipe=warn,wok::guest=warn,wok::client=warn,wok::cli=warn,wok::holding::leave=warn";

/// Writes the log to standard error, as much of it as `WOK_LOG` asks for.
pub(super) fn log_to_stderr(otherwise: &str, printer: &Printer) {
    log_to_stderr_and(None, otherwise, printer);
}

/// Writes the log to standard error and into a logbook.
pub(super) fn log_to_stderr_and(logbook: Option<Arc<Logbook>>, otherwise: &str, printer: &Printer) {
    let (filter, doubt) = filter(std::env::var_os(VARIABLE), otherwise);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(Paint::of(&io::stderr()) == Paint::Coloured)
        .with_writer(|| stderr::Log);
    let lines = match printer.output() {
        Output::Text => lines.boxed(),
        Output::Json => lines.event_format(JsonLines).boxed(),
    };
    let log =
        tracing_subscriber::registry().with(filter).with(lines).with(logbook.map(IntoLogbook));
    // Only the first of a process counts, and there is one.
    log.try_init().ok();
    if let Some(doubt) = doubt {
        printer.warning(&format!("{VARIABLE}: {doubt}"));
    }
}

/// How much is logged, and what is to be said of how that was asked for.
fn filter(asked: Option<OsString>, otherwise: &str) -> (EnvFilter, Option<String>) {
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        return (EnvFilter::new(otherwise), None);
    };
    let Some(text) = asked.to_str() else {
        let doubt = format!("{asked:?} is not UTF-8, so it is as if it were not set");
        return (EnvFilter::new(otherwise), Some(doubt));
    };
    match EnvFilter::builder().parse(text) {
        Ok(filter) => (filter, text.split(',').find_map(doubt_of)),
        Err(error) => {
            let doubt =
                format!("{text:?} is not understood ({error}), so it is as if it were not set");
            (EnvFilter::new(otherwise), Some(doubt))
        }
    }
}

/// A mistyped level is read as a place in a program where nothing is logged.
fn doubt_of(directive: &str) -> Option<String> {
    let word = directive.trim();
    let is_place = word.contains(['=', '[', ':']) || word.starts_with("wok");
    if word.is_empty() || is_place || word.parse::<LevelFilter>().is_ok() {
        return None;
    }
    Some(format!(
        "{word:?} is no level, so it is read as where something is logged: the levels are error, warn, \
         info, debug, trace and off"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(asked: Option<&str>, filtered: &str, doubted: Option<&str>) {
        let (filter, doubt) = filter(asked.map(OsString::from), "warn");
        assert_eq!(filter.to_string(), filtered);
        match doubted {
            Some(part) => assert!(doubt.as_ref().is_some_and(|it| it.contains(part)), "{doubt:?}"),
            None => assert_eq!(doubt, None),
        }
    }

    #[test]
    fn what_is_asked_for_is_logged() {
        check(None, "warn", None);
        check(Some(""), "warn", None);
        check(Some("info"), "info", None);
        check(Some("INFO,wok::epochs=debug"), "wok::epochs=debug,info", None);
        check(Some("wok"), "wok=trace", None);
        check(Some("off"), "off", None);
    }

    #[test]
    fn what_is_mistyped_is_said() {
        check(Some("inof"), "inof=trace", Some("\"inof\" is no level"));
        check(Some("info,debg"), "debg=trace,info", Some("\"debg\" is no level"));
        check(Some("wok=inof"), "warn", Some("is not understood"));
    }
}
