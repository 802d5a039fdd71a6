//! An independent eye on the tree, and a hand that can end any session.
//!
//! It stands on the client crate and on [`crate::frames`], never on wok: what is judged does not
//! judge itself.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use zookeeper_client::{
    Acl, Acls, AuthId, Client, CreateMode, Error, Permission, SessionState, Stat,
};

use crate::frames::{self, ConnectRequest, ConnectResponse, Opcode, ReplyHeader, SessionKey};
use crate::patience::{eventually, within};

/// A connection of the test's own, with a session of its own.
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

/// A znode, as [`Admin::tree`] finds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Znode {
    /// Its absolute path.
    pub path: String,
    /// Its data.
    pub data: Vec<u8>,
    /// Its metadata.
    pub stat: Stat,
}

impl fmt::Debug for Znode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stat { czxid, version, ephemeral_owner, num_children, .. } = self.stat;
        let data = String::from_utf8_lossy(&self.data);
        write!(f, "{} {data:?} czxid {czxid:#x} version {version}", self.path)?;
        write!(f, " owner {ephemeral_owner:#x} children {num_children}")
    }
}

impl Admin {
    /// Connects, with an identity that open ACLs let in.
    ///
    /// # Errors
    /// If no server answers.
    pub async fn connect(address: &str) -> Result<Admin> {
        // As long as the server grants: a slow test must not lose its eye.
        let connector = Client::connector().with_session_timeout(Duration::from_secs(60));
        let client = within("a session", connector.connect(address)).await?;
        Ok(Admin { client: client.with_context(|| format!("connect to {address}"))? })
    }

    /// The client, for whatever is not offered here.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Creates a persistent znode and its missing parents.
    ///
    /// # Errors
    /// If the server refuses, or the znode exists.
    pub async fn create(&self, path: &str, data: &[u8]) -> Result<Stat> {
        self.create_as(CreateMode::Persistent, path, data).await.map(|(_, stat)| stat)
    }

    /// Creates a znode of that mode and its missing parents; answers its path, with the counter of
    /// a sequential one.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn create_as(
        &self,
        mode: CreateMode,
        path: &str,
        data: &[u8],
    ) -> Result<(String, Stat)> {
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        if let Some((parent, _)) = path.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            let made = self.client.mkdir(parent, &persistent).await;
            made.with_context(|| format!("create {parent}"))?;
        }
        let options = mode.with_acls(Acls::anyone_all());
        let created = self.client.create(path, data, &options).await;
        let (stat, sequence) = created.with_context(|| format!("create {path}"))?;
        let sequential =
            matches!(mode, CreateMode::PersistentSequential | CreateMode::EphemeralSequential);
        Ok((if sequential { format!("{path}{sequence}") } else { path.to_owned() }, stat))
    }

    /// A znode's data and metadata, if it exists.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn get(&self, path: &str) -> Result<Option<(Vec<u8>, Stat)>> {
        absent(self.client.get_data(path).await).with_context(|| format!("read {path}"))
    }

    /// A znode's metadata, if it exists.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.client.check_stat(path).await.with_context(|| format!("look at {path}"))
    }

    /// Creates a persistent znode that nobody may read, and its missing parents. Everybody may delete
    /// it.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn create_unreadable(&self, path: &str, data: &[u8]) -> Result<()> {
        let nobody = [Acl::new(Permission::ALL, AuthId::new("digest", "nobody:at all"))];
        self.create(path, data).await?;
        self.client.set_acl(path, &nobody, None).await.with_context(|| format!("close {path}"))?;
        Ok(())
    }

    /// Says whether a directory's children may be deleted, by anybody. All else is allowed to everybody.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn let_children_go(&self, directory: &str, may_go: bool) -> Result<()> {
        let others = Permission::READ | Permission::WRITE | Permission::CREATE | Permission::ADMIN;
        let allowed = if may_go { Permission::ALL } else { others };
        let all = [Acl::new(allowed, AuthId::anyone())];
        let set = self.client.set_acl(directory, &all, None).await;
        set.with_context(|| format!("the ACL of {directory}"))?;
        Ok(())
    }

    /// Replaces a znode's data.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn set(&self, path: &str, data: &[u8]) -> Result<Stat> {
        self.client.set_data(path, data, None).await.with_context(|| format!("write {path}"))
    }

    /// The names of a znode's children, sorted; none if it does not exist.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn children(&self, path: &str) -> Result<Vec<String>> {
        let listed = absent(self.client.get_children(path).await);
        let listed = listed.with_context(|| format!("list {path}"))?;
        let mut names = listed.map(|(names, _)| names).unwrap_or_default();
        names.sort();
        Ok(names)
    }

    /// Deletes a znode without children.
    ///
    /// # Errors
    /// If there is none, or the server refuses.
    pub async fn delete(&self, path: &str) -> Result<()> {
        self.client.delete(path, None).await.with_context(|| format!("delete {path}"))
    }

    /// The znode and all below it, parents first and siblings sorted; empty if it does not exist.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn tree(&self, path: &str) -> Result<Vec<Znode>> {
        let mut found = Vec::new();
        let mut to_visit = vec![path.to_owned()];
        while let Some(path) = to_visit.pop() {
            // A znode that went between the list and this read is not in the tree.
            let Some((data, stat)) = self.get(&path).await? else { continue };
            for name in self.children(&path).await?.iter().rev() {
                to_visit.push(format!("{}/{name}", path.trim_end_matches('/')));
            }
            found.push(Znode { path, data, stat });
        }
        Ok(found)
    }

    /// Deletes a znode and all below it. Nothing happens if it does not exist.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn delete_tree(&self, path: &str) -> Result<()> {
        for znode in self.tree(path).await?.iter().rev() {
            absent(self.client.delete(&znode.path, None).await)
                .with_context(|| format!("delete {}", znode.path))?;
        }
        Ok(())
    }

    /// Waits until the children of `path` are as wanted, and answers them, sorted. It is woken by
    /// watches, so it sees every state that lasts longer than a read.
    ///
    /// # Errors
    /// If that does not come to pass; the error names the children there were.
    pub async fn wait_children(
        &self,
        path: &str,
        what: &str,
        mut wanted: impl FnMut(&[String]) -> bool,
    ) -> Result<Vec<String>> {
        let mut last = Vec::new();
        let waiting = async {
            loop {
                let (_, appears) = self.client.check_and_watch_stat(path).await?;
                let listed = absent(self.client.list_and_watch_children(path).await)?;
                let (mut names, changes) = listed.unzip();
                let names = names.get_or_insert_default();
                names.sort();
                last.clone_from(names);
                if wanted(names) {
                    return anyhow::Ok(());
                }
                match changes {
                    Some(changes) => changes.changed().await,
                    None => appears.changed().await,
                };
            }
        };
        let outcome = within(what, waiting).await;
        outcome.and_then(|inner| inner).map_err(|error| anyhow!("{error:#}; {path}: {last:?}"))?;
        Ok(last)
    }

    /// Waits until there is no such znode.
    ///
    /// # Errors
    /// If it stays.
    pub async fn wait_gone(&self, path: &str) -> Result<()> {
        let waiting = async {
            loop {
                let (stat, watcher) = self.client.check_and_watch_stat(path).await?;
                if stat.is_none() {
                    return anyhow::Ok(());
                }
                watcher.changed().await;
            }
        };
        within(&format!("{path} to go"), waiting).await?
    }

    /// Waits until there is such a znode, and answers its metadata.
    ///
    /// # Errors
    /// If none appears.
    pub async fn wait_there(&self, path: &str) -> Result<Stat> {
        let waiting = async {
            loop {
                let (stat, watcher) = self.client.check_and_watch_stat(path).await?;
                if let Some(stat) = stat {
                    return anyhow::Ok(stat);
                }
                watcher.changed().await;
            }
        };
        within(&format!("{path} to appear"), waiting).await?
    }
}

