//! The contract's `zookeeper`: single requests. Several at once are in `host_batches`, its resources
//! in `host_resources`.

use std::pin::pin;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::answer::{Failed, mismatch, unless_cancelled};
use super::bindings::wok::recipe::zookeeper::{
    Committed, Contents, CreateMode, Created, Error, Host, MultiError, Reply, Request, Stat, Write,
};
use super::child_list::ChildList;
use super::convert::{bytes_of_request, bytes_of_write, name_of, path_of, paths_of};
use super::giving_up::told_beside;
use super::scope::OperationScope;
use super::state::{OwnedWatch, State};
use crate::session::{self, Seat, Watching};

/// What a component calls the mount's own znode.
const OWN: &str = "/";

/// A reply of the session, or why there is none, or a bug of the host.
pub(super) type Answer<T> = Result<Result<T, Error>>;

/// Leaves with an error that the component is answered, rather than a trap.
macro_rules! answer {
    ($outcome:expr) => {
        match $outcome {
            Ok(value) => value,
            Err(error) => return Ok(Err(Error::from(error))),
        }
    };
}

impl Host for State {
    async fn create(&mut self, path: String, data: Vec<u8>, mode: CreateMode) -> Answer<Created> {
        self.begin_writes(1, path.len() + data.len()).await?;
        let write = answer!(self.create_write(&path, data, mode));
        let reply = match path == OWN {
            true => self.create_own(write).await,
            false => self.submit(session::Request::Write(write)).await,
        };
        let (path, stat) = answer!(answer!(reply).created());
        Ok(self.created(&path, &stat))
    }

    async fn delete(&mut self, path: String, version: Option<i32>) -> Answer<()> {
        self.begin_requests(1).await?;
        let path = answer!(self.resolve(&path));
        let write = session::Write::Delete { path, version };
        answer!(self.submit(session::Request::Write(write)).await);
        Ok(Ok(()))
    }

    async fn exists(&mut self, path: String) -> Answer<Option<Stat>> {
        Ok(self.read_exists(&path, Watching::No).await?.map(|(stat, _)| stat))
    }

    async fn get_data(&mut self, path: String) -> Answer<Contents> {
        Ok(self.read_data(&path, Watching::No).await?.map(|(contents, _)| contents))
    }

    async fn set_data(
        &mut self,
        path: String,
        data: Vec<u8>,
        version: Option<i32>,
    ) -> Answer<Stat> {
        self.begin_writes(1, path.len() + data.len()).await?;
        let write = answer!(self.set_data_write(&path, data, version));
        let reply = answer!(self.submit(session::Request::Write(write)).await);
        let stat = answer!(reply.data_set());
        let path = answer!(self.resolve(&path));
        Ok(Ok(self.stat(&path, &stat)))
    }

    async fn get_children(&mut self, path: String) -> Answer<Resource<ChildList>> {
        Ok(self.read_children(&path, Watching::No).await?.map(|(children, _)| children))
    }

    async fn sync(&mut self, path: String) -> Answer<()> {
        self.begin_requests(1).await?;
        let path = answer!(self.resolve(&path));
        answer!(self.submit(session::Request::Sync(path)).await);
        Ok(Ok(()))
    }

    async fn multi(
        &mut self,
        writes: Vec<Write>,
        claim: Vec<String>,
    ) -> Result<Result<Committed, MultiError>> {
        // What confirms the claim is read besides.
        let bytes = writes.iter().map(bytes_of_write).sum();
        self.begin_writes(1 + claim.len(), bytes).await?;
        self.run_multi(writes, claim).await
    }

    async fn ensure(&mut self, paths: Vec<String>, mode: CreateMode) -> Answer<()> {
        self.begin_writes(paths.len().max(1), paths.iter().map(String::len).sum()).await?;
        Ok(self.ensure_znodes(&paths, mode).await)
    }

    async fn pipeline(&mut self, requests: Vec<Request>) -> Result<Vec<Result<Reply, Error>>> {
        let bytes = requests.iter().map(bytes_of_request).sum();
        self.begin_writes(requests.len().max(1), bytes).await?;
        self.run_pipeline(requests).await
    }

    async fn watch_exists(
        &mut self,
        path: String,
        tag: u64,
    ) -> Answer<(Option<Stat>, Resource<OwnedWatch>)> {
        answer!(self.check_watches());
        let (stat, watch) = answer!(self.read_exists(&path, Watching::Yes).await?);
        let watch = watch.ok_or_else(|| mismatch("watch-exists"))?;
        Ok(Ok((stat, self.own_watch(watch, tag))))
    }

    async fn watch_data(
        &mut self,
        path: String,
        tag: u64,
    ) -> Answer<(Contents, Resource<OwnedWatch>)> {
        answer!(self.check_watches());
        let (contents, watch) = answer!(self.read_data(&path, Watching::Yes).await?);
        let watch = watch.ok_or_else(|| mismatch("watch-data"))?;
        Ok(Ok((contents, self.own_watch(watch, tag))))
    }

