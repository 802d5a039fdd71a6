//! An ensemble in memory, which answers at once. It knows what the tests of the guest room need:
//! no quotas, no ACLs, and of lost connections what they do to one request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{oneshot, watch};
use wok::session::{
    Acl, Connection, CreateMode, Ensemble, Event, Failure, Refusal, Reply, Request, Stat, Watch,
    Watching, Write, Written,
};

const SESSION: i64 = 7;

#[derive(Debug, Clone, Default)]
struct Znode {
    data: Vec<u8>,
    stat: Stat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Znode,
    Children,
}

#[derive(Debug)]
struct Armed {
    path: String,
    of: Of,
    fire: oneshot::Sender<Event>,
}

#[derive(Debug, Default)]
struct Tree {
    znodes: BTreeMap<String, Znode>,
    armed: Vec<Armed>,
    zxid: i64,
    /// What was asked, by ZooKeeper's names, heartbeats aside.
    asked: Vec<&'static str>,
    /// By the place in `asked` of the request they strike.
    strikes: BTreeMap<usize, Strike>,
}

/// What happens to a request.
#[derive(Debug)]
pub(crate) enum Strike {
    /// The ensemble refuses it.
    Refuse(Refusal),
    /// The connection is lost before the ensemble gets it.
    LoseRequest,
    /// The connection is lost before the ensemble's reply comes.
    LoseReply,
}

/// The ensemble. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct InMemory {
    tree: Arc<Mutex<Tree>>,
    connection: watch::Sender<Connection>,
}

impl InMemory {
    /// An ensemble with these znodes, given from the top down.
    pub(crate) fn with(paths: &[&str]) -> Self {
        let mut tree = Tree::default();
        tree.znodes.insert("/".to_owned(), Znode::default());
        for path in paths {
            tree.create((*path).to_owned(), Vec::new(), CreateMode::Persistent).unwrap();
        }
        InMemory {
            tree: Arc::new(Mutex::new(tree)),
            connection: watch::Sender::new(Connection::Up { stood: None }),
        }
    }

    /// The paths of all znodes.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.tree.lock().unwrap().znodes.keys().cloned().collect()
    }

    /// How many requests came, heartbeats aside.
    pub(crate) fn requests(&self) -> u64 {
        u64::try_from(self.asked().len()).unwrap()
    }

    /// The requests that came, by ZooKeeper's names, heartbeats aside.
    pub(crate) fn asked(&self) -> Vec<&'static str> {
        self.tree.lock().unwrap().asked.clone()
    }

    /// Does something to the `nth` request from now on, counted from 1.
    pub(crate) fn strike(&self, nth: usize, strike: Strike) {
        let mut tree = self.tree.lock().unwrap();
        let place = tree.asked.len() + nth - 1;
        tree.strikes.insert(place, strike);
    }

    /// Does a write as another client would.
    pub(crate) fn write(&self, write: Write) {
        self.tree.lock().unwrap().write(write).unwrap();
    }
}

impl Ensemble for InMemory {
    fn id(&self) -> i64 {
        SESSION
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(3600)
    }

    fn submit(&self, request: Request, _: Acl) -> BoxFuture<'static, Result<Reply, Failure>> {
        let reply = self.tree.lock().unwrap().serve(request);
        futures_util::future::ready(reply).boxed()
    }

    fn least_timeout(&self) -> BoxFuture<'static, Option<Duration>> {
        futures_util::future::ready(None).boxed()
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        futures_util::future::ready(()).boxed()
    }
}

impl Tree {
    fn serve(&mut self, request: Request) -> Result<Reply, Failure> {
        let place = self.asked.len();
        self.asked.push(name(&request));
        match self.strikes.remove(&place) {
            None => self.perform(request),
            Some(Strike::Refuse(refusal)) => Err(refusal.into()),
            Some(Strike::LoseRequest) => Err(Failure::OutcomeUnknown),
            Some(Strike::LoseReply) => {
                self.perform(request).ok();
                Err(Failure::OutcomeUnknown)
            }
        }
    }

    fn perform(&mut self, request: Request) -> Result<Reply, Failure> {
        match request {
            Request::Write(write) => self.write(write).map(Reply::Written),
            Request::Multi(writes) => {
                let before = self.znodes.clone();
                let mut written = Vec::new();
                for (index, write) in writes.into_iter().enumerate() {
                    match self.write(write) {
                        Ok(done) => written.push(done),
                        Err(Failure::Refused { refusal, .. }) => {
                            self.znodes = before;
                            return Err(Failure::Refused { refusal, index: Some(index) });
                        }
                        Err(other) => return Err(other),
                    }
                }
                Ok(Reply::Multi(written))
            }
            Request::Exists(path, watching) => {
                let stat = self.znodes.get(&path).map(|znode| znode.stat);
                Ok(Reply::Exists(stat, self.arm(path, Of::Znode, watching)))
            }
            Request::GetData(path, watching) => {
                let Znode { data, stat } = self.get(&path)?.clone();
                Ok(Reply::Data(data, stat, self.arm(path, Of::Znode, watching)))
            }
            Request::GetChildren(path, watching) => {
                let stat = self.get(&path)?.stat;
                let names = self.children(&path);
                Ok(Reply::Children(names, stat, self.arm(path, Of::Children, watching)))
            }
            Request::Sync(_) => Ok(Reply::Synced),
        }
    }

