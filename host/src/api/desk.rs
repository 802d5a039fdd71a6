//! What all requests share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::attendance::{Attendance, Attendances, Attending};
use super::caller::Credentials;
use super::problem::{Operation, Problem};
use crate::clock::Boottime;
use crate::config::Allow;
use crate::epochs::{Epochs, JoinError, Joined};
use crate::logbook::Logbook;
use crate::participant::{Join, Presence};
use crate::registry::{App, By, Member};
use crate::tasks::Tasks;

/// How long an app waits that joins while the session is in doubt. A host that has lost one server finds
/// another one sooner; then the app hears that nothing was done, rather than nothing.
const DOUBT: Duration = Duration::from_secs(2);

/// A recipe, as the API serves it.
#[derive(Debug, Clone)]
pub struct Served {
    /// Who may use it, beside the host's own user and root.
    pub allow: Allow,
    /// Whether the host keeps a participant of its own in it.
    pub runs: bool,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) epochs: Arc<Epochs>,
    pub(super) served: BTreeMap<String, Served>,
    pub(super) attendances: Arc<Attendances>,
    /// Those that attend to participants.
    pub(super) tasks: Tasks,
    pub(super) stopping: CancellationToken,
    pub(super) logbook: Arc<Logbook>,
}

impl Desk {
    /// The recipe of that name, if the caller may use it.
    pub(super) fn recipe(
        &self,
        name: &str,
        caller: &Credentials,
    ) -> Result<(&Join, &Served), Problem> {
        let found = self.epochs.recipe(name).zip(self.served.get(name));
        let (join, served) = found.ok_or_else(|| {
            let message = format!("there is no recipe {name:?}: GET /v1/recipes tells them");
            Problem::not_found(message)
        })?;
        match caller.may_use(&served.allow) {
            true => Ok((join, served)),
            false => Err(Problem::forbidden(format!(
                "{} may not use the recipe {name}: name its uid or gid in `allow` of \
                 [recipes.{name}]; of a process only its own group counts, not its further ones",
                caller.in_words()
            ))),
        }
    }

    /// Waits until newcomers can be seated on a session, where those that are open are in doubt: what joins
    /// then and is lost with the session has come for nothing, and cannot tell so. `deadline` is the app's.
    ///
    /// # Errors
    /// They still are.
    pub(super) async fn until_certain(&self, deadline: Option<Instant>) -> Result<(), Problem> {
        let limit = Instant::now() + DOUBT;
        let limit = deadline.map_or(limit, |deadline| deadline.min(limit));
        timeout_at(limit, self.epochs.until_certain()).await.map_err(|_| {
            Problem::unavailable(
                "the session with ZooKeeper is in doubt, and nothing was done: try again",
            )
        })
    }

    /// Has an app join, until it is attended to by [`attend`](super::attendance::attend).
    pub(super) async fn enter(
        &self,
        recipe: String,
        app: &App,
        owner: String,
        with: impl FnOnce(Attendance) -> Attendance,
    ) -> Result<Attending, Problem> {
        let by = By::App(app.clone());
        let joined = self.epochs.join_for(&recipe, by, Some(owner)).await;
        let Joined { participant, follower, epoch } = joined.map_err(|error| match error {
            // Sessions that are still open are kept for those who leave.
            JoinError::NoSession if self.stopping.is_cancelled() => Problem::stopping(),
            error => error.into(),
        })?;
        let attendance = Arc::new(with(Attendance::new(participant, recipe, app)));
        let entered = self.attendances.enter(Arc::clone(&attendance));
        let (opening, stream) = (None, None);
        Ok(Attending { attendance, entered, follower, opening, stream, over: epoch.over })
    }

    /// The recipes that a caller may use.
    pub(super) fn recipes(&self, caller: &Credentials) -> impl Iterator<Item = (&Join, &Served)> {
        let recipes = self.epochs.recipes();
        let served = recipes.filter_map(|join| Some((join, self.served.get(&join.recipe)?)));
        served.filter(|(_, served)| caller.may_use(&served.allow))
    }

    /// Until when it may be told that what a participant holds can be relied on.
    pub(super) fn deadline(&self, presence: &Presence) -> Option<Boottime> {
        match self.attendances.find(presence.id()) {
            Some(attendance) => attendance.deadline(presence),
            None => presence.tenure(),
        }
    }

    /// The participant of an app, if the caller may manage it. Who may not is not told that there is
    /// one.
    pub(super) fn attendance(
        &self,
        id: &str,
        caller: &Credentials,
    ) -> Result<Arc<Attendance>, Problem> {
        let attendance = self.attendances.find(id).filter(|it| caller.may_manage(it.uid));
        attendance.ok_or_else(|| match self.member(id, caller) {
            Ok(member) if member.by == By::Host => {
                Problem::forbidden("the config keeps this participant: it is no app's")
            }
            Ok(_) => Problem::ended(None, None, Operation::NotBegun),
            Err(problem) => problem,
        })
    }

    /// A participant, if the caller may see it.
    pub(super) fn member(&self, id: &str, caller: &Credentials) -> Result<Arc<Member>, Problem> {
        let member = self.epochs.registry().find(id).filter(|it| may_see(caller, it));
        member.ok_or_else(|| {
            let message = format!("there is no participant {id:?} of this user, or it has ended");
            Problem::not_found(message)
        })
    }
}

/// Whether a caller may see a participant.
pub(super) fn may_see(caller: &Credentials, member: &Member) -> bool {
    match &member.by {
        By::Host => caller.is_owner(),
        By::App(app) => caller.may_manage(app.uid),
    }
}
