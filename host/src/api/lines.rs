//! What is told as it happens: flat JSON objects, one a line.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use http_body::Frame;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

use super::body;
use super::problem::Problem;
use crate::clock::Boottime;
use crate::guest::values::unsigned;
use crate::participant::{Ending, Leaving, Notice, detail_as_json};
use crate::session::Held;

/// How often a stream says that it is alive, unless the app asks for another time: often enough for a
/// person who looks, and for what is in between not to take the connection for dead.
const ALIVE: Duration = Duration::from_secs(5);

/// What an app can ask for instead.
const ALIVES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(30);

/// What stands behind the question mark of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct StreamOptions {
    alive: Option<String>,
}

impl StreamOptions {
    /// How often the stream says that it is alive.
    pub(super) fn interval(&self) -> Result<Duration, Problem> {
        interval(self.alive.as_deref())
    }
}

/// How often a stream says that it is alive whose app asks for that.
pub(super) fn interval(asked: Option<&str>) -> Result<Duration, Problem> {
    let Some(text) = asked else { return Ok(ALIVE) };
    let alive = body::duration("alive", text)?;
    match ALIVES.contains(&alive) {
        true => Ok(alive),
        false => Err(Problem::bad_request("`alive` is from \"100ms\" to \"30s\"")),
    }
}

/// When a stream says that it is alive; a tick that comes late does not hurry the next ones.
pub(super) fn ticks(period: Duration) -> Interval {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    ticks
}

/// An instant of the clock that all processes of a machine share, in milliseconds.
pub(super) fn millis(instant: Boottime) -> Value {
    unsigned(instant.as_nanos() / 1_000_000)
}

/// What happened, without who and when.
#[derive(Debug, Clone)]
pub(super) struct Happening {
    event: &'static str,
    more: Map<String, Value>,
}

impl Happening {
    pub(super) fn new(event: &'static str) -> Self {
        Happening { event, more: Map::new() }
    }

    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }

    /// The stream is alive, and has missed so much.
    pub(super) fn alive(dropped: u64) -> Self {
        let alive = Happening::new("alive");
        if dropped > 0 { alive.with("dropped", dropped) } else { alive }
    }

    /// What is told now of what happened a while ago, where what is held may be relied on until this
    /// deadline. None if it says that something is held and nothing is any more.
    pub(super) fn told_now(self, deadline: impl FnOnce() -> Option<Boottime>) -> Option<Self> {
        if !self.is_dated() {
            return Some(self);
        }
        let deadline = deadline();
        (self.event != "held" || deadline.is_some()).then(|| self.until(deadline))
    }

    /// Whether it says until when what is held may be relied on.
    fn is_dated(&self) -> bool {
        matches!(self.event, "held" | "alive" | "resumed" | "suspended")
    }

    /// Says until when what is held may be relied on without hearing more, on the clock that all
    /// processes of a machine share.
    fn until(self, deadline: Option<Boottime>) -> Self {
        match deadline {
            Some(deadline) => self.with("deadline-boottime-ms", millis(deadline)),
            None => self,
        }
    }

    /// What a participant tells, and why it leaves, where that is known.
    pub(super) fn of(notice: &Notice, why: Option<Cow<'_, str>>) -> Self {
        match notice {
            Notice::Waiting { path } => Happening::new("waiting").with("path", path.as_str()),
            Notice::Held(Held { path, fence }) => {
                Happening::new("held").with("path", path.as_str()).with("fence", unsigned(*fence))
            }
            Notice::Released { path } => Happening::new("released").with("path", path.as_str()),
            Notice::Idle => Happening::new("idle"),
            Notice::Leaving(Leaving { why, until }) => {
                Happening::new("leaving").with("message", why.as_str()).until(*until)
            }
            Notice::Suspended => Happening::new("suspended"),
            Notice::Resumed => Happening::new("resumed"),
            Notice::Emitted { event, detail } => Happening::new("recipe-event")
                .with("name", event.as_str())
                .with("detail", detail_as_json(detail)),
            Notice::Lost(loss) => Happening::new("lost")
                .with("reason", loss.reason())
                .with("cause", loss.cause())
                .with("message", loss.to_string()),
            Notice::Ended(ending) => {
                let how = match ending {
                    Ending::Left => "left",
                    Ending::Lost(_) => "lost",
                    Ending::Failed(_) => "failed",
                };
                let why = why.filter(|_| matches!(ending, Ending::Left));
                let message = why.map_or_else(|| ending.to_string(), Cow::into_owned);
                Happening::new("ended").with("how", how).with("message", message)
            }
        }
    }

    /// What its operation has answered, and whether more may come of that.
    pub(super) fn answered(value: Value, goes_on: bool) -> Self {
        Happening::new("answered").with("value", value).with("goes-on", goes_on)
    }

    /// The line of it.
    pub(super) fn line(self, recipe: &str, participant: &str) -> Bytes {
        self.with("recipe", recipe).with("participant", participant).line_of_all()
    }

    /// The line of what happens to no participant.
    pub(super) fn line_of_all(self) -> Bytes {
        let Happening { event, more: mut line } = self;
        let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        for (key, value) in [("event", event), ("at", &now)] {
            line.insert(key.to_owned(), json!(value));
        }
        Bytes::from(format!("{}\n", Value::Object(line)))
    }
}

/// The line of what a participant tells, for who follows one of its own process.
#[cfg(feature = "command-line")]
pub(crate) fn notice_line(notice: &Notice, recipe: &str, participant: &str) -> Bytes {
    Happening::of(notice, None).line(recipe, participant)
}

/// The line of what an operation of such a participant has answered.
#[cfg(feature = "command-line")]
pub(crate) fn answer_line(
    operation: &str,
    value: Value,
    goes_on: bool,
    recipe: &str,
    participant: &str,
) -> Bytes {
    Happening::answered(value, goes_on).with("operation", operation).line(recipe, participant)
}

/// A line on its way to its connection. Boxed, because a channel of tokio's sets room for 32 of them aside,
/// whatever its bound, and most streams are hardly told anything.
pub(super) type Line = Box<Bytes>;

/// Lines that wait for their connection at most. An operation tells a few at once: `waiting`, `held`, and
/// what it has answered. The connection takes them together and writes once for all. No more of them wait,
/// because a line says what was true when it was put here.
const MOST_WAITING: usize = 4;

/// The lines of an answer, as they come.
pub(super) fn lines() -> (mpsc::Sender<Line>, Response) {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    let mut response = Response::new(Body::new(Lines(receiver)));
    // The connection keeps the map for its next answer, and most streams are its last.
    let mut headers = HeaderMap::with_capacity(2);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    // For those in between, who might wait for more.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    *response.headers_mut() = headers;
    (sender, response)
}

/// The body of such an answer.
struct Lines(mpsc::Receiver<Line>);

impl http_body::Body for Lines {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|line| line.map(|line| Ok(Frame::data(*line))))
    }
}