/// Waits until a client's session is in that state; it may be already.
///
/// # Errors
/// If it does not get there; the error names where it is.
pub async fn wait_state(client: &Client, wanted: SessionState) -> Result<()> {
    let mut states = client.state_watcher();
    let waiting = async {
        // The watcher is older than this look, so no change falls between.
        while client.state() != wanted {
            states.changed().await;
        }
    };
    let waited = within(&format!("a session that is {wanted:?}"), waiting).await;
    waited.with_context(|| format!("it is {:?}", client.state()))
}

fn absent<T>(outcome: Result<T, Error>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Ends a session as its expiry would: the server deletes its ephemerals, and its client learns
/// that it is gone. [`crate::proxy::Proxy::sessions`] knows the keys.
///
/// # Errors
/// If the server does not know the session (any more).
pub async fn expire(address: &str, session: &SessionKey) -> Result<()> {
    let closing = async {
        for attempt in 1.. {
            match close(address, session).await? {
                Closing::Done => break,
                // It was known before, so an earlier attempt did it and lost the answer.
                Closing::Unknown if attempt > 1 => break,
                Closing::Unknown => bail!("the server does not know {session:?} any more"),
                // The session's own client came back and took the connection away.
                Closing::Interrupted => {}
            }
        }
        anyhow::Ok(())
    };
    within("a session to close", closing).await?
}

enum Closing {
    Done,
    Unknown,
    Interrupted,
}

async fn close(address: &str, session: &SessionKey) -> Result<Closing> {
    const XID: i32 = 1;
    let mut request = XID.to_be_bytes().to_vec();
    request.extend(Opcode::CloseSession.number().to_be_bytes());
    let mut stream = TcpStream::connect(address).await?;
    // In one piece: the client whose connection this takes away is soon back.
    let pieces = [frames::frame(&handshake(session)), frames::frame(&request)].concat();
    if stream.write_all(&pieces).await.is_err() {
        return Ok(Closing::Interrupted);
    }
    let Ok(Some(answer)) = frames::read(&mut stream).await else {
        return Ok(Closing::Interrupted);
    };
    if ConnectResponse::decode(&answer)?.is_refusal() {
        return Ok(Closing::Unknown);
    }
    while let Ok(Some(reply)) = frames::read(&mut stream).await {
        if ReplyHeader::decode(&reply)?.xid == XID {
            return Ok(Closing::Done);
        }
    }
    Ok(Closing::Interrupted)
}

fn handshake(session: &SessionKey) -> Vec<u8> {
    let timeout = Duration::from_secs(10);
    ConnectRequest { last_zxid: 0, timeout, session: session.clone() }.encode()
}

/// Connects as that session, which cuts the connection that its client has: what a client on a
/// second network path would do. The session lives on.
///
/// # Errors
/// If the server does not know the session (any more).
pub async fn take_over(
    address: &str,
    session: &SessionKey,
) -> Result<(TcpStream, ConnectResponse)> {
    let (stream, answer) = eventually("the server's handshake", async || {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&frames::frame(&handshake(session))).await?;
        // Closed without an answer: the session's client came back before the server had answered.
        let answer = frames::read(&mut stream).await.ok().flatten();
        Ok(answer.map(|answer| (stream, answer)))
    })
    .await?;
    let answer = ConnectResponse::decode(&answer)?;
    if answer.is_refusal() {
        bail!("the server does not know {session:?} any more");
    }
    Ok((stream, answer))
}
