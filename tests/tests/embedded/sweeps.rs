//! Nodes that go by themselves.

use wok_tests::frames::Opcode;
use wok_tests::wire::message::{
    Watch::Leave, Watch::No, create, delete, exists, get_children2, ping, set_data,
};
use wok_tests::wire::{ExtendedTypes, Pair};

use crate::{check, compare};

#[test]
fn a_container_goes_after_its_last_child_and_not_before_its_first() {
    check(|run| {
        let a = run.connect("a")?;
        let container = |path| create(path).by(Opcode::CreateContainer).flags(4);
        run.call(a, container("/swept"))?;
        run.call(a, container("/unused"))?;
        run.call(a, exists("/swept", No))?;
        run.call(a, create("/swept/x"))?;
        run.call(a, exists("/swept", Leave))?;
        run.call(a, delete("/swept/x", -1))?;
        run.event(a)?;
        run.call(a, exists("/swept", No))?;
        run.call(a, exists("/unused", No))?;
        run.call(a, delete("/unused", -1))?;
        Ok(())
    });
}

#[test]
fn a_node_whose_time_is_over_goes_unless_it_has_children() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/timed").flags(5).ttl_ms(2_000))?;
        run.call(a, exists("/timed", Leave))?;
        run.event(a)?;
        run.call(a, create("/timed"))?;
        // Of two that are due at the same sweep, the one with a child stays.
        run.call(a, create("/timed/parent").flags(5).ttl_ms(2_000))?;
        run.call(a, create("/timed/parent/child"))?;
        run.call(a, create("/timed/s-").flags(6).ttl_ms(2_200))?;
        run.call(a, exists("/timed/s-0000000001", Leave))?;
        run.call(a, exists("/timed/parent", No))?;
        run.event(a)?;
        run.call(a, get_children2("/timed", No))?;
        run.call(a, exists("/timed/parent", Leave))?;
        run.call(a, delete("/timed/parent/child", -1))?;
        run.event(a)?;
        run.call(a, create("/timed/kept").flags(5).ttl_ms(100_000_000))?;
        run.call(a, set_data("/timed/kept", None, -1))?;
        run.call(a, ping())?;
        run.call(a, get_children2("/timed", No))?;
        run.call(a, delete("/timed/kept", -1))?;
        Ok(())
    });
}

#[test]
fn a_time_to_live_is_refused_where_it_is_off() {
    let pair = Pair::start(ExtendedTypes::Off).unwrap();
    compare(&pair, |run| {
        let a = run.connect("a")?;
        for flags in [5, 6] {
            run.call(a, create("/off").flags(flags).ttl_ms(1_000))?;
            run.call(a, create("/off").flags(flags).ttl_ms(0))?;
        }
        run.call(a, create("/off").flags(5))?;
        run.call(a, create("/off").by(Opcode::CreateContainer).flags(4))?;
        run.call(a, exists("/off", No))?;
        Ok(())
    });
}
