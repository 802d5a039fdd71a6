//! The contract's `zookeeper`: `multi` and `pipeline`.

use std::pin::pin;

use wasmtime::Result;

use super::answer::{Failed, mismatch, settled, unless_cancelled};
use super::bindings::wok::recipe::zookeeper::{
    Committed, Contents, Error, MultiError, Reply, Request, WatchRequest, Write, Written,
};
use super::convert::{name_of, path_of, paths_of};
use super::giving_up::told_beside;
use super::state::State;
use crate::session::{self, Fence, Watching};

/// What a pipeline is answered, or a bug of the host.
type Answers = Result<Vec<Result<Reply, Error>>>;

/// A request of a pipeline as the session is asked it, and the tag of its watch.
struct Asked {
    request: session::Request,
    tag: u64,
}

impl State {
    pub(super) async fn run_multi(
        &mut self,
        writes: Vec<Write>,
        claim: Vec<String>,
    ) -> Result<Result<Committed, MultiError>> {
        let whole = |error| Ok(Err(MultiError { index: None, error }));
        if let Err(error) = self.check_batch(writes.len().max(claim.len())) {
            return whole(error);
        }
        let resolved = match self.writes(writes) {
            Ok(resolved) => resolved,
            Err(refused) => return Ok(Err(refused)),
        };
        let claim: Result<Vec<_>, _> = claim.iter().map(|path| self.resolve(path)).collect();
        let claim = match claim {
            Ok(claim) => claim,
            Err(error) => return whole(error),
        };
        let (written, fence) = match self.send_multi(&resolved, &claim).await {
            Ok(done) => done,
            Err(failed) => {
                return Ok(Err(MultiError { index: failed.index(), error: failed.into() }));
            }
        };
        if let Some(fence) = fence {
            if !self.surroundings.seat.is_live() {
                // This process was stopped since the claim was confirmed, and the session is lost.
                return std::future::pending().await;
            }
            self.claimed(claim, fence, &resolved);
        }
        let written = self.all_written(&resolved, written)?;
        Ok(written.map(|written| Committed { written, fence }))
    }

    async fn send_multi(
        &mut self,
        writes: &[session::Write],
        claim: &[String],
    ) -> Result<(Vec<session::Written>, Option<Fence>), Failed> {
        let request = session::Request::Multi(writes.to_vec());
        let paths = paths_of(&request);
        // Where there is a new claim, nothing is given up.
        let given_up = if claim.is_empty() { self.giving_up([&request]) } else { None };
        let (seat, scope) = self.seat_and_scope();
        let (writes, claim) = (writes.to_vec(), claim.to_vec());
        let telling = given_up.as_ref().map(|given_up| given_up.telling(&seat));
        let errand = || async move {
            let request = told_beside(telling, seat.multi(writes, &claim));
            unless_cancelled(&scope, pin!(request)).await
        };
        let outcome = self.run_errand("multi", paths, |_| None, errand).await;
        if let Some(given_up) = given_up {
            self.given_up(given_up, |_| outcome.is_ok());
        }
        outcome
    }

    /// The parts of a multi, with their paths resolved.
    fn writes(&self, writes: Vec<Write>) -> Result<Vec<session::Write>, MultiError> {
        let resolved = (0_u32..).zip(writes).map(|(index, write)| {
            self.write(write).map_err(|error| MultiError { index: Some(index), error })
        });
        resolved.collect()
    }

    /// What a component is told of the parts of a multi.
    fn all_written(
        &self,
        writes: &[session::Write],
        written: Vec<session::Written>,
    ) -> Result<Result<Vec<Written>, MultiError>> {
        if writes.len() != written.len() {
            return Err(mismatch("multi"));
        }
        let parts = (0_u32..).zip(writes.iter().zip(written));
        let told = parts.map(|(index, (write, written))| {
            self.written(write, written).map_err(|error| MultiError { index: Some(index), error })
        });
        Ok(told.collect())
    }

