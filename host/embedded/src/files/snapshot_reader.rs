//! Reading a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use adler2::Adler32;
use bytes::Bytes;

use super::entry::HIGHEST_ZXID;
use super::error::FilesError;
use super::snapshot_writer::{OPEN_LIST, SNAPSHOT_HEADER};
use crate::jute::{Malformed, Reader};
use crate::path;
use crate::protocol::{Acl, Acls, Id};
use crate::replica::Replica;
use crate::tree::{NodeStat, Tree};

/// What a snapshot holds.
#[derive(Debug)]
pub struct Snapshot {
    /// Sessions and nodes.
    pub replica: Replica,
    /// Whether access lists of nodes are missing: only the log's txns tell them.
    pub lacks_lists: bool,
    /// The newest txn that it shows. It is taken while the server goes on, so that this may be
    /// later than its beginning.
    pub newest_zxid: i64,
}

/// Reads a snapshot begun at a zxid, in the memory of what it holds and no more than the file's
/// length beside it.
///
/// A node whose access list is missing gets one that permits nothing; the log's txns bring the
/// list, see `Tree::create`.
///
/// # Errors
/// [`FilesError::DamagedSnapshot`], [`FilesError::Io`].
pub fn read_snapshot(path: &Path, zxid: i64) -> Result<Snapshot, FilesError> {
    let open = || {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((BufReader::with_capacity(256 << 10, file), length))
    };
    let (input, length) = open().map_err(FilesError::io("open", path))?;
    Snapshot::read(path, zxid, input, length)
}

impl Snapshot {
    /// Reads a snapshot of so many bytes, as [`read_snapshot`] does. Errors name the path.
    ///
    /// # Errors
    /// [`FilesError::DamagedSnapshot`], [`FilesError::Io`].
    pub fn read(
        path: &Path,
        zxid: i64,
        input: impl Read,
        length: u64,
    ) -> Result<Snapshot, FilesError> {
        let (sum, newest_zxid) = (Adler32::new(), zxid);
        let mut source = Source { input, left: length, sum, lacks_lists: false, newest_zxid };
        match source.replica(zxid) {
            Ok(replica) => {
                let Source { lacks_lists, newest_zxid, .. } = source;
                Ok(Snapshot { replica, lacks_lists, newest_zxid })
            }
            Err(Bad::Io(source)) => Err(FilesError::io("read", path)(source)),
            Err(Bad::Form(reason)) => Err(FilesError::DamagedSnapshot {
                path: path.to_owned(),
                offset: length - source.left,
                reason,
            }),
        }
    }
}

/// The list of a node whose own is not in the snapshot. No client can set a list like it.
pub(super) fn nobody() -> Vec<Acl> {
    vec![Acl { permissions: 0, id: Id::new("", "") }]
}

enum Bad {
    Io(io::Error),
    Form(String),
}

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Self {
        Bad::Io(error)
    }
}

impl From<Malformed> for Bad {
    fn from(error: Malformed) -> Self {
        Bad::Form(error.to_string())
    }
}

struct Source<R> {
    input: R,
    left: u64,
    sum: Adler32,
    lacks_lists: bool,
    newest_zxid: i64,
}

impl<R: Read> Source<R> {
    fn replica(&mut self, zxid: i64) -> Result<Replica, Bad> {
        let header: [u8; 16] = self.array()?;
        if header.first_chunk::<8>() != SNAPSHOT_HEADER.first_chunk::<8>() {
            return Err(Bad::Form("this is no snapshot of version 2".to_owned()));
        }
        if zxid > HIGHEST_ZXID {
            return Err(Bad::Form("its zxid is beyond those that servers give".to_owned()));
        }
        let mut sessions = BTreeMap::new();
        for _ in 0..self.count(12)? {
            sessions.insert(self.long()?, self.int()?);
        }
        let mut lists = HashMap::new();
        for _ in 0..self.count(12)? {
            let number = self.long()?;
            lists.insert(number, self.list()?);
        }
        lists.insert(OPEN_LIST, Acl::open());
        let tree = self.tree(&lists)?;
        let sum = i64::from(self.sum.checksum());
        if self.long()? != sum {
            return Err(Bad::Form("it does not fit its checksum".to_owned()));
        }
        // Digests of the tree may follow, which are not compared.
        Ok(Replica::restored(tree, sessions, zxid))
    }

    fn tree(&mut self, lists: &HashMap<i64, Acls>) -> Result<Tree, Bad> {
        let mut tree = Tree::new();
        let nobody = Acls::from(nobody());
        loop {
            let path = self.string()?;
            if path == "/" {
                return Ok(tree);
            }
            let data = self.bytes()?.map(Bytes::from);
            let list = lists.get(&self.long()?).unwrap_or_else(|| {
                self.lacks_lists = true;
                &nobody
            });
            let stat: [u8; 60] = self.array()?;
            let stat = NodeStat::decode(&mut Reader::new(&stat))?;
            let NodeStat { czxid, mzxid, pzxid, .. } = stat;
            self.newest_zxid = self.newest_zxid.max(czxid).max(mzxid).max(pzxid);
            // The root goes by its other name.
            let path = if path.is_empty() { "/" } else { path.as_str() };
            if !path::is_valid(path) {
                return Err(Bad::Form(format!("{path:?} is a path that no server takes")));
            }
            let parent = path::split(path).and_then(|(parent, _)| tree.get(parent));
            if parent.is_none() {
                return Err(Bad::Form(format!("{path:?} has no parent")));
            }
            tree.restore(path, data, list, stat);
        }
    }

    fn list(&mut self) -> Result<Acls, Bad> {
        let mut list = Vec::new();
        for _ in 0..self.count(12)? {
            let permissions = self.int()?;
            list.push(Acl { permissions, id: Id { scheme: self.string()?, id: self.string()? } });
        }
        Ok(Acls::from(list))
    }

    fn take(&mut self, into: &mut [u8]) -> Result<(), Bad> {
        let length = u64::try_from(into.len()).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(length).ok_or(Malformed::Truncated)?;
        self.input.read_exact(into)?;
        self.sum.write_slice(into);
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Bad> {
        let mut array = [0; N];
        self.take(&mut array)?;
        Ok(array)
    }

    fn int(&mut self) -> Result<i32, Bad> {
        self.array().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Result<i64, Bad> {
        self.array().map(i64::from_be_bytes)
    }

    /// A count of things that have at least so many bytes each. Null is none.
    fn count(&mut self, least: u64) -> Result<u64, Bad> {
        match self.int()? {
            -1 => Ok(0),
            count => u64::try_from(count)
                .ok()
                .filter(|wanted| *wanted <= self.left / least)
                .ok_or_else(|| Malformed::Length(count).into()),
        }
    }

    fn bytes(&mut self) -> Result<Option<Vec<u8>>, Bad> {
        let length = self.int()?;
        if length == -1 {
            return Ok(None);
        }
        let fits = usize::try_from(length)
            .ok()
            .filter(|length| u64::try_from(*length).is_ok_and(|length| length <= self.left));
        let mut bytes = vec![0; fits.ok_or(Malformed::Length(length))?];
        self.take(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn string(&mut self) -> Result<String, Bad> {
        let bytes = self.bytes()?.ok_or(Malformed::Null)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
