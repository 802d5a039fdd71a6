//! Whether a command that has ended by itself is run again.

use std::str::FromStr;

use super::quantity::BadValue;

/// When a recipe is taken part in again after its command has ended by itself. A command that was
/// ended because its claim was over is always run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// However it ended: what is configured to run should run.
    #[default]
    Always,
    /// Unless it ended with success.
    OnFailure,
    /// Not before the daemon itself is started again.
    Never,
}

impl FromStr for Restart {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "always" => Ok(Restart::Always),
            "on-failure" => Ok(Restart::OnFailure),
            "never" => Ok(Restart::Never),
            _ => {
                let message = format!("{text:?} does not say when a command is run again");
                Err(BadValue::new(message, "choose one of always, on-failure, never"))
            }
        }
    }
}