    fn written(&self, write: &session::Write, written: session::Written) -> Result<Written, Error> {
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

    pub(super) async fn run_pipeline(&mut self, requests: Vec<Request>) -> Answers {
        if let Err(error) = self.check_pipeline(&requests) {
            return Ok(requests.iter().map(|_| Err(error.clone())).collect());
        }
        // What is wrong in itself is not sent, and is answered in its place.
        let resolved: Vec<_> = requests.into_iter().map(|request| self.request(request)).collect();
        let sendable = resolved.iter().flatten().map(|asked| asked.request.clone());
        let sendable: Vec<_> = sendable.collect();
        let replies = match self.send_pipeline(sendable).await {
            Ok(replies) => replies,
            Err(failed) => {
                let error = Error::from(failed);
                return Ok(resolved.iter().map(|_| Err(error.clone())).collect());
            }
        };
        let mut replies = replies.into_iter();
        let mut answers = Vec::with_capacity(resolved.len());
        for asked in resolved {
            answers.push(match asked {
                Err(NotSent::Refused(error)) => Err(error),
                Err(NotSent::Multi(refused)) => Ok(Reply::Multi(Err(refused))),
                Ok(asked) => {
                    let outcome = replies.next().ok_or_else(|| mismatch("pipeline"))?;
                    let outcome = settled(outcome).await;
                    if let Err(failed) = &outcome {
                        let (name, paths) = (name_of(&asked.request), paths_of(&asked.request));
                        self.log_refusal(name, &paths, failed);
                    }
                    match (&asked.request, outcome) {
                        (_, Ok(reply)) => self.reply(&asked, reply)?,
                        (session::Request::Multi(_), Err(failed)) => {
                            let index = failed.index();
                            Ok(Reply::Multi(Err(MultiError { index, error: failed.into() })))
                        }
                        (_, Err(failed)) => Err(failed.into()),
                    }
                }
            });
        }
        Ok(answers)
    }

    async fn send_pipeline(
        &mut self,
        requests: Vec<session::Request>,
    ) -> Result<Vec<Result<session::Reply, session::Failure>>, Failed> {
        let given_up = self.giving_up(&requests);
        let paths: Vec<_> = requests.iter().flat_map(paths_of).collect();
        let (seat, scope) = self.seat_and_scope();
        let telling = given_up.as_ref().map(|given_up| given_up.telling(&seat));
        let errand = || async move {
            let request = told_beside(telling, seat.pipeline(requests));
            unless_cancelled(&scope, pin!(request)).await
        };
        let outcome = self.run_errand("pipeline", paths, |_| None, errand).await;
        if let Some(given_up) = given_up {
            self.given_up(given_up, |place| {
                outcome.as_ref().is_ok_and(|answers| matches!(answers.get(place), Some(Ok(_))))
            });
        }
        outcome
    }

    fn check_pipeline(&mut self, requests: &[Request]) -> Result<(), Error> {
        let parts = requests.iter().map(|request| match request {
            Request::Multi(writes) => writes.len().max(1),
            _ => 1,
        });
        self.check_batch(requests.len())?;
        self.check_batch(parts.sum())?;
        let count = |is_it: fn(&&Request) -> bool| requests.iter().filter(is_it).count();
        let lists = count(|it| matches!(it, Request::GetChildren(_) | Request::WatchChildren(_)));
        self.check_child_lists(lists)?;
        self.check_more_watches(count(|it| {
            matches!(
                it,
                Request::WatchExists(_) | Request::WatchData(_) | Request::WatchChildren(_)
            )
        }))
    }

    fn request(&self, request: Request) -> Result<Asked, NotSent> {
        use session::Request as Ask;
        let read = |ask: fn(String, Watching) -> Ask, path: &str| {
            Ok(Asked { request: ask(self.resolve(path)?, Watching::No), tag: 0 })
        };
        let watch = |ask: fn(String, Watching) -> Ask, WatchRequest { path, tag }: WatchRequest| {
            Ok(Asked { request: ask(self.resolve(&path)?, Watching::Yes), tag })
        };
        let write = match request {
            Request::Create(create) => Write::Create(create),
            Request::Delete(delete) => Write::Delete(delete),
            Request::SetData(set) => Write::SetData(set),
            Request::Exists(path) => return read(Ask::Exists, &path),
            Request::GetData(path) => return read(Ask::GetData, &path),
            Request::GetChildren(path) => return read(Ask::GetChildren, &path),
            Request::WatchExists(watched) => return watch(Ask::Exists, watched),
            Request::WatchData(watched) => return watch(Ask::GetData, watched),
            Request::WatchChildren(watched) => return watch(Ask::GetChildren, watched),
            Request::Sync(path) => {
                return Ok(Asked { request: Ask::Sync(self.resolve(&path)?), tag: 0 });
            }
            Request::Multi(writes) => {
                let writes = self.writes(writes).map_err(NotSent::Multi)?;
                return Ok(Asked { request: Ask::Multi(writes), tag: 0 });
            }
        };
        Ok(Asked { request: Ask::Write(self.write(write)?), tag: 0 })
    }

    fn reply(&mut self, asked: &Asked, reply: session::Reply) -> Result<Result<Reply, Error>> {
        use session::{Reply as Got, Request as Ask};
        let Asked { request, tag } = asked;
        Ok(Ok(match (request, reply) {
            (Ask::Write(write), Got::Written(written)) => match self.written(write, written) {
                Ok(Written::Created(created)) => Reply::Created(created),
                Ok(Written::Deleted) => Reply::Deleted,
                Ok(Written::DataSet(stat)) => Reply::DataSet(stat),
                Ok(Written::Checked) => return Err(mismatch("pipeline")),
                Err(error) => return Ok(Err(error)),
            },
            (Ask::Multi(writes), Got::Multi(written)) => {
                Reply::Multi(self.all_written(writes, written)?)
            }
            (Ask::Exists(path, _), Got::Exists(stat, watch)) => {
                let stat = stat.map(|stat| self.stat(path, &stat));
                match watch {
                    Some(watch) => Reply::WatchedExists((stat, self.own_watch(watch, *tag))),
                    None => Reply::Exists(stat),
                }
            }
            (Ask::GetData(path, _), Got::Data(data, stat, watch)) => {
                let contents = Contents { data, stat: self.stat(path, &stat) };
                match watch {
                    Some(watch) => Reply::WatchedData((contents, self.own_watch(watch, *tag))),
                    None => Reply::Data(contents),
                }
            }
            (Ask::GetChildren(path, _), Got::Children(names, stat, watch)) => {
                let stat = self.stat(path, &stat);
                let children = self.own_children(names, stat);
                match watch {
                    Some(watch) => Reply::WatchedChildren((children, self.own_watch(watch, *tag))),
                    None => Reply::Children(children),
                }
            }
            (Ask::Sync(_), Got::Synced) => Reply::Synced,
            _ => return Err(mismatch("pipeline")),
        }))
    }
}

/// Why a request of a pipeline was not sent.
enum NotSent {
    Refused(Error),
    Multi(MultiError),
}

impl From<Error> for NotSent {
    fn from(error: Error) -> Self {
        NotSent::Refused(error)
    }
}
