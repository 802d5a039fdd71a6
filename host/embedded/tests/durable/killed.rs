//! Servers that are killed under load.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use wok_embedded::jute::{Reader, Writer};
use wok_embedded::protocol::{Acl, OpCode};

use crate::client::{Client, versioned, watched};
use crate::process::Process;

/// Rounds of two kills, if `WOK_KILLS` says nothing of kills.
const ROUNDS: usize = 20;
const CLIENTS: usize = 3;
/// Requests of a client that are not yet answered.
const WINDOW: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Nodes = BTreeMap<String, Vec<u8>>;

/// What a client's request number `k` does: it creates, sets or deletes a node of its own.
fn request(prefix: &str, k: usize, nodes: &mut Nodes) -> (OpCode, String) {
    let path = format!("/{prefix}-{}", k / 3);
    match k % 3 {
        0 => {
            nodes.insert(path.clone(), k.to_string().into_bytes());
            (OpCode::Create, path)
        }
        1 => {
            nodes.insert(path.clone(), k.to_string().into_bytes());
            (OpCode::SetData, path)
        }
        _ if k.is_multiple_of(2) => {
            nodes.remove(&path);
            (OpCode::Delete, path)
        }
        _ => {
            nodes.insert(path.clone(), k.to_string().into_bytes());
            (OpCode::SetData, path)
        }
    }
}

fn send(client: &mut Client, prefix: &str, k: usize) -> bool {
    let (op, path) = request(prefix, k, &mut Nodes::new());
    let mut body = Writer::new();
    body.int(i32::try_from(k).unwrap());
    body.int(op.code());
    match op {
        OpCode::Delete => versioned(&mut body, &path, -1),
        _ => {
            body.string(&path);
            body.slice(Some(k.to_string().as_bytes()));
            if op == OpCode::Create {
                Acl::encode_list(&Acl::open(), &mut body);
                body.int(0);
            } else {
                body.int(-1);
            }
        }
    }
    client.try_send(&body.finish())
}

/// How many requests have been answered, by all clients.
#[derive(Default)]
struct Answered {
    count: Mutex<usize>,
    changed: Condvar,
}

/// Sends requests until the server is gone. Tells how many were sent, and how many answered.
fn load(mut client: Client, prefix: &str, answered: &Answered) -> (usize, usize) {
    let (mut sent, mut done) = (0, 0);
    loop {
        while sent < done + WINDOW {
            // It may have arrived even if the connection broke.
            sent += 1;
            if !send(&mut client, prefix, sent - 1) {
                return (sent, done);
            }
        }
        let Some(answer) = client.answer() else { return (sent, done) };
        assert_eq!((answer.xid, answer.error), (i32::try_from(done).unwrap(), 0), "{prefix}");
        done += 1;
        *answered.count.lock().unwrap() += 1;
        answered.changed.notify_one();
    }
}

/// Clients that send requests until the server is gone.
pub(crate) struct Load {
    answered: Arc<Answered>,
    clients: Vec<(String, JoinHandle<(usize, usize)>)>,
}

impl Load {
    pub(crate) fn start(address: &str, round: usize) -> Load {
        let answered = Arc::new(Answered::default());
        let start = |prefix: String| {
            let (client, name, answered) =
                (Client::connect(address), prefix.clone(), answered.clone());
            (prefix, std::thread::spawn(move || load(client, &name, &answered)))
        };
        let clients = (0..CLIENTS).map(|c| start(format!("r{round}c{c}"))).collect();
        Load { answered, clients }
    }

    /// Waits until so many requests have been answered.
    pub(crate) fn wait_for(&self, moment: usize) {
        let count = self.answered.count.lock().unwrap();
        let is_early = |count: &mut usize| *count < moment;
        // If it takes for ever, a client has failed, which its thread tells.
        drop(self.answered.changed.wait_timeout_while(count, PATIENCE, is_early).unwrap());
    }

    /// For each client its nodes' prefix, how many requests were sent, and how many answered.
    pub(crate) fn join(self) -> Vec<(String, usize, usize)> {
        let join = |(prefix, client): (String, JoinHandle<(usize, usize)>)| {
            let (sent, answered) = client.join().unwrap();
            (prefix, sent, answered)
        };
        self.clients.into_iter().map(join).collect()
    }
}

pub(crate) fn read(address: &str) -> Nodes {
    let mut client = Client::connect(address);
    let mut nodes = Nodes::new();
    for name in client.children("/", false) {
        if name == "zookeeper" {
            continue;
        }
        let path = format!("/{name}");
        let answer = client.call(OpCode::GetData, |w| watched(w, &path, false));
        assert_eq!(answer.error, 0);
        let data = Reader::new(&answer.body).buffer().unwrap().unwrap_or_default();
        nodes.insert(path, data.to_vec());
    }
    nodes
}

/// What is there must be what the first so many requests lead to: all that were answered, and
/// none that were not sent.
#[track_caller]
pub(crate) fn check(prefix: &str, sent: usize, answered: usize, found: &Nodes) -> Nodes {
    let key = format!("/{prefix}-");
    let own: Nodes = (found.iter().filter(|(path, _)| path.starts_with(&key)))
        .map(|(path, data)| (path.clone(), data.clone()))
        .collect();
    let mut nodes = Nodes::new();
    for k in 0..=sent {
        if k >= answered && nodes == own {
            return own;
        }
        if k < sent {
            request(prefix, k, &mut nodes);
        }
    }
    panic!("{prefix}: {answered} of {sent} were answered, and this is there: {own:?}");
}

/// A generator of Knuth's: the moments are random, and the same in every run.
pub(crate) fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

#[test]
fn kills_under_load_lose_no_answered_write_and_bring_none_that_was_not_sent() {
    let scratch = tempfile::tempdir().unwrap();
    let mut seed = 3;
    let mut expected = Nodes::new();
    let mut total = 0;
    let kills = std::env::var("WOK_KILLS").ok();
    let rounds = kills.map_or(ROUNDS, |kills| kills.parse::<usize>().unwrap().div_ceil(2));
    for round in 0..rounds {
        // Small, so that kills come while snapshots are written.
        let server = Process::start(scratch.path(), 40);
        assert_eq!(read(&server.address), expected, "round {round}");
        let load = Load::start(&server.address, round);
        load.wait_for(next(&mut seed) % 400);
        server.kill();
        let counts = load.join();
        let server = Process::start(scratch.path(), 40);
        let found = read(&server.address);
        for (prefix, sent, answered) in counts {
            expected.append(&mut check(&prefix, sent, answered, &found));
            total += answered;
        }
        assert_eq!(found, expected, "round {round}");
        // This one comes upon a server that has just read its files.
        server.kill();
    }
    assert!(total > 100);
}
