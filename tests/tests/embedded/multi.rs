//! Writes that are carried out together, and reads that are answered together.

use wok_tests::frames::Opcode;
use wok_tests::wire::message::{
    Message, Watch::Leave, Watch::No, add_watch, check as check_version, create, delete, exists,
    get_children, get_children2, get_data, multi, multi_read, ping, set_acl, set_data,
};

use crate::check;

#[test]
fn a_multi_fails_at_its_first_its_middle_and_its_last_part_and_does_nothing() {
    check(|run| {
        let (a, b) = (run.connect("a")?, run.connect("b")?);
        run.call(a, create("/fails"))?;
        for failing in 0..3 {
            run.call(b, get_children("/fails", Leave))?;
            run.call(b, get_data("/fails", Leave))?;
            let part = |index| match index == failing {
                true => check_version("/fails", 9),
                false if index == 1 => set_data("/fails", Some(b"set"), 0),
                false => create("/fails/s-").flags(2).into(),
            };
            run.call(a, multi(&[part(0), part(1), part(2)]))?;
            run.call(b, ping())?;
            run.call(a, get_data("/fails", No))?;
        }
        let codes = [
            delete("/fails/no", -1),
            create("/fails").into(),
            create("/fails/no/x").into(),
            create("/fails/x").flags(9).into(),
            create("/fails/.").into(),
            create("/fails/x").acls(&[]).into(),
            set_data("/fails", None, 3),
        ];
        for code in codes {
            run.call(a, multi(&[code]))?;
        }
        run.call(a, get_children2("/fails", No))?;
        Ok(())
    });
}

#[test]
fn a_part_sees_the_parts_before_it() {
    check(|run| {
        let a = run.connect("a")?;
        let parts = [
            create("/seen").into(),
            create("/seen/s-").flags(2).into(),
            create("/seen/s-").flags(3).by(Opcode::Create2).into(),
            set_data("/seen", Some(b"1"), 0),
            check_version("/seen", 1),
            set_data("/seen", Some(b"2"), 1),
            delete("/seen/s-0000000000", 0),
            create("/seen/s-").flags(2).into(),
        ];
        run.call(a, multi(&parts))?;
        run.call(a, get_children2("/seen", No))?;
        run.call(a, get_data("/seen", No))?;
        let whole = [create("/seen/x").into(), set_data("/seen/x", None, 0), delete("/seen/x", 1)];
        run.call(a, multi(&whole))?;
        run.call(a, multi(&[delete("/seen/x", -1), create("/seen/x").into()]))?;
        let twice = [create("/seen/y").into(), delete("/seen/y", -1), create("/seen/y").into()];
        run.call(a, multi(&twice))?;
        run.call(a, multi(&[create("/seen/e").flags(1).into(), create("/seen/e/x").into()]))?;
        run.call(a, multi(&[create("/seen/z").into(), delete("/seen", -1)]))?;
        run.call(a, get_children2("/seen", No))?;
        Ok(())
    });
}

#[test]
fn all_events_of_a_multi_come_in_its_order() {
    check(|run| {
        let (a, b) = (run.connect("a")?, run.connect("b")?);
        run.call(a, create("/told"))?;
        run.call(a, exists("/told/1", Leave))?;
        run.call(a, exists("/told/2", Leave))?;
        run.call(a, get_children("/told", Leave))?;
        run.call(b, add_watch("/told", 0))?;
        run.call(b, add_watch("/told/1", 1))?;
        let parts = [
            create("/told/1").into(),
            create("/told/2").into(),
            set_data("/told/1", None, -1),
            create("/told/1/x").into(),
            delete("/told/1/x", -1),
            delete("/told/1", -1),
        ];
        run.call(a, multi(&parts))?;
        run.call(a, exists("/told/2", No))?;
        run.call(b, exists("/told", No))?;
        Ok(())
    });
}

#[test]
fn reads_together_fail_one_by_one() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/reads"))?;
        run.call(a, create("/reads/x"))?;
        let reads = [
            get_data("/reads", No),
            get_data("/reads/no", No),
            get_children("/reads", No),
            get_children("/reads/no", Leave),
            get_data("/reads/x", Leave),
        ];
        run.call(a, multi_read(&reads))?;
        run.call(a, multi_read(&[]))?;
        run.call(a, multi_read(&[get_data("/reads", No), get_children2("/reads", No)]))?;
        run.call(a, multi_read(&[create("/reads/y").into()]))?;
        run.call(a, set_data("/reads/x", None, -1))?;
        Ok(())
    });
}

#[test]
fn multis_of_nothing_and_of_what_may_not_be_in_one_are_answered_alike() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/mixed"))?;
        let odd: [Vec<Message>; 9] = [
            vec![],
            vec![create("/mixed/a").into(), get_data("/mixed", No)],
            vec![get_data("/mixed", No)],
            vec![set_acl("/mixed", &[], -1)],
            vec![ping()],
            vec![multi(&[])],
            vec![create("/mixed/4").flags(4).into(), create("/mixed/5").flags(5).into()],
            vec![create("/mixed/c").flags(4).by(Opcode::CreateContainer).into()],
            vec![create("/mixed/t").flags(5).ttl_ms(10_000_000).into()],
        ];
        for parts in odd {
            run.call(a, multi(&parts))?;
        }
        run.call(a, get_children2("/mixed", No))?;
        Ok(())
    });
}
