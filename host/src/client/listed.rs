//! Participants as the daemon lists them.

use serde::Deserialize;
use serde_json::Value;

use super::event::Whole;

/// All that the caller may see.
#[derive(Debug, Clone, Deserialize)]
pub struct Participants {
    /// Each of them as it came, for those who print it.
    pub participants: Vec<Value>,
}

/// One participant.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Listed {
    /// Its id.
    pub participant: String,
    /// Its recipe.
    pub recipe: String,
    /// Whose it is.
    pub app: Option<String>,
    /// The process that joined.
    pub pid: Option<Whole>,
    /// Its session with ZooKeeper.
    pub session: String,
    /// Since when it is there.
    pub since: String,
    /// Where it stands, in one word.
    pub state: String,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// What it holds.
    pub held: Option<HeldThere>,
    /// The operation that is under way.
    pub operation: Option<String>,
}

/// A place in line.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// Its contender znode.
    pub path: String,
    /// Who is before it.
    pub behind: Option<Behind>,
}

/// The one before in line.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Behind {
    /// Its znode.
    pub path: String,
    /// Who that is, in the words of its owner.
    pub owner: Option<String>,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HeldThere {
    /// Its znode.
    pub path: String,
    /// The fencing token.
    pub fence: Whole,
}

impl Participants {
    /// All of them, read.
    ///
    /// # Errors
    /// One is of another type.
    pub fn read(&self) -> Result<Vec<Listed>, serde_json::Error> {
        self.participants.iter().map(Listed::deserialize).collect()
    }
}
