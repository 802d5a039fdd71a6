//! What quotas count, and what they refuse.

use anyhow::Result;
use wok_tests::frames::Opcode;
use wok_tests::wire::message::{
    Message, Watch::Leave, Watch::No, close_session, create, delete, get_data, multi, ping,
    set_data,
};
use wok_tests::wire::{Run, Who};

use crate::check;

fn limits_of(path: &str) -> String {
    format!("/zookeeper/quota{path}/zookeeper_limits")
}

fn stats_of(path: &str) -> String {
    format!("/zookeeper/quota{path}/zookeeper_stats")
}

/// What Apache's `setquota` does.
fn limit(run: &mut Run, who: Who, path: &str, limits: &str) -> Result<()> {
    for (at, _) in path.match_indices('/').skip(1).chain([(path.len(), "")]) {
        let place = format!("/zookeeper/quota{}", &path[..at]);
        run.call(who, create(&place).data(None))?;
    }
    run.call(who, create(&limits_of(path)).data(Some(limits.as_bytes())))?;
    run.call(who, create(&stats_of(path)).data(Some(b"count=0,bytes=0")))?;
    run.call(who, get_data(&stats_of(path), No))?;
    Ok(())
}

/// Does it, and looks at the counts.
fn counted(run: &mut Run, who: Who, path: &str, message: impl Into<Message>) -> Result<()> {
    run.call(who, message)?;
    run.call(who, get_data(&stats_of(path), No))?;
    Ok(())
}

const SOFT: &str = "count=2,bytes=3";

#[test]
fn nodes_and_bytes_below_a_limit_are_counted_alike() {
    check(|run| {
        let (a, b) = (run.connect("a")?, run.connect("b")?);
        run.call(a, create("/counted").data(Some(b"12345")))?;
        run.call(a, create("/counted/before").data(Some(b"1234567890")))?;
        run.call(a, create("/counted-not"))?;
        limit(run, a, "/counted", SOFT)?;
        run.call(a, get_data(&stats_of("/counted"), Leave))?;
        let on = |name: &str| format!("/counted{name}");
        for data in [Some(&b"abc"[..]), Some(b""), None] {
            let path = on(&format!("/{}", data.map_or(9, <[u8]>::len)));
            counted(run, a, "/counted", create(&path).data(data))?;
            counted(run, a, "/counted", set_data(&path, Some(b"longer than it was"), -1))?;
            counted(run, a, "/counted", set_data(&path, data, 1))?;
            counted(run, a, "/counted", set_data(&path, None, 7))?;
            counted(run, a, "/counted", create(&path).data(Some(b"there already")))?;
        }
        counted(run, a, "/counted", set_data("/counted", Some(b"1"), -1))?;
        counted(run, a, "/counted", create(&on("/s-")).flags(2).by(Opcode::Create2))?;
        counted(run, a, "/counted", create(&on("/ttl")).flags(5).ttl_ms(1_000_000))?;
        counted(run, b, "/counted", create(&on("/e")).flags(1))?;
        counted(run, a, "/counted", delete(&on("/before"), -1))?;
        counted(run, a, "/counted", delete(&on("/no"), -1))?;
        let parts = [
            create(&on("/m")).into(),
            create(&on("/m/m")).data(Some(b"12")).into(),
            set_data(&on("/m"), Some(b"123"), 0),
            delete(&on("/m/m"), -1),
        ];
        counted(run, a, "/counted", multi(&parts))?;
        counted(run, a, "/counted", multi(&[create(&on("/n")).into(), delete(&on("/no"), 1)]))?;
        run.call(b, close_session())?;
        run.call(a, get_data(&stats_of("/counted"), No))?;
        counted(run, a, "/counted", create("/counted-not/x"))?;
        run.call(a, ping())?;
        Ok(())
    });
}

