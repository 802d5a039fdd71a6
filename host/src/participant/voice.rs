//! Where a component's words go: to the follower, and to the log.

use std::sync::Arc;

use crate::guest::{LogLevel, Voice};
use crate::session::{Fence, Held};

use super::line::Line;
use super::notice::Notice;

/// A participant's voice.
#[derive(Debug)]
pub(super) struct ParticipantVoice {
    line: Line,
    recipe: String,
    participant: Arc<str>,
}

impl ParticipantVoice {
    pub(super) fn new(line: Line, recipe: &str, participant: Arc<str>) -> Self {
        ParticipantVoice { line, recipe: recipe.to_owned(), participant }
    }
}

impl Voice for ParticipantVoice {
    fn waiting(&self, path: &str) {
        self.line.tell(Notice::Waiting { path: path.to_owned() });
    }

    fn held(&self, path: &str, fence: Fence) {
        self.line.tell(Notice::Held(Held { path: path.to_owned(), fence }));
    }

    fn released(&self, path: &str) {
        self.line.tell(Notice::Released { path: path.to_owned() });
    }

    fn emit(&self, event: &str, detail: Vec<(String, String)>) {
        self.line.tell(Notice::Emitted { event: event.to_owned(), detail });
    }

    fn log(&self, level: LogLevel, message: &str) {
        let (recipe, participant) = (&*self.recipe, &*self.participant);
        match level {
            LogLevel::Debug => tracing::debug!(target: "wok::recipe", recipe, participant, message),
            LogLevel::Info => tracing::info!(target: "wok::recipe", recipe, participant, message),
            LogLevel::Warn => tracing::warn!(target: "wok::recipe", recipe, participant, message),
            LogLevel::Error => tracing::error!(target: "wok::recipe", recipe, participant, message),
        }
    }
}
