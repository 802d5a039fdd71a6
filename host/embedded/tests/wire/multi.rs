//! Several operations in one.

use wok_embedded::jute::{Reader, Writer};
use wok_embedded::protocol::OpCode;

use crate::client::{Client, Stat, create, end, part, set, versioned, watched};
use crate::start;

#[test]
fn later_operations_see_earlier_ones_at_one_zxid() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let answer = client.call(OpCode::Multi, |w| {
        part(w, OpCode::Create, |w| create(w, "/m", 0));
        part(w, OpCode::Create, |w| create(w, "/m/s-", 2));
        part(w, OpCode::Create2, |w| create(w, "/m/s-", 2));
        part(w, OpCode::SetData, |w| set(w, "/m", 0));
        part(w, OpCode::Check, |w| versioned(w, "/m", 1));
        part(w, OpCode::Delete, |w| versioned(w, "/m/s-0000000000", -1));
        end(w);
    });
    assert_eq!(answer.error, 0);
    let mut reader = Reader::new(&answer.body);
    for path in ["/m", "/m/s-0000000000", "/m/s-0000000001"] {
        assert_eq!(header(&mut reader), (1, false, 0));
        assert_eq!(reader.string().unwrap(), path);
    }
    assert_eq!(header(&mut reader), (5, false, 0));
    let stat = Stat::read(&mut reader);
    assert_eq!((stat.version, stat.czxid, stat.mzxid), (1, answer.zxid, answer.zxid));
    assert_eq!(header(&mut reader), (13, false, 0));
    assert_eq!(header(&mut reader), (2, false, 0));
    assert_eq!(header(&mut reader), (-1, true, -1));
    assert!(reader.is_empty());
}

fn header(reader: &mut Reader<'_>) -> (i32, bool, i32) {
    (reader.int().unwrap(), reader.bool().unwrap(), reader.int().unwrap())
}

#[test]
fn one_failure_undoes_all_and_is_told_in_its_place() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/m", 0);
    client.children("/m", true);
    for failing in 0..3 {
        let answer = client.call(OpCode::Multi, |w| {
            for index in 0..3 {
                let sequential = |w: &mut Writer| create(w, "/m/s-", 2);
                match index == failing {
                    true => part(w, OpCode::Check, |w| versioned(w, "/m", 9)),
                    false => part(w, OpCode::Create, sequential),
                }
            }
            end(w);
        });
        assert_eq!(answer.error, 0);
        let mut reader = Reader::new(&answer.body);
        for index in 0..3 {
            let error = match index.cmp(&failing) {
                std::cmp::Ordering::Less => 0,
                std::cmp::Ordering::Equal => -103,
                std::cmp::Ordering::Greater => -2,
            };
            assert_eq!(header(&mut reader), (-1, false, error));
            assert_eq!(reader.int().unwrap(), error);
        }
    }
    assert_eq!(client.told(), []);
    assert_eq!(client.created("/m/s-", 2), "/m/s-0000000000");
}

#[test]
fn one_shot_watches_are_spent_by_the_first_of_a_multis_events() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.exists("/m1", true);
    client.exists("/m2", true);
    client.children("/", true);
    client.call(OpCode::Multi, |w| {
        part(w, OpCode::Create, |w| create(w, "/m1", 0));
        part(w, OpCode::Create, |w| create(w, "/m2", 0));
        end(w);
    });
    let expected = [(1, "/m1"), (4, "/"), (1, "/m2")];
    assert_eq!(client.told(), expected.map(|(kind, path)| (kind, path.to_owned())));
}

#[test]
fn reads_fail_one_by_one() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/m", 0);
    let answer = client.call(OpCode::MultiRead, |w| {
        part(w, OpCode::GetData, |w| watched(w, "/m", false));
        part(w, OpCode::GetData, |w| watched(w, "/no", false));
        part(w, OpCode::GetChildren, |w| watched(w, "/m", false));
        end(w);
    });
    let mut reader = Reader::new(&answer.body);
    assert_eq!(header(&mut reader), (4, false, 0));
    assert_eq!(reader.buffer().unwrap().unwrap(), "x");
    Stat::read(&mut reader);
    assert_eq!(header(&mut reader), (-1, false, -101));
    assert_eq!(reader.int().unwrap(), -101);
    assert_eq!(header(&mut reader), (8, false, 0));
    assert_eq!(reader.list(Reader::string).unwrap(), [""; 0]);
    assert_eq!(header(&mut reader), (-1, true, -1));
}

#[test]
fn reads_together_are_answered_up_to_a_limit() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/m", 0);
    client.call(OpCode::SetData, |w| {
        w.string("/m");
        w.slice(Some(&vec![7; 1_000_000]));
        w.int(-1);
    });
    let answer = client.call(OpCode::MultiRead, |w| {
        (0..10_000).for_each(|_| part(w, OpCode::GetData, |w| watched(w, "/m", false)));
        end(w);
    });
    let mut reader = Reader::new(&answer.body);
    for _ in 0..5 {
        assert_eq!(header(&mut reader), (4, false, 0));
        assert_eq!(reader.buffer().unwrap().unwrap().len(), 1_000_000);
        Stat::read(&mut reader);
    }
    for _ in 5..10_000 {
        assert_eq!(header(&mut reader), (-1, false, -5));
        assert_eq!(reader.int().unwrap(), -5);
    }
    assert_eq!(header(&mut reader), (-1, true, -1));
    assert!(reader.is_empty());
}

#[test]
fn reads_together_leave_no_watches() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    client.created("/m", 0);
    client.call(OpCode::MultiRead, |w| {
        part(w, OpCode::GetData, |w| watched(w, "/m", true));
        part(w, OpCode::GetChildren, |w| watched(w, "/m", true));
        end(w);
    });
    client.set("/m", -1);
    client.delete("/m");
    assert_eq!(client.told(), []);
}

#[test]
fn an_empty_multi_succeeds_and_a_mixed_one_cannot_be_read() {
    let server = start();
    let mut client = Client::connect(server.connect_string());
    let answer = client.call(OpCode::Multi, end);
    assert_eq!((answer.error, answer.body.len()), (0, 9));
    let answer = client.call(OpCode::Multi, |w| {
        part(w, OpCode::Create, |w| create(w, "/m", 0));
        part(w, OpCode::GetData, |w| watched(w, "/m", false));
        end(w);
    });
    assert_eq!((answer.error, answer.body.len()), (-5, 0));
}
