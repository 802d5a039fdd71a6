//! The contract's `participant`.

use std::pin::pin;
use std::time::Duration;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::answer::{Failed, settled, unless_cancelled};
use super::bindings::wok::recipe::participant::{ContenderName, Host, Level};
use super::bindings::wok::recipe::zookeeper::{Created, Error};
use super::child_list::ChildList;
use super::state::State;
use super::surroundings::LogLevel;
use crate::session;

/// How long releases are waited for, all together, when the operation is cancelled: half of the second
/// that the component has to return in.
const WITHDRAWAL: Duration = Duration::from_millis(500);

impl Host for State {
    async fn id(&mut self) -> Result<String> {
        self.begin_call()?;
        Ok(self.surroundings.id.to_string())
    }

    async fn owner(&mut self) -> Result<String> {
        self.begin_call()?;
        Ok(self.surroundings.owner.clone())
    }

    async fn contend(
        &mut self,
        parent: String,
        name: ContenderName,
        data: Vec<u8>,
    ) -> Result<Result<Created, Error>> {
        self.begin_writes(1, parent.len() + data.len()).await?;
        Ok(self.contend_under(&parent, name, data).await)
    }

    async fn contend_and_list(
        &mut self,
        parent: String,
        name: ContenderName,
        data: Vec<u8>,
    ) -> Result<Result<(Created, Resource<ChildList>), Error>> {
        // A request each.
        self.begin_writes(2, parent.len() + data.len()).await?;
        Ok(self.contend_under_and_list(&parent, name, data).await)
    }

    async fn claim(&mut self, path: String) -> Result<Result<u64, Error>> {
        self.begin_requests(1).await?;
        Ok(self.claim_znode(&path).await)
    }

    async fn claim_all(&mut self, paths: Vec<String>) -> Result<Result<Vec<u64>, Error>> {
        // A request each.
        self.begin_requests(paths.len().max(1)).await?;
        Ok(self.claim_znodes(&paths).await)
    }

    async fn release(&mut self, path: String) -> Result<Result<(), Error>> {
        self.begin_release().await?;
        Ok(self.release_znode(&path).await)
    }

    async fn emit(&mut self, event: String, detail: Vec<(String, String)>) -> Result<()> {
        self.begin_call()?;
        let time = &self.surroundings.time;
        self.voice_box.emit(&event, detail, || time.now_ms());
        Ok(())
    }

    async fn log(&mut self, level: Level, message: String) -> Result<()> {
        self.begin_call()?;
        let time = &self.surroundings.time;
        let level = match level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        self.voice_box.log(level, &message, || time.now_ms());
        Ok(())
    }
}

impl State {
    async fn contend_under(
        &mut self,
        parent: &str,
        name: ContenderName,
        data: Vec<u8>,
    ) -> Result<Created, Error> {
        let (parent, name) = self.contender(parent, name)?;
        let paths = vec![parent.clone()];
        let (seat, scope) = self.seat_and_scope();
        let errand = || async move {
            unless_cancelled(&scope, pin!(seat.contend(&parent, name, data))).await
        };
        let (path, stat) = self.run_errand("contend", paths, path_of_created, errand).await?;
        self.surroundings.voice.waiting(&path);
        self.created(&path, &stat)
    }

    async fn contend_under_and_list(
        &mut self,
        parent: &str,
        name: ContenderName,
        data: Vec<u8>,
    ) -> Result<(Created, Resource<ChildList>), Error> {
        self.check_child_lists(1)?;
        let (parent, name) = self.contender(parent, name)?;
        let paths = vec![parent.clone()];
        let (seat, scope) = self.seat_and_scope();
        let directory = parent.clone();
        let errand = || async move {
            unless_cancelled(&scope, pin!(seat.contend_and_list(&directory, name, data))).await
        };
        let name = "contend-and-list";
        let ((path, stat), (names, parent_stat)) =
            self.run_errand(name, paths, |(created, _)| path_of_created(created), errand).await?;
        self.surroundings.voice.waiting(&path);
        let created = self.created(&path, &stat)?;
        let parent_stat = self.stat(&parent, &parent_stat);
        Ok((created, self.own_children(names, parent_stat)))
    }

    async fn claim_znode(&mut self, path: &str) -> Result<u64, Error> {
        let path = self.resolve(path)?;
        let (seat, scope) = self.seat_and_scope();
        let claimed = path.clone();
        let paths = vec![path.clone()];
        let errand = || async move { unless_cancelled(&scope, pin!(seat.claim(&claimed))).await };
        let fence = self.run_errand("claim", paths, |_| None, errand).await?;
        self.unless_lost().await;
        self.claimed(vec![path], fence, &[]);
        Ok(fence)
    }

    async fn claim_znodes(&mut self, paths: &[String]) -> Result<Vec<u64>, Error> {
        self.check_batch(paths.len())?;
        let paths = paths.iter().map(|path| self.resolve(path)).collect::<Result<Vec<_>, _>>()?;
        let (seat, scope) = self.seat_and_scope();
        let claimed = paths.clone();
        let seen = paths.clone();
        let errand =
            || async move { unless_cancelled(&scope, pin!(seat.claim_all(&claimed))).await };
        let fences = self.run_errand("claim-all", seen, |_| None, errand).await?;
        self.unless_lost().await;
        if let Some(fence) = fences.first() {
            self.claimed(paths, *fence, &[]);
        }
        Ok(fences)
    }

    /// Never completes if this process was stopped since a claim was confirmed, and the session is
    /// lost.
    async fn unless_lost(&self) {
        if !self.surroundings.seat.is_live() {
            std::future::pending().await
        }
    }

    /// Works in a cancelled operation too: this is how a component withdraws. There it does not wait
    /// for long: a component that waits for a server that does not answer would be ended. It answers
    /// `cancelled` then, since the znode may still be there.
    async fn release_znode(&mut self, path: &str) -> Result<(), Error> {
        let path = self.resolve(path)?;
        // Told before the znode goes: once it is gone, another may hold.
        let given_up = self.released(&path);
        let paths = vec![path.clone()];
        let (seat, scope) = self.seat_and_scope();
        let errand = || async move {
            let hurry = scope.cancelled_for(WITHDRAWAL);
            match settled(seat.release_until(&path, hurry).await).await? {
                session::Released::Gone => Ok(()),
                session::Released::Going => Err(Failed::Cancelled),
            }
        };
        let done = self.run_errand("release", paths, |_| None, errand).await;
        if let Err(Failed::Request(_)) = done {
            given_up.into_iter().for_each(|claimed| self.stands(claimed));
        }
        Ok(done?)
    }
}

fn path_of_created((path, _): &(String, session::Stat)) -> Option<&str> {
    Some(path)
}