#[test]
fn the_nearest_limit_counts_and_no_other() {
    check(|run| {
        let a = run.connect("a")?;
        for path in ["/near", "/near/er", "/near/er/est"] {
            run.call(a, create(path))?;
        }
        limit(run, a, "/near", SOFT)?;
        limit(run, a, "/near/er", SOFT)?;
        let both = |run: &mut Run, message: Message| {
            counted(run, a, "/near", message)?;
            run.call(a, get_data(&stats_of("/near/er"), No)).map(|_| ())
        };
        both(run, create("/near/1").into())?;
        both(run, create("/near/er/1").into())?;
        both(run, delete(&limits_of("/near/er"), -1))?;
        both(run, create("/near/er/2").into())?;
        both(run, delete("/near/er/1", -1))?;
        both(run, create(&limits_of("/near/er")).data(Some(SOFT.as_bytes())).into())?;
        both(run, create("/near/er/3").into())?;
        both(run, delete(&stats_of("/near/er"), -1))?;
        both(run, create("/near/er/4").into())?;
        both(run, create(&stats_of("/near/er")).by(Opcode::Create2).into())?;
        // Of what is not there, and of the servers' own.
        limit(run, a, "/nowhere", SOFT)?;
        run.call(a, create("/nowhere"))?;
        run.call(a, get_data(&stats_of("/nowhere"), No))?;
        limit(run, a, "/zookeeper", SOFT)?;
        limit(run, a, "/zookeeper/quota/near", SOFT)?;
        run.call(a, get_data(&stats_of("/zookeeper"), No))?;
        for path in ["/zookeeper", "/zookeeper/quota/near", "/near", "/near/er", "/nowhere"] {
            run.call(a, delete(&limits_of(path), -1))?;
            run.call(a, delete(&stats_of(path), -1))?;
        }
        Ok(())
    });
}

#[test]
fn counts_that_a_client_has_set_go_on_from_there() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/set"))?;
        limit(run, a, "/set", SOFT)?;
        // Of what is no number Apache's server ends.
        let texts = ["count=100,bytes=7", "bytes=3;count=2", "", "count=5=;x=1;a=2", "bytes=+9"];
        for (number, text) in texts.into_iter().enumerate() {
            counted(run, a, "/set", set_data(&stats_of("/set"), Some(text.as_bytes()), -1))?;
            counted(run, a, "/set", create(&format!("/set/{number}")))?;
        }
        Ok(())
    });
}

#[test]
fn hard_limits_refuse_alike_and_soft_ones_do_not() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/hard").data(Some(b"12345")))?;
        limit(run, a, "/hard", "count=1,bytes=1=;countHardLimit=3;byteHardLimit=12")?;
        let on = |name: &str| format!("/hard/{name}");
        counted(run, a, "/hard", create(&on("a")).data(Some(b"123456")))?;
        counted(run, a, "/hard", create(&on("b")).data(Some(b"12")))?;
        counted(run, a, "/hard", create(&on("b")).data(Some(b"1")))?;
        counted(run, a, "/hard", create(&on("c")).data(None))?;
        counted(run, a, "/hard", create(&on("c")).flags(3))?;
        counted(run, a, "/hard", set_data(&on("b"), Some(b"12"), 0))?;
        // Refused before the version is looked at, and not if no more is asked for than there is.
        counted(run, a, "/hard", set_data(&on("b"), Some(b"12"), 9))?;
        counted(run, a, "/hard", set_data(&on("b"), Some(b"2"), 9))?;
        counted(run, a, "/hard", set_data(&on("b"), Some(b"2"), 0))?;
        counted(run, a, "/hard", set_data(&on("a"), Some(b"1"), 0))?;
        let many = |data: &[u8]| {
            let parts = [
                delete(&on("b"), -1),
                create(&on("d")).data(Some(data)).into(),
                set_data(&on("a"), Some(data), -1),
            ];
            multi(&parts)
        };
        counted(run, a, "/hard", many(b"1"))?;
        counted(run, a, "/hard", delete(&on("b"), -1))?;
        let twice = [create(&on("d")).into(), create(&on("e")).into()];
        counted(run, a, "/hard", multi(&twice))?;
        counted(run, a, "/hard", create(&on("f")))?;
        counted(run, a, "/hard", create("/hard/no/f"))?;
        counted(run, a, "/hard", create(&on("f")).acls(&[]))?;
        counted(run, a, "/hard", create(&on("f")).by(Opcode::CreateContainer).flags(4))?;
        counted(run, a, "/hard", create(&on("f")).flags(5).ttl_ms(1_000_000))?;
        // A limit that is raised, and one that nothing is counted for.
        run.call(a, set_data(&limits_of("/hard"), Some(b"count=9,bytes=9"), -1))?;
        counted(run, a, "/hard", create(&on("f")))?;
        run.call(a, set_data(&limits_of("/hard"), Some(b"countHardLimit=0"), -1))?;
        counted(run, a, "/hard", create(&on("g")))?;
        run.call(a, delete(&stats_of("/hard"), -1))?;
        run.call(a, create(&on("g")))?;
        Ok(())
    });
}
