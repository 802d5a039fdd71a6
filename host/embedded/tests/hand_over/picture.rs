//! Everything a client can see of a tree, and something of everything to see.

use wok_embedded::jute::{Reader, Writer};
use wok_embedded::protocol::{Acl, Id, OpCode};

use crate::client::{Client, create, end, part, set, versioned, watched};

/// All nodes with their data, stats and access lists, as text.
pub(crate) fn picture(client: &mut Client) -> String {
    let mut lines = Vec::new();
    let mut open = vec!["/".to_owned()];
    while let Some(path) = open.pop() {
        // Data, then the stat.
        let data = client.call(OpCode::GetData, |w| watched(w, &path, false));
        let acl = client.call(OpCode::GetAcl, |w| w.string(&path));
        // The list, then the stat, which is there already.
        let list = Acl::decode_list(&mut Reader::new(&acl.body));
        lines.push(format!("{path} {} {:02x?} {} {list:?}", data.error, data.body, acl.error));
        for name in client.children(&path, false) {
            open.push(format!("{}/{name}", path.trim_end_matches('/')));
        }
    }
    lines.sort();
    lines.join("\n")
}

pub(crate) fn make(
    client: &mut Client,
    op: OpCode,
    path: &str,
    acl: &[Acl],
    flags: i32,
    ttl: Option<i64>,
) {
    let answer = client.call(op, |w| {
        w.string(path);
        w.slice(None);
        Acl::encode_list(acl, w);
        w.int(flags);
        if let Some(ttl) = ttl {
            w.long(ttl);
        }
    });
    assert_eq!(answer.error, 0, "{op:?} {path}");
}

/// Nodes of every kind, changed in every way. The server may be the other one each time.
pub(crate) fn populate(client: &mut Client, round: usize) {
    let root = format!("/round-{round}");
    let path = |name: &str| format!("{root}/{name}");
    client.created(&root, 0);
    // The server that has the directory counts what is below the root from now on.
    let quota = format!("/zookeeper/quota{root}");
    for place in ["", "/zookeeper_limits", "/zookeeper_stats"] {
        let answer = client.call(OpCode::Create, |w| {
            w.string(&format!("{quota}{place}"));
            w.slice(Some(b"count=3,bytes=9"));
            Acl::encode_list(&Acl::open(), w);
            w.int(0);
        });
        assert_eq!(answer.error, 0, "{quota}{place}");
    }
    for _ in 0..25 {
        client.created(&path("sequential-"), 2);
    }
    assert_eq!(client.delete(&path("sequential-0000000003")), 0);
    assert_eq!(client.set(&path("sequential-0000000004"), 0).error, 0);
    // Refused requests have their place in the log, too.
    assert_eq!(client.delete(&path("nowhere")), -101);
    assert_eq!(client.set(&path("sequential-0000000004"), 7).error, -103);

    let reader = Acl { permissions: 1, id: Id::new("world", "anyone") };
    let owner = |name: String| Acl { permissions: 31, id: Id::new("digest", &name) };
    let list = [reader.clone(), owner(format!("user{round}:digest"))];
    make(client, OpCode::Create2, &path("listed"), &list, 0, None);
    client.created(&path("relisted"), 0);
    let answer = client.call(OpCode::SetAcl, |w: &mut Writer| {
        w.string(&path("relisted"));
        let other = owner(format!("other{round}:digest"));
        Acl::encode_list(&[reader.clone(), other], w);
        w.int(0);
    });
    assert_eq!(answer.error, 0);

    make(client, OpCode::CreateContainer, &path("container"), &Acl::open(), 4, None);
    client.created(&path("container/child"), 0);
    make(client, OpCode::CreateTtl, &path("ttl"), &Acl::open(), 5, Some(3_600_000));
    client.created(&path("ephemeral"), 1);
    client.created(&path("é"), 0);

    let answer = client.call(OpCode::Multi, |w| {
        part(w, OpCode::Create, |w| create(w, &path("multi"), 0));
        part(w, OpCode::SetData, |w| set(w, &path("multi"), 0));
        part(w, OpCode::Check, |w| versioned(w, &path("multi"), 1));
        part(w, OpCode::Delete, |w| versioned(w, &path("sequential-0000000005"), 0));
        end(w);
    });
    assert_eq!(answer.error, 0);
    client.call(OpCode::Multi, |w| {
        part(w, OpCode::Create, |w| create(w, &path("never"), 0));
        part(w, OpCode::Check, |w| versioned(w, &path("multi"), 9));
        end(w);
    });
    // Names are used again.
    assert_eq!(client.delete(&path("relisted")), 0);
    client.created(&path("relisted"), 0);
}
