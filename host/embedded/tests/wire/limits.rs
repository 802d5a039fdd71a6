//! What a client may send, and how much of it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use wok_embedded::jute::Writer;
use wok_embedded::protocol::{Acl, Id, OpCode};
use wok_embedded::{EmbeddedZooKeeper, ServerOptions};

use crate::client::{Client, Hello, create, end, part, versioned, watched, word};
use crate::start;

const MAX: usize = 1_048_575;

fn set_of_size(size: usize) -> Vec<u8> {
    let mut body = Writer::new();
    body.int(1);
    body.int(OpCode::SetData.code());
    body.string("/big");
    // Header, path, the data's own length, and the version behind it.
    body.slice(Some(&vec![7; size - 8 - 8 - 4 - 4]));
    body.int(-1);
    let body = body.finish();
    assert_eq!(body.len(), size);
    body.to_vec()
}

/// One that has created `/big`, as large as it can be.
fn client_of_a_large_node(server: &EmbeddedZooKeeper) -> Client {
    create_large_node(Client::connect(server.connect_string()))
}

fn create_large_node(mut client: Client) -> Client {
    client.created("/big", 0);
    client.send(&set_of_size(MAX));
    assert_eq!(client.answer().unwrap().error, 0);
    client
}

#[test]
fn the_largest_frame_is_taken_and_one_byte_more_ends_the_connection() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/big", 0);
    client.send(&set_of_size(MAX));
    assert_eq!(client.answer().unwrap().error, 0);
    client.stream.write_all(&1_048_576_i32.to_be_bytes()).unwrap();
    assert!(client.is_closed());
}

#[test]
fn first_frames_of_impossible_lengths_end_the_connection() {
    let server = start();
    for length in [-1, 0, 3, i32::MAX] {
        let mut client = Client::connect(server.connect_string());
        client.stream = TcpStream::connect(server.connect_string()).unwrap();
        client.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client.stream.write_all(&i32::to_be_bytes(length)).unwrap();
        client.stream.write_all(&[0; 3]).unwrap();
        assert!(client.is_closed(), "{length}");
    }
}

#[test]
fn an_unknown_request_is_answered_and_ends_the_connection_but_not_the_session() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let mut other = Client::connect(server.connect_string());
    client.created("/e", 1);
    client.send(&[0, 0, 0, 7, 0, 0, 0, 77]);
    let answer = client.answer().unwrap();
    assert_eq!((answer.xid, answer.zxid, answer.error), (7, -1, -6));
    assert!(client.is_closed());
    assert_eq!(other.exists("/e", false), 0);
}

#[test]
fn a_burst_is_answered_in_order_up_to_the_close_within_it() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let mut expected = Vec::new();
    for number in 0..1_000 {
        let path = format!("/n{}", number / 3);
        let (xid, error) = match number % 3 {
            0 => (client.ask(OpCode::Create, |w| create(w, &path, 0)), 0),
            1 => (client.ask(OpCode::Exists, |w| watched(w, &path, false)), 0),
            _ => (client.ask(OpCode::Delete, |w| versioned(w, &path, 5)), -103),
        };
        expected.push((xid, error));
    }
    expected.push((client.ask(OpCode::CloseSession, |_| {}), 0));
    client.ask(OpCode::Exists, |w| watched(w, "/", false));
    let mut answers = Vec::new();
    while let Some(answer) = client.answer() {
        answers.push((answer.xid, answer.error));
    }
    assert_eq!(answers, expected);
}

