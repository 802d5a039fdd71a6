//! The contract's `zookeeper`: requests. Its resources are in `host_resources`.

use std::pin::pin;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::answer::{Failed, mismatch, settled, unless_cancelled};
use super::bindings::wok::recipe::zookeeper::{
    Contents, CreateMode, Created, Error, Host, MultiError, Reply, Request, Stat, Write, Written,
};
use super::convert::{bytes_of_request, bytes_of_write, name_of, path_of, paths_of};
use super::scope::OperationScope;
use super::state::{ChildList, OwnedWatch, State};
use crate::session::{self, Seat, Watching};

/// A reply of the session, or why there is none, or a bug of the host.
type Answer<T> = Result<Result<T, Error>>;

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
        match answer!(self.submit(session::Request::Write(write)).await) {
            session::Reply::Written(session::Written::Created(path, stat)) => {
                Ok(self.created(&path, &stat))
            }
            _ => Err(mismatch("create")),
        }
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
        match answer!(self.submit(session::Request::Write(write)).await) {
            session::Reply::Written(session::Written::DataSet(stat)) => {
                let path = answer!(self.resolve(&path));
                Ok(Ok(self.stat(&path, &stat)))
            }
            _ => Err(mismatch("set-data")),
        }
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

    async fn multi(&mut self, writes: Vec<Write>) -> Result<Result<Vec<Written>, MultiError>> {
        self.begin_writes(1, writes.iter().map(bytes_of_write).sum()).await?;
        self.run_multi(writes).await
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
        self.wait_for(&watches).await
    }
}

impl State {
    async fn submit(&mut self, request: session::Request) -> Result<session::Reply, Failed> {
        self.giving_up(&request);
        let (seat, scope) = self.seat_and_scope();
        let name = name_of(&request);
        let paths = self.seen(|| paths_of(&request));
        let errand = || async move { unless_cancelled(&scope, pin!(seat.submit(request))).await };
        self.run_errand(name, paths, |_| None, errand).await
    }

    /// What an errand takes along.
    pub(super) fn seat_and_scope(&self) -> (Arc<Seat>, Arc<OperationScope>) {
        (Arc::clone(&self.surroundings.seat), Arc::clone(&self.surroundings.scope))
    }

    /// Tells that the claim's znodes which the request deletes are given up. Before it is sent:
    /// the session waits until nothing depends on them.
    fn giving_up(&mut self, request: &session::Request) {
        let writes = match request {
            session::Request::Write(write) => std::slice::from_ref(write),
            session::Request::Multi(writes) => writes,
            _ => return,
        };
        for write in writes {
            if let session::Write::Delete { path, .. } = write {
                self.released(path);
            }
        }
    }

    async fn read_exists(
        &mut self,
        path: &str,
        watching: Watching,
    ) -> Answer<(Option<Stat>, Option<session::Watch>)> {
        self.begin_requests(1).await?;
        let path = answer!(self.resolve(path));
        let request = session::Request::Exists(path.clone(), watching);
        match answer!(self.submit(request).await) {
            session::Reply::Exists(stat, watch) => {
                Ok(Ok((stat.map(|stat| self.stat(&path, &stat)), watch)))
            }
            _ => Err(mismatch("exists")),
        }
    }

    async fn read_data(
        &mut self,
        path: &str,
        watching: Watching,
    ) -> Answer<(Contents, Option<session::Watch>)> {
        self.begin_requests(1).await?;
        let path = answer!(self.resolve(path));
        let request = session::Request::GetData(path.clone(), watching);
        match answer!(self.submit(request).await) {
            session::Reply::Data(data, stat, watch) => {
                Ok(Ok((Contents { data, stat: self.stat(&path, &stat) }, watch)))
            }
            _ => Err(mismatch("get-data")),
        }
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
        match answer!(self.submit(request).await) {
            session::Reply::Children(names, stat, watch) => {
                let stat = self.stat(&path, &stat);
                Ok(Ok((self.own_children(names, stat), watch)))
            }
            _ => Err(mismatch("get-children")),
        }
    }

    /// What a component is told of a znode just created.
    pub(super) fn created(&self, path: &str, stat: &session::Stat) -> Result<Created, Error> {
        match self.surroundings.mount.strip(path) {
            Some(guest) => Ok(Created { path: guest, stat: self.stat(path, stat) }),
            None => Err(Error::Other("the znode was created outside the mount".to_owned())),
        }
    }

    async fn run_multi(&mut self, writes: Vec<Write>) -> Result<Result<Vec<Written>, MultiError>> {
        let whole = |error| Ok(Err(MultiError { index: None, error }));
        if let Err(error) = self.check_batch(writes.len()) {
            return whole(error);
        }
        let mut resolved = Vec::with_capacity(writes.len());
        for (index, write) in (0_u32..).zip(writes) {
            match self.write(write) {
                Ok(write) => resolved.push(write),
                Err(error) => {
                    return Ok(Err(MultiError { index: Some(index), error }));
                }
            }
        }
        let written = match self.submit(session::Request::Multi(resolved.clone())).await {
            Ok(session::Reply::Multi(written)) if written.len() == resolved.len() => written,
            Ok(_) => return Err(mismatch("multi")),
            Err(failed) => {
                return Ok(Err(MultiError { index: failed.index(), error: failed.into() }));
            }
        };
        let mut answers = Vec::with_capacity(written.len());
        for (index, (write, written)) in (0_u32..).zip(resolved.iter().zip(written)) {
            match self.written(write, written) {
                Ok(written) => answers.push(written),
                Err(error) => {
                    return Ok(Err(MultiError { index: Some(index), error }));
                }
            }
        }
        Ok(Ok(answers))
    }