    async fn watch_children(
        &mut self,
        path: String,
        tag: u64,
    ) -> Answer<(Resource<ChildList>, Resource<OwnedWatch>)> {
        answer!(self.check_watches());
        let (children, watch) = answer!(self.read_children(&path, Watching::Yes).await?);
        let watch = watch.ok_or_else(|| mismatch("watch-children"))?;
        Ok(Ok((children, self.own_watch(watch, tag))))
    }

    async fn wait(&mut self, watches: Vec<Resource<OwnedWatch>>) -> Answer<u32> {
        self.begin_call()?;
        let fired = self.wait_for(&watches).await;
        self.surroundings.seat.forget_shown();
        fired
    }
}

impl State {
    async fn submit(&mut self, request: session::Request) -> Result<session::Reply, Failed> {
        let given_up = self.giving_up([&request]);
        let (seat, scope) = self.seat_and_scope();
        let name = name_of(&request);
        let paths = paths_of(&request);
        let telling = given_up.as_ref().map(|given_up| given_up.telling(&seat));
        let errand = || async move {
            let request = told_beside(telling, seat.submit(request));
            unless_cancelled(&scope, pin!(request)).await
        };
        let outcome = self.run_errand(name, paths, |_| None, errand).await;
        if let Some(given_up) = given_up {
            self.given_up(given_up, |_| outcome.is_ok());
        }
        outcome
    }

    /// Creates the mount's own znode, and its parents where they are missing: no component can name these,
    /// and `ensure` of the znode itself creates it without its data.
    async fn create_own(&mut self, write: session::Write) -> Result<session::Reply, Failed> {
        let (seat, scope) = self.seat_and_scope();
        let paths = vec![path_of(&write).to_owned()];
        let errand = move || async move {
            unless_cancelled(&scope, pin!(seat.create_with_parents(write))).await
        };
        self.run_errand("create", paths, |_| None, errand).await
    }

    async fn ensure_znodes(&mut self, paths: &[String], mode: CreateMode) -> Result<(), Error> {
        self.check_batch(paths.len())?;
        let resolved: Result<Vec<_>, _> = paths.iter().map(|path| self.resolve(path)).collect();
        let resolved = resolved?;
        let (seat, scope) = self.seat_and_scope();
        let (seen, mode) = (resolved.clone(), mode.into());
        let errand = move || async move {
            unless_cancelled(&scope, pin!(seat.ensure(resolved, mode))).await
        };
        Ok(self.run_errand("ensure", seen, |_| None, errand).await?)
    }

    /// What an errand takes along.
    pub(super) fn seat_and_scope(&self) -> (Arc<Seat>, Arc<OperationScope>) {
        (Arc::clone(&self.surroundings.seat), Arc::clone(&self.surroundings.scope))
    }

    async fn read_exists(
        &mut self,
        path: &str,
        watching: Watching,
    ) -> Answer<(Option<Stat>, Option<session::Watch>)> {
        self.begin_requests(1).await?;
        let path = answer!(self.resolve(path));
        let request = session::Request::Exists(path.clone(), watching);
        let (stat, watch) = answer!(answer!(self.submit(request).await).exists());
        Ok(Ok((stat.map(|stat| self.stat(&path, &stat)), watch)))
    }

    async fn read_data(
        &mut self,
        path: &str,
        watching: Watching,
    ) -> Answer<(Contents, Option<session::Watch>)> {
        self.begin_requests(1).await?;
        let path = answer!(self.resolve(path));
        let request = session::Request::GetData(path.clone(), watching);
        let (data, stat, watch) = answer!(answer!(self.submit(request).await).data());
        Ok(Ok((Contents { data, stat: self.stat(&path, &stat) }, watch)))
    }

    async fn read_children(
        &mut self,
        path: &str,
        watching: Watching,
    ) -> Answer<(Resource<ChildList>, Option<session::Watch>)> {
        self.begin_requests(1).await?;
        answer!(self.check_child_lists(1));
        let path = answer!(self.resolve(path));
        let request = session::Request::GetChildren(path.clone(), watching);
        let (names, stat, watch) = answer!(answer!(self.submit(request).await).children());
        let stat = self.stat(&path, &stat);
        Ok(Ok((self.own_children(names, stat), watch)))
    }

    /// What a component is told of a znode just created.
    pub(super) fn created(&self, path: &str, stat: &session::Stat) -> Result<Created, Error> {
        match self.surroundings.mount.strip(path) {
            Some(guest) => Ok(Created { path: guest, stat: self.stat(path, stat) }),
            None => Err(Error::Other("the znode was created outside the mount".to_owned())),
        }
    }

    pub(super) fn check_batch(&self, length: usize) -> Result<(), Error> {
        let maximum = self.surroundings.limits.batch;
        if length <= maximum as usize {
            return Ok(());
        }
        Err(Error::Invalid(format!("{length} requests at once, and at most {maximum} are sent")))
    }
}