    fn get(&mut self, path: &str) -> Result<&mut Znode, Failure> {
        self.znodes.get_mut(path).ok_or_else(|| Refusal::NoNode.into())
    }

    fn children(&self, path: &str) -> Vec<String> {
        let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let below = self.znodes.keys().filter_map(|key| key.strip_prefix(&prefix));
        below.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect()
    }

    fn arm(&mut self, path: String, of: Of, watching: Watching) -> Option<Watch> {
        if watching == Watching::No {
            return None;
        }
        let (fire, fired) = oneshot::channel();
        self.armed.push(Armed { path, of, fire });
        Some(Watch::new(
            async move {
                match fired.await {
                    Ok(event) => event,
                    Err(_) => std::future::pending().await,
                }
            }
            .boxed(),
        ))
    }

    fn fire(&mut self, path: &str, of: Of, event: Event) {
        let armed = std::mem::take(&mut self.armed);
        for one in armed {
            if one.path == path && one.of == of {
                // The component that armed it may have dropped it.
                one.fire.send(event).ok();
            } else {
                self.armed.push(one);
            }
        }
    }

    fn write(&mut self, write: Write) -> Result<Written, Failure> {
        match write {
            Write::Create { path, data, mode } => {
                self.create(path, data, mode).map(|(path, stat)| Written::Created(path, stat))
            }
            Write::Delete { path, version } => {
                self.check(&path, version)?;
                if !self.children(&path).is_empty() {
                    return Err(Refusal::NotEmpty.into());
                }
                self.znodes.remove(&path);
                self.fire(&path, Of::Znode, Event::Deleted);
                self.fire(&path, Of::Children, Event::Deleted);
                self.fire(&parent(&path), Of::Children, Event::ChildrenChanged);
                Ok(Written::Deleted)
            }
            Write::SetData { path, data, version } => {
                self.check(&path, version)?;
                self.zxid += 1;
                let zxid = self.zxid;
                let znode = self.get(&path)?;
                znode.stat.mzxid = zxid;
                znode.stat.version += 1;
                znode.data = data;
                let stat = znode.stat;
                self.fire(&path, Of::Znode, Event::DataChanged);
                Ok(Written::DataSet(stat))
            }
            Write::Check { path, version } => self.check(&path, version).map(|()| Written::Checked),
        }
    }

    fn check(&mut self, path: &str, version: Option<i32>) -> Result<(), Failure> {
        let current = self.get(path)?.stat.version;
        match version {
            Some(version) if version != current => Err(Refusal::BadVersion.into()),
            _ => Ok(()),
        }
    }

    fn create(
        &mut self,
        path: String,
        data: Vec<u8>,
        mode: CreateMode,
    ) -> Result<(String, Stat), Failure> {
        let above = parent(&path);
        self.zxid += 1;
        let zxid = self.zxid;
        let counter = {
            let above = self.get(&above)?;
            above.stat.cversion += 1;
            above.stat.cversion - 1
        };
        let path = match mode {
            CreateMode::PersistentSequential | CreateMode::EphemeralSequential => {
                format!("{path}{counter:010}")
            }
            _ => path,
        };
        if self.znodes.contains_key(&path) {
            return Err(Refusal::NodeExists.into());
        }
        let ephemeral_owner = if mode.is_ephemeral() { SESSION } else { 0 };
        let data_length = i32::try_from(data.len()).unwrap();
        let stat =
            Stat { czxid: zxid, mzxid: zxid, ephemeral_owner, data_length, ..Stat::default() };
        self.znodes.insert(path.clone(), Znode { data, stat });
        self.fire(&path, Of::Znode, Event::Created);
        self.fire(&above, Of::Children, Event::ChildrenChanged);
        Ok((path, stat))
    }
}

fn name(request: &Request) -> &'static str {
    match request {
        Request::Write(Write::Create { .. }) => "create",
        Request::Write(Write::Delete { .. }) => "delete",
        Request::Write(Write::SetData { .. }) => "setData",
        Request::Write(Write::Check { .. }) => "check",
        Request::Multi(_) => "multi",
        Request::Exists(..) => "exists",
        Request::GetData(..) => "getData",
        Request::GetChildren(..) => "getChildren",
        Request::Sync(_) => "sync",
    }
}

fn parent(path: &str) -> String {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/".to_owned(),
        Some((above, _)) => above.to_owned(),
    }
}