    fn written(
        &mut self,
        write: &session::Write,
        written: session::Written,
    ) -> Result<Written, Error> {
        match written {
            session::Written::Created(path, stat) => {
                Ok(Written::Created(self.created(&path, &stat)?))
            }
            session::Written::Deleted => Ok(Written::Deleted),
            session::Written::DataSet(stat) => {
                Ok(Written::DataSet(self.stat(path_of(write), &stat)))
            }
            session::Written::Checked => Ok(Written::Checked),
        }
    }

    async fn run_pipeline(&mut self, requests: Vec<Request>) -> Result<Vec<Result<Reply, Error>>> {
        if let Err(error) = self.check_pipeline(&requests) {
            return Ok(requests.iter().map(|_| Err(error.clone())).collect());
        }
        // What is wrong in itself is not sent, and is answered in its place.
        let resolved: Vec<_> = requests.into_iter().map(|request| self.request(request)).collect();
        resolved.iter().flatten().for_each(|request| self.giving_up(request));
        let sendable = resolved.iter().filter_map(|request| request.as_ref().ok().cloned());
        let sendable: Vec<_> = sendable.collect();
        let paths = self.seen(|| sendable.iter().flat_map(paths_of).collect());
        let (seat, scope) = self.seat_and_scope();
        let errand =
            || async move { unless_cancelled(&scope, pin!(seat.pipeline(sendable))).await };
        let replies = match self.run_errand("pipeline", paths, |_| None, errand).await {
            Ok(replies) => replies,
            Err(failed) => {
                let error = Error::from(failed);
                return Ok(resolved.iter().map(|_| Err(error.clone())).collect());
            }
        };
        let mut replies = replies.into_iter();
        let mut answers = Vec::with_capacity(resolved.len());
        for request in resolved {
            answers.push(match request {
                Err(error) => Err(error),
                Ok(request) => {
                    let outcome = replies.next().ok_or_else(|| mismatch("pipeline"))?;
                    match settled(outcome).await {
                        Ok(reply) => self.reply(&request, reply)?,
                        Err(failed) => Err(failed.into()),
                    }
                }
            });
        }
        Ok(answers)
    }

    fn check_pipeline(&mut self, requests: &[Request]) -> Result<(), Error> {
        self.check_batch(requests.len())?;
        let lists = requests.iter().filter(|one| matches!(one, Request::GetChildren(_))).count();
        self.check_child_lists(lists)
    }

    fn request(&self, request: Request) -> Result<session::Request, Error> {
        let write = match request {
            Request::Create(create) => Write::Create(create),
            Request::Delete(delete) => Write::Delete(delete),
            Request::SetData(set) => Write::SetData(set),
            Request::Exists(path) => {
                return Ok(session::Request::Exists(self.resolve(&path)?, Watching::No));
            }
            Request::GetData(path) => {
                return Ok(session::Request::GetData(self.resolve(&path)?, Watching::No));
            }
            Request::GetChildren(path) => {
                return Ok(session::Request::GetChildren(self.resolve(&path)?, Watching::No));
            }
            Request::Sync(path) => return Ok(session::Request::Sync(self.resolve(&path)?)),
        };
        Ok(session::Request::Write(self.write(write)?))
    }

    fn reply(&mut self, request: &session::Request, reply: session::Reply) -> Answer<Reply> {
        use session::{Reply as Got, Request as Asked};
        Ok(Ok(match (request, reply) {
            (Asked::Write(write), Got::Written(written)) => {
                match answer!(self.written(write, written)) {
                    Written::Created(created) => Reply::Created(created),
                    Written::Deleted => Reply::Deleted,
                    Written::DataSet(stat) => Reply::DataSet(stat),
                    Written::Checked => return Err(mismatch("pipeline")),
                }
            }
            (Asked::Exists(path, _), Got::Exists(stat, _)) => {
                Reply::Exists(stat.map(|stat| self.stat(path, &stat)))
            }
            (Asked::GetData(path, _), Got::Data(data, stat, _)) => {
                Reply::Data(Contents { data, stat: self.stat(path, &stat) })
            }
            (Asked::GetChildren(path, _), Got::Children(names, stat, _)) => {
                let stat = self.stat(path, &stat);
                Reply::Children(self.own_children(names, stat))
            }
            (Asked::Sync(_), Got::Synced) => Reply::Synced,
            _ => return Err(mismatch("pipeline")),
        }))
    }

    fn check_batch(&self, length: usize) -> Result<(), Error> {
        let maximum = self.surroundings.limits.batch;
        if length <= maximum as usize {
            return Ok(());
        }
        Err(Error::Invalid(format!("{length} requests at once, and at most {maximum} are sent")))
    }
}