#[test]
fn a_slow_reader_hurts_only_itself_and_loses_nothing() {
    let server = start();
    let mut slow = client_of_a_large_node(&server);
    let mut other = Client::connect(server.connect_string());
    // Sixty times a megabyte that nobody takes: more than all buffers in between hold.
    let asked: Vec<i32> =
        (0..60).map(|_| slow.ask(OpCode::GetData, |w| watched(w, "/big", false))).collect();
    let start = Instant::now();
    for number in 0..50 {
        other.created(&format!("/n{number}"), 0);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    for xid in asked {
        let answer = slow.answer().unwrap();
        assert_eq!((answer.xid, answer.body.len()), (xid, 4 + MAX - 24 + 68));
    }
}

#[test]
fn the_time_until_an_answer_is_counted_from_when_the_request_came_in() {
    const READS: i32 = 100;
    let server = start();
    let mut client = client_of_a_large_node(&server);
    let mut burst = Vec::new();
    for xid in 1..=READS {
        burst.extend(framed(xid, OpCode::GetData, |w| watched(w, "/big", false)));
    }
    // Of reads alone.
    word(server.connect_string(), "srst");
    // All of them come in at once, and the last is answered when its client has taken the others.
    client.stream.write_all(&burst).unwrap();
    for xid in 1..=READS {
        assert_eq!(client.answer().unwrap().xid, xid);
    }
    let mntr = word(server.connect_string(), "mntr");
    let told = |name: &str| {
        let value = mntr.lines().find_map(|line| line.strip_prefix(&format!("zk_{name}\t")));
        value.unwrap().parse::<f64>().unwrap()
    };
    assert!(told("max_latency") >= 1.0 && told("avg_latency") > 0.0, "{mntr}");
    assert!(told("min_latency") <= told("avg_latency"), "{mntr}");
    assert!(told("avg_latency") <= told("max_latency"), "{mntr}");
}

#[test]
fn reads_behind_a_write_are_not_all_answered_to_who_takes_no_answers() {
    const READS: i32 = 100;
    let server = start();
    let mut slow = client_of_a_large_node(&server);
    let mut other = Client::connect(server.connect_string());
    // All in one piece: the write waits to be committed when the reads come in.
    let mut burst = framed(0, OpCode::Create, |w| create(w, "/m", 0));
    for xid in 1..=READS {
        burst.extend(framed(xid, OpCode::GetData, |w| watched(w, "/big", false)));
    }
    slow.stream.write_all(&burst).unwrap();
    // All of it is served, as far as it is, before a node that is created now.
    other.created("/n", 0);
    let sent = word(server.connect_string(), "mntr");
    let sent = sent.lines().find_map(|line| line.strip_prefix("zk_packets_sent\t")).unwrap();
    // Those that may wait, and what fits the buffers in between.
    assert!(sent.parse::<i32>().unwrap() < 50, "{sent}");
    assert_eq!(slow.answer().unwrap().xid, 0);
    for xid in 1..=READS {
        let answer = slow.answer().unwrap();
        assert_eq!((answer.xid, answer.body.len()), (xid, 4 + MAX - 24 + 68));
    }
}

#[test]
fn an_event_ends_no_connection_for_the_answers_before_it() {
    const READS: i32 = 12;
    let server = start();
    let mut slow = client_of_a_large_node(&server);
    let mut other = Client::connect(server.connect_string());
    slow.exists("/n", true);
    // Each is answered four times the node: together more than the events that a client may be behind
    // with.
    let mut burst = framed(0, OpCode::Create, |w| create(w, "/m", 0));
    for xid in 1..=READS {
        burst.extend(framed(xid, OpCode::MultiRead, |w| {
            (0..4).for_each(|_| part(w, OpCode::GetData, |w| watched(w, "/big", false)));
            end(w);
        }));
    }
    slow.stream.write_all(&burst).unwrap();
    other.exists("/m", false);
    other.created("/n", 0);
    for xid in 0..=READS {
        let answer = slow.answer().unwrap();
        assert_eq!((answer.xid, answer.error), (xid, 0));
        assert!(xid == 0 || answer.body.len() > 4 * (MAX - 24), "{}", answer.body.len());
    }
    assert_eq!(slow.told(), [(1, "/n".to_owned())]);
}

#[test]
fn signs_of_life_count_when_they_come_in_though_they_are_served_later() {
    const SILENT: usize = 12;
    let options =
        ServerOptions { tick_time: Duration::from_millis(200), ..ServerOptions::for_tests() };
    let server = EmbeddedZooKeeper::start_with(options).unwrap();
    let greet = |timeout_ms| {
        let hello = Hello { timeout_ms, ..Hello::default() };
        let client = Client::greet(server.connect_string(), &hello).unwrap();
        assert_eq!(client.timeout_ms, timeout_ms);
        client
    };
    let mut slow = create_large_node(greet(4_000));
    let mut other = greet(4_000);
    let asked: Vec<i32> =
        (0..60).map(|_| slow.ask(OpCode::GetData, |w| watched(w, "/big", false))).collect();
    // Nothing is taken until so many silent sessions have expired, one after the other, that its own
    // would have, too. No ping is served meanwhile.
    for number in 0..SILENT {
        let path = format!("/e{number}");
        let mut silent = greet(400);
        silent.created(&path, 1);
        other.exists(&path, true);
        slow.stream.write_all(&framed(-2, OpCode::Ping, |_| {})).unwrap();
        let event = other.frame().unwrap();
        assert!(event.starts_with(&(-1_i32).to_be_bytes()), "{event:?}");
    }
    for xid in asked {
        assert_eq!(slow.answer().expect("a session").xid, xid);
    }
    for _ in 0..SILENT {
        assert_eq!(slow.answer().expect("a session").xid, -2);
    }
    assert_eq!(slow.exists("/big", false), 0);
}

#[test]
fn what_auth_stands_for_is_limited_in_a_request_and_in_a_name() {
    const LONGEST: usize = 16 << 10;
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let prove = |client: &mut Client, user: usize| {
        let mut body = Writer::new();
        body.int(0);
        body.string("digest");
        body.slice(Some(format!("{}:p", "u".repeat(user)).as_bytes()));
        client.stream.write_all(&framed(-4, OpCode::Auth, |w| w.raw(&body.finish()))).unwrap();
        client.answer().unwrap().error
    };
    // A colon and a digest of 28 characters follow the user; where the client is counts, too.
    assert_eq!(prove(&mut client, LONGEST - 29 - "127.0.0.1".len()), 0);
    let auth = [Acl { permissions: 31, id: Id::new("auth", "") }];
    let own = |w: &mut Writer, path: &str| {
        w.string(path);
        w.slice(None);
        Acl::encode_list(&auth, w);
        w.int(0);
    };
    let creates = |client: &mut Client, count: usize| {
        let answer = client.call(OpCode::Multi, |w| {
            for number in 0..count {
                part(w, OpCode::Create, |w| own(w, &format!("/n{count}-{number}")));
            }
            end(w);
        });
        answer.error
    };
    assert_eq!(creates(&mut client, 63), 0);
    // They would come to more than a frame can.
    assert_eq!(creates(&mut client, 64), -114);
    assert_eq!(client.exists("/n64-0", false), -101);
    // One at a time they wait for each other rather than in memory, and none is lost.
    let asked: Vec<i32> =
        (0..500).map(|n| client.ask(OpCode::Create, |w| own(w, &format!("/m{n}")))).collect();
    for xid in asked {
        let answer = client.answer().unwrap();
        assert_eq!((answer.xid, answer.error), (xid, 0));
    }
    assert_eq!(prove(&mut client, 1), -115);
    assert!(client.is_closed());
}

/// A request with its length before it.
fn framed(xid: i32, op: OpCode, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut body = Writer::new();
    body.int(xid);
    body.int(op.code());
    write(&mut body);
    let body = body.finish();
    [&i32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat()
}

#[test]
fn a_client_that_says_nothing_is_closed() {
    let options = ServerOptions {
        first_frame_timeout: Duration::from_millis(50),
        ..ServerOptions::for_tests()
    };
    let server = EmbeddedZooKeeper::start_with(options).unwrap();
    let mut client = Client::connect(server.connect_string());
    for said in [&[][..], b"\0\0", b"\0\0\0\x2d\0"] {
        let mut silent = TcpStream::connect(server.connect_string()).unwrap();
        silent.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        silent.write_all(said).unwrap();
        assert_eq!(silent.read(&mut [0]).unwrap(), 0, "{said:?}");
    }
    // One with a session stays.
    assert_eq!(client.exists("/", false), 0);
}

#[test]
fn words_are_answered_in_text() {
    let server = start();
    let address = server.connect_string();
    let _client = Client::connect(address);
    assert_eq!(word(address, "ruok"), "imok");
    assert_eq!(word(address, "isro"), "rw");
    let srvr = word(address, "srvr");
    assert!(srvr.contains("\nMode: standalone\nNode count: 5\n"), "{srvr}");
    for name in ["stat", "mntr", "conf", "cons", "envi", "dump", "wchc", "wchp", "dirs", "gtmk"] {
        assert!(!word(address, name).is_empty(), "{name}");
    }
    assert!(word(address, "mntr").contains("zk_num_alive_connections\t2\n"));
    assert_eq!(word(address, "srst"), "Server stats reset.\n");
    assert_eq!(word(address, "crst"), "Connection stats reset.\n");
}
