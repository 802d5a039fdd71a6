//! Writing a snapshot, piece by piece.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write};
use std::sync::Arc;

use adler2::Adler32;
use bytes::Bytes;

use super::directory::{DataDir, Unfinished};
use super::error::FilesError;
use crate::jute::Writer;
use crate::protocol::{Acl, Acls};
use crate::replica::Replica;
use crate::tree::{Node, NodeStat};

/// What a snapshot begins with: `ZKSN`, version 2, database -1.
pub(super) const SNAPSHOT_HEADER: [u8; 16] =
    [b'Z', b'K', b'S', b'N', 0, 0, 0, 2, 255, 255, 255, 255, 255, 255, 255, 255];
/// The number of the access list that lets everyone do everything: it needs no entry.
pub(super) const OPEN_LIST: i64 = -1;

/// A node on its way into a snapshot. Data and list are shared with the tree.
#[derive(Debug, Clone)]
pub struct SnapshotNode {
    path: Arc<str>,
    data: Option<Bytes>,
    acl: Acls,
    stat: NodeStat,
}

impl SnapshotNode {
    /// The node as it is now.
    pub fn of(path: Arc<str>, node: &Node) -> Self {
        SnapshotNode {
            path,
            data: node.data().cloned(),
            acl: node.acl().clone(),
            stat: *node.stored(),
        }
    }
}

/// A snapshot that is being written.
///
/// Nodes come while txns go on, and may bring access lists that were not there at the beginning.
/// Lists stand before nodes in the file, so nodes are put aside until all lists are known.
/// A writer that is dropped, or fails, leaves nothing behind.
#[derive(Debug)]
pub struct SnapshotWriter {
    directory: Arc<DataDir>,
    sessions: BTreeMap<i64, i32>,
    lists: Vec<Acls>,
    numbers: HashMap<Acls, i64>,
    nodes: BufWriter<File>,
    nodes_file: Unfinished,
}

impl SnapshotWriter {
    /// Begins a snapshot, with the sessions of its zxid.
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn begin(
        directory: Arc<DataDir>,
        sessions: BTreeMap<i64, i32>,
    ) -> Result<SnapshotWriter, FilesError> {
        let nodes_file = Unfinished::new(&directory, "nodes");
        let nodes = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(nodes_file.path())
            .map_err(FilesError::io("create", nodes_file.path()))?;
        Ok(SnapshotWriter {
            directory,
            sessions,
            lists: Vec::new(),
            numbers: HashMap::new(),
            nodes: BufWriter::with_capacity(256 << 10, nodes),
            nodes_file,
        })
    }

    /// Adds nodes, in the order of [`crate::tree::Tree::following`].
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn add(&mut self, nodes: &[SnapshotNode]) -> Result<(), FilesError> {
        for node in nodes {
            let mut writer = Writer::new();
            writer.string(if &*node.path == "/" { "" } else { &node.path });
            writer.slice(node.data.as_deref());
            writer.long(self.number(&node.acl));
            node.stat.encode(&mut writer);
            let written = self.nodes.write_all(&writer.finish());
            written.map_err(FilesError::io("write", self.nodes_file.path()))?;
        }
        Ok(())
    }

    fn number(&mut self, acl: &Acls) -> i64 {
        if **acl == *Acl::open() {
            return OPEN_LIST;
        }
        if let Some(number) = self.numbers.get(acl) {
            return *number;
        }
        self.lists.push(acl.clone());
        let number = i64::try_from(self.lists.len()).unwrap_or(i64::MAX);
        self.numbers.insert(acl.clone(), number);
        number
    }

    /// Puts the snapshot in its place, on disk.
    ///
    /// # Errors
    /// [`FilesError::Io`].
    pub fn finish(self, zxid: i64) -> Result<(), FilesError> {
        let SnapshotWriter { directory, sessions, lists, nodes, nodes_file, .. } = self;
        let unfinished = Unfinished::new(&directory, "snapshot");
        let head = head(&sessions, &lists);
        let write = || -> io::Result<()> {
            let mut nodes = nodes.into_inner()?;
            nodes.rewind()?;
            let file = File::create(unfinished.path())?;
            let mut output = BufWriter::with_capacity(256 << 10, &file);
            let mut sum = Adler32::new();
            let mut put = |bytes: &[u8]| {
                sum.write_slice(bytes);
                output.write_all(bytes)
            };
            put(&head)?;
            let mut buffer = vec![0; 256 << 10];
            let mut nodes = BufReader::with_capacity(0, nodes);
            loop {
                let length = nodes.read(&mut buffer)?;
                if length == 0 {
                    break;
                }
                put(buffer.get(..length).unwrap_or_default())?;
            }
            let mut end = Writer::new();
            end.string("/");
            let end = end.finish();
            put(&end)?;
            output.write_all(&i64::from(sum.checksum()).to_be_bytes())?;
            output.write_all(&end)?;
            output.flush()?;
            file.sync_all()
        };
        write().map_err(FilesError::io("write", unfinished.path()))?;
        drop(nodes_file);
        unfinished.finish(&directory.snapshot(zxid))
    }
}

fn head(sessions: &BTreeMap<i64, i32>, lists: &[Acls]) -> Bytes {
    let mut writer = Writer::new();
    writer.raw(&SNAPSHOT_HEADER);
    writer.list(sessions.iter(), |writer, (session_id, timeout_ms)| {
        writer.long(*session_id);
        writer.int(*timeout_ms);
    });
    writer.list((1_i64..).zip(lists).collect::<Vec<_>>().into_iter(), |writer, (number, list)| {
        writer.long(number);
        Acl::encode_list(list, writer);
    });
    writer.finish()
}

/// Writes a snapshot of a copy that does not change meanwhile.
///
/// # Errors
/// [`FilesError::Io`].
pub fn write_whole_snapshot(directory: &Arc<DataDir>, replica: &Replica) -> Result<(), FilesError> {
    let mut writer = SnapshotWriter::begin(directory.clone(), replica.sessions().clone())?;
    let tree = replica.tree();
    let mut next = tree.root();
    while let Some((path, node)) = next {
        writer.add(&[SnapshotNode::of(path.clone(), node)])?;
        next = tree.following(&path);
    }
    writer.finish(replica.last_zxid())
}
