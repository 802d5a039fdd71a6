//! Nodes, their facts and their names.

use wok_tests::frames::Opcode;
use wok_tests::wire::message::{Acl, get_acl};
use wok_tests::wire::message::{
    Watch::No, create, delete, exists, get_all_children_number, get_children, get_children2,
    get_data, get_ephemerals, multi, set_acl, set_data, sync,
};
use wok_tests::wire::{ExtendedTypes, Pair};

use crate::{check, compare};

#[test]
fn a_fresh_server_has_the_same_nodes() {
    let pair = Pair::start(ExtendedTypes::On).unwrap();
    compare(&pair, |run| {
        let a = run.connect("a")?;
        for path in ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"] {
            run.call(a, get_data(path, No))?;
            run.call(a, get_acl(path))?;
            run.call(a, get_children2(path, No))?;
            run.call(a, get_all_children_number(path))?;
        }
        run.call(a, create("/first"))?;
        run.call(a, exists("/", No))?;
        run.call(a, set_data("/", Some(b"root"), 0))?;
        run.call(a, set_data("/zookeeper/config", Some(b""), -1))?;
        run.call(a, set_data("", Some(b""), -1))?;
        run.call(a, get_data("/", No))?;
        Ok(())
    });
}

#[test]
fn creations_are_answered_alike_with_and_without_data() {
    check(|run| {
        let a = run.connect("a")?;
        let kinds = [Opcode::Create, Opcode::Create2, Opcode::CreateContainer];
        for (kind, data) in kinds.into_iter().zip([Some(&b"abc"[..]), None, Some(b"")]) {
            let path = format!("/bytes-{kind:?}");
            let flags = if kind == Opcode::CreateContainer { 4 } else { 0 };
            run.call(a, create(&path).by(kind).data(data).flags(flags))?;
            run.call(a, create(&path).by(kind).data(data).flags(flags))?;
            run.call(a, get_data(&path, No))?;
            run.call(a, set_data(&path, None, -1))?;
            run.call(a, get_data(&path, No))?;
            run.call(a, set_data(&path, Some(b""), 1))?;
            run.call(a, get_data(&path, No))?;
        }
        run.call(a, create("/bytes-e").flags(1))?;
        run.call(a, create("/bytes-e2").flags(1).by(Opcode::Create2))?;
        run.call(a, get_ephemerals("/"))?;
        run.call(a, get_ephemerals("/bytes-e2"))?;
        run.call(a, get_ephemerals("/no"))?;
        run.call(a, get_ephemerals(""))?;
        Ok(())
    });
}

#[test]
fn children_move_the_parents_facts_and_data_does_not() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/facts"))?;
        for name in ["/facts/a", "/facts/b", "/facts/c"] {
            run.call(a, create(name))?;
            run.call(a, exists("/facts", No))?;
        }
        run.call(a, delete("/facts/b", -1))?;
        run.call(a, exists("/facts", No))?;
        run.call(a, set_data("/facts/a", Some(b"new"), -1))?;
        run.call(a, set_acl("/facts/a", &[Acl::anyone(Acl::ALL)], -1))?;
        run.call(a, exists("/facts/a", No))?;
        run.call(a, get_children2("/facts", No))?;
        run.call(a, get_all_children_number("/facts"))?;
        Ok(())
    });
}

#[test]
fn sequences_go_on_after_deletions_and_do_not_count_failures() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/sequence"))?;
        run.call(a, create("/sequence/n-").flags(2))?;
        run.call(a, create("/sequence/n-").flags(3))?;
        run.call(a, delete("/sequence/n-0000000000", -1))?;
        run.call(a, create("/sequence/n-").flags(2).acls(&[]))?;
        run.call(a, create("/sequence/\u{85}").flags(2))?;
        run.call(a, create("/sequence/plain"))?;
        run.call(a, create("/sequence/n-").flags(2).by(Opcode::Create2))?;
        run.call(a, create("/sequence/").flags(2))?;
        run.call(a, create("/sequence/n-").flags(6).ttl_ms(1_000_000))?;
        run.call(a, get_children("/sequence", No))?;
        Ok(())
    });
}

#[test]
fn sequences_within_a_multi_go_on_and_are_taken_back_with_it() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/counted"))?;
        let next = || create("/counted/n-").flags(2).into();
        run.call(a, multi(&[next(), next(), next()]))?;
        run.call(a, multi(&[next(), next(), delete("/counted/no", -1)]))?;
        run.call(a, next())?;
        run.call(a, get_children2("/counted", No))?;
        Ok(())
    });
}

#[test]
fn failed_writes_move_the_zxid_and_reads_do_not() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/moved"))?;
        run.call(a, create("/moved"))?;
        run.call(a, delete("/moved", 7))?;
        run.call(a, set_data("/moved", None, 7))?;
        run.call(a, set_acl("/moved", &[], -1))?;
        run.call(a, multi(&[delete("/moved/no", -1)]))?;
        run.call(a, create("/moved/\u{1}"))?;
        run.call(a, create("/moved/x").flags(9))?;
        run.call(a, sync("/moved"))?;
        run.call(a, exists("/moved", No))?;
        run.call(a, exists("/moved/no", No))?;
        run.call(a, get_children("/moved", No))?;
        run.call(a, delete("/moved", 0))?;
        Ok(())
    });
}
